// What connections of this process found of their paths, and with app/main/path_file.h those of earlier processes. A path that was
// not used for two days is forgotten: a job of every night finds what it knew the night before, even if one night was left out. As
// text, one line a host: the host, bytes a second, the round trip in microseconds, and when (seconds since 1970). Bounds:
// path_table_hosts_max, of which the oldest goes. A line that makes no sense is left out: what is forgotten costs a start from
// nothing.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/reliability/known_path.h"

namespace ccixfer::program {

inline constexpr size_t path_table_hosts_max = 1024;
inline constexpr int64_t path_life_s = 2 * 24 * 3600;

class PathTable final : public reliability::PathMemory {
 public:
  using WallTime = std::function<int64_t()>;  // seconds since 1970
  explicit PathTable(WallTime now) : now_(std::move(now)) {}
  [[nodiscard]] std::optional<reliability::KnownPath> recall(std::string_view host) const override;
  void remember(std::string_view host, const reliability::KnownPath& path) override;
  void read(std::string_view text);  // of each host the later one counts
  [[nodiscard]] std::string text() const;
  [[nodiscard]] size_t size() const { return hosts_.size(); }

 private:
  struct Known {
    reliability::KnownPath path;
    int64_t at_s = 0;
  };
  void add(std::string_view host, const Known& known);
  [[nodiscard]] bool counts(int64_t at_s) const;

  const WallTime now_;
  std::map<std::string, Known, std::less<>> hosts_;
};

}  // namespace ccixfer::program

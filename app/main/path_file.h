// The paths that this account's processes know (path_table.h), in a file: a nightly job is another process each night.
// The file is opened when this object is made, so that a confined process may still write it, and written when the object goes. It
// is a help and no more: one that cannot be read or written, that another process is writing just then, or that is torn by a crash
// costs nothing but a start from nothing.
#pragma once
#include <string>

#include "app/devices/path_table.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {

inline constexpr size_t path_file_bytes_max = 256u << 10;

class PathFile final : public reliability::PathMemory {
 public:
  PathFile(const std::string& file, PathTable::WallTime now);  // "": there is no such place, and nothing outlives the process
  ~PathFile() override;
  PathFile(const PathFile&) = delete;
  PathFile& operator=(const PathFile&) = delete;

  [[nodiscard]] std::optional<reliability::KnownPath> recall(std::string_view host) const override { return table_.recall(host); }
  void remember(std::string_view host, const reliability::KnownPath& path) override;

 private:
  void read();
  void write() const;

  PathTable table_;
  host::Descriptor file_;
  bool has_news_ = false;
};

}  // namespace ccixfer::program

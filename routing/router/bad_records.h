// Peers that tell bad records: each one is counted, and who goes on is cut off and not let in again
// for a while.
// Single-threaded. Bounds: cut_off_max.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "core/base/time.h"

namespace ccixfer::routing {

inline constexpr uint32_t link_offences_max = 32;  // bad records in a window
inline constexpr Duration link_offences_window = std::chrono::seconds(30);
inline constexpr Duration cut_off_time = std::chrono::seconds(60);
inline constexpr size_t cut_off_max = 1024;

// Of one link.
class BadRecordCount {
 public:
  [[nodiscard]] bool add(Instant now);  // false: it is one too many
  [[nodiscard]] bool first_to_log();    // true once: a peer must not fill the log

 private:
  uint32_t count_ = 0;
  Instant until_{};
  bool logged_ = false;
};

// By what we know of a peer ourselves: what a peer calls itself it may change, or take from
// another.
class CutOffPeers {
 public:
  // Of many, the first to be let in again is forgotten, never all.
  void add(const std::string& peer, Instant now);
  [[nodiscard]] bool has(const std::string& peer, Instant now) const;

 private:
  std::map<std::string, Instant> until_;
};

}  // namespace ccixfer::routing

// The configured peers of a router: which of them have a link, and when each of the others is
// dialled next. A peer that cannot be reached is dialled less and less often. Links are named by
// their packed Ref; 0 is no link. A peer is named by its place in the plan, which keep_only()
// changes.
// Single-threaded.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/time.h"

namespace ccixfer::routing {

inline constexpr Duration redial_first = std::chrono::milliseconds(250);
inline constexpr Duration redial_max = std::chrono::seconds(5);

struct ConfiguredPeer {
  uint32_t device = 0;
  std::string uri;
  std::string node;     // the address behind its last link
  uint64_t router = 0;  // as it last said
};

class DialPlan {
 public:
  // `tried`: nobody waits for it to be dialled once.
  void add(uint32_t device, std::string uri, bool tried);
  // Of that device only these stay. Returned: the links of the others.
  std::vector<uint64_t> keep_only(uint32_t device, std::span<const std::string> uris);
  [[nodiscard]] bool has(uint32_t device, const std::string& uri) const;

  [[nodiscard]] std::vector<size_t> due(Instant now) const;
  [[nodiscard]] const ConfiguredPeer& operator[](size_t peer) const { return entries_[peer].peer; }
  // It is due again after a while, and after a longer one the next time.
  void dials(size_t peer, Instant now);
  void has_link(size_t peer, uint64_t link) { entries_[peer].link = link; }
  void is_tried(size_t peer) { entries_[peer].tried = true; }

  void on_answer(uint64_t link);  // whatever it was: it was tried
  void on_self(uint64_t link);    // the router itself is there: it is never dialled again
  void on_open(uint64_t link, uint64_t router, const std::string& node, Instant now);
  void on_replaced(uint64_t link, uint64_t by);
  // The URIs of the peers that it served.
  std::vector<std::string> on_end(uint64_t link, Instant now);

  [[nodiscard]] bool all_tried() const;
  // Each(peer, link) of those that are other routers; link 0: none, not even one that is being dialled.
  template <typename Each>
  void for_each(const Each& each) const {
    for (const Entry& entry : entries_) {
      if (!entry.self) each(entry.peer, entry.link);
    }
  }
  [[nodiscard]] Instant next_deadline() const;

 private:
  struct Entry {
    ConfiguredPeer peer;
    uint64_t link = 0;
    bool tried = false;
    bool self = false;
    Instant opened_at = never;  // its link
    Instant next_dial{};
    Duration backoff = redial_first;
  };
  std::vector<Entry> entries_;
};

}  // namespace ccixfer::routing

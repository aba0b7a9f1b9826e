// One registry of counters for a process (or a simulated node): names are fixed at compile time, values are relaxed atomics: one
// thread adds, any may read. Reject paths count here: a peer's bad bytes never abort and are never silent.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ccixfer {

enum class Counter : uint8_t {
  frames_rejected,  // header check, unknown kind, length over its bound
  hello_rejected,   // magic, version, mandatory option
  connections_accepted,
  connections_refused,
  connections_lost,
  messages_received,
  messages_not_ready,
  rma_rejected,
  mailbox_rejected,
  bytes_in,  // transport payload and headers
  bytes_out,
  records_received,
  records_rejected,
  routed_connections,
  routed_messages,
  routed_fragments,
  routed_bytes,         // payload forwarded, counted once a router
  routed_bytes_passed,  // of these, those that never came into memory (ports::SplicePipe)
  routed_rejected,
  segments_bad,           // hash mismatch at the receiver
  session_rejected,       // malformed session messages, entries, paths that leave the root
  datagrams_rejected,     // check, magic or version, not from the connection's peer, or in the short form for none that is here
  datagrams_duplicate,    // a packet number that came before
  datagrams_lost,         // of ours, taken for lost
  datagrams_dropped,      // came, and found no room in the ring of this end (eth)
  datagrams_refused,      // of ours, that this host would not send: no route, a filter, an interface that is down or too short
  addresses_changed,      // of a peer that answered at the new one: its connection goes on there
  addresses_unproved,     // of which somebody said in a connection's name that its peer is there, and it is not
  acks_rejected,          // of packets that were never sent
  shared_rings_rejected,  // indices in shared memory that cannot be, or descriptors with a bell
  count_,
};
[[nodiscard]] std::string_view to_string(Counter counter);

class Counters {
 public:
  void add(Counter counter, uint64_t amount = 1) {
    // No fetch_add: it would lock the bus several times a message, for a second writer that there is not.
    std::atomic<uint64_t>& value = values_[static_cast<size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  [[nodiscard]] uint64_t get(Counter counter) const {
    return values_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Counter::count_)> values_{};
};

}  // namespace ccixfer

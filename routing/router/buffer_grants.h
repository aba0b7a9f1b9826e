// Who gets the next buffer. Fragments that wait are in the queue of their connection and class, and
// within a class connections take turns. A connection gets no shared buffer beyond what keeps its
// networks busy, and one that does not move gets none at all. A grant is only the decision and the
// buffer: the caller knows the fragment.
// Single-threaded. Every class has its reserved buffer, so that whoever waits does so for a bounded
// time.
// Source: routing/router/README.md 'A fragment's way', 'A peer that stands still'.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "core/base/ring_buffer.h"
#include "routing/router/connection_table.h"
#include "routing/router/devices.h"
#include "routing/router/fragment_pool.h"
#include "routing/router/rate_limit.h"

namespace ccixfer::routing {

inline constexpr uint32_t window_fragments_min = 4;  // of each leg of a connection

struct GrantedBuffer {
  uint64_t fragment = 0;
  memory::Loan buffer;
  Share share = Share::full;
};

// Whether a connection that moves had to wait for a buffer since that was asked last.
struct Pressed {
  bool buffers = false;  // one that may have all shared buffers had to wait
  bool trial = false;    // one that may have only a part of them had to wait
};

class BufferGrants {
 public:
  BufferGrants(const RouterMechanisms& mechanisms, uint64_t rate_bytes_per_s, FragmentPool& pool,
               const ConnectionTable& connections, const StoodStill& stood_still, const Devices& devices);
  void queue(RelayedConnection& connection, uint8_t data_class, const WaitingFragment& fragment);
  // For one fragment of the next connection in turn. nullopt: no fragment of the class waits, none
  // can have a buffer, or the rate is used up.
  [[nodiscard]] std::optional<GrantedBuffer> next(uint8_t data_class, Instant now);
  // A buffer that was granted from this share has come back.
  void is_over(Share share) { --shares_[static_cast<size_t>(share)]; }
  [[nodiscard]] Pressed take_pressed() { return std::exchange(pressed_, {}); }
  void set_rate(uint64_t bytes_per_s, Instant now) { rate_.set(bytes_per_s, now); }
  // The length of fragments on which a connection agrees that is set up now. A connection that is open keeps its own when the
  // rate changes.
  [[nodiscard]] uint32_t fragment_bytes() const { return rate_.fragment_bytes(pool_.fragment_bytes()); }
  [[nodiscard]] Instant next_deadline(Instant now) const;

 private:
  [[nodiscard]] std::optional<GrantedBuffer> next_in_turn(uint8_t data_class, Instant now);
  [[nodiscard]] Share share_of(const RelayedConnection& connection, Instant now) const;
  [[nodiscard]] bool has_left(Share share) const;
  [[nodiscard]] bool must_wait(const RelayedConnection& connection, uint8_t from, Share share) const;
  [[nodiscard]] uint32_t window(const RelayedConnection& connection) const;
  [[nodiscard]] memory::Loan take(const RelayedConnection& connection, uint8_t data_class, bool shared);
  void take_turn(RelayedConnection& connection, uint8_t data_class);

  const RouterMechanisms mechanisms_;
  RateLimit rate_;
  FragmentPool& pool_;
  const ConnectionTable& connections_;
  const StoodStill& stood_still_;
  const Devices& devices_;
  // Connections with fragments waiting, by class.
  std::array<RingBuffer<uint64_t>, classes_max> turns_;
  std::vector<uint64_t> passed_over_;  // within next()
  std::array<uint32_t, 3> shares_{};   // buffers that are out, by Share
  Pressed pressed_;
};

}  // namespace ccixfer::routing

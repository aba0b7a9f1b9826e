// What a router knows of the fragments of one relayed connection: which of them wait for a buffer
// or for room below, which are exposed to the next router, how many buffers they have, and which
// reads were asked for further on.
// Fragments are named by their packed Ref. An idle connection costs no queue: these come with its
// first fragment and go at release(). Single-threaded.
// Bounds: fragments_per_side_max, which the caller keeps.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/base/time.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

struct WaitingFragment {
  uint64_t fragment = 0;
  uint32_t length_bytes = 0;
  uint8_t from = 0;  // the leg where its data are
};

// One exposed fragment, as the next router names it.
struct Exposure {
  uint8_t to = 0;  // the leg of the next router
  bool of_read = false;
  uint64_t cookie = 0;
};

// A read whose question went on to the next router.
struct Question {
  uint8_t to = 0;  // the leg of that router
  uint64_t cookie = 0;
};

class ConnectionFragments {
 public:
  [[nodiscard]] uint32_t known() const { return known_; }
  void add() { ++known_; }
  // True: it was the last one, and release() is to be called when the connection has been idle for
  // a while.
  [[nodiscard]] bool remove();
  void release();  // the memory of the queues, if no fragment is known

  // Buffers, by the leg that their fragments come from.
  [[nodiscard]] uint32_t buffers(uint8_t from) const { return buffers_[from]; }
  [[nodiscard]] uint32_t buffers() const { return buffers_[0] + buffers_[1]; }
  void take_buffer(uint8_t from) { ++buffers_[from]; }
  void give_buffer(uint8_t from) { --buffers_[from]; }

  // Lower RMAs of ours on a leg: pulls from it, and pushes to it.
  [[nodiscard]] uint32_t under_way(uint8_t leg) const { return under_way_[leg]; }
  void begin_on(uint8_t leg) { ++under_way_[leg]; }
  void end_on(uint8_t leg) { --under_way_[leg]; }

  // Those without a buffer, by class. A connection stands in the turn order of a class once: wait()
  // says true when the caller has to put it there, and leave_turn() says that it is there no more.
  [[nodiscard]] bool wait(uint8_t data_class, const WaitingFragment& fragment);
  [[nodiscard]] const WaitingFragment* first_waiting(uint8_t data_class) const;  // nullptr: none
  void drop_first_waiting(uint8_t data_class);
  void leave_turn(uint8_t data_class) { in_turn_ = static_cast<uint8_t>(in_turn_ & ~(1u << data_class)); }

  // Those whose lower RMA found no room. The side of the Ref says whether it is the push.
  void stall(uint64_t fragment) { queues().stalled.push_back(fragment); }
  [[nodiscard]] bool has_stalled() const { return queues_ != nullptr && !queues_->stalled.empty(); }
  [[nodiscard]] std::vector<uint64_t> take_stalled();

  // false: that name is in use.
  [[nodiscard]] bool expose(const Exposure& exposure, uint64_t fragment);
  [[nodiscard]] uint64_t exposed_as(const Exposure& exposure) const;  // 0: none
  void withdraw(const Exposure& exposure);

  // A question has one answer. false: that name is in use, or fragments_per_side_max are asked.
  [[nodiscard]] bool ask(const Question& question, uint32_t length_bytes);
  // The answer has come: how much was asked for. none: nobody has asked.
  [[nodiscard]] std::optional<uint32_t> take_question(const Question& question);
  void forget_if_idle();  // after an answer that brings no fragment: as release(), where that is not due anyway

  // All that wait, are exposed or are stalled, when the connection ends. Those that are exposed
  // stay so.
  [[nodiscard]] std::vector<uint64_t> take_all();

  // When a fragment went through last, so that both ends are known to move; never: none has.
  [[nodiscard]] Instant proven_at() const { return proven_at_; }
  void prove(Instant now) { proven_at_ = now; }

 private:
  struct Queues {
    std::array<RingBuffer<WaitingFragment>, classes_max> waiting;
    RingBuffer<uint64_t> stalled;
    std::map<std::array<uint64_t, 2>, uint64_t> exposed;
    std::map<std::array<uint64_t, 2>, uint32_t> asked;  // lengths
  };
  Queues& queues();
  std::unique_ptr<Queues> queues_;
  uint32_t known_ = 0;
  std::array<uint32_t, 2> buffers_{}, under_way_{};
  uint8_t in_turn_ = 0;  // a bit for each class
  bool to_be_released_ = false;
  Instant proven_at_ = never;
};

}  // namespace ccixfer::routing

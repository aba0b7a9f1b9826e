// What a destination says to its source: answers and messages at once, results and requests as fast
// as the source takes them. The queue of the control channel has a bound, so the answers wait too
// when much was posted that the source has not got: `is_full`.
// Protocol thread. Memory: a result for each file in work, and a request for each piece that is
// wanted again.
#pragma once
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "app/recv/entries.h"
#include "app/session/limits.h"
#include "app/session/messages.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::recv {

inline constexpr uint32_t messages_unsent_max = session::control_messages_queued_max / 4;

class Outbox {
 public:
  using Post = std::function<void(const session::Message&)>;
  // `itemizes`: the source wants to know what is done to each entry.
  explicit Outbox(Post post, bool itemizes = false) : post_(std::move(post)), itemizes_(itemizes) {}
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void post(const session::Message& message);
  void close() { is_closed_ = true; }  // the link is gone: nothing leaves any more
  void delivered() { unsent_ = 0; }    // the control channel has delivered all of it
  [[nodiscard]] bool is_full() const { return !is_closed_ && unsent_ > messages_unsent_max; }

  // The verdicts on consecutive entries, behind what a source must know before them.
  void answer(uint64_t first_index, const std::vector<Decision>& decisions);
  void report_durable(const session::Durable& durable);  // posted if it is news
  void ask_for_put(uint64_t lane_session, uint64_t n);
  void ask_for_piece(uint64_t index, uint64_t piece);
  void add_result(const session::FileResult& result) { results_.push_back(result); }
  void flush_requests();
  void flush_results();
  [[nodiscard]] bool has_results() const { return !results_.empty(); }

 private:
  void itemize(uint64_t first_index, const std::vector<Decision>& decisions);
  template <typename List>
  void post_in_parts(const List& list);

  const Post post_;
  const bool itemizes_;
  bool is_closed_ = false;
  uint32_t unsent_ = 0;
  session::Durable durable_;  // as posted last
  std::vector<session::FileResult> results_;
  RingBuffer<session::Resend> requests_;
};

}  // namespace ccixfer::recv

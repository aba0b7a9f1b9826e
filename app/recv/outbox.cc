#include "app/recv/outbox.h"

#include <utility>

namespace ccixfer::recv {

void Outbox::post(const session::Message& message) {
  if (is_closed_) return;
  post_(message);
  ++unsent_;
}

template <typename List>
void Outbox::post_in_parts(const List& list) {
  for (const session::Message& message : session::cut(list)) post(message);
}

void Outbox::itemize(uint64_t first_index, const std::vector<Decision>& decisions) {
  session::Itemized itemized;
  itemized.first_index = first_index;
  for (const Decision& decision : decisions) {
    if (itemized.runs.empty() || itemized.runs.back().items != decision.items) itemized.runs.push_back({0, decision.items});
    ++itemized.runs.back().count;
  }
  const bool is_silent = itemized.runs.empty() || (itemized.runs.size() == 1 && itemized.runs.front().items == 0);
  if (!is_silent) post_in_parts(itemized);
}

namespace {

// That it stays matters to the source's receipt only: here it is done, or unchanged.
session::Verdict told(const Decision& decision) { return decision.stays ? session::Verdict::kept : decision.verdict; }

}  // namespace

void Outbox::answer(uint64_t first_index, const std::vector<Decision>& decisions) {
  if (itemizes_) itemize(first_index, decisions);
  session::Answer answer;
  answer.first_index = first_index;
  session::FileResults failures;
  uint64_t index = first_index;
  for (const Decision& decision : decisions) {
    if (answer.runs.empty() || answer.runs.back().verdict != told(decision)) answer.runs.push_back({0, told(decision)});
    ++answer.runs.back().count;
    if (decision.verdict == session::Verdict::failed) {
      failures.results.push_back({index, ErrorKind::file_io, decision.error_number});
    }
    const bool is_here_in_part = decision.verdict == session::Verdict::pieces ||
                                 ((decision.verdict == session::Verdict::compare || decision.verdict == session::Verdict::shared) &&
                                  !decision.present.empty());
    if (is_here_in_part && !decision.wants.empty()) {
      post_in_parts(session::Want{index, decision.wants});
    }
    ++index;
  }
  if (!failures.results.empty()) post_in_parts(failures);
  if (!answer.runs.empty()) post_in_parts(answer);
}

void Outbox::report_durable(const session::Durable& durable) {
  if (durable.bytes == durable_.bytes && durable.files == durable_.files) return;
  post(durable);
  durable_ = durable;
}

void Outbox::ask_for_put(uint64_t lane_session, uint64_t n) {
  session::Resend request;
  request.index = session::Resend::by_segment;
  request.lane_session = lane_session;
  request.n = n;
  requests_.push_back(request);
}

void Outbox::ask_for_piece(uint64_t index, uint64_t piece) {
  session::Resend request;
  request.index = index;
  request.piece = piece;
  requests_.push_back(request);
}

void Outbox::flush_requests() {
  while (!requests_.empty() && !is_full()) {
    post(requests_.front());
    requests_.drop_front();
  }
}

void Outbox::flush_results() {
  if (results_.empty() || is_full()) return;
  post_in_parts(session::FileResults{std::exchange(results_, {})});
}

}  // namespace ccixfer::recv

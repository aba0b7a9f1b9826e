#include "app/recv/helper.h"

#include <algorithm>
#include <utility>

#include "app/session/session_keys.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {

Helper::Helper(const HelperParts& parts)
    : link_(parts.link),
      opener_(link_.keys() != nullptr ? std::make_unique<session::DataOpener>(link_.keys()->data(trust::SealKey::Use::open))
                                      : nullptr),
      buffers_max_(parts.pool.count()),
      outbox_([this](const session::Message& message) { link_.post(message); }),
      lanes_(link_, parts.mailboxes, parts.pool, parts.entropy, parts.turns, parts.rate),
      liveness_(forever) {}

Helper::~Helper() { CHECK(idle() && team_ == nullptr); }

void Helper::start(Instant now) {
  now_ = last_progress_ = brought_at_ = now;
  liveness_.start(now);
  for (const session::LaneIndex lane : link_.live_lanes()) {
    if (!lanes_.is_live(lane)) on_lane_up(lane);
  }
}

void Helper::turn(Instant now) {
  now_ = now;
  had_lane_ = had_lane_ || lanes_.has_live();
  // Its source begins a new session: what was with this one goes to others at once, and it need not know which of it. It is judged
  // here, since a lane that moves goes and comes in one turn of its link.
  if (had_lane_ && !lanes_.has_live() && !is_end_posted_)
    abort({ErrorKind::network, "the connection was lost: others do what was left to it"});
  const bool is_held_up = inbox_.held() > 0 || lanes_.holds_back() || lanes_.idle();  // by this end
  if (is_held_up) brought_at_ = now;
  if (is_link_gone_ || link_.messages_delivered()) outbox_.delivered();
  if (team_ == nullptr || finished()) {
    while (!inbox_.empty()) {
      ReceivedSegment arrival = inbox_.take();
      inbox_.release(arrival);
    }
    lanes_.close_all();
    return;
  }
  outbox_.flush_requests();
  outbox_.flush_results();
  lanes_.turn(now, buffers_max_, inbox_.held());
  // It waits for its team, which works: it hears that as of a disk that works.
  liveness_.look(now, 1, steps_);
  const std::optional<session::Alive> alive = liveness_.take_alive(now);
  if (alive && link_.messages_delivered()) outbox_.post(*alive);
}

Instant Helper::next_deadline() const {
  if (finished()) return never;
  return std::min(lanes_.next_deadline(), liveness_.next_deadline());
}

void Helper::on_completion(const rvma::Completion& completion) {
  std::optional<ReceivedSegment> arrival = lanes_.take(completion);
  if (!arrival) return;
  bytes_ += arrival->length_bytes;
  last_progress_ = brought_at_ = now_;
  inbox_.add(std::move(*arrival));
  if (team_ != nullptr && !finished()) team_->on_segment();
}

bool Helper::has_brought_nothing_for(Duration patience, Instant now) const { return is_here() && now - brought_at_ >= patience; }

void Helper::end(const session::TeamEnded& how) {
  if (finished() || std::exchange(is_end_posted_, true)) return;
  outbox_.flush_requests();
  outbox_.flush_results();
  outbox_.post(how);
}

void Helper::abort(const Error& error) {
  if (finished()) return;
  outbox_.post(session::Abort{error.kind, error.message});
  error_ = error;
  is_gone();
}

void Helper::is_gone() {
  if (team_ != nullptr) team_->on_helper_gone(*this);
}

void Helper::on_lane_up(session::LaneIndex lane) {
  if (!finished()) lanes_.up(lane);
}

void Helper::on_lane_down(session::LaneIndex lane) { lanes_.down(lane); }

void Helper::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  const auto* ask = std::get_if<session::Ask>(&message);
  if (ask == nullptr || !lanes_.asked(lane, ask->limit)) reject("a lane message that makes no sense");
}

void Helper::on_message(const session::Message& message) {
  if (finished()) return;
  last_progress_ = now_;
  if (std::holds_alternative<session::Alive>(message)) return;
  brought_at_ = now_;
  if (const auto* end = std::get_if<session::FileEnd>(&message)) {
    if (team_ != nullptr) team_->on_file_end(*this, *end);
  } else if (const auto* holes = std::get_if<session::Holes>(&message)) {
    if (team_ != nullptr) team_->on_holes(*this, *holes);
  } else if (const auto* ask = std::get_if<session::AskPlace>(&message)) {
    if (team_ != nullptr) team_->on_ask_place(*this, *ask);
  } else if (const auto* placed = std::get_if<session::Placed>(&message)) {
    if (team_ != nullptr) team_->on_placed(*this, *placed);
  } else if (const auto* abort = std::get_if<session::Abort>(&message)) {
    error_ = session::error_of(*abort, "the helper");
    is_gone();
  } else if (std::holds_alternative<session::Bye>(message) && is_end_posted_) {
    is_bye_said_ = true;
    is_gone();
  } else {
    reject("a message that no helper sends");
  }
}

void Helper::on_put(session::LaneIndex, uint64_t, Status) {}

void Helper::on_link_lost(const Error& error) {
  is_link_gone_ = true;
  outbox_.close();
  if (!is_end_posted_ && !error_) error_ = error;
  is_gone();
}

void Helper::reject(std::string_view why) { abort({ErrorKind::protocol, "a helper sent " + std::string(why)}); }

}  // namespace ccixfer::recv

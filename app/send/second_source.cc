#include "app/send/second_source.h"

#include <algorithm>
#include <utility>

#include "app/session/session_keys.h"

namespace ccixfer::send {

SecondSource::SecondSource(const SecondSourceParts& parts)
    : link_(parts.link), path_(parts.path), sender_(parts.link, parts.pool_region, parts.rate) {
  if (link_.keys() != nullptr) {
    wrapping_.sealer = std::make_shared<session::DataSealer>(link_.keys()->data(trust::SealKey::Use::seal));
  }
  wrapping_.compressor = parts.compressor;
}

SecondSource::~SecondSource() { ends(); }

void SecondSource::start(Instant now) {
  now_ = last_progress_ = now;
  for (const session::LaneIndex lane : link_.live_lanes()) {
    if (!sender_.lanes().is_up(lane)) on_lane_up(lane);
  }
  path_->attach(this);
  is_attached_ = true;
}

void SecondSource::ends() {
  if (std::exchange(is_attached_, false)) path_->attach(static_cast<SecondPathLink*>(nullptr));
}

void SecondSource::turn(Instant now) {
  now_ = now;
  has_news_ = false;
  sender_.close_lost_lanes();
  if (error_ || is_bye_posted_) return ends();
  // Nothing is on its way: silence is no fault of the peer's.
  if (!path_->has_unplaced()) last_progress_ = now;
  if (path_->is_over()) {
    is_bye_posted_ = true;
    link_.post(session::Bye{});
    return ends();
  }
  sender_.retry_puts(now);
  sender_.send_ready_segments(now);
}

Instant SecondSource::next_deadline() const {
  if (has_news_ || sender_.has_lanes_to_close()) return now_;
  return finished() ? never : sender_.next_deadline(now_);
}

bool SecondSource::finished() const { return error_ || (is_bye_posted_ && link_.messages_delivered()); }

void SecondSource::abort(const Error& error) {
  if (error_) return;
  link_.post(session::Abort{error.kind, error.message});
  error_ = error;
  has_news_ = true;
}

void SecondSource::tell_second_receiver(const session::Message& message) {
  has_news_ = true;
  link_.post(message);
}

void SecondSource::add(FilledSegment&& segment) {
  has_news_ = true;
  path_->piece_goes(segment.header.index, segment.header.sequence);
  sender_.add(std::move(segment));
}

void SecondSource::on_lane_up(session::LaneIndex lane) {
  if (lane < session::lanes_max) sender_.lane_up(lane);
  has_news_ = true;
}

// The first receiver is there meanwhile: nothing waits for this connection to come back, and another session may follow.
void SecondSource::on_lane_down(session::LaneIndex lane) {
  sender_.lane_gone(lane);
  if (sender_.lanes().live() == 0 && !is_bye_posted_) abort({ErrorKind::network, "the connection was lost"});
  has_news_ = true;
}

void SecondSource::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  if (error_) return;
  has_news_ = true;
  if (const auto* where = std::get_if<session::LaneOpen>(&message)) return judge(sender_.lane_opened(lane, *where));
  if (const auto* credit = std::get_if<session::Credit>(&message)) return judge(sender_.credit(lane, *credit));
  judge(false);
}

void SecondSource::on_message(const session::Message& message) {
  if (error_) return;
  has_news_ = true;
  last_progress_ = now_;
  if (std::holds_alternative<session::Alive>(message)) return;
  if (const auto* state = std::get_if<session::PlaceState>(&message)) return judge(path_->on_state(*state));
  if (const auto* placed = std::get_if<session::Placed>(&message)) return judge(path_->on_placed(*placed));
  if (const auto* resend = std::get_if<session::Resend>(&message)) return judge(on_resend(*resend));
  if (const auto* abort = std::get_if<session::Abort>(&message)) {
    error_ = session::error_of(*abort, "the second receiver");
    return;
  }
  judge(false);
}

// The second receiver can only say which put came damaged, or which piece.
bool SecondSource::on_resend(const session::Resend& resend) {
  if (resend.index != session::Resend::by_segment) return path_->on_wanted_again(resend.index, resend.piece);
  const SentPut* put = sender_.find_sent(resend.lane_session, resend.n);
  return put == nullptr || path_->on_wanted_again(put->header.index, put->header.sequence);
}

void SecondSource::judge(bool makes_sense) {
  if (!makes_sense) abort({ErrorKind::protocol, "the second receiver sent something that makes no sense"});
}

void SecondSource::on_put(session::LaneIndex lane, uint64_t context, Status status) {
  has_news_ = true;
  if (sender_.put_ended(lane, context, status)) last_progress_ = now_;
}

void SecondSource::on_link_lost(const Error& error) {
  if (!error_) error_ = error;
  has_news_ = true;
}

}  // namespace ccixfer::send

#include "app/send/second_source.h"

#include <algorithm>
#include <utility>

#include "app/session/session_keys.h"

namespace ccixfer::send {

SecondSource::SecondSource(const SecondSourceParts& parts)
    : link_(parts.link), path_(parts.path), sender_(parts.link, parts.pool_region, parts.rate), liveness_(parts.disk_patience) {
  if (link_.keys() != nullptr) {
    wrapping_.sealer = std::make_shared<session::DataSealer>(link_.keys()->data(trust::SealKey::Use::seal));
  }
  wrapping_.compressor = parts.compressor;
}

SecondSource::~SecondSource() { ends(); }

void SecondSource::start(Instant now) {
  now_ = moved_at_ = now;
  liveness_.start(now);
  for (const session::LaneIndex lane : link_.live_lanes()) {
    if (!sender_.lanes().is_up(lane)) on_lane_up(lane);
  }
  path_->attach(this);
  is_attached_ = true;
}

void SecondSource::look_whether_it_moves() {
  if (!path_->has_unplaced() || sender_.waits_for_rate(now_)) moved_at_ = now_;
  const bool is_stuck = now_ - moved_at_ >= second_path_patience;
  if (std::exchange(is_stuck_, is_stuck) != is_stuck) path_->load_changed();
}

void SecondSource::ends() {
  if (std::exchange(is_attached_, false)) path_->attach(static_cast<SecondPathLink*>(nullptr));
}

void SecondSource::turn(Instant now) {
  now_ = now;
  has_news_ = false;
  sender_.close_lost_lanes();
  if (error_ || is_bye_posted_) return ends();
  // It is judged here, since a lane that moves goes and comes in one turn of its link. The first receiver is there meanwhile:
  // nothing waits for this connection to come back, and another session may follow.
  had_lane_ = had_lane_ || sender_.lanes().live() > 0;
  if (had_lane_ && sender_.lanes().live() == 0) return abort({ErrorKind::network, "the connection was lost"});
  if (!path_->has_unplaced() || sender_.waits_for_rate(now)) liveness_.made_progress();  // silence is no fault of the peer's
  liveness_.look(now, 0, 0);
  look_whether_it_moves();
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
  if (finished()) return never;
  const Instant stuck_at = path_->has_unplaced() && !is_stuck_ ? after(moved_at_, second_path_patience) : never;
  return std::min(sender_.next_deadline(now_), stuck_at);
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

void SecondSource::on_lane_down(session::LaneIndex lane) {
  sender_.lane_gone(lane);
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
  if (const auto* alive = std::get_if<session::Alive>(&message)) return liveness_.heard(*alive);
  liveness_.answered();
  liveness_.made_progress();
  if (const auto* state = std::get_if<session::PlaceState>(&message)) return judge(path_->on_state(*state));
  if (const auto* placed = std::get_if<session::Placed>(&message)) {
    bytes_placed_ += placed->hashes.size() * session::piece_bytes;
    moved_at_ = now_;
    return judge(path_->on_placed(*placed));
  }
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
  if (!sender_.put_ended(lane, context, status)) return;
  liveness_.made_progress();
  moved_at_ = now_;
}

void SecondSource::on_link_lost(const Error& error) {
  if (!error_) error_ = error;
  has_news_ = true;
}

}  // namespace ccixfer::send

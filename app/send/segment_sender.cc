#include "app/send/segment_sender.h"

#include <algorithm>

#include "app/session/session_keys.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::send {

using session::LaneIndex;
using session::SegmentKind;

namespace {

// The mailbox is there and will take it in a moment.
bool is_passing(Status status) {
  return status == Status::mailbox_empty || status == Status::mailbox_busy || status == Status::receiver_not_ready ||
         status == Status::busy || status == Status::again || status == Status::no_buffers;
}

}  // namespace

SegmentSender::SegmentSender(session::Link& link, ports::Handle pool_region, std::shared_ptr<RateCap> rate)
    : link_(link), pool_region_(pool_region), rate_(std::move(rate)) {}

void SegmentSender::add(FilledSegment&& segment) {
  trace_stage("[stage 3] segment");
  const bool entries = segment.header.kind == SegmentKind::entries;
  const uint32_t slot = segments_.take().index;
  segments_[slot] = Outgoing{std::move(segment)};
  if (entries) ++entries_segments_;
  (entries ? entries_ready_ : data_ready_).push_back(slot);
}

bool SegmentSender::lane_opened(LaneIndex lane, const session::LaneOpen& where) {
  if (!lanes_.opened(lane, where)) return false;
  if (const session::SessionKeys* keys = link_.keys()) {
    put_keys_.insert_or_assign(lane, keys->puts(where.lane_session, trust::SealKey::Use::seal));
  }
  return true;
}
bool SegmentSender::credit(LaneIndex lane, const session::Credit& credit) { return lanes_.credit(lane, credit); }

void SegmentSender::judge_pace(Instant now) {
  for (const Placed& put : placed_) {
    const bool same_lane = lanes_.is_up(put.lane) && lanes_.at(put.lane).where.lane_session == put.lane_session;
    if (same_lane) lanes_.put_took(put.lane, put.carried_bytes, now - put.put_at);
  }
  placed_.clear();
}

void SegmentSender::send_ready_segments(Instant now) {
  judge_pace(now);
  while (!entries_ready_.empty() || !data_ready_.empty()) {
    if (!rate_->may_send(now)) return;
    const std::optional<LaneIndex> lane = lanes_.choose((entries_ready_.size() + data_ready_.size()) * session::piece_bytes);
    if (!lane) return ask_for_credit();
    RingBuffer<uint32_t>& queue = entries_ready_.empty() ? data_ready_ : entries_ready_;
    if (put(queue.front(), *lane, false, now)) queue.drop_front();
  }
}

// On one lane for each segment that is ready, where the destination wants to be asked. No question more: the buffer that it brings
// would stay empty, and others wait for it.
void SegmentSender::ask_for_credit() {
  const size_t ready = entries_ready_.size() + data_ready_.size();
  for (size_t asked = lanes_.asked(); asked < ready; ++asked) {
    const std::optional<LaneIndex> lane = lanes_.ask();
    if (!lane) return;
    link_.post_on_lane(*lane, session::Ask{lanes_.at(*lane).limit});
  }
}

// A put takes its number when the link has taken it, so that the numbers of a lane are dense.
// False: not on this lane now.
bool SegmentSender::put(uint32_t slot, LaneIndex lane, bool again, Instant now) {
  Outgoing& segment = segments_[slot];
  const LaneTable::Lane& to = lanes_.at(lane);
  session::SegmentHeader& header = segment.header;
  if (!again) header.n = to.next_n;
  header.session = link_.session();
  header.lane_session = to.where.lane_session;
  const memory::Loan& loan = segment.buffer.loan();
  const auto key = put_keys_.find(lane);
  const uint32_t length = session::seal_hashed(loan.bytes(), header, key != put_keys_.end() ? &key->second : nullptr);
  const uint64_t mailbox = to.where.mailbox_base + header.n % to.where.stripe_count;
  const uint64_t context = segments_.name_of(slot).packed();
  const Status status = link_.put(lane, pool_region_, loan.offset_bytes(), length, mailbox, to.where.key,
                                  header.n / to.where.stripe_count, context, loan.shows_file());
  if (status != Status::success) {
    if (is_passing(status)) {
      lanes_.stall(lane);
    } else {
      lose_lane(lane);
    }
    return false;
  }
  if (again) {
    lanes_.put_accepted_again(lane, length);
  } else {
    lanes_.put_accepted(lane, length);
  }
  segment.put_at = now;
  segment.put_bytes = length;
  segment.carried_bytes = to.in_air_bytes;
  sent_.add(header, segment.files);
  rate_->sent(now, length);
  bytes_sent_ += header.is_compressed() ? std::min<uint64_t>(segment.payload_bytes, header.data_bytes) : segment.payload_bytes;
  content_sent_ += segment.payload_bytes;
  if (segment.resend) ++segments_resent_;
  return true;
}

std::optional<session::SegmentHeader> SegmentSender::put_ended(LaneIndex lane, uint64_t context, Status status) {
  const uint32_t slot = SlotName::of(context).index;
  CHECK(segments_.find(SlotName::of(context)) != nullptr);  // each put ends once
  Outgoing& segment = segments_[slot];
  lanes_.put_ended(lane, segment.put_bytes);
  if (status == Status::success) {
    const session::SegmentHeader placed = segment.header;
    placed_.push_back({lane, placed.lane_session, segment.put_at, segment.carried_bytes});
    release(slot);
    return placed;
  }
  segment.resend = true;
  if (lanes_.is_up(lane) && is_passing(status)) {
    retries_.push_back({slot, lane, never});  // its number is taken, so it goes again with the same one
  } else {
    requeue(slot);
    lose_lane(lane);
  }
  return std::nullopt;
}

void SegmentSender::retry_puts(Instant now) {
  lanes_.unstall();
  std::vector<Retry> later;
  std::vector<Retry> due;
  due.swap(retries_);
  for (Retry& retry : due) {
    if (retry.at == never) retry.at = after(now, put_retry_pause);
    if (!lanes_.is_up(retry.lane)) {  // it is being closed
      requeue(retry.slot);
    } else if (retry.at > now || !rate_->may_send(now)) {
      later.push_back(retry);
    } else if (!put(retry.slot, retry.lane, true, now)) {
      retry.at = after(now, put_retry_pause);
      later.push_back(retry);
    }
  }
  retries_.insert(retries_.end(), later.begin(), later.end());
}

void SegmentSender::requeue(uint32_t slot) {
  const bool entries = segments_[slot].header.kind == SegmentKind::entries;
  (entries ? entries_ready_ : data_ready_).push_front(slot);
}

void SegmentSender::release(uint32_t slot) {
  FilledSegment& segment = segments_[slot];
  if (segment.header.kind == SegmentKind::entries) --entries_segments_;
  segment.buffer.reset();
  segments_.release(slot);
}

// Puts that waited for another try on this lane go on others: when the lane comes back, it is a new
// lane session.
void SegmentSender::lane_gone(LaneIndex lane) {
  lanes_.down(lane);
  lanes_to_close_.erase(std::remove(lanes_to_close_.begin(), lanes_to_close_.end(), lane), lanes_to_close_.end());
  const auto here =
      std::stable_partition(retries_.begin(), retries_.end(), [lane](const Retry& retry) { return retry.lane != lane; });
  for (auto retry = here; retry != retries_.end(); ++retry) requeue(retry->slot);
  retries_.erase(here, retries_.end());
}

// The numbers of the lane have a gap now, so nothing more goes there. What the lane did not place
// goes on others.
void SegmentSender::lose_lane(LaneIndex lane) {
  if (!lanes_.is_up(lane)) return;
  lanes_.down(lane);
  lanes_to_close_.push_back(lane);
}

void SegmentSender::close_lost_lanes() {
  std::vector<LaneIndex> closing;
  closing.swap(lanes_to_close_);
  for (const LaneIndex lane : closing) link_.close_lane(lane);
}

bool SegmentSender::waits_for_rate(Instant now) const {
  return !rate_->may_send(now) && (!entries_ready_.empty() || !data_ready_.empty() || !retries_.empty());
}

Instant SegmentSender::next_deadline(Instant now) const {
  Instant at = waits_for_rate(now) ? rate_->free_at() : never;
  for (const Retry& retry : retries_) at = std::min(at, retry.at);
  return at;
}

}  // namespace ccixfer::send

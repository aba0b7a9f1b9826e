// Segments to lanes: the choice, the number, the seal, the put, and what becomes of it.
#include <algorithm>

#include "app/send/source_machine.h"
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

void Source::Impl::add_segment(Buffer buffer, const session::SegmentHeader& header, std::vector<uint64_t> files,
                               uint64_t payload_bytes, bool resend) {
  trace_hop("[hop 3] segment");
  const uint32_t slot = segments_.take();
  Segment& segment = segments_[slot];
  segment.buffer = std::move(buffer);
  segment.header = header;
  segment.files = std::move(files);
  segment.payload_bytes = payload_bytes;
  segment.resend = resend;
  (header.kind == SegmentKind::entries ? entries_ready_ : data_ready_).push_back(slot);
}

void Source::Impl::put_on() {
  while (!entries_ready_.empty() || !data_ready_.empty()) {
    if (!rate_->may_send(now_)) return;
    const std::optional<LaneIndex> lane = lanes_.choose();
    if (!lane) return ask_on();
    RingBuffer<uint32_t>& queue = entries_ready_.empty() ? data_ready_ : entries_ready_;
    const uint32_t slot = queue.front();
    if (put(slot, *lane, false)) queue.drop_front();
  }
}

// A lane for each segment that is ready, where the destination wants to be asked.
void Source::Impl::ask_on() {
  for (size_t ready = entries_ready_.size() + data_ready_.size(); ready > 0; --ready) {
    const std::optional<LaneIndex> lane = lanes_.ask();
    if (!lane) return;
    link_.post_on_lane(*lane, session::Ask{lanes_.at(*lane).limit});
  }
}

// A put takes its number when the link has taken it, so that the numbers of a lane are dense. False: not on this lane now.
bool Source::Impl::put(uint32_t slot, LaneIndex lane, bool again) {
  Segment& segment = segments_[slot];
  const LaneTable::Lane& to = lanes_.at(lane);
  session::SegmentHeader& header = segment.header;
  if (!again) header.n = to.next_n;
  header.session = link_.session();
  header.lane_session = to.where.lane_session;
  const memory::Loan& loan = segment.buffer.loan();
  const uint32_t length = session::seal_hashed(loan.bytes(), header);
  const uint64_t mailbox = to.where.mailbox_base + header.n % to.where.stripe_count;
  const uint64_t context = uint64_t{segment.generation} << 32u | slot;
  const Status status = link_.put(lane, pool_region_, loan.offset_bytes(), length, mailbox, to.where.key,
                                  header.n / to.where.stripe_count, context, loan.shows_file());
  if (status != Status::success) {
    if (is_passing(status)) {
      lanes_.stall(lane);
    } else {
      lane_lost(lane);
    }
    return false;
  }
  if (again) {
    lanes_.put_accepted_again(lane);
  } else {
    lanes_.put_accepted(lane);
  }
  sent_.push_back({header.lane_session, header, segment.files});
  if (sent_.size() > sent_puts_max) sent_.drop_front();
  rate_->sent(now_, length);
  totals_.bytes_sent += segment.payload_bytes;
  if (segment.resend) ++totals_.segments_resent;
  return true;
}

void Source::Impl::on_put(LaneIndex lane, uint64_t context, Status status) {
  const auto slot = static_cast<uint32_t>(context);
  CHECK(slot < segments_.size() && segments_[slot].generation == context >> 32u && segments_[slot].buffer);
  lanes_.put_ended(lane);
  if (status == Status::success) {
    confirmed();
    const session::SegmentHeader header = segments_[slot].header;
    release_segment(slot);
    if (header.kind != SegmentKind::piece) return;
    Entry* entry = entries_.find(header.index);
    if (entry == nullptr || !entry->large) return;
    --entry->large->unplaced;
    return settle(*entry);
  }
  segments_[slot].resend = true;
  if (lanes_.is_up(lane) && is_passing(status)) {
    retries_.push_back({slot, lane, never});  // its n is taken: it goes again as what it was
    return;
  }
  requeue(slot);
  lane_lost(lane);
}

void Source::Impl::retry_puts() {
  std::vector<Retry> later;
  std::vector<Retry> due;
  due.swap(retries_);
  for (Retry& retry : due) {
    if (retry.at == never) retry.at = after(now_, put_retry_pause);
    if (!lanes_.is_up(retry.lane)) {  // being closed
      requeue(retry.slot);
    } else if (retry.at > now_ || !rate_->may_send(now_)) {
      later.push_back(retry);
    } else if (!put(retry.slot, retry.lane, true)) {
      retry.at = after(now_, put_retry_pause);
      later.push_back(retry);
    }
  }
  retries_.insert(retries_.end(), later.begin(), later.end());
}

void Source::Impl::requeue(uint32_t slot) {
  const bool entries = segments_[slot].header.kind == SegmentKind::entries;
  (entries ? entries_ready_ : data_ready_).push_front(slot);
}

void Source::Impl::release_segment(uint32_t slot) {
  Segment& segment = segments_[slot];
  if (segment.header.kind == SegmentKind::entries) --entries_segments_;
  segment.buffer.reset();
  ++segment.generation;
  segments_.release(slot);
}

// What waited for another try on it goes to others: when it comes back, it is a new lane session.
void Source::Impl::lane_gone(LaneIndex lane) {
  lanes_.down(lane);
  lanes_to_close_.erase(std::remove(lanes_to_close_.begin(), lanes_to_close_.end(), lane), lanes_to_close_.end());
  const auto here =
      std::stable_partition(retries_.begin(), retries_.end(), [lane](const Retry& retry) { return retry.lane != lane; });
  for (auto retry = here; retry != retries_.end(); ++retry) requeue(retry->slot);
  retries_.erase(here, retries_.end());
}

// Its numbers have a gap now, so nothing more goes there: it is closed, and what it did not place goes to others.
void Source::Impl::lane_lost(LaneIndex lane) {
  if (!lanes_.is_up(lane)) return;
  lanes_.down(lane);
  lanes_to_close_.push_back(lane);
}

}  // namespace ccixfer::send

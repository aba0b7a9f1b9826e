#include "core/reliability/message_window.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/wire/message_frames.h"

namespace ccixfer::reliability {

MessageBytes copy_message(std::span<const Bytes> parts) {
  size_t size = 0;
  for (const Bytes part : parts) size += part.size();
  CHECK(size <= UINT32_MAX);
  MessageBytes message;
  message.size = static_cast<uint32_t>(size);
  std::byte* to = message.here.data();
  if (!message.is_short()) {
    auto memory = std::make_shared_for_overwrite<std::byte[]>(size);
    to = memory.get();
    message.elsewhere = std::move(memory);
  }
  for (const Bytes part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  message.check = wire::payload_check_of(message.bytes());
  return message;
}

void MessageSender::open(uint32_t window, bool unreliable) {
  window_ = window;
  unreliable_ = unreliable;
}

void MessageSender::push(MessageOwner owner, MessageBytes bytes, Duration timeout) {
  Entry& entry = queue_.emplace_back();
  entry.owner = owner;
  entry.bytes = std::move(bytes);
  entry.timeout = unreliable_ ? forever : timeout;
  if (!owner.rma) {
    ++application_count_;
    ++issued_;
  }
}

void MessageSender::stamp(Instant now) {
  for (; stamped_ < queue_.size(); ++stamped_) queue_[stamped_].deadline = after(now, queue_[stamped_].timeout);
}

void MessageSender::end(const MessageOwner& owner, Status status, const Ended& ended) {
  if (!owner.rma) {
    --application_count_;
    ++ended_;
  }
  ended(owner, status);
}

MessageSender::Outgoing MessageSender::take(const Ended& ended) {
  CHECK(sendable());
  Outgoing outgoing{queue_[next_].bytes, base_ + next_, flight_};
  if (!unreliable_) {
    ++next_;
    return outgoing;
  }
  const Entry entry = queue_.pop_front();
  ++base_;
  if (stamped_ > 0) --stamped_;
  end(entry.owner, Status::success, ended);  // not reported before: timer() takes an unreliable one out of the queue at once
  return outgoing;
}

void MessageSender::sent(uint64_t flight) {
  if (!unreliable_ && flight == flight_) ++sent_;
}

void MessageSender::pop_delivered(uint64_t count, const Ended& ended) {
  for (; count > 0; --count) {
    const MessageOwner owner = queue_.front().owner;
    queue_.drop_front();
    ++base_;
    --next_;
    --sent_;
    if (stamped_ > 0) --stamped_;
    if (reported_ > 0) {
      --reported_;
    } else {
      end(owner, Status::success, ended);
    }
    pause_ = Duration{0};
  }
}

void MessageSender::go_back(Instant now) {
  ++flight_;
  next_ = 0;
  sent_ = 0;
  paused_ = true;
  pause_ = pause_ == Duration{0} ? retry_pause_first : std::min(pause_ * 2, retry_pause_max);
  retry_at_ = after(now, pause_);
}

bool MessageSender::acknowledge(uint64_t next, Status status, Instant now, const Ended& ended) {
  if (unreliable_ || next < base_ || next - base_ > sent_) return false;
  pop_delivered(next - base_, ended);
  if (status == Status::success) return true;
  if (sent_ == 0) return false;  // it refuses a message that it did not get
  if (status == Status::disconnected) {
    peer_leaving_ = true;
    fail_all(Status::disconnected, ended);
    return true;
  }
  go_back(now);
  timer(now, ended);  // it may have been the last chance
  return true;
}

// Tried again after a refusal: the answer tells how it ended, and is waited for at most as long again.
Instant MessageSender::given_up_at(const Entry& entry) const {
  return pause_ > Duration{0} ? after(entry.deadline, entry.timeout) : entry.deadline;
}

void MessageSender::timer(Instant now, const Ended& ended) {
  if (paused_) {
    // Nothing of the queue can be delivered while we pause (the receiver waits for the refused one), so its numbers may be used
    // again.
    if (reported_ < queue_.size() && queue_[reported_].deadline <= now) {
      fail_all(Status::receiver_not_ready, ended);
      return;
    }
    if (retry_at_ <= now) {
      paused_ = false;
    }
    return;
  }
  while (reported_ < queue_.size() && given_up_at(queue_[reported_]) <= now) {
    const Entry entry = queue_[reported_];
    if (reported_ < next_) {
      ++reported_;  // it may yet arrive: its number is taken
    } else {
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(reported_));
      if (stamped_ > reported_) --stamped_;
    }
    end(entry.owner, Status::timed_out, ended);
  }
}

void MessageSender::fail_all(Status status, const Ended& ended) {
  ++flight_;
  RingBuffer<Entry> failed = std::move(queue_);
  queue_.clear();
  const size_t reported = reported_;
  next_ = sent_ = reported_ = stamped_ = 0;
  paused_ = false;
  pause_ = Duration{0};
  for (size_t i = 0; i < failed.size(); ++i) {
    if (i >= reported) end(failed[i].owner, status, ended);
  }
}

Instant MessageSender::deadline() const {
  if (reported_ >= stamped_) return paused_ ? retry_at_ : never;
  return paused_ ? std::min(queue_[reported_].deadline, retry_at_) : given_up_at(queue_[reported_]);
}

void MessageReceiver::open(uint32_t window, bool unreliable) {
  window_ = window;
  unreliable_ = unreliable;
}

MessageReceiver::Verdict MessageReceiver::arriving(uint64_t sequence) const {
  if (sequence < expected_ || (!unreliable_ && sequence - told_ >= window_)) return Verdict::violation;
  if (leaving_) return Verdict::drop;
  if (sequence == expected_) return Verdict::deliver;
  return refusing_ ? Verdict::drop : Verdict::violation;
}

void MessageReceiver::delivered() {
  ++expected_;
  refusing_ = false;
  refusal_due_ = false;
  due_ = !unreliable_;
  if (unreliable_) told_ = expected_;
}

void MessageReceiver::refused() {
  if (leaving_) return dropped();
  if (unreliable_) return delivered();
  refusing_ = true;
  refusal_due_ = true;
  due_ = true;
}

void MessageReceiver::dropped() {
  // One refusal: the sender then gives up all that follows.
  if (leaving_ && !unreliable_ && !leaving_told_) refusal_due_ = due_ = true;
}

uint64_t MessageReceiver::carried_acknowledgement() {
  if (unreliable_) return 0;
  told_ = expected_;
  due_ = refusal_due_;
  return expected_;
}

MessageReceiver::Acknowledgement MessageReceiver::acknowledgement() {
  Acknowledgement acknowledgement{expected_, Status::success};
  if (refusal_due_) {
    acknowledgement.status = leaving_ ? Status::disconnected : Status::receiver_not_ready;
    leaving_told_ = leaving_;
  }
  told_ = expected_;
  due_ = false;
  refusal_due_ = false;
  return acknowledgement;
}

}  // namespace ccixfer::reliability

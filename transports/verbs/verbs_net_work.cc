// VerbsNet: what the card has done, and the end of pairs.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/host/clock.h"
#include "transports/verbs/verbs_net.h"

namespace ccixfer::verbs {

using rdma::PairId;
using rdma::WorkStatus;

namespace {

WorkStatus status_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return WorkStatus::success;
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
      return WorkStatus::remote_access;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
      return WorkStatus::local_access;
    default:
      return WorkStatus::flushed;
  }
}

bool is_silence(ibv_wc_status status) { return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_RNR_RETRY_EXC_ERR; }

std::string words_of(ibv_wc_status status) {
  if (is_silence(status)) return fmt::format("the peer's card does not answer ({})", ibv_wc_status_str(status));
  return fmt::format("the connection is broken ({})", ibv_wc_status_str(status));
}

}  // namespace

// ---- Completions.

size_t VerbsNet::take_completions(int batches) {
  size_t taken = 0;
  for (int i = 0; i < batches; ++i) {
    const size_t count = card_->poll(done_);
    for (size_t at = 0; at < count; ++at) take_completion(done_[at]);
    taken += count;
    if (count < done_.size()) break;
  }
  return taken;
}

// No end is needed: slots that were received are not posted again, and nothing is posted meanwhile.
void VerbsNet::take_all_completions() {
  while (!is_lost() && take_completions(1) == batch) continue;
}

void VerbsNet::take_completion(const ibv_wc& done) {
  Pair* pair = of_number(done.qp_num);
  if ((done.wr_id & receive_bit) != 0) return take_received(done, pair);
  if (pair != nullptr) take_ended(done, *pair);  // else what a pair left behind that is destroyed
}

void VerbsNet::take_received(const ibv_wc& done, Pair* pair) {
  const auto slot = static_cast<uint32_t>(done.wr_id & ~receive_bit);
  // A write with a word for the receiver takes a slot and fills none, and its length is that of the write.
  const bool is_message =
      done.status == IBV_WC_SUCCESS && done.opcode == IBV_WC_RECV && done.byte_len > 0 && done.byte_len <= card_limits_.slot_bytes;
  if (pair == nullptr || !is_message) {
    card_->repost(slot);
    if (pair == nullptr || done.status == IBV_WC_WR_FLUSH_ERR) return;
    const char* what = done.status == IBV_WC_SUCCESS ? "it is no message" : ibv_wc_status_str(done.status);
    return break_pair(*pair, Status::disconnected, fmt::format("the peer sent what cannot be received: {}", what));
  }
  if (pair->state == State::accepting) {  // the peer's word that it knows of our yes was lost, or was overtaken
    static_cast<void>(rdma_notify(pair->manager.get(), IBV_EVENT_COMM_EST));
    opened(*pair);
  }
  News news;
  news.what = Told::received;
  news.pair = pair->id;
  news.slot = slot;
  news.bytes = done.byte_len;
  told_.push_back(news);
}

void VerbsNet::take_ended(const ibv_wc& done, Pair& pair) {
  if (pair.posted.empty()) return;  // a card may do what it refused to take, before it sees that the pair is broken
  const Posted posted = pair.posted.pop_front();
  --work_of_all_;
  if (posted.slot) card_->return_send_slot(*posted.slot);
  if (posted.kind != Kind::send) {
    News news;
    news.what = Told::completed;
    news.pair = pair.id;
    news.tag = posted.tag;
    news.status = status_of(done.status);
    told_.push_back(news);
  } else if (--pair.unsent == 0 && pair.state == State::open) {
    tell(Told::sendable, pair.id);
  }
  if (done.status == IBV_WC_SUCCESS) return;
  break_pair(pair, is_silence(done.status) ? Status::timed_out : Status::disconnected, words_of(done.status));
}

void VerbsNet::tell_room() {
  if (starved_.empty()) return;
  std::erase_if(starved_, [&](PairId id) {
    Pair* pair = find(id);
    if (pair == nullptr || pair->state != State::open) return true;
    if (!has_room(*pair) || !card_->has_send_slot()) return false;
    pair->is_starved = false;
    tell(Told::sendable, id);
    return true;
  });
}

// ---- Events of the card.

// Read when a pair is waited for, too: what concerns others is handled in the next poll.
void VerbsNet::note_card_events() {
  while (!is_lost()) {
    const std::optional<Card::Event> event = card_->next_event();
    if (!event) return;
    Pair* pair = of_number(event->pair_number);
    if (event->type != IBV_EVENT_QP_LAST_WQE_REACHED) {
      card_told_.push_back({event->type, pair == nullptr ? 0 : pair->id, event->port});
      continue;
    }
    tells_last_receive_ = true;
    if (pair != nullptr) pair->may_hold_slot = false;
  }
}

void VerbsNet::take_card_events() {
  card_ready_ = false;
  note_card_events();
  while (!card_told_.empty() && !is_lost()) take_card_event(card_told_.pop_front());
}

void VerbsNet::take_card_event(const CardNews& news) {
  Pair* pair = find(news.pair);
  switch (news.type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
      if (pair != nullptr)
        break_pair(*pair, Status::disconnected, fmt::format("the connection is broken ({})", ibv_event_type_str(news.type)));
      return;
    case IBV_EVENT_COMM_EST:
      if (pair != nullptr && pair->state == State::accepting)
        static_cast<void>(rdma_notify(pair->manager.get(), IBV_EVENT_COMM_EST));
      return;
    case IBV_EVENT_PORT_ERR:
      if (news.port == card_->port()) fail_device(fmt::format("the port of the RDMA device {} is down", device_), false);
      return;
    case IBV_EVENT_CQ_ERR:
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_DEVICE_FATAL:
      return fail_device(fmt::format("the RDMA device {} has failed ({})", device_, ibv_event_type_str(news.type)), true);
    default:
      return;
  }
}

void VerbsNet::fail_device(const std::string& reason, bool for_good) {
  if (is_lost()) return;
  failure_ = reason;
  pairs_.for_each([&](Pair& pair) {
    if (pair.state == State::ended) return;
    if (pair.state != State::breaking) {
      pair.end = pair.queue != nullptr ? Status::disconnected : Status::unreachable;
      pair.words = reason;
    }
    if (pair.queue == nullptr || for_good) {
      end_pair(pair);
    } else {
      break_pair(pair, Status::disconnected, reason);
    }
  });
  if (!for_good) return;
  listener_.reset();
  static_cast<void>(watched_.remove(card_wakes_));
  static_cast<void>(watched_.remove(card_events_));
  card_->shut();
  lost_ = reason;
}

// ---- The end of a pair.

void VerbsNet::set_to_error(const Pair& pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  static_cast<void>(ibv_modify_qp(pair.queue.get(), &attributes, IBV_QP_STATE));
}

void VerbsNet::break_pair(Pair& pair, Status status, std::string reason) {
  if (pair.state == State::breaking || pair.state == State::ended) return;
  pair.state = State::breaking;
  pair.end = status;
  pair.words = std::move(reason);
  pair.limit = Instant::min();
  set_to_error(pair);
  static_cast<void>(rdma_disconnect(pair.manager.get()));
  breaking_.push_back(pair.id);
}

void VerbsNet::end_broken() {
  if (breaking_.empty()) return;
  std::vector<PairId> later;
  for (const PairId id : std::exchange(breaking_, {})) {
    Pair* pair = find(id);
    if (pair == nullptr || pair->state != State::breaking) continue;
    if (pair->limit == Instant::min()) pair->limit = after(now_, flush_limit);
    if (pair->posted.empty() || now_ >= pair->limit) {
      end_pair(*pair);
    } else {
      later.push_back(id);
    }
  }
  breaking_.insert(breaking_.end(), later.begin(), later.end());
}

void VerbsNet::end_pair(Pair& pair) {
  if (pair.state == State::requested) --requests_;
  pair.state = State::ended;  // so that what is found below does not break it
  take_all_completions();
  for (const Posted& posted : release_queue(pair)) {
    if (posted.kind == Kind::send) continue;
    News news;
    news.what = Told::completed;
    news.pair = pair.id;
    news.tag = posted.tag;
    news.status = WorkStatus::flushed;
    told_.push_back(news);
  }
  tell(Told::closed, pair.id);
}

// A card may have taken a receive slot for a message of which not all has come, and completes it a moment after the pair was put
// into the error state. Then it says that it takes no more slots for the pair. Soft-RoCE says nothing: it is waited for once.
void VerbsNet::await_last_receive(const Pair& pair) {
  const host::SystemClock clock;
  const Instant until = after(clock.now(), last_receive_limit);
  while (tells_last_receive_ && !is_lost()) {
    note_card_events();
    if (!pair.may_hold_slot) return;
    const Duration left = until - clock.now();
    tells_last_receive_ = left > Duration::zero();
    if (!tells_last_receive_) return;
    pollfd events{card_->event_descriptor(), POLLIN, 0};
    static_cast<void>(::poll(&events, 1, static_cast<int>(left.count() / 1'000'000 + 1)));
  }
}

// Whatever was posted, the card does not touch any more: destroying waits for that. Its number may be given out again, so nothing
// of it may be left among the completions. Cards differ in what becomes of those that nobody took: Soft-RoCE keeps them, and others
// drop them with the queue pair, and with them the numbers of the slots that are to be posted again. So they are taken before, too.
RingBuffer<VerbsNet::Posted> VerbsNet::release_queue(Pair& pair) {
  RingBuffer<Posted> left = std::move(pair.posted);
  if (pair.queue != nullptr) {
    if (pair.may_hold_slot) {
      set_to_error(pair);
      await_last_receive(pair);
      pair.may_hold_slot = false;
    }
    by_number_.erase(pair.queue->qp_num);
    take_all_completions();
    pair.queue.reset();
    take_all_completions();
  }
  for (const Posted& posted : left) {
    if (posted.slot) card_->return_send_slot(*posted.slot);
  }
  work_of_all_ -= static_cast<uint32_t>(left.size());
  pair.unsent = 0;
  pair.manager.reset();
  return left;
}

}  // namespace ccixfer::verbs

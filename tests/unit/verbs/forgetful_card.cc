#include "tests/unit/verbs/forgetful_card.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#include <array>
#include <cerrno>
#include <utility>

namespace ccixfer::verbs {
namespace {

struct Card {
  bool is_late = false;
  ibv_qp* last_word_of = nullptr;  // is due
  bool was_asked = false;          // for it, and had none yet
  int (*poll)(ibv_cq*, int, ibv_wc*) = nullptr;
};
thread_local Card* card = nullptr;

int poll_nothing(ibv_cq* /*queue*/, int /*count*/, ibv_wc* /*done*/) { return 0; }

void hide_completions(ibv_qp* pair) {
  card->last_word_of = pair;
  card->was_asked = false;
  card->poll = std::exchange(pair->context->ops.poll_cq, poll_nothing);
}

void show_completions() {
  if (ibv_qp* pair = std::exchange(card->last_word_of, nullptr)) pair->context->ops.poll_cq = card->poll;
}

void drop_completions(ibv_cq* queue) {
  std::array<ibv_wc, 32> done{};
  while (ibv_poll_cq(queue, static_cast<int>(done.size()), done.data()) > 0) continue;
}

template <typename Function>
Function* real(Function* /*ours*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

ForgetfulCard::ForgetfulCard(bool is_late) { card = new Card{.is_late = is_late}; }
ForgetfulCard::~ForgetfulCard() {
  show_completions();
  delete std::exchange(card, nullptr);
}

}  // namespace ccixfer::verbs

using namespace ccixfer::verbs;

// In place of the library's, for all of this executable.
extern "C" {

int ibv_modify_qp(ibv_qp* pair, ibv_qp_attr* attributes, int mask) {
  const int answer = real(&ibv_modify_qp, "ibv_modify_qp")(pair, attributes, mask);
  const bool ends = (mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_ERR;
  if (ends && card != nullptr && card->is_late && card->last_word_of == nullptr) hide_completions(pair);
  return answer;
}

int ibv_get_async_event(ibv_context* device, ibv_async_event* event) {
  if (card == nullptr || card->last_word_of == nullptr) return real(&ibv_get_async_event, "ibv_get_async_event")(device, event);
  if (!std::exchange(card->was_asked, true)) {
    errno = EAGAIN;
    return -1;
  }
  event->event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
  event->element.qp = card->last_word_of;
  show_completions();
  return 0;
}

void ibv_ack_async_event(ibv_async_event* event) {
  if (event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) return;  // ours
  real(&ibv_ack_async_event, "ibv_ack_async_event")(event);
}

int ibv_destroy_qp(ibv_qp* pair) {
  if (card != nullptr) {
    show_completions();
    drop_completions(pair->recv_cq);
  }
  return real(&ibv_destroy_qp, "ibv_destroy_qp")(pair);
}

}  // extern "C"

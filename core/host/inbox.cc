#include "core/host/inbox.h"

#include <utility>

namespace ccixfer::host {

Inbox::Inbox(std::shared_ptr<Waker> waker) : watched_(std::move(waker)), wake_(watched_.wake_handle()) {}

void Inbox::post(Call call) {
  bool was_empty = false;
  {
    const std::scoped_lock lock(mutex_);
    was_empty = calls_.empty();
    calls_.push_back(std::move(call));
  }
  if (was_empty) wake_.wake();
}

void Inbox::take() {
  if (watched_.woken()) take_all();
}

void Inbox::take_all() {
  std::vector<Call> calls;
  {
    const std::scoped_lock lock(mutex_);
    calls.swap(calls_);
  }
  for (const Call& call : calls) call();
}

}  // namespace ccixfer::host

#include "transports/datagram/hints.h"

#include "core/base/check.h"
#include "transports/datagram/limits.h"

namespace ccixfer::datagram {

void HintsOut::push(uint64_t mailbox, uint64_t epoch) {
  if (unacked_.size() >= hints_outstanding_max) return;
  const uint64_t number = first_ + unacked_.size();
  unacked_.push_back(MailboxHintFrame{number, mailbox, epoch});
  due_.push_back(number);
}

std::optional<MailboxHintFrame>* HintsOut::find(uint64_t number) {
  if (number < first_ || number - first_ >= unacked_.size()) return nullptr;
  return &unacked_[number - first_];
}

MailboxHintFrame HintsOut::take() {
  CHECK(due());
  const std::optional<MailboxHintFrame>* hint = find(due_.front());
  CHECK(hint != nullptr && hint->has_value());
  due_.drop_front();
  return **hint;
}

void HintsOut::acked(uint64_t number) {
  std::optional<MailboxHintFrame>* hint = find(number);
  if (hint == nullptr) return;
  hint->reset();
  due_.erase_if([number](uint64_t due) { return due == number; });
  while (!unacked_.empty() && !unacked_.front()) {
    unacked_.drop_front();
    ++first_;
  }
}

void HintsOut::lost(uint64_t number) {
  const std::optional<MailboxHintFrame>* hint = find(number);
  if (hint != nullptr && hint->has_value()) due_.push_back(number);
}

bool HintsIn::arrived(uint64_t number) {
  if (number < first_missing_ || number - first_missing_ >= hints_outstanding_max) return false;
  if (!beyond_.insert(number).second) return false;
  while (!beyond_.empty() && *beyond_.begin() == first_missing_) {
    beyond_.erase(beyond_.begin());
    ++first_missing_;
  }
  return true;
}

}  // namespace ccixfer::datagram

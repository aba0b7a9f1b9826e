#include "core/rvma/history.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::rvma {

const History::Entry* History::lookup(const OperationKey& key) const {
  if (index_.empty()) {
    const auto entry = std::find_if(order_.begin(), order_.end(), [&](const Entry& e) { return e.key == key; });
    return entry == order_.end() ? nullptr : &*entry;
  }
  const auto entry = index_.find(key);
  return entry == index_.end() ? nullptr : entry->second;
}

Outcome History::find(const OperationKey& key) const {
  if (const Entry* entry = lookup(key)) return entry->placed ? Outcome::placed : Outcome::aborted;
  for (const Forgotten& forgotten : forgotten_) {
    if (forgotten.source == key.source && key.operation <= forgotten.highest) return Outcome::forgotten;
  }
  return Outcome::unknown;
}

void History::add(const OperationKey& key, uint64_t epoch, bool placed) {
  CHECK(lookup(key) == nullptr);
  order_.push_back({key, epoch, placed});
  if (!index_.empty()) {
    index_.emplace(key, &order_.back());
  } else if (order_.size() > history_operations_min) {
    for (Entry& entry : order_) index_.emplace(entry.key, &entry);
  }
  if (order_.size() > history_operations_max) drop_oldest();
}

void History::forget(uint64_t head_epoch) {
  while (order_.size() > history_operations_min && order_.front().epoch + 1 < head_epoch) drop_oldest();
  if (order_.size() <= history_operations_min) index_.clear();
}

void History::drop_oldest() {
  const OperationKey key = order_.front().key;
  index_.erase(key);
  order_.pop_front();
  const auto known = std::find_if(forgotten_.begin(), forgotten_.end(), [&](const Forgotten& f) { return f.source == key.source; });
  if (known != forgotten_.end()) {
    known->highest = std::max(known->highest, key.operation);
    return;
  }
  if (forgotten_.size() >= history_sources_max) forgotten_.erase(forgotten_.begin());
  forgotten_.push_back({key.source, key.operation});
}

}  // namespace ccixfer::rvma

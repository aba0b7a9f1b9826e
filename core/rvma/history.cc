#include "core/rvma/history.h"

#include <algorithm>
#include <limits>

#include "core/base/check.h"

namespace ccixfer::rvma {

const History::Entry* History::lookup(const OperationKey& key) const {
  if (index_.empty()) {
    const auto entry = std::find_if(order_.begin(), order_.end(), [&](const Entry& e) { return e.key == key; });
    return entry == order_.end() ? nullptr : &*entry;
  }
  const auto entry = index_.find(key);
  return entry == index_.end() ? nullptr : &order_[entry->second - dropped_];
}

Past History::find(const OperationKey& key, uint64_t epoch) const {
  if (const Entry* entry = lookup(key)) return entry->placed ? Past{Outcome::placed, entry->epoch} : Past{Outcome::aborted};
  const auto found = numbers_.find({key.source, key.address});
  if (found == numbers_.end()) return {};
  const Numbers& numbers = found->second;
  if (key.operation == std::numeric_limits<uint64_t>::max()) return {Outcome::forgotten};  // ranges have no room for it
  if (numbers.placed.contains(key.operation, key.operation + 1)) return {Outcome::placed};
  if (numbers.aborted.contains(key.operation, key.operation + 1)) return {Outcome::aborted};
  const bool later = epoch != ports::PutOperation::any_epoch && epoch > numbers.given_up_epoch;
  return {key.operation < numbers.given_up && !later ? Outcome::forgotten : Outcome::unknown};
}

void History::add(const OperationKey& key, uint64_t epoch, bool told_epoch, bool placed) {
  CHECK(lookup(key) == nullptr);
  if (order_.size() == history_operations_max) drop_oldest(epoch);  // before, so that the ring does not grow for one more
  order_.push_back({key, epoch, told_epoch, placed});
  if (!index_.empty()) {
    index_.emplace(key, dropped_ + order_.size() - 1);
  } else if (order_.size() > history_operations_min) {
    for (size_t i = 0; i < order_.size(); ++i) index_.emplace(order_[i].key, dropped_ + i);
  }
}

void History::forget(uint64_t head_epoch) {
  while (order_.size() > history_operations_min && order_.front().epoch + 1 < head_epoch) drop_oldest(head_epoch);
  if (order_.size() <= history_operations_min) index_.clear();
}

void History::drop_oldest(uint64_t head_epoch) {
  const Entry entry = order_.pop_front();
  ++dropped_;
  index_.erase(entry.key);
  if (entry.told_epoch && entry.epoch < head_epoch) return;
  const Stream stream{entry.key.source, entry.key.address};
  auto found = numbers_.find(stream);
  if (found == numbers_.end()) {
    if (streams_.size() >= history_sources_max) {
      numbers_.erase(streams_.front());
      streams_.drop_front();
    }
    streams_.push_back(stream);
    found = numbers_.emplace(stream, Numbers{}).first;
  }
  Numbers& numbers = found->second;
  const uint64_t number = entry.key.operation;
  if (number == std::numeric_limits<uint64_t>::max()) return;  // find() answers for it
  IntervalSet& set = entry.placed ? numbers.placed : numbers.aborted;
  static_cast<void>(set.add(number, number + 1));
  numbers.epoch = std::max(numbers.epoch, entry.epoch);
  while (set.ranges() > history_ranges_max) {
    numbers.given_up = std::max(numbers.given_up, set.drop_lowest());
    numbers.given_up_epoch = numbers.epoch;
  }
}

}  // namespace ccixfer::rvma

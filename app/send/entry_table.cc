#include "app/send/entry_table.h"

#include <algorithm>
#include <array>

#include "core/base/check.h"

namespace ccixfer::send {
namespace {

using P = EntryPhase;
constexpr size_t phases = 7;

constexpr uint8_t bit(P phase) { return static_cast<uint8_t>(1u << static_cast<unsigned>(phase)); }

// Row: from. A verdict may be a refusal or an end at once; a Resend brings `sent` back to `queued`
// (or, of a stream, to `refused`); a result may come at any time.
constexpr std::array<uint8_t, phases> transitions = {
    bit(P::announced),                                                                      // free
    static_cast<uint8_t>(bit(P::queued) | bit(P::sent) | bit(P::ended) | bit(P::free)),     // announced
    static_cast<uint8_t>(bit(P::reading) | bit(P::ended) | bit(P::free)),                   // queued
    static_cast<uint8_t>(bit(P::sent) | bit(P::refused) | bit(P::ended) | bit(P::free)),    // reading
    static_cast<uint8_t>(bit(P::queued) | bit(P::refused) | bit(P::ended) | bit(P::free)),  // sent
    static_cast<uint8_t>(bit(P::ended) | bit(P::free)),                                     // refused
    bit(P::free),                                                                           // ended
};

}  // namespace

bool may_move(EntryPhase from, EntryPhase to) { return (transitions[static_cast<size_t>(from)] & bit(to)) != 0; }

bool PieceSet::add(uint64_t first, uint64_t count) {
  if (count == 0) return true;
  Range added{first, first + count};
  auto at = std::lower_bound(ranges_.begin(), ranges_.end(), added.first,
                             [](const Range& range, uint64_t value) { return range.end < value; });
  while (at != ranges_.end() && at->first <= added.end) {
    added.first = std::min(added.first, at->first);
    added.end = std::max(added.end, at->end);
    count_ -= at->end - at->first;
    at = ranges_.erase(at);
  }
  count_ += added.end - added.first;
  ranges_.insert(at, added);
  return ranges_.size() <= ranges_max;
}

uint64_t PieceSet::take() {
  CHECK(!ranges_.empty());
  Range& range = ranges_.front();
  const uint64_t piece = range.first++;
  --count_;
  if (range.first == range.end) ranges_.drop_front();
  return piece;
}

bool PieceSet::remove(uint64_t piece) {
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), piece,
                                   [](const Range& range, uint64_t value) { return range.end <= value; });
  if (at == ranges_.end() || at->first > piece) return false;
  const Range found = *at;
  const auto behind = ranges_.erase(at);
  auto next = behind;
  if (piece + 1 < found.end) next = ranges_.insert(next, Range{piece + 1, found.end});
  if (found.first < piece) ranges_.insert(next, Range{found.first, piece});
  --count_;
  return true;
}

bool PieceSet::remove(uint64_t first, uint64_t count) {
  const auto at = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                                   [](const Range& range, uint64_t value) { return range.end <= value; });
  if (at == ranges_.end() || at->first > first || at->end - first < count) return false;
  const Range found = *at;
  auto next = ranges_.erase(at);
  if (first + count < found.end) next = ranges_.insert(next, Range{first + count, found.end});
  if (found.first < first) ranges_.insert(next, Range{found.first, first});
  count_ -= count;
  return true;
}

std::vector<session::Want::Range> PieceSet::remove_range(uint64_t first, uint64_t end) {
  std::vector<session::Want::Range> removed;
  auto at = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                             [](const Range& range, uint64_t value) { return range.end <= value; });
  while (at != ranges_.end() && at->first < end) {
    const Range found = *at;
    const Range cut{std::max(found.first, first), std::min(found.end, end)};
    removed.push_back({cut.first, cut.end - cut.first});
    count_ -= cut.end - cut.first;
    at = ranges_.erase(at);
    if (found.first < cut.first) at = std::next(ranges_.insert(at, Range{found.first, cut.first}));
    if (cut.end < found.end) at = std::next(ranges_.insert(at, Range{cut.end, found.end}));
  }
  return removed;
}

bool PieceSet::contains(uint64_t piece) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [piece](const Range& range) { return range.first <= piece && piece < range.end; });
}

std::vector<session::Want::Range> PieceSet::missing(uint64_t first, uint64_t end) const {
  std::vector<session::Want::Range> missing;
  auto at = std::lower_bound(ranges_.begin(), ranges_.end(), first,
                             [](const Range& range, uint64_t value) { return range.end <= value; });
  for (; at != ranges_.end() && at->first < end; ++at) {
    if (first < at->first) missing.push_back({first, at->first - first});
    first = at->end;
  }
  if (first < end) missing.push_back({first, end - first});
  return missing;
}

EntryTable::EntryTable() {
  by_index_.reserve(session::entries_outstanding_max);
  slots_.reserve(session::entries_outstanding_max);  // addresses stay
}

LargeFile& large_file_of(Entry& entry) {
  if (!entry.large) entry.large = std::make_unique<LargeFile>();
  return *entry.large;
}

uint32_t EntryTable::add(uint64_t index, uint32_t source) {
  CHECK(used() < session::entries_outstanding_max);
  const uint32_t slot = slots_.take();
  Entry& entry = slots_[slot];
  move(entry, EntryPhase::announced);
  entry.index = index;
  entry.source = source;
  if (source >= of_source_.size()) of_source_.resize(size_t{source} + 1);
  ++of_source_[source];
  entry.resend = false;
  entry.was_sent = false;
  entry.is_further_name = entry.is_link = entry.is_elsewhere = false;
  entry.counted_bytes = entry.before_bytes = 0;
  entry.stream = false;
  entry.jobs = 0;
  entry.items = 0;
  entry.outcome = {};
  CHECK(by_index_.emplace(index, slot).second);
  return slot;
}

Entry* EntryTable::find(uint64_t index) {
  const auto found = by_index_.find(index);
  return found == by_index_.end() ? nullptr : &slots_[found->second];
}

void EntryTable::move(Entry& entry, EntryPhase to) {
  CHECK(may_move(entry.phase, to));
  entry.phase = to;
  if (to == EntryPhase::sent) entry.was_sent = true;
}

void EntryTable::end(Entry& entry) {
  CHECK(by_index_.erase(entry.index) == 1);
  if (entry.jobs > 0) return move(entry, EntryPhase::ended);
  release(entry);
}

bool EntryTable::job_ended(Entry& entry) {
  --entry.jobs;
  if (entry.phase != EntryPhase::ended) return true;
  if (entry.jobs == 0) release(entry);
  return false;
}

void EntryTable::release(Entry& entry) {
  move(entry, EntryPhase::free);
  entry.large.reset();
  entry.path.clear();
  entry.target.clear();
  entry.linked_to.clear();
  --of_source_[entry.source];
  slots_.release(slot_of(entry));
}

}  // namespace ccixfer::send

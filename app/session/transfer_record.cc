#include "app/session/transfer_record.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "core/base/hash.h"

namespace ccixfer::session {
namespace {

constexpr uint64_t said_bits = 3;
constexpr uint64_t wanted_bit = 4;
constexpr uint64_t known_bits = said_bits | wanted_bit;
constexpr size_t slots_min = 64;

}  // namespace

uint64_t TransferRecord::name(std::string_view path, uint64_t version) {
  // Not the version as the seed: of short inputs that resemble it a seeded hash is often the same.
  const std::array<uint64_t, 2> both{xxh3_64_long(std::as_bytes(std::span(path))), version};
  const uint64_t hash = xxh3_64(std::as_bytes(std::span(both))) & ~known_bits;
  return hash != 0 ? hash : known_bits + 1;  // 0 is a free slot
}

// Linear probing; the table is at most half full.
uint64_t* TransferRecord::find(uint64_t file) {
  if (2 * (files_ + 1) > slots_.size()) grow();
  const size_t mask = slots_.size() - 1;
  for (size_t at = (file >> 3) & mask;; at = (at + 1) & mask) {
    if ((slots_[at] & ~known_bits) == file) return &slots_[at];
    if (slots_[at] != 0) continue;
    if (files_ == files_max_) return nullptr;
    ++files_;
    slots_[at] = file;
    return &slots_[at];
  }
}

void TransferRecord::grow() {
  std::vector<uint64_t> old(std::max(slots_min, 2 * slots_.size()));
  old.swap(slots_);
  const size_t mask = slots_.size() - 1;
  for (const uint64_t slot : old) {
    if (slot == 0) continue;
    size_t at = (slot >> 3) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
}

uint64_t TransferRecord::want(uint64_t file, uint64_t size_bytes, uint64_t missing_bytes) {
  uint64_t* slot = find(file);
  if (slot == nullptr) return missing_bytes;
  uint64_t wanted_bytes = missing_bytes;
  if ((*slot & wanted_bit) != 0) {
    const auto part = parts_.find(file);
    wanted_bytes = std::max(missing_bytes, part != parts_.end() ? part->second : size_bytes);
  }
  if (wanted_bytes == size_bytes) {
    parts_.erase(file);
  } else if (parts_.size() < parts_max || parts_.contains(file)) {
    parts_[file] = wanted_bytes;
  } else {
    return missing_bytes;
  }
  *slot |= wanted_bit;
  return wanted_bytes;
}

std::optional<uint64_t> TransferRecord::delivered(uint64_t file, uint64_t size_bytes) const {
  if (slots_.empty()) return std::nullopt;
  const size_t mask = slots_.size() - 1;
  for (size_t at = (file >> 3) & mask; slots_[at] != 0; at = (at + 1) & mask) {
    if ((slots_[at] & ~known_bits) != file) continue;
    if ((slots_[at] & wanted_bit) == 0) return std::nullopt;
    const auto part = parts_.find(file);
    return part != parts_.end() ? part->second : size_bytes;
  }
  return std::nullopt;
}

void TransferRecord::keep_items(uint64_t file, uint16_t items) {
  if (items_.size() < files_max_) items_[file] = items;
}

uint16_t TransferRecord::take_items(uint64_t file) {
  const auto kept = items_.find(file);
  if (kept == items_.end()) return 0;
  const uint16_t items = kept->second;
  items_.erase(kept);
  return items;
}

bool TransferRecord::say(uint64_t file, Said said) {
  uint64_t* slot = find(file);
  if (slot == nullptr) return true;
  if ((*slot & said_bits) == static_cast<uint64_t>(said)) return false;
  *slot = (*slot & ~said_bits) | static_cast<uint64_t>(said);
  return true;
}

// The NUL tells it from the names of files.
bool TransferRecord::say_of_deletion(std::string_view path) { return say(name(std::string(path) + '\0' + "deleted", 0), Said::ok); }

}  // namespace ccixfer::session

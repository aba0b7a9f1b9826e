#include "transports/shm/ring.h"

#include <algorithm>
#include <cstring>

namespace ccixfer::shm {
namespace {

// A writer is woken for so much of the ring: for less it would wake up many times for one ring of bytes.
constexpr uint64_t room_worth_a_wake(const RingMemory& memory) { return memory.capacity_bytes / 4; }

}  // namespace

// ---- The writer. The order of its store of `written` and its load of `reader_waits` meets that of the reader's wait(): one of the
// two sees what the other stored, because all four are sequentially consistent.

void RingWriter::look() {
  const uint64_t read = memory_.control->read.load(std::memory_order_seq_cst);
  if (written_ - read > written_ - read_seen_) {
    broken_ = true;  // it went backwards, or beyond what was written
  } else {
    read_seen_ = read;
  }
}

size_t RingWriter::append(Bytes from) {
  if (!broken_ && memory_.capacity_bytes - (written_ - read_seen_) < from.size()) look();
  if (broken_) return 0;
  const uint64_t room = memory_.capacity_bytes - (written_ - read_seen_);
  const auto size = static_cast<size_t>(std::min<uint64_t>(room, from.size()));
  const auto at = static_cast<size_t>(written_ & (memory_.capacity_bytes - 1));
  const size_t before_end = std::min(size, memory_.capacity_bytes - at);
  if (before_end > 0) std::memcpy(memory_.data + at, from.data(), before_end);
  if (size > before_end) std::memcpy(memory_.data, from.data() + before_end, size - before_end);
  written_ += size;
  return size;
}

bool RingWriter::publish() {
  if (published_ == written_) return false;
  published_ = written_;
  memory_.control->written.store(written_, std::memory_order_seq_cst);
  return memory_.control->reader_waits.load(std::memory_order_seq_cst) != 0 &&
         memory_.control->reader_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

uint64_t RingWriter::waiting_bytes() {
  if (!broken_) look();
  return written_ - read_seen_;
}

bool RingWriter::has_room() { return memory_.capacity_bytes - waiting_bytes() >= room_worth_a_wake(memory_) && !broken_; }

bool RingWriter::wait() {
  memory_.control->writer_waits.store(1, std::memory_order_seq_cst);
  waits_ = true;
  if (!has_room() && !broken_) return true;
  stop_waiting();
  return false;
}

void RingWriter::stop_waiting() {
  if (waits_) memory_.control->writer_waits.store(0, std::memory_order_relaxed);
  waits_ = false;
}

// ---- The reader.

void RingReader::look() {
  const uint64_t written = memory_.control->written.load(std::memory_order_seq_cst);
  const uint64_t there = written - read_;
  if (there > memory_.capacity_bytes || there < written_seen_ - read_) {
    broken_ = true;
    written_seen_ = read_;
  } else {
    written_seen_ = written;
  }
}

bool RingReader::has_bytes() {
  if (written_seen_ == read_ && !broken_) look();
  return written_seen_ != read_;
}

size_t RingReader::take(MutableBytes into) {
  if (written_seen_ - read_ < into.size() && !broken_) look();
  const auto size = static_cast<size_t>(std::min<uint64_t>(written_seen_ - read_, into.size()));
  const auto at = static_cast<size_t>(read_ & (memory_.capacity_bytes - 1));
  const size_t before_end = std::min(size, memory_.capacity_bytes - at);
  if (before_end > 0) std::memcpy(into.data(), memory_.data + at, before_end);
  if (size > before_end) std::memcpy(into.data() + before_end, memory_.data, size - before_end);
  read_ += size;
  return size;
}

bool RingReader::release() {
  if (released_ == read_) return false;
  released_ = read_;
  memory_.control->read.store(read_, std::memory_order_seq_cst);
  return memory_.control->writer_waits.load(std::memory_order_seq_cst) != 0 &&
         memory_.capacity_bytes - (written_seen_ - read_) >= room_worth_a_wake(memory_) &&
         memory_.control->writer_waits.exchange(0, std::memory_order_seq_cst) != 0;
}

bool RingReader::wait() {
  memory_.control->reader_waits.store(1, std::memory_order_seq_cst);
  waits_ = true;
  if (!has_bytes() && !broken_) return true;
  stop_waiting();
  return false;
}

void RingReader::stop_waiting() {
  if (waits_) memory_.control->reader_waits.store(0, std::memory_order_relaxed);
  waits_ = false;
}

}  // namespace ccixfer::shm

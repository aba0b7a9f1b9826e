// The ring alone: order, bounds, sleeping and waking, two threads, and what a hostile peer writes into it.
#include "transports/shm/ring.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace ccixfer::shm {
namespace {

constexpr size_t capacity = 4096;

// A ring with both its sides, and what a peer could write to.
struct Ring {
  std::unique_ptr<RingControl> control = std::make_unique<RingControl>();
  std::vector<std::byte> data = std::vector<std::byte>(capacity);
  RingMemory memory{control.get(), data.data(), capacity};
  RingWriter writer{memory};
  RingReader reader{memory};
};

std::vector<std::byte> numbered(size_t size, size_t first) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((first + i) * 7 % 251);
  return bytes;
}

// Appends so many bytes, which must fit, and publishes them.
bool put(Ring& ring, size_t size) {
  const std::vector<std::byte> bytes(size);
  REQUIRE(ring.writer.append(bytes) == size);
  return ring.writer.publish();
}
size_t get(Ring& ring, size_t size) {
  std::vector<std::byte> bytes(size);
  return ring.reader.take(bytes);
}

TEST_CASE("ring__pieces_of_every_size__come_in_order_around_the_end") {
  Ring ring;
  size_t written = 0, read = 0;
  std::array<std::byte, 700> got;
  for (size_t round = 0; round < 3000; ++round) {
    const std::vector<std::byte> piece = numbered(round * 37 % 997, written);
    written += ring.writer.append(piece);
    CHECK_FALSE(ring.writer.publish());  // nobody sleeps
    const size_t size = ring.reader.take(MutableBytes(got).first(round * 53 % 700));
    const std::vector<std::byte> wanted = numbered(size, read);
    REQUIRE(std::equal(wanted.begin(), wanted.end(), got.begin()));
    read += size;
    CHECK_FALSE(ring.reader.release());
    REQUIRE(ring.writer.waiting_bytes() == written - read);
  }
  CHECK(written > 100 * capacity);
}

TEST_CASE("ring__full__takes_what_there_is_room_for_and_no_more") {
  Ring ring;
  const std::vector<std::byte> bytes = numbered(capacity + 100, 0);
  CHECK(ring.writer.append(bytes) == capacity);
  CHECK(ring.writer.append(bytes) == 0);
  CHECK_FALSE(ring.writer.has_room());
  CHECK_FALSE(ring.reader.has_bytes());  // before it is published
  CHECK(get(ring, 10) == 0);
  static_cast<void>(ring.writer.publish());
  CHECK(get(ring, 10) == 10);
  CHECK(ring.writer.append(bytes) == 0);  // before it is released
  static_cast<void>(ring.reader.release());
  CHECK(ring.writer.append(bytes) == 10);
}

TEST_CASE("ring__a_reader_that_sleeps__is_woken_once") {
  Ring ring;
  CHECK(ring.reader.wait());
  CHECK(put(ring, 1));
  CHECK_FALSE(put(ring, 1));
  CHECK_FALSE(ring.reader.wait());  // there is something
  CHECK_FALSE(put(ring, 1));        // so it does not sleep
  CHECK(get(ring, 10) == 3);
  CHECK(ring.reader.wait());
  ring.reader.stop_waiting();
  CHECK_FALSE(put(ring, 1));
}

TEST_CASE("ring__a_writer_that_sleeps__is_woken_when_a_quarter_is_free") {
  Ring ring;
  static_cast<void>(put(ring, capacity));
  CHECK(ring.writer.wait());
  CHECK(get(ring, capacity / 4 - 1) == capacity / 4 - 1);
  CHECK_FALSE(ring.reader.release());
  CHECK_FALSE(ring.writer.has_room());
  CHECK(get(ring, 1) == 1);
  CHECK(ring.reader.release());
  CHECK(ring.writer.has_room());
  CHECK_FALSE(ring.writer.wait());
  CHECK(get(ring, 100) == 100);
  CHECK_FALSE(ring.reader.release());  // it did not sleep
  static_cast<void>(put(ring, capacity / 4 + 100));
  CHECK(ring.writer.wait());
  ring.writer.stop_waiting();
  CHECK(get(ring, capacity / 2) == capacity / 2);
  CHECK_FALSE(ring.reader.release());
}

TEST_CASE("ring__two_threads_that_sleep__lose_no_byte_and_no_wake") {
  Ring ring;
  constexpr size_t total = 3'000'000;
  // Stand in for the bell: a count that goes up with each wake, for which the other side waits.
  std::atomic<uint32_t> wakes_of_reader{0}, wakes_of_writer{0};
  std::thread writer([&] {
    const std::vector<std::byte> bytes = numbered(251 * 64, 0);
    for (size_t sent = 0; sent < total;) {
      const uint32_t before = wakes_of_writer;
      const size_t size = std::min<size_t>(1 + sent % 3001, total - sent);
      const size_t taken = ring.writer.append(Bytes(bytes).subspan(sent % 251, size));
      sent += taken;
      if (ring.writer.publish()) {
        ++wakes_of_reader;
        wakes_of_reader.notify_one();
      }
      if (taken < size && ring.writer.wait()) wakes_of_writer.wait(before);
    }
  });
  size_t wrong = 0;
  std::vector<std::byte> got(2048);
  for (size_t came = 0; came < total;) {
    const uint32_t before = wakes_of_reader;
    const size_t size = ring.reader.take(MutableBytes(got).first(1 + came % 2048));
    for (size_t i = 0; i < size; ++i) wrong += got[i] == static_cast<std::byte>((came + i) * 7 % 251) ? 0u : 1u;
    came += size;
    if (ring.reader.release()) {
      ++wakes_of_writer;
      wakes_of_writer.notify_one();
    }
    if (size == 0 && ring.reader.wait()) wakes_of_reader.wait(before);
  }
  writer.join();
  CHECK(wrong == 0);
  CHECK_FALSE(ring.reader.has_bytes());
  CHECK_FALSE(ring.reader.broken());
  CHECK_FALSE(ring.writer.broken());
}

// ---- A hostile peer.

TEST_CASE("ring__bytes_that_cannot_be_there__break_the_readers_side_and_none_is_copied") {
  Ring ring;
  static_cast<void>(put(ring, 100));
  CHECK(get(ring, 60) == 60);
  ring.control->written = GENERATE(uint64_t{60 + capacity + 1}, uint64_t{99}, uint64_t{0}, UINT64_MAX, uint64_t{1} << 63);
  CHECK(get(ring, 2 * capacity) <= 40);  // of what was seen before, at most
  CHECK(ring.reader.broken());
  CHECK_FALSE(ring.reader.has_bytes());
  CHECK(get(ring, 10) == 0);
  CHECK_FALSE(ring.reader.wait());  // nobody sleeps over it
  ring.control->written = 100;      // and it does not mend
  CHECK(get(ring, 10) == 0);
}

TEST_CASE("ring__a_full_ring__is_the_most_that_can_be_there") {
  Ring ring;
  ring.control->written = capacity;
  CHECK(get(ring, 2 * capacity) == capacity);
  CHECK_FALSE(ring.reader.broken());
  ring.control->written = 2 * capacity + 1;
  CHECK(get(ring, 1) == 0);
  CHECK(ring.reader.broken());
}

TEST_CASE("ring__more_read_than_was_written__breaks_the_writers_side") {
  Ring ring;
  static_cast<void>(put(ring, 1000));
  CHECK(get(ring, 500) == 500);
  static_cast<void>(ring.reader.release());
  CHECK(ring.writer.waiting_bytes() == 500);
  ring.control->read = GENERATE(uint64_t{1001}, uint64_t{499}, uint64_t{0}, UINT64_MAX);
  const std::vector<std::byte> bytes(capacity);
  CHECK(ring.writer.append(bytes) == 0);
  CHECK(ring.writer.broken());
  CHECK_FALSE(ring.writer.has_room());
  CHECK_FALSE(ring.writer.wait());
  ring.control->read = 1000;
  CHECK(ring.writer.append(bytes) == 0);
}

TEST_CASE("ring__flags_of_a_peer_that_mean_nothing__cost_a_wake_and_no_more") {
  Ring ring;
  ring.control->reader_waits = 0xdeadbeef;
  CHECK(put(ring, 1));
  CHECK_FALSE(put(ring, 1));
  ring.control->writer_waits = 7;
  CHECK(get(ring, 1) == 1);
  CHECK(ring.reader.release());
  CHECK(get(ring, 1) == 1);
  CHECK_FALSE(ring.reader.release());
}

}  // namespace
}  // namespace ccixfer::shm

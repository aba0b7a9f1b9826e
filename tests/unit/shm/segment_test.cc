// The memory of a stream: shared by both, and nothing that a peer passes in its place is taken.
#include "transports/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>

namespace ccixfer::shm {
namespace {

using host::Descriptor;

constexpr size_t ring_bytes = 8192;
constexpr size_t segment_bytes = 4096 + 2 * ring_bytes;

Descriptor memory(size_t size = segment_bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) {
  Descriptor fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(fd);
  REQUIRE(ftruncate(fd.get(), static_cast<off_t>(size)) == 0);
  REQUIRE(fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

TEST_CASE("segment__adopted__is_the_memory_that_was_made") {
  auto made = Segment::create(ring_bytes);
  REQUIRE(made);
  auto adopted = Segment::adopt(Descriptor(dup(made->descriptor())), ring_bytes);
  REQUIRE(adopted);
  for (size_t direction = 0; direction < 2; ++direction) {
    const RingMemory here = made->ring(direction), there = adopted->ring(direction);
    CHECK(here.capacity_bytes == ring_bytes);
    CHECK(there.capacity_bytes == ring_bytes);
    here.control->written = 17 + direction;
    here.data[ring_bytes - 1] = static_cast<std::byte>(direction + 1);
    CHECK(there.control->written == 17 + direction);
    CHECK(there.data[ring_bytes - 1] == static_cast<std::byte>(direction + 1));
  }
  CHECK(made->ring(0).data[ring_bytes - 1] == std::byte{1});  // they do not overlap
}

TEST_CASE("segment__the_peer_cannot_take_it_away") {
  auto made = Segment::create(ring_bytes);
  REQUIRE(made);
  CHECK(ftruncate(made->descriptor(), 0) != 0);
  CHECK(ftruncate(made->descriptor(), 2 * segment_bytes) != 0);
  CHECK(fcntl(made->descriptor(), F_ADD_SEALS, F_SEAL_WRITE) != 0);
  REQUIRE(fallocate(made->descriptor(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, segment_bytes) == 0);
  made->ring(1).data[ring_bytes - 1] = std::byte{1};  // no fault
}

TEST_CASE("segment__what_is_not_one__is_refused_in_words") {
  const auto words = [](Descriptor fd, size_t size = ring_bytes) {
    const auto adopted = Segment::adopt(std::move(fd), size);
    return adopted ? std::string("taken") : adopted.error().message;
  };
  CHECK(words(memory()) == "taken");
  CHECK(words(Descriptor(open("/dev/null", O_RDWR | O_CLOEXEC))).find("something else") != std::string::npos);
  CHECK(words(Descriptor()).find("something else") != std::string::npos);
  CHECK(words(memory(segment_bytes, F_SEAL_GROW | F_SEAL_SEAL)).find("take away") != std::string::npos);
  CHECK(words(memory(segment_bytes, F_SEAL_SHRINK | F_SEAL_GROW)).find("take away") != std::string::npos);
  CHECK(words(memory(segment_bytes - 1)).find("another size") != std::string::npos);
  CHECK(words(memory(segment_bytes + 4096)).find("another size") != std::string::npos);
  for (const size_t size : {size_t{0}, size_t{2048}, size_t{8191}, size_t{3 * 4096}, size_t{16} << 20, SIZE_MAX})
    CHECK(words(memory(4096 + 2 * (size % (1u << 30))), size).find("another size") != std::string::npos);
  const int readable = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
  CHECK(words(memory(segment_bytes, readable)).find("cannot be written") != std::string::npos);
  // It can be sealed as well, but there may be no page left where it is touched.
  Descriptor large(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (large) {  // else the kernel has none
    REQUIRE(fcntl(large.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    CHECK(words(std::move(large)).find("large pages") != std::string::npos);
  }
  CHECK_FALSE(Segment::is_shared_memory(0));
  CHECK(Segment::is_shared_memory(memory().get()));
}

}  // namespace
}  // namespace ccixfer::shm

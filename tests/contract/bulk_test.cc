// Points 16 and 18: operations as large as memory, regions larger than 32 bits say, and memory that comes and goes under traffic.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "tests/contract/lab.h"

namespace ccixfer::contract {
namespace {

using namespace std::chrono_literals;

// Five GiB of addresses over four MiB of memory: the same window again and again, and another one at the end, so that the end is
// itself only when every byte went where it should.
class Tiled {
 public:
  static constexpr size_t window_bytes = 2u << 20;
  static constexpr uint64_t size_bytes = (5ull << 30) + window_bytes;

  explicit Tiled(uint32_t seed) : file_(::memfd_create("tiled", MFD_CLOEXEC)) {
    REQUIRE(file_ >= 0);
    REQUIRE(::ftruncate(file_, 2 * window_bytes) == 0);
    void* place = ::mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(place != MAP_FAILED);
    memory_ = static_cast<std::byte*>(place);
    for (uint64_t at = 0; at < size_bytes; at += window_bytes) {
      const bool last = at + window_bytes == size_bytes;
      REQUIRE(::mmap(memory_ + at, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, last ? window_bytes : 0) !=
              MAP_FAILED);
    }
    if (seed == 0) return;
    const auto bytes = pattern(2 * window_bytes, seed);
    std::memcpy(memory_, bytes.data(), window_bytes);
    std::memcpy(memory_ + size_bytes - window_bytes, bytes.data() + window_bytes, window_bytes);
  }
  ~Tiled() {
    ::munmap(memory_, size_bytes);
    ::close(file_);
  }
  Tiled(const Tiled&) = delete;
  Tiled& operator=(const Tiled&) = delete;
  [[nodiscard]] MutableBytes all() const { return {memory_, size_bytes}; }
  [[nodiscard]] bool same_as(const Tiled& other) const {
    return std::memcmp(memory_, other.memory_, window_bytes) == 0 &&
           std::memcmp(memory_ + size_bytes - window_bytes, other.memory_ + size_bytes - window_bytes, window_bytes) == 0;
  }

 private:
  int file_ = -1;
  std::byte* memory_ = nullptr;
};

TEST_CASE("contract__five_gib_in_one_write_and_one_read__every_byte_and_then_the_message", "[.large]") {
  // One of sockets, one that crosses a router whose memory holds four fragments.
  const std::string lab_name = GENERATE(as<std::string>{}, "tcp", "bulk");
  CAPTURE(lab_name);
  const std::unique_ptr<Lab> lab_owner = make_lab(lab_name);
  Lab& lab = *lab_owner;
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  const Tiled source(1), target(0), back(0);
  cci::RmaOptions options;
  options.local = a.memory->register_region(source.all(), cci::access_read);
  options.remote.handle = b.memory->register_region(target.all(), cci::access_read | cci::access_write);
  options.length_bytes = Tiled::size_bytes;
  options.context = 1;
  const auto note = pattern(64, 9);
  options.completion_message = Bytes(note);
  REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
  REQUIRE(lab.run([&] { return b.has(EventType::receive); }, 600s));
  REQUIRE(target.same_as(source));
  REQUIRE(wait_send(lab, a, 1) == Status::success);
  options.write = false;
  options.local = a.memory->register_region(back.all(), cci::access_write);
  options.context = 2;
  REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
  REQUIRE(lab.run([&] { return b.count(EventType::receive) == 2; }, 600s));
  REQUIRE(wait_send(lab, a, 2) == Status::success);
  REQUIRE(back.same_as(source));
}

// Five GiB that nobody has touched: addresses only. Which of its pages have memory by now tells where anything was read or written.
class Untouched {
 public:
  static constexpr uint64_t size_bytes = 5ull << 30;

  Untouched() {
    void* place = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(place != MAP_FAILED);
    memory_ = static_cast<std::byte*>(place);
    // One touch is one page. A kernel without huge pages refuses, and has none.
    static_cast<void>(::madvise(memory_, size_bytes, MADV_NOHUGEPAGE));
  }
  ~Untouched() { ::munmap(memory_, size_bytes); }
  Untouched(const Untouched&) = delete;
  Untouched& operator=(const Untouched&) = delete;
  [[nodiscard]] MutableBytes all() const { return {memory_, size_bytes}; }
  [[nodiscard]] MutableBytes part(uint64_t offset, size_t length) {
    used_.push_back({offset, length});
    return all().subspan(offset, length);
  }
  // Pages that were touched outside of all parts.
  [[nodiscard]] size_t touched_elsewhere() const {
    const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> resident(size_bytes / page);
    REQUIRE(::mincore(memory_, size_bytes, resident.data()) == 0);
    for (const auto& [offset, length] : used_) {
      for (uint64_t at = offset / page; at <= (offset + length - 1) / page; ++at) resident[at] = 0;
    }
    return static_cast<size_t>(std::count_if(resident.begin(), resident.end(), [](unsigned char in) { return (in & 1) != 0; }));
  }

 private:
  std::byte* memory_ = nullptr;
  std::vector<std::pair<uint64_t, size_t>> used_;
};

TEST_CASE("contract__offsets_beyond_four_gib__there_and_nowhere_else") {
  const std::string lab_name = GENERATE(as<std::string>{}, "tcp", "datagram", "routed");
  CAPTURE(lab_name);
  const std::unique_ptr<Lab> lab_owner = make_lab(lab_name);
  Lab& lab = *lab_owner;
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  // Of more than one fragment (64 KiB on the route), so that later ones go by offsets of their own.
  constexpr size_t length = (150u << 10) + 7;
  constexpr uint64_t four_gib = 1ull << 32;
  struct Places {
    uint64_t local, remote;
  };
  const Places places = GENERATE(Places{four_gib + 12'345, four_gib + 777'777}, Places{four_gib + 1, 4096},
                                 Places{8192, four_gib + (1u << 20)}, Places{four_gib - 100'000, four_gib - 50'001},
                                 Places{Untouched::size_bytes - length, Untouched::size_bytes - length});
  CAPTURE(places.local, places.remote);
  for (const bool write : {true, false}) {
    CAPTURE(write);
    Untouched near, far;
    const MutableBytes local = near.part(places.local, length), remote = far.part(places.remote, length);
    const auto bytes = pattern(length, write ? 1 : 2);
    std::memcpy((write ? local : remote).data(), bytes.data(), length);
    cci::RmaOptions options;
    options.write = write;
    options.local = a.memory->register_region(near.all(), cci::access_write);
    options.local_offset_bytes = places.local;
    options.remote.handle = b.memory->register_region(far.all(), cci::access_read | cci::access_write);
    options.remote.offset_bytes = places.remote;
    options.length_bytes = length;
    options.context = 1;
    REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
    REQUIRE(wait_send(lab, a, 1) == Status::success);
    REQUIRE(near.touched_elsewhere() == 0);
    REQUIRE(far.touched_elsewhere() == 0);
    REQUIRE(std::memcmp((write ? remote : local).data(), bytes.data(), length) == 0);
    // What lies behind the end is refused, and not taken for what is 4 GiB before it.
    options.remote.offset_bytes = Untouched::size_bytes;
    REQUIRE(a.endpoint->rma(pair.at_dialler, options) == Status::success);
    REQUIRE(wait_send(lab, a, 1) == Status::rma_handle);
    REQUIRE(far.touched_elsewhere() == 0);
    REQUIRE(a.memory->deregister_region(options.local) == Status::success);
    REQUIRE(b.memory->deregister_region(options.remote.handle) == Status::success);
  }
}

// Regions come and go while others of the same tables are being written and read: each write finds its own, or is refused.
TEST_CASE("contract__registering_under_traffic__each_write_finds_its_region_or_none") {
  EVERY_LAB(lab);
  Node& a = lab.add();
  Node& b = lab.add();
  const Pair pair = connect(lab, a, b);
  constexpr size_t size = 3000;
  constexpr uint64_t count = 300;
  struct Place {
    std::vector<std::byte> memory = std::vector<std::byte>(size);
    Handle handle;
    bool gone = false;
  };
  auto source = pattern(size, 1);
  const Handle local = a.memory->register_region(source, cci::access_read);
  std::vector<std::unique_ptr<Place>> places(count);
  std::vector<Status> ended(count, Status::again);
  SeededEntropy chance(7);
  uint64_t issued = 0, done = 0;
  REQUIRE(lab.run([&] {
    while (const auto event = a.take(EventType::send)) {
      ended[event->context] = event->status;
      ++done;
    }
    while (issued < std::min(count, done + 16)) {
      auto place = std::make_unique<Place>();
      place->handle = b.memory->register_region(place->memory, cci::access_write);
      cci::RmaOptions write;
      write.local = local;
      write.remote.handle = place->handle;
      write.length_bytes = size;
      write.context = issued;
      REQUIRE(a.endpoint->rma(pair.at_dialler, write) == Status::success);
      if (chance.next_u64() % 3 == 0) {  // withdrawn while it is under way, or before
        REQUIRE(b.memory->deregister_region(place->handle) == Status::success);
        REQUIRE(b.memory->deregister_region(place->handle) == Status::rma_handle);
        place->gone = true;
        std::vector<std::byte>().swap(place->memory);  // touching it now is an error that the sanitizer sees
      }
      places[issued++] = std::move(place);
    }
    return done == count;
  }));
  for (uint64_t i = 0; i < count; ++i) {
    CAPTURE(i);
    REQUIRE(ended[i] == (places[i]->gone ? Status::rma_handle : Status::success));
    if (!places[i]->gone) REQUIRE(places[i]->memory == source);
  }
}

}  // namespace
}  // namespace ccixfer::contract

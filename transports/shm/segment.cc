#include "transports/shm/segment.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::shm {
namespace {

constexpr size_t control_bytes = 4096;
static_assert(2 * sizeof(RingControl) <= control_bytes);
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

constexpr size_t size_of(size_t ring_bytes) { return control_bytes + 2 * ring_bytes; }

tl::unexpected<Error> no_memory() {
  return fail(ErrorKind::network, fmt::format("no shared memory: {}", std::generic_category().message(errno)));
}

tl::unexpected<Error> not_a_segment(std::string_view why) {
  return fail(ErrorKind::network, fmt::format("the peer passed {} in place of shared memory", why));
}

}  // namespace

bool is_ring_size(size_t ring_bytes) {
  return ring_bytes >= ring_bytes_min && ring_bytes <= ring_bytes_max && std::has_single_bit(ring_bytes);
}

Segment::~Segment() {
  if (begin_ != nullptr) munmap(begin_, size_of(ring_bytes_));
}

Segment::Segment(Segment&& other) noexcept
    : memory_(std::move(other.memory_)), begin_(std::exchange(other.begin_, nullptr)), ring_bytes_(other.ring_bytes_) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(begin_, other.begin_);
  std::swap(ring_bytes_, other.ring_bytes_);
  return *this;
}

Result<void> Segment::map(size_t ring_bytes) {
  void* begin = mmap(nullptr, size_of(ring_bytes), PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
  if (begin == MAP_FAILED) return no_memory();
  begin_ = static_cast<std::byte*>(begin);
  ring_bytes_ = ring_bytes;
  return {};
}

Result<Segment> Segment::create(size_t ring_bytes) {
  CHECK(is_ring_size(ring_bytes));
  Segment segment;
  segment.memory_.reset(memfd_create("ccixfer-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!segment.memory_) return no_memory();
  if (ftruncate(segment.memory_.get(), static_cast<off_t>(size_of(ring_bytes))) != 0) return no_memory();
  if (fcntl(segment.memory_.get(), F_ADD_SEALS, seals) != 0) return no_memory();
  if (auto mapped = segment.map(ring_bytes); !mapped) return tl::unexpected<Error>(mapped.error());
  return segment;
}

// The seals are asked for first: of all descriptors that there are, only shared memory has any, and no other call could wait for
// whoever is behind a stranger's file.
bool Segment::is_shared_memory(int descriptor) { return fcntl(descriptor, F_GET_SEALS) >= 0; }

Result<Segment> Segment::adopt(host::Descriptor memory, size_t ring_bytes) {
  const int sealed = fcntl(memory.get(), F_GET_SEALS);
  if (sealed < 0) return not_a_segment("something else");
  if ((sealed & seals) != seals) return not_a_segment("memory that it can take away");
  struct statfs kind {};
  struct stat file {};
  if (fstatfs(memory.get(), &kind) != 0 || fstat(memory.get(), &file) != 0) return no_memory();
  if (kind.f_type != TMPFS_MAGIC) return not_a_segment("memory of large pages");  // they may run out while we use it
  if (!is_ring_size(ring_bytes) || file.st_size != static_cast<off_t>(size_of(ring_bytes)))
    return not_a_segment("memory of another size");
  Segment segment;
  segment.memory_ = std::move(memory);
  if (!segment.map(ring_bytes)) return not_a_segment("memory that cannot be written");
  segment.close_descriptor();
  return segment;
}

RingMemory Segment::ring(size_t direction) const {
  CHECK(begin_ != nullptr && direction < 2);
  auto* controls = reinterpret_cast<RingControl*>(begin_);
  return {controls + direction, begin_ + control_bytes + direction * ring_bytes_, ring_bytes_};
}

}  // namespace ccixfer::shm

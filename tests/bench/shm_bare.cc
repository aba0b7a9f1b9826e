// What shared memory costs without any protocol, for `./do bench` to stand beside shm: two processes, a mapping that both have, no
// checks of what the other one writes.
//   shm_bare latency BYTES COUNT spin|poll   a message there, one back; prints the median half round trip in ns, after a tenth more
//                                            as warm-up. poll: the receiver sleeps in a read of an eventfd
//   shm_bare copy BYTES SECONDS              one process copies BYTES (memcpy) into memory of the other, and is told that they were
//                                            seen, 16 of them in flight; prints bytes a second
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void* shared(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("mmap");
  return memory;
}

// One direction: a number that counts messages, and the message.
struct Slot {
  alignas(64) std::atomic<uint64_t> number{0};
  alignas(64) char data[8192];
};

struct Lines {
  Slot there, back;
};

void transmit(Slot& slot, int bell, const std::vector<char>& message, uint64_t number, bool spin) {
  std::memcpy(slot.data, message.data(), message.size());
  slot.number.store(number, std::memory_order_release);
  const uint64_t one = 1;
  if (!spin && write(bell, &one, sizeof one) != sizeof one) die("write");
}

void receive(Slot& slot, int bell, std::vector<char>& message, uint64_t number, bool spin) {
  uint64_t count = 0;
  if (!spin && read(bell, &count, sizeof count) != sizeof count) die("read");
  while (slot.number.load(std::memory_order_acquire) != number) {
  }
  std::memcpy(message.data(), slot.data, message.size());
}

int latency(size_t bytes, size_t count, bool spin) {
  auto* lines = new (shared(sizeof(Lines))) Lines;
  const int there = eventfd(0, EFD_CLOEXEC), back = eventfd(0, EFD_CLOEXEC);
  if (bytes > sizeof lines->there.data || there < 0 || back < 0) die("eventfd");
  std::vector<char> message(bytes);
  const size_t warm = count / 10;
  const pid_t child = fork();
  if (child == 0) {
    for (uint64_t i = 1; i <= warm + count; ++i) {
      receive(lines->there, there, message, i, spin);
      transmit(lines->back, back, message, i, spin);
    }
    _exit(0);
  }
  std::vector<int64_t> times;
  for (uint64_t i = 1; i <= warm + count; ++i) {
    const auto begin = Clock::now();
    transmit(lines->there, there, message, i, spin);
    receive(lines->back, back, message, i, spin);
    if (i > warm) times.push_back((Clock::now() - begin).count() / 2);
  }
  waitpid(child, nullptr, 0);
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  std::printf("%lld\n", static_cast<long long>(times[times.size() / 2]));
  return 0;
}

struct Flow {
  alignas(64) std::atomic<uint64_t> written{0};
  alignas(64) std::atomic<uint64_t> seen{0};
  alignas(64) std::atomic<bool> over{false};
};

int copy(size_t bytes, double seconds) {
  constexpr size_t depth = 16;
  auto* flow = new (shared(sizeof(Flow))) Flow;
  auto* target = static_cast<char*>(shared(depth * bytes));
  std::vector<char> source(depth * bytes, 'x');
  const pid_t child = fork();
  if (child == 0) {
    uint64_t sum = 0;
    for (uint64_t seen = 0; !flow->over;) {
      const uint64_t written = flow->written.load(std::memory_order_acquire);
      for (; seen < written; ++seen) sum += static_cast<uint64_t>(target[seen % depth * bytes + bytes - 1]);
      flow->seen.store(seen, std::memory_order_release);
    }
    _exit(sum == 0 ? 1 : 0);
  }
  uint64_t written = 0, counted = 0;
  const auto run = [&](double time) {
    counted = 0;
    const auto begin = Clock::now();
    double took = 0;
    do {
      while (written - flow->seen.load(std::memory_order_acquire) >= depth) {
      }
      const size_t at = written % depth * bytes;
      std::memcpy(target + at, source.data() + at, bytes);
      flow->written.store(++written, std::memory_order_release);
      ++counted;
      took = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (took < time);
    return static_cast<double>(counted * bytes) / took;
  };
  static_cast<void>(run(seconds / 10));
  std::printf("%.0f\n", run(seconds));
  flow->over = true;
  waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "latency" && argc == 5)
    return latency(std::strtoul(argv[2], nullptr, 10), std::strtoul(argv[3], nullptr, 10), std::string_view(argv[4]) == "spin");
  if (what == "copy" && argc == 4) return copy(std::strtoul(argv[2], nullptr, 10), std::strtod(argv[3], nullptr));
  std::fputs("shm_bare latency BYTES COUNT spin|poll | shm_bare copy BYTES SECONDS\n", stderr);
  return 2;
}

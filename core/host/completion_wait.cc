#include "core/host/completion_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "core/base/check.h"
#include "core/host/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace ccixfer::host {
namespace {

using rvma::CompletionRecord;

bool complete(const CompletionRecord& record) { return record.buffer.load(std::memory_order_acquire) != nullptr; }

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

#if defined(__x86_64__)
// Until the record's line is written, or for about 100,000 ticks, or what the kernel allows: the caller looks again and at the
// clock.
__attribute__((target("waitpkg"))) void umwait_once(CompletionRecord& record) {
  _umonitor(&record);
  if (complete(record)) return;  // written between our last look and the monitor
  static_cast<void>(_umwait(1, __rdtsc() + 100'000));
}
#else
void umwait_once(CompletionRecord&) {}
#endif

// Until somebody wakes us, the word is another one, a signal, or the deadline.
void futex_once(CompletionRecord& record, Duration left) {
  uint32_t before = CompletionRecord::nobody;
  const bool announced = record.sleepers.compare_exchange_strong(before, CompletionRecord::asleep, std::memory_order_acq_rel);
  if (!announced && before == CompletionRecord::completing) return pause_cpu();  // the pointer follows at once
  timespec time{};
  timespec* timeout = nullptr;
  if (left != forever) {
    time.tv_sec = static_cast<time_t>(left.count() / 1'000'000'000);
    time.tv_nsec = static_cast<long>(left.count() % 1'000'000'000);
    timeout = &time;
  }
  static_assert(sizeof record.sleepers == sizeof(uint32_t));
  const long slept = ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&record.sleepers), FUTEX_WAIT_PRIVATE,
                               CompletionRecord::asleep, timeout, nullptr, 0);
  CHECK(slept == 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT);
}

}  // namespace

bool cpu_has_umwait() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ecx & (1u << 5)) != 0;
#else
  return false;
#endif
}

WaitMethod best_wait_method() {
  static const WaitMethod best = cpu_has_umwait() ? WaitMethod::umwait : WaitMethod::futex;
  return best;
}

bool wait(CompletionRecord& record, const WaitOptions& options) {
  for (uint32_t spin = 0; spin < options.spins; ++spin) {
    if (complete(record)) return true;
    pause_cpu();
  }
  const WaitMethod method = options.method.value_or(best_wait_method());
  CHECK(method != WaitMethod::umwait || cpu_has_umwait());
  const SystemClock clock;
  const Instant deadline = options.timeout == forever ? never : after(clock.now(), options.timeout);
  for (;;) {
    if (complete(record)) return true;
    const Instant now = deadline == never ? Instant{} : clock.now();
    if (now >= deadline) return complete(record);
    switch (method) {
      case WaitMethod::spin:
        pause_cpu();
        break;
      case WaitMethod::umwait:
        umwait_once(record);
        break;
      case WaitMethod::futex:
        futex_once(record, deadline == never ? forever : deadline - now);
        break;
    }
  }
}

void FutexWaker::wake(const std::atomic<uint32_t>* word) {
  // The record may be gone: then nobody sleeps there, and the kernel says so or nothing.
  static_cast<void>(
      ::syscall(SYS_futex, reinterpret_cast<const uint32_t*>(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0));
}

}  // namespace ccixfer::host

// Waiting for one completion record: by looking again and again for a moment, then by UMWAIT where the CPU has it, else asleep in
// the kernel until the table that completes it wakes us. Any thread but the one that turns the table, any number at once, each for
// its own record or several for the same. The waiting is here because it makes system calls; the record is core/rvma's.
// Source: RVMA §IV.C (Monitor/MWait, else polling).
#pragma once
#include <optional>

#include "core/base/time.h"
#include "core/rvma/completion_record.h"

namespace ccixfer::host {

enum class WaitMethod : uint8_t {
  spin,    // never gives the core away
  umwait,  // sleeps in user space until the line is written: x86 with WAITPKG
  futex    // sleeps in the kernel; the table needs a FutexWaker
};

[[nodiscard]] bool cpu_has_umwait();  // by CPUID: leaf 7, ECX bit 5
[[nodiscard]] WaitMethod best_wait_method();

struct WaitOptions {
  Duration timeout = forever;
  uint32_t spins = 2000;             // looks before anything else
  std::optional<WaitMethod> method;  // else the best. CHECKs: umwait only where the CPU has it
};

// True: it is complete, and all fields of the record may be read. False: not within the timeout.
[[nodiscard]] bool wait(rvma::CompletionRecord& record, const WaitOptions& options = {});

class FutexWaker final : public rvma::RecordWaker {
 public:
  void wake(const std::atomic<uint32_t>* word) override;
};

}  // namespace ccixfer::host

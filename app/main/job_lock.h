// `--lock FILE`: one run of a job at a time. The lock is the kernel's (flock) on an open file: it goes with the process, however
// that ends, so a file that was left behind locks nobody out. The file stays, since whoever removes it lets two runs in; it names
// the process that has the lock, for people.
// Errors: already_running: another process has it; usage: the file cannot be opened or locked, or has something else than the
// number of a process in it and is left as it is.
#pragma once
#include <string>

#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {

class JobLock {
 public:
  // "": no lock is asked for, and none is taken. Waits for nobody.
  [[nodiscard]] static Result<JobLock> take(const std::string& file);

 private:
  host::Descriptor file_ = {};
};

}  // namespace ccixfer::program

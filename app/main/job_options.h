// What a job's file says of options that the same words on a command line could not: `true` for those that take no value, a value
// for the others, and absolute paths, since nobody knows the working directory of a job that a timer starts.
// Errors: ErrorKind::usage, "FILE:LINE: options.KEY: what is wrong: what to do".
#pragma once
#include "app/job/job_file.h"
#include "core/base/result.h"

namespace ccixfer::program {

// Before the command line is parsed: an option without its value would take the next word for it.
[[nodiscard]] Result<void> check_values_given(const job::JobFile& job);
// Once it is parsed, so each option is one.
[[nodiscard]] Result<void> check_job_options(const job::JobFile& job);

}  // namespace ccixfer::program

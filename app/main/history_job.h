// Notes a transfer that ended below the root, in the work pool. If that fails, the log says so, and the transfer's own end stays.
#pragma once
#include <memory>
#include <string>

#include "app/recv/opened_root.h"
#include "core/ports/work_pool.h"

namespace ccixfer::program {

// `running` counts such jobs.
[[nodiscard]] std::unique_ptr<ports::Job> make_history_job(std::shared_ptr<recv::OpenedRoot> root, std::string line,
                                                           std::shared_ptr<size_t> running);

}  // namespace ccixfer::program

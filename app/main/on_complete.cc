#include "app/main/on_complete.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace ccixfer::program {
namespace {

constexpr Duration look_interval = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<OnComplete>> OnComplete::start(const std::string& command, report::Reporter& reporter) {
  auto helper = host::CommandHelper::start(command);
  if (!helper) return tl::unexpected(helper.error());
  return std::unique_ptr<OnComplete>(new OnComplete(std::move(*helper), reporter));
}

void OnComplete::run(const std::string& result) {
  const std::string text = result + "\n";
  if (text.size() > host::CommandHelper::text_bytes_max)
    return reporter_.warn(fmt::format("--on-complete: the command is not run: its result is too long: {} bytes", text.size()));
  if (!helper_->run(text))
    reporter_.warn("--on-complete: the command is not run: too many wait for their turn, or its helper has gone");
}

void OnComplete::tell(int status) {
  if (status == 0) return;
  if (status < 0)
    return reporter_.warn("--on-complete: the command could not be started, or took more than ten minutes and was killed");
  if (WIFSIGNALED(status))
    return reporter_.warn(fmt::format("--on-complete: the command was ended by signal {}", WTERMSIG(status)));
  reporter_.warn(fmt::format("--on-complete: the command failed: exit code {}", WEXITSTATUS(status)));
}

void OnComplete::turn() {
  for (const int status : helper_->ended()) tell(status);
  if (helper_->has_gone() && !std::exchange(told_gone_, true))
    reporter_.warn("--on-complete: the helper that runs the command has gone: nobody is told of what ends");
}

void OnComplete::finish(const std::function<bool()>& may_leave, Duration patience, const std::function<bool()>& must_leave) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (turn(); helper_->running() > 0 && !helper_->has_gone(); turn()) {
    const auto left = std::chrono::duration_cast<Duration>(until - std::chrono::steady_clock::now());
    if (must_leave() || (left <= Duration(0) && may_leave()))
      return reporter_.warn(
          fmt::format("--on-complete: {} command(s) have not ended: they go on without this process", helper_->running()));
    helper_->wait(left > Duration(0) ? std::min(left, look_interval) : look_interval);
  }
}

}  // namespace ccixfer::program

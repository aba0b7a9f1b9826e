// Runs a command of the user (sh -c) again and again, for a process that will not be allowed to start programs by then: a helper
// process is forked early, gets the text for the command's standard input by a socket, runs the commands one after the other, and
// says how each ended. What the commands print goes to standard error. The helper ignores SIGINT, SIGTERM and SIGHUP and ends by
// itself when the object, or its process, is gone and what was asked for is run; the commands ignore no signal. A command that
// runs longer than command_time_max is killed with all that it started. Bounds: waiting_max texts of text_bytes_max; more are
// refused. Thread: one at a time. start() before the process has threads.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/host/descriptor.h"

namespace ccixfer::host {

class CommandHelper {
 public:
  static constexpr Duration command_time_max = std::chrono::minutes(10);
  static constexpr size_t waiting_max = 1024;
  static constexpr size_t text_bytes_max = 64u << 10;

  [[nodiscard]] static Result<std::unique_ptr<CommandHelper>> start(const std::string& command);
  ~CommandHelper();
  CommandHelper(const CommandHelper&) = delete;
  CommandHelper& operator=(const CommandHelper&) = delete;

  [[nodiscard]] bool run(const std::string& text);  // false: too many wait, or the helper has gone
  // Sends what waits, and gives how commands have ended since: wait(2)'s status of each; -1: it could not be started, or was
  // killed.
  [[nodiscard]] std::vector<int> ended();
  [[nodiscard]] size_t running() const { return running_ + waiting_.size(); }  // asked for and not ended
  [[nodiscard]] bool has_gone() const { return has_gone_; }
  [[nodiscard]] int os_handle() const { return socket_.get(); }  // readable: a command has ended; -1: the helper has gone
  void wait(Duration patience) const;                            // until one has ended

 private:
  explicit CommandHelper(Descriptor socket) : socket_(std::move(socket)) {}
  void send_waiting();
  void is_gone();
  Descriptor socket_;
  std::deque<std::string> waiting_;
  size_t running_ = 0;
  bool has_gone_ = false;
};

}  // namespace ccixfer::host

// --on-complete: the command that is run when a transfer has ended, with the result as one JSON object on its standard input. A
// helper process runs it (core/host/command_helper), since a confined process starts no program; so it is made at the start of the
// process. A command that fails is a warning, and nothing of the transfer's.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "app/report/reporter.h"
#include "core/host/command_helper.h"

namespace ccixfer::program {

inline constexpr Duration on_complete_patience = std::chrono::seconds(60);  // of a process that ends, for commands that still run

class OnComplete {
 public:
  // file_io: the helper cannot be started. Before the process has threads, and before it is confined.
  [[nodiscard]] static Result<std::unique_ptr<OnComplete>> start(const std::string& command, report::Reporter& reporter);

  void run(const std::string& result);  // a JSON object, without a line feed
  void turn();                          // tells what has ended, once a turn: what is readable is taken here
  // Waits for what still runs: `patience`, and then until `may_leave` says so; `must_leave` ends it before too. Both are asked
  // about once a second.
  void finish(
      const std::function<bool()>& may_leave, Duration patience = on_complete_patience,
      const std::function<bool()>& must_leave = [] { return false; });
  [[nodiscard]] int os_handle() const { return helper_->os_handle(); }  // -1: the helper has gone

 private:
  OnComplete(std::unique_ptr<host::CommandHelper> helper, report::Reporter& reporter)
      : helper_(std::move(helper)), reporter_(reporter) {}
  void tell(int status);
  const std::unique_ptr<host::CommandHelper> helper_;
  bool told_gone_ = false;
  report::Reporter& reporter_;
};

}  // namespace ccixfer::program

// The audit log: one JSON line in a file for each session and each refused attempt, and of a router for whom it admits and what
// passed; and the same in systemd's journal.
//
// - The file is opened for appending (made with 0600) and written by one write(2) a line, so several processes may share it. After
//   reopen() (SIGHUP) lines go into the file that has the name now, as logrotate needs it.
// - A line that cannot be written is lost, and the transfer goes on: whoever fills the disk of the log should not thereby stop the
//   work, and a loss is said loudly when it begins and, with the count of lines, when it is over. Of a line that found room for a
//   part of it, the part is taken away again: each line of the file is one record.
// - Refusals beyond an allowance (refusal_allowance.h) have no line; the next line has their number, and the first is warned of.
// - Writing to the journal never blocks; a file blocks for as long as the disk takes to take one line.
// Errors: of open(): usage, the file cannot be opened.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "app/trust/audit_record.h"
#include "app/trust/journal.h"
#include "app/trust/refusal_allowance.h"
#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::policy {

inline constexpr std::string_view audit_to_journal = "journald";  // as FILE of --audit-log

struct AuditTargets {
  std::string file;  // "": none
  bool journal = false;
  std::string socket = journal_socket;
};

// `option`: of --audit-log, or "". A service, whose standard error is the journal, has its sessions in the journal in any case.
[[nodiscard]] AuditTargets audit_targets(const std::string& option, bool is_service);
// The same for this process.
[[nodiscard]] AuditTargets audit_targets_of_process(const std::string& option);

class AuditLog {
 public:
  using WallClock = std::function<int64_t()>;  // milliseconds since 1970
  [[nodiscard]] static Result<AuditLog> open(AuditTargets targets, WallClock wall_clock_ms);

  // Words to warn with, if there is anything to say.
  [[nodiscard]] std::optional<std::string> write(AuditRecord record);
  // If the file cannot be opened, the old one stays in use and the words say so.
  [[nodiscard]] std::optional<std::string> reopen();

 private:
  AuditLog(AuditTargets targets, WallClock wall_clock_ms)
      : targets_(std::move(targets)), wall_clock_ms_(std::move(wall_clock_ms)), journal_(targets_.socket) {}
  [[nodiscard]] int write_to_file(const std::string& line);  // 0, or errno

  AuditTargets targets_;
  WallClock wall_clock_ms_;
  host::Descriptor file_;
  Journal journal_;
  bool torn_ = false;  // the last line in the file has no end
  uint64_t lost_ = 0;  // records since one last went well
  RefusalAllowance refusals_;
  uint64_t left_out_ = 0;  // refusals since the last line that was written
  bool leaving_out_said_ = false;
};

}  // namespace ccixfer::policy

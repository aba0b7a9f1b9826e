#include "app/trust/audit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/base/units.h"

namespace ccixfer::policy {
namespace {

// Not blocking: it may be a pipe that nobody reads.
host::Descriptor open_file(const std::string& file) {
  return host::Descriptor(::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600));
}

// Takes the beginning of a line, which was written last, away again. Not of a pipe, nor where another process has written behind
// it.
bool take_back(int fd, ssize_t bytes) {
  struct stat now {};
  const off_t end = ::lseek(fd, 0, SEEK_CUR);
  return end >= bytes && ::fstat(fd, &now) == 0 && S_ISREG(now.st_mode) && now.st_size == end && ::ftruncate(fd, end - bytes) == 0;
}

}  // namespace

AuditTargets audit_targets(const std::string& option, bool is_service) {
  AuditTargets targets;
  targets.journal = is_service || option == audit_to_journal;
  if (option != audit_to_journal) targets.file = option;
  return targets;
}

AuditTargets audit_targets_of_process(const std::string& option) {
  return audit_targets(option, is_journal(std::getenv("JOURNAL_STREAM"), STDERR_FILENO));
}

Result<AuditLog> AuditLog::open(AuditTargets targets, WallClock wall_clock_ms) {
  AuditLog log(std::move(targets), std::move(wall_clock_ms));
  if (!log.targets_.file.empty()) {
    log.file_ = open_file(log.targets_.file);
    if (!log.file_) {
      return fail(ErrorKind::usage, fmt::format("cannot open the audit log: {}: {}: give --audit-log a writable place",
                                                printable(log.targets_.file), std::strerror(errno)));
    }
  }
  return log;
}

std::optional<std::string> AuditLog::reopen() {
  if (targets_.file.empty()) return std::nullopt;
  host::Descriptor file = open_file(targets_.file);
  if (!file) {
    return fmt::format("cannot open the audit log again: {}: {}: the old one stays in use", printable(targets_.file),
                       std::strerror(errno));
  }
  file_ = std::move(file);
  torn_ = false;
  leaving_out_said_ = false;
  return std::nullopt;
}

int AuditLog::write_to_file(const std::string& line) {
  const std::string text = torn_ ? "\n" + line : line;
  ssize_t n = 0;
  while ((n = ::write(file_.get(), text.data(), text.size())) < 0 && errno == EINTR) {
  }
  if (n < 0) return errno;
  if (static_cast<size_t>(n) == text.size()) {
    torn_ = false;
    return 0;
  }
  if (!take_back(file_.get(), n)) torn_ = true;
  return ENOSPC;  // a full disk takes a part first
}

std::optional<std::string> AuditLog::write(AuditRecord record) {
  const int64_t now_ms = wall_clock_ms_();
  if (record.event == AuditRecord::Event::refused && !refusals_.take(!record.name.empty(), now_ms)) {
    ++left_out_;
    if (std::exchange(leaving_out_said_, true)) return std::nullopt;
    return "many are refused: the audit log leaves some out, and says how many";
  }
  record.left_out = left_out_;
  std::string where;
  int problem = 0;
  if (targets_.journal) {
    problem = journal_.send(audit_fields(record, now_ms));
    if (problem != 0) where = "the journal";
  }
  if (file_) {
    if (const int of_file = write_to_file(audit_line(record, now_ms)); of_file != 0) {
      problem = of_file;
      where = printable(targets_.file);
    }
  }
  if (problem != 0) {
    if (++lost_ > 1) return std::nullopt;
    return fmt::format("WARNING: cannot write the audit log: {}: {}: transfers go on and their lines are lost: make it writable",
                       where, std::strerror(problem));
  }
  left_out_ = 0;  // not with a line that is lost
  if (lost_ == 0) return std::nullopt;
  return fmt::format("the audit log is written again: {} lines are lost", std::exchange(lost_, 0));
}

}  // namespace ccixfer::policy

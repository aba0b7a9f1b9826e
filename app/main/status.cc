// `ccixfer status`: what stands staged below a root, what ended there, and removing what is too old.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <thread>

#include "app/job/history.h"
#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/ended_transfer.h"
#include "app/main/job.h"
#include "app/main/session_trust.h"
#include "app/recv/history.h"
#include "app/recv/leftovers.h"
#include "app/recv/root.h"
#include "app/recv/staged_list.h"
#include "app/report/staged.h"
#include "core/base/units.h"
#include "core/host/descriptor.h"
#include "core/host/file_system.h"

namespace ccixfer::program {
namespace {

constexpr size_t history_line_bytes_max = 64u << 10;
constexpr auto answer_within = std::chrono::seconds(30);  // of a receiver that runs
constexpr auto look_every = std::chrono::milliseconds(200);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Error cannot(const char* what, const std::string& path, int error_number) {
  const char* const advice = error_number == ENOENT || error_number == ENOTDIR ? "name the directory of recv --root, or of a pull"
                                                                               : "run as the account that receives there";
  return {ErrorKind::file_io, fmt::format("cannot {}: {}: {}: {}", what, printable(path), std::strerror(error_number), advice)};
}

std::string staging_of(const std::string& root) { return root + "/" + std::string(recv::staging_name); }

CommandEnd show_history(const Process& process, const std::string& root) {
  const std::string name = staging_of(root) + "/" + std::string(recv::history_name);
  host::Descriptor fd(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd && errno == ENOENT) return {};
  if (!fd) return {cannot("read the history", name, errno), {}};
  const std::unique_ptr<std::FILE, CloseFile> file(::fdopen(::dup(fd.get()), "r"));
  if (!file) return {cannot("read the history", name, errno), {}};
  std::string line;
  for (int c = std::getc(file.get()); c != EOF; c = std::getc(file.get())) {
    if (c != '\n') {
      if (line.size() <= history_line_bytes_max) line += static_cast<char>(c);
      continue;
    }
    if (const auto noted = report::history_line(process.reporter.seconds(), line)) {
      process.reporter.event(noted->event);
      process.reporter.output(noted->text);
    }
    line.clear();
  }
  return {};
}

CommandEnd show_runs(const Process& process, const std::string& job) {
  const std::string file = job_history_file();
  if (file.empty() || (::access(file.c_str(), F_OK) != 0 && errno == ENOENT)) {
    process.reporter.info(
        fmt::format("no job has run as this account: there is no {}: a service has its history in $STATE_DIRECTORY",
                    file.empty() ? "place for a history" : printable(file)));
    return {};
  }
  auto history = job::History::open_to_read(file);
  if (!history) return {history.error(), {}};
  bool found = false;
  const auto listed = history->list(job, [&](const report::JobRun& run) {
    found = true;
    process.reporter.event(report::run_event(process.reporter.seconds(), run));
    process.reporter.output(report::run_line(run));
  });
  if (!listed) return {listed.error(), {}};
  if (!found) process.reporter.info(fmt::format("no run of {} is in {}", job.empty() ? "a job" : printable(job), printable(file)));
  return {};
}

Result<uint64_t> list(const Process& process, host::PosixFileSystem& files, const std::string& root) {
  const int64_t now_s = wall_time_s();
  return recv::list_staged(files, root, temporary_directory(), [&](const recv::StagedEntry& entry) {
    const report::Staged staged{entry.path, entry.bytes, entry.size_bytes, entry.peer, entry.since_s, entry.active_s};
    process.reporter.event(report::staged_event(process.reporter.seconds(), staged));
    process.reporter.output(report::staged_line(staged, now_s));
  });
}

// A receiver that runs is asked to do it: it knows what its sessions write.
Result<void> ask_receiver(const std::string& root, uint64_t age_s) {
  const std::string name = staging_of(root) + "/" + std::string(recv::expire_request_name);
  const std::string beside = name + ".new";
  ::unlink(beside.c_str());
  const std::string text = std::to_string(age_s);
  if (::symlink(text.c_str(), beside.c_str()) != 0) {
    const host::Descriptor fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
      return tl::unexpected(cannot("ask the receiver", name, errno));
  }
  if (::rename(beside.c_str(), name.c_str()) != 0) return tl::unexpected(cannot("ask the receiver", name, errno));
  const auto until = std::chrono::steady_clock::now() + answer_within;
  struct stat request {};
  while (::lstat(name.c_str(), &request) == 0) {
    if (std::chrono::steady_clock::now() >= until) {
      ::unlink(name.c_str());
      return fail(
          ErrorKind::file_io,
          fmt::format("the process that writes below the root does not answer: {}: a pull, or an older version: run this again "
                      "when it has ended",
                      printable(root)));
    }
    std::this_thread::sleep_for(look_every);
  }
  return {};
}

Result<void> expire(host::PosixFileSystem& files, const std::string& root, uint64_t age_s) {
  struct stat staging {};
  if (::lstat(staging_of(root).c_str(), &staging) != 0) {
    if (errno == ENOENT) return {};
    return tl::unexpected(cannot("look at", staging_of(root), errno));
  }
  if (staging.st_uid != ::geteuid()) {
    return fail(ErrorKind::usage,
                fmt::format("the staging directory is another account's: {}: run this as the account with the number {}",
                            printable(staging_of(root)), staging.st_uid));
  }
  recv::RootOptions options;
  options.staging_age_max_s = static_cast<int64_t>(std::min<uint64_t>(age_s, uint64_t{1} << 40));
  auto opened = recv::Root::open(files, root, nullptr, options);
  if (opened) return {};
  if (opened.error().message.find("is locked") == std::string::npos) return tl::unexpected(opened.error());
  return ask_receiver(root, age_s);
}

}  // namespace

CommandEnd run_status(const Process& process, const StatusCommand& command) {
  if (command.root.empty()) return show_runs(process, command.job);
  host::PosixFileSystem files;
  ports::FileStat stat;
  const int there = files.stat_at(ports::FileSystem::no_directory, command.root, stat, true);
  if (there < 0) return {cannot("open the directory", command.root, -there), {}};
  if (stat.type != ports::FileType::directory) return {cannot("open the directory", command.root, ENOTDIR), {}};
  if (command.history) return show_history(process, command.root);
  if (command.expire_s) {
    if (auto done = expire(files, command.root, *command.expire_s); !done) return {done.error(), {}};
  }
  const auto count = list(process, files, command.root);
  if (!count) return {count.error(), {}};
  if (*count == 0) process.reporter.info(fmt::format("nothing stands staged below {}", command.root));
  return {};
}

}  // namespace ccixfer::program

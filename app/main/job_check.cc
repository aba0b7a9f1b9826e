// `ccixfer job --check`: what a run would find out before it dials, found out before the night.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "app/devices/node.h"
#include "app/job/history.h"
#include "app/main/aside.h"
#include "app/main/confinement.h"
#include "app/main/ended_transfer.h"
#include "app/main/failed_list.h"
#include "app/main/job.h"
#include "app/main/metadata_options.h"
#include "app/main/pull_wish.h"
#include "app/main/receipts.h"
#include "app/main/rule_words.h"
#include "app/main/session_trust.h"
#include "app/main/transfer_loop.h"
#include "app/trust/private_file.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

Result<void> check_sources(const job::JobFile& job) {
  if (!job.is_push) return {};
  for (const std::string& source : job.sources) {
    struct stat status {};
    if (source == "-") continue;
    if (::stat(source.c_str(), &status) == 0 && ::access(source.c_str(), S_ISDIR(status.st_mode) ? R_OK | X_OK : R_OK) == 0)
      continue;
    return fail(ErrorKind::source_selection, fmt::format("{}: cannot read the source: {}: {}: name what can be read",
                                                         job.sources_place, printable(source), std::strerror(errno)));
  }
  return {};
}

// DIR of a pull, which is made if absent.
Result<void> check_directory(const job::JobFile& job) {
  if (job.is_push) return {};
  std::string directory = job.destination;
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) {
    if (errno == ENOENT) directory = directory_of(directory);
  } else if (!S_ISDIR(status.st_mode)) {
    return fail(ErrorKind::file_io, fmt::format("{}: not a directory: {}: name one that exists, or can be made",
                                                job.destination_place, printable(directory)));
  }
  if (::access(directory.c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorKind::file_io, fmt::format("{}: cannot write the destination: {}: {}: name one that exists, or can be made",
                                              job.destination_place, printable(directory), std::strerror(errno)));
}

// A file that the run makes, or writes into.
Result<void> check_written(const std::string& file, const std::string& what) {
  if (file.empty() || ::access(file.c_str(), W_OK) == 0) return {};
  if (errno == ENOENT && ::access(directory_of(file).c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorKind::usage, fmt::format("cannot write {}: {}: {}: name a file in a directory that can be written", what,
                                            printable(file), std::strerror(errno)));
}

// As --log-file opens it, but that nothing is made.
Result<void> check_log(const std::string& file) {
  if (auto fine = check_written(file, "the log"); !fine || file.empty()) return fine;
  const int fd = ::open(file.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  if (fd >= 0 || errno == ENOENT) return {};
  return fail(ErrorKind::usage, fmt::format("cannot write the log: {}: {}: name a file", printable(file),
                                            errno == ENXIO ? "it is a FIFO that nobody reads, or a socket" : std::strerror(errno)));
}

// With the place of the first of these options that is in the job's file.
template <class T>
Result<void> at_option(const job::JobFile& job, const Result<T>& checked, const std::vector<std::string>& names) {
  if (checked) return {};
  for (const job::JobOption& option : job.options) {
    for (const std::string& name : names) {
      const std::string word = (name.size() == 1 ? "-" : "--") + name;
      if (option.words.front() == word || option.words.front().starts_with(word + "="))
        return fail(checked.error().kind, option.place + ": " + checked.error().message);
    }
  }
  return fail(checked.error().kind, printable(job.file) + ": " + checked.error().message);
}

// With the place of the addresses.
template <class T>
Result<void> at_peers(const job::JobFile& job, const Result<T>& checked) {
  if (checked) return {};
  return fail(checked.error().kind, (job.is_push ? job.destination_place : job.sources_place) + ": " + checked.error().message);
}

// The identity, and whether anybody is known at the addresses: nobody is there at night to say yes to a new peer.
Result<void> check_trust(const Config& config, const CommonOptions& common, const std::vector<Place>& places) {
  if (common.insecure) return {};
  bool has_ticket = false;
  for (const Place& place : places) has_ticket = has_ticket || place.ticket;
  const auto without = has_ticket ? policy::WithoutIdentity::make_for_this_process : policy::WithoutIdentity::refuse;
  const auto security = make_security(config, policy::places_of_process(), without);
  if (!security) return tl::unexpected(security.error());
  for (const Place& place : places) {
    const std::string& address = place.targets.front().address;
    if (place.ticket || security->identity.authority || security->judge.may_know(address)) continue;
    return fail(ErrorKind::authentication,
                fmt::format("nobody is known at {}: a run would refuse whoever answers: give the peer a table [peer.NAME] with its "
                            "id in the configuration, or a line in {}",
                            printable(address), printable(security->places.known_peers())));
  }
  return {};
}

Result<void> check_options(const job::JobFile& job, const CommonOptions& common, const TransferOptions& transfer,
                           const std::vector<Place>& places) {
  if (auto fine = check_written(job.lock, "the lock file"); !fine) return at_option(job, fine, {});
  if (auto fine = check_log(common.log_file); !fine) return at_option(job, fine, {"log-file"});
  if (auto fine = DialledReceipt(transfer.receipt, {}, {}).check(); !fine) return at_option(job, fine, {"receipt"});
  if (auto tweaks = tweaks_of(transfer.metadata, !job.is_push); !tweaks) return at_option(job, tweaks, {"chown", "chmod"});
  sandbox::Plan unused;
  if (auto list = begin_failed_list(transfer, unused); !list) return at_option(job, list, {"failed-list"});
  const std::vector<std::string> choosing{"files-from", "relative", "R", "delete", "delete-excluded"};
  if (job.is_push) {
    if (auto chosen = chosen_of(job.sources, transfer.sync, transfer.from0); !chosen) return at_option(job, chosen, choosing);
  } else if (auto each = chosen_of_each(places, transfer); !each) {
    return at_option(job, each, choosing);
  }
  auto rules = read_rules(transfer.rules, transfer.sync, transfer.from0);
  if (!rules) return at_option(job, rules, {"filter", "f", "exclude-from", "include-from", "exclude", "include"});
  return job.is_push && !transfer.sync.deletes ? Result<void>() : check_travel(*rules);
}

// What this host has to have for it: the memory and the device.
Result<void> check_host(const PreparedJob& job, const Config& config, const CommonOptions& common,
                        const std::vector<Place>& places) {
  const TransferOptions& transfer = *transfer_of(job.command);
  if (auto buffers = pool_buffers(transfer.memory_bytes); !buffers) return at_option(job.file, buffers, {"memory"});
  const auto device = chosen_device(config, common.device, transport_of(places.front().targets.front()));
  if (!device) return at_option(job.file, device, {"device"});
  std::vector<Target> targets;
  for (const Place& place : places) targets.insert(targets.end(), place.targets.begin(), place.targets.end());
  return at_peers(job.file, check_targets(config, common, targets));
}

// Older trees and places of backups, as the receiver of a push judges them, or this host in a pull.
Result<void> check_aside(const job::JobFile& job, const SyncOptions& sync, const std::vector<Place>& places) {
  const std::vector<std::string> names = {"link-dest", "backup-dir"};
  if (!job.is_push) return at_option(job, aside_of(sync, job.destination, true), names);
  session::Open open;
  add_aside(open, sync);
  if (sync.deletes) open.deletes = recv::deletions_unlimited;
  return at_option(job, aside_of(open, peer_path(places.front().targets.front().path).path), names);
}

Result<void> check_job(const JobCommand& command, const std::string& name) {
  auto job = prepare_job(command, name);
  if (!job) return tl::unexpected(job.error());
  const CommonOptions& common =
      job->file.is_push ? std::get<SendCommand>(job->command).common : std::get<ReceiveCommand>(job->command).common;
  const auto config = config_of_process(common.config_file);
  if (!config) return tl::unexpected(config.error());
  std::vector<Place> places;
  for (const std::string& peer : job->file.is_push ? std::vector{job->file.destination} : job->file.sources) {
    auto place = find_place(peer, common);
    if (!place) return at_peers(job->file, place);
    places.push_back(std::move(*place));
  }
  if (auto fine = check_host(*job, *config, common, places); !fine) return fine;
  if (auto fine = check_sources(job->file); !fine) return fine;
  if (auto fine = check_directory(job->file); !fine) return fine;
  if (auto fine = check_options(job->file, common, *transfer_of(job->command), places); !fine) return fine;
  if (auto fine = check_aside(job->file, transfer_of(job->command)->sync, places); !fine) return fine;
  if (auto fine = check_trust(*config, common, places); !fine) return fine;
  if (auto made = policy::make_directory_of(job->history_file); !made) return made;
  auto history = job::History::open(job->history_file);
  return history ? Result<void>() : tl::unexpected(history.error());
}

}  // namespace

CommandEnd check_jobs(const Process& process, const JobCommand& command) {
  CommandEnd end;
  for (const std::string& name : command.names) {
    if (auto fine = check_job(command, name); !fine) {
      if (end.error.kind != ErrorKind::ok) process.reporter.error(end.error);
      end.error = fine.error();
      continue;
    }
    process.reporter.output(fmt::format("{}: fine", printable(name)));
  }
  return end;
}

}  // namespace ccixfer::program

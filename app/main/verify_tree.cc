#include "app/main/verify_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <thread>

#include "app/main/confinement.h"
#include "app/receipt/describe.h"
#include "app/send/walk.h"
#include "app/session/entry.h"
#include "app/session/reserved.h"
#include "core/base/units.h"
#include "core/host/file_system.h"
#include "core/host/threads.h"

namespace ccixfer::program {
namespace {

constexpr size_t batch_entries_max = 256;
constexpr uint64_t batch_bytes_max = 256u << 20;
constexpr unsigned threads_max = 8;

using receipt::Entry;
using receipt::EntryType;

struct Found {  // in the tree
  std::string path;
  std::optional<EntryType> type;  // none: a device, a FIFO or a socket, of which no receipt speaks
  ports::FileStat stat;
  std::string target;
  std::string problem;  // it cannot be listed
};

// What is said of one path, in its turn.
struct Verdict {
  std::string path;
  uint64_t bytes = 0;
  std::string status;  // "": nothing is wrong
  std::string reason;
  std::optional<Entry> wanted = {};  // of a file that has to be read
};

// The tree, entry by entry.
class Tree {
 public:
  Tree(ports::FileSystem& files, int directory) : files_(files), directory_(directory), walk_(options(directory)) {}
  ~Tree() { walk_.close(files_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  [[nodiscard]] Result<void> begin() { return walk_.select(files_); }
  [[nodiscard]] std::optional<Found> next() {
    for (;;) {
      while (at_ == batch_.records.size()) {
        if (batch_.done) return std::nullopt;
        batch_ = {};
        at_ = 0;
        walk_.step(files_, batch_, true);
      }
      if (auto found = judge(batch_.records[at_++])) return found;
    }
  }

  // One file, and nothing beside it. Nothing: it has gone.
  [[nodiscard]] std::optional<Found> only(const std::string& name) {
    Found found{name, EntryType::file, {}, {}, {}};
    if (files_.stat_at(directory_, name, found.stat, false) < 0) return std::nullopt;
    if (found.stat.type != ports::FileType::regular) found.type.reset();
    return found;
  }

 private:
  static send::WalkOptions options(int directory) {
    send::WalkOptions options;
    options.sources = {""};
    options.served_root = directory;
    options.links = true;
    options.directory = true;
    options.spool_directory = temporary_directory();
    return options;
  }
  [[nodiscard]] std::optional<Found> judge(const send::WalkRecord& record) const {
    Found found;
    found.path = batch_.path(record);
    found.stat = record.stat;
    if (found.path.empty()) return std::nullopt;  // the directory itself
    const size_t slash = found.path.rfind('/');
    if (session::is_reserved_name(std::string_view(found.path).substr(slash == std::string::npos ? 0 : slash + 1)))
      return std::nullopt;
    if (record.kind == send::WalkRecord::Kind::warning) return found;
    if (record.kind != send::WalkRecord::Kind::entry) {
      found.problem = batch_.more(record);
      return found;
    }
    switch (record.type) {
      case session::EntryType::file:
        found.type = EntryType::file;
        return found;
      case session::EntryType::directory:
        found.type = EntryType::directory;
        return found;
      case session::EntryType::symlink:
        found.type = EntryType::link;
        found.target = batch_.more(record);
        return found;
      default:
        return std::nullopt;
    }
  }

  ports::FileSystem& files_;
  const int directory_;
  send::Walk walk_;
  send::WalkBatch batch_;
  size_t at_ = 0;
};

const char* name_of(EntryType type) {
  return type == EntryType::file ? "a file" : type == EntryType::directory ? "a directory" : "a link";
}

class Comparison {
 public:
  Comparison(const Process& process, const receipt::Checked& checked, bool ignores_extra, ports::FileSystem& files, int directory)
      : process_(process), archive_(checked.header.archive), ignores_extra_(ignores_extra), files_(files), directory_(directory) {}

  void missing(const Entry& entry) {
    // Nobody knows what stands in a directory that was told as unreadable.
    const bool is_unknown = !unlisted_.empty() && entry.path.starts_with(unlisted_ + "/");
    if (is_unknown) return add({entry.path, entry.size_bytes, "unreadable", "not checked: " + printable(unlisted_)});
    add({entry.path, entry.size_bytes, "missing", {}});
  }
  void extra(const Found& found) {
    if (!found.problem.empty()) unlisted_ = found.path;
    if (found.problem.empty() && (ignores_extra_ || !found.type)) return;
    add({found.path, found.stat.size_bytes, found.problem.empty() ? "extra" : "unreadable", found.problem});
  }
  void both(const Entry& wanted, const Found& found) {
    Verdict verdict{wanted.path, wanted.size_bytes, {}, {}};
    if (!found.problem.empty()) {
      unlisted_ = found.path;
      verdict.status = "unreadable";
      verdict.reason = found.problem;
    } else if (!found.type || *found.type != wanted.type) {
      verdict.status = "altered";
      verdict.reason = fmt::format("it was {}", name_of(wanted.type));
    } else if (wanted.type == EntryType::file && wanted.sha256 && found.stat.size_bytes == wanted.size_bytes) {
      verdict.wanted = wanted;
    } else {
      judge(verdict, wanted, found.stat, found.target);
      if (wanted.type == EntryType::file && verdict.status.empty()) {
        verdict.status = "unproved";
        verdict.reason = "the receipt has no digest of it";
      }
    }
    add(std::move(verdict));
  }
  void flush();
  [[nodiscard]] Error end(const std::string& directory) const {
    if (differences() == 0 && unproved_ > 0) {
      return {ErrorKind::partial,
              fmt::format("{} files have no digest in the receipt, so their content was not compared: {}: the rest is as it says",
                          unproved_, printable(directory))};
    }
    if (differences() == 0) return {ErrorKind::ok, ""};
    return {ErrorKind::integrity,
            fmt::format("the tree is not as the receipt says: {}: {} altered, {} missing, {} extra, {} unreadable",
                        printable(directory), altered_, missing_, extra_, unreadable_)};
  }
  [[nodiscard]] Tally tally() const {
    Tally tally;
    tally.files_unchanged = files_good_;
    tally.files_failed = differences() + unproved_;
    tally.bytes = bytes_read_;
    return tally;
  }

 private:
  [[nodiscard]] uint64_t differences() const { return altered_ + missing_ + extra_ + unreadable_; }
  void add(Verdict verdict) {
    waiting_bytes_ += verdict.wanted ? verdict.bytes : 0;
    waiting_.push_back(std::move(verdict));
    if (waiting_.size() >= batch_entries_max || waiting_bytes_ >= batch_bytes_max) flush();
  }
  static void alter(Verdict& verdict, std::string what) {
    verdict.status = "altered";
    verdict.reason += (verdict.reason.empty() ? "" : ", ") + what;
  }
  void judge(Verdict& verdict, const Entry& wanted, const ports::FileStat& stat, const std::string& target) const {
    if (wanted.type == EntryType::link) {
      if (target != wanted.target) alter(verdict, "its target");
      return;
    }
    if (wanted.type == EntryType::file && stat.size_bytes != wanted.size_bytes)
      alter(verdict, fmt::format("{} bytes and not {}", stat.size_bytes, wanted.size_bytes));
    if (!archive_) return;
    if (stat.mode != wanted.mode) alter(verdict, fmt::format("mode {:04o} and not {:04o}", stat.mode, wanted.mode));
    if (wanted.type == EntryType::file && stat.mtime != wanted.mtime) alter(verdict, "its time");
  }
  void read(Verdict& verdict) const {
    receipt::Subject subject;
    subject.directory = directory_;
    subject.below = verdict.path;
    subject.stop = TurnLoop::is_told_to_end;
    Entry now;
    if (!receipt::describe(files_, subject, now)) return alter(verdict, "it went while it was looked at");
    if (!now.sha256) {
      verdict.status = "unreadable";
      verdict.reason = "it cannot be read, or changes";
      return;
    }
    ports::FileStat stat;
    stat.size_bytes = now.size_bytes;
    stat.mode = now.mode;
    stat.mtime = now.mtime;
    judge(verdict, *verdict.wanted, stat, {});
    if (*now.sha256 != *verdict.wanted->sha256) alter(verdict, "its content");
  }

  std::string unlisted_;  // the last one that could not be looked at or listed: what is in it comes next
  const Process& process_;
  const bool archive_;
  const bool ignores_extra_;
  ports::FileSystem& files_;
  const int directory_;
  std::vector<Verdict> waiting_;
  uint64_t waiting_bytes_ = 0;
  uint64_t altered_ = 0, missing_ = 0, extra_ = 0, unreadable_ = 0;
  uint64_t unproved_ = 0;  // nothing differs, but nobody knows what their content was
  uint64_t files_good_ = 0, bytes_read_ = 0;
};

void Comparison::flush() {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t at = next.fetch_add(1); at < waiting_.size(); at = next.fetch_add(1)) {
      if (waiting_[at].wanted && !TurnLoop::is_told_to_end()) read(waiting_[at]);
    }
  };
  const auto to_read = static_cast<unsigned>(
      std::count_if(waiting_.begin(), waiting_.end(), [](const Verdict& one) { return one.wanted.has_value(); }));
  std::vector<std::thread> threads;
  const unsigned wanted = std::min({threads_max, std::max(1u, std::thread::hardware_concurrency()), to_read});
  for (unsigned i = 1; i < wanted; ++i) {
    auto thread = host::begin_thread(work);
    if (!thread) break;  // the others, or this one alone, take longer
    threads.push_back(std::move(*thread));
  }
  work();
  for (std::thread& thread : threads) thread.join();
  if (TurnLoop::is_told_to_end()) waiting_.clear();  // of files that were not read to their end nothing can be said
  for (const Verdict& verdict : waiting_) {
    if (verdict.wanted) bytes_read_ += verdict.bytes;
    if (verdict.status.empty()) {
      files_good_ += verdict.wanted ? 1u : 0u;
      continue;
    }
    ++(verdict.status == "altered"    ? altered_
       : verdict.status == "missing"  ? missing_
       : verdict.status == "extra"    ? extra_
       : verdict.status == "unproved" ? unproved_
                                      : unreadable_);
    process_.reporter.file({verdict.path, verdict.bytes, verdict.status, verdict.reason, {}});
  }
  waiting_.clear();
  waiting_bytes_ = 0;
}

std::string last_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Where the tree is, and of a receipt of one file the name that it has there, if that is another one: a sender's receipt has the
// name at the source, and DEST/NAME gave it its own.
struct Place {
  std::string directory;
  std::string name = {};
  bool is_file = false;  // nothing beside it is looked at
};

bool is_of_one_file(const receipt::Checked& checked) {
  return checked.end.files == 1 && checked.end.directories == 0 && checked.end.links == 0;
}

Place place_of(ports::FileSystem& files, const receipt::Checked& checked, const std::string& given) {
  ports::FileStat stat;
  if (!is_of_one_file(checked) || files.stat_at(ports::FileSystem::no_directory, given, stat, false) < 0) return {given};
  if (stat.type == ports::FileType::regular) {
    const size_t slash = given.rfind('/');
    return {slash == std::string::npos ? "." : given.substr(0, slash + 1), last_name(given), true};
  }
  const std::string name = last_name(checked.header.path);
  const bool has_it = checked.header.side == receipt::Side::source && !name.empty() &&
                      files.stat_at(ports::FileSystem::no_directory, given + "/" + name, stat, false) == 0;
  return {given, has_it && stat.type == ports::FileType::regular ? name : std::string()};
}

}  // namespace

CommandEnd verify_tree(const Process& process, const VerifyCommand& command, const receipt::Checked& checked,
                       receipt::Reader& reader, const std::string& given) {
  host::PosixFileSystem files;
  const Place place = place_of(files, checked, given);
  const std::string& directory = place.directory;
  const int fd = files.open(ports::FileSystem::no_directory, directory, {.directory = true}, 0);
  if (fd < 0) {
    return {{ErrorKind::file_io, fmt::format("cannot read the directory: {}: {}: name the one that was delivered",
                                             printable(directory), std::strerror(-fd))},
            {}};
  }
  sandbox::Plan plan;
  plan.file_rights = sandbox::FileRights::read_all;
  plan.places.push_back({directory, sandbox::Access::read});
  plan.places.push_back({temporary_directory(), sandbox::Access::files});
  plan.places.push_back({temporary_directory(), sandbox::Access::read});
  if (auto confined = confine(process, plan); !confined) return {confined.error(), {}};
  CommandEnd end;
  {
    Tree tree(files, fd);
    Comparison comparison(process, checked, command.ignore_extra, files, fd);
    if (auto begun = tree.begin(); !begun) return {begun.error(), {}};
    auto wanted = reader.next();
    ports::FileStat stat;
    const bool is_renamed =
        wanted && *wanted && !place.name.empty() && (place.is_file || files.stat_at(fd, (*wanted)->path, stat, false) == -ENOENT);
    if (is_renamed) (*wanted)->path = place.name;
    auto found = place.is_file ? tree.only(place.name) : tree.next();
    while (wanted && (*wanted || found) && !TurnLoop::is_told_to_end()) {
      const bool is_missing = *wanted && (!found || receipt::comes_before((*wanted)->path, found->path));
      const bool is_extra = !is_missing && (!*wanted || (*wanted)->path != found->path);
      if (is_missing) comparison.missing(**wanted);
      if (is_extra) comparison.extra(*found);
      if (!is_missing && !is_extra) comparison.both(**wanted, *found);
      if (!is_missing) found = place.is_file ? std::nullopt : tree.next();
      if (!is_extra) wanted = reader.next();
    }
    comparison.flush();
    end.tally = comparison.tally();
    end.error = wanted ? comparison.end(given) : wanted.error();
    if (TurnLoop::is_told_to_end()) {
      end.error = {ErrorKind::interrupted,
                   fmt::format("interrupted: the rest was not compared: {}: run it again", printable(given))};
    }
  }
  files.close(fd);
  return end;
}

}  // namespace ccixfer::program

// A root in a temporary directory, and what jobs do in it: verdicts, and the content of small files all the way to their names.
#pragma once
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "app/recv/commit.h"
#include "app/recv/entries.h"
#include "app/recv/packs.h"
#include "app/recv/root.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::recv::test {

using session::Entry;
using session::EntryType;

// As destination_fixture.h has it for whole sessions.
inline constexpr uint32_t archive_options =
    session::option_recursive | session::option_links | session::option_permissions | session::option_times | session::option_owner;

struct Place {
  explicit Place(uint32_t options = archive_options, const std::string& base = "", FaultyFiles* faulty = nullptr)
      : files(faulty != nullptr ? *faulty : own_files),
        root(Root::open(files, temporary.path()).value()),
        policy{options, root->opened()->umask, root->opened()->uid, root->opened()->gid},
        directories(std::make_unique<KnownDirectories>(files, root->opened()->fd, root->opened()->staging_identity,
                                                       root->opened()->held_directories)),
        decider(*root->opened(), *directories, policy, base, owner, linked) {}

  DecidedEntries decide(const std::vector<Entry>& entries) {
    DecidedEntries decided = decider.decide(entries, next_index);
    next_index += entries.size();
    return decided;
  }
  Decision decide_one(const Entry& entry) {
    DecidedEntries decided = decide({entry});
    REQUIRE_FALSE(decided.fatal.has_value());
    return std::move(decided.decisions.at(0));
  }
  // Content of a small file all the way to its name.
  CommitItem deliver(const FileTaskRef& task, const std::string& content) {
    std::vector<PackItem> items(1);
    items[0].task = task;
    items[0].content = as_bytes(content);
    stage_pack(*root->opened(), policy, *owner, items);
    REQUIRE(items[0].error_number == 0);
    std::vector<CommitItem> batch(1);
    batch[0].task = task;
    batch[0].staged = items[0].staged;
    batch[0].size_bytes = content.size();
    commit_batch(*root->opened(), *directories, policy, *owner, batch);
    root->opened()->claims.release(task->key, owner);
    return batch[0];
  }
  [[nodiscard]] struct stat stat_of(const std::string& path) const {
    struct stat stat {};
    REQUIRE(::lstat(temporary.path(path).c_str(), &stat) == 0);
    return stat;
  }

  TemporaryDirectory temporary;
  FaultyFiles own_files;
  FaultyFiles& files;
  std::unique_ptr<Root> root;
  std::shared_ptr<Owner> owner = std::make_shared<Owner>();
  Policy policy;
  std::unique_ptr<KnownDirectories> directories;
  LinkedNames linked;
  EntryDecider decider;
  uint64_t next_index = 0;
};

inline Entry file(const std::string& path, uint64_t size_bytes, uint32_t mode = 0644) {
  Entry entry;
  entry.path = path;
  entry.size_bytes = size_bytes;
  entry.mode = mode;
  entry.uid = ::getuid();
  entry.gid = ::getgid();
  entry.mtime = {1'000'000'000, 123'456'789};
  entry.version = 5;
  return entry;
}
inline Entry directory(const std::string& path, uint32_t mode = 0755) {
  Entry entry = file(path, 0, mode);
  entry.type = EntryType::directory;
  return entry;
}
inline Entry link(const std::string& path, const std::string& target) {
  Entry entry = file(path, 0, 0777);
  entry.type = EntryType::symlink;
  entry.target = target;
  return entry;
}

}  // namespace ccixfer::recv::test

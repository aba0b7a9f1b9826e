// Entries to verdicts: one job walks the entries of one segment in order, looks at what is there, makes directories and links,
// finds what an earlier run left in staging, and claims the files that are to be written.
// One such job at a time in a session, in order of the segments: the context is the job's while it runs.
// Nothing is made in a dry run. Errors of one entry fail that entry; only a full or read-only file system, a session path that
// leaves the root, or a directory that is no longer where it was ends the session (`fatal`).
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/recv/asked.h"
#include "app/recv/directories.h"
#include "app/recv/leaves.h"
#include "app/recv/root.h"
#include "app/recv/task.h"
#include "app/session/entry.h"
#include "app/session/messages.h"

namespace ccixfer::recv {

struct Decision {
  session::EntryType type = session::EntryType::file;
  session::Verdict verdict = session::Verdict::done;
  int error_number = 0;                     // failed
  std::string path;                         // final
  uint64_t size_bytes = 0;                  // 0 also of a file whose length is not known
  uint64_t version = 0;                     // of a file
  bool attributes_refused = false;          // unchanged: as of apply_attributes
  FileTaskRef task;                         // send, pieces
  std::vector<session::Want::Range> wants;  // pieces: what lacks
  std::vector<Ledger::Piece> present;       // pieces: what is durable here, read back and found good
  std::optional<Leave> leave;
};

struct EntriesContext {
  EntriesContext(Root::Impl& shared_root, KnownDirectories& known, Policy session_policy, std::string session_base,
                 std::shared_ptr<Owner> session_owner)
      : root(shared_root),
        directories(known),
        policy(session_policy),
        base(std::move(session_base)),
        owner(std::move(session_owner)) {}

  struct OpenDirectory {
    std::string path;
    uint64_t index = 0;
    Attributes attributes;  // as listed: a `leave` has none
    bool made = false;
    bool unlocked = false;
    uint32_t mode_before = 0;
    bool was_empty = false;  // nothing stood there, and this session made it: what is in it now is this run's
  };
  Root::Impl& root;
  KnownDirectories& directories;
  const Policy policy;
  const std::string base;  // the session's path, normalised
  const std::shared_ptr<Owner> owner;
  std::optional<AskedEntries> asked;  // of a pull
  bool base_ready = false;
  std::vector<OpenDirectory> open_directories;  // the chain from the base to where the walk is
  std::set<int64_t> taken_over;                 // transfers that did not end and delivered files of ours, as numbered in the ledger
};

struct DecidedEntries {
  std::vector<Decision> decisions;  // one an entry, unless fatal
  std::optional<Error> fatal;
};

[[nodiscard]] DecidedEntries decide_entries(EntriesContext& context, const std::vector<session::Entry>& entries,
                                            uint64_t first_index);

}  // namespace ccixfer::recv

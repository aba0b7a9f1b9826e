// From entries to verdicts. One job walks the entries of one segment in order: it looks at what is
// there, makes directories and links, finds what an earlier run left in staging, and claims the files
// that are to be written. One such job runs at a time in a session, in the order of the segments, and
// has the decider for itself. A dry run makes nothing.
// Errors of one entry fail that entry. A full or read-only file system, a session path that leaves the
// root, and a directory that is no longer where it was end the session (`fatal`).
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/recv/backups.h"
#include "app/recv/caseless_names.h"
#include "app/recv/deletions.h"
#include "app/recv/directories.h"
#include "app/recv/earlier_sources.h"
#include "app/recv/leaves.h"
#include "app/recv/linked_names.h"
#include "app/recv/older_file.h"
#include "app/recv/older_trees.h"
#include "app/recv/open_directories.h"
#include "app/recv/opened_root.h"
#include "app/recv/task.h"
#include "app/session/entry.h"
#include "app/session/item.h"
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
  bool setid_refused = false;               // it comes without its set-ID bits: as of words_of_no_setid
  bool stays = false;                       // --update or --ignore-existing: what is not known to be the source's
  FileTaskRef task;                         // send, pieces
  std::vector<session::Want::Range> wants;  // pieces: what lacks
  std::vector<Ledger::Piece> present;       // pieces: what is durable here, read back and found good
  std::shared_ptr<OlderFile> older;         // compare: the file whose pieces may be the same
  std::optional<Leave> leave;
  session::Items items = 0;  // with option_itemize: what is done to it
  std::string target;        // and of a link, where it leads; of a further name of a file, the first one
};

struct DecidedEntries {
  std::vector<Decision> decisions;  // one an entry, unless fatal
  std::optional<Error> fatal;
};

// Of one session. `base`: the session's path, normalised.
class EntryDecider {
 public:
  EntryDecider(OpenedRoot& root, KnownDirectories& directories, const Policy& policy, std::string base,
               std::shared_ptr<Owner> owner, LinkedNames& linked)
      : root_(root),
        directories_(directories),
        policy_(policy),
        base_(std::move(base)),
        owner_(std::move(owner)),
        linked_(linked) {}

  // What is linked from older trees, and kept before it is replaced. They live as long as the decider.
  void set_aside(OlderTrees* older, Backups* backups) {
    older_ = older;
    backups_ = backups;
  }
  // What --delete may take away: all entries are noted there, and directories are emptied for what takes their place.
  void set_deletions(Deletions* deletions) { deletions_ = deletions; }
  // What earlier sources of the command have brought stays: such an entry is unchanged, and directories keep their attributes.
  void set_earlier(std::shared_ptr<EarlierSources> earlier) { earlier_ = std::move(earlier); }
  // The session's path names a directory that was made for it.
  void set_base_made() { base_made_ = true; }
  [[nodiscard]] DecidedEntries decide(const std::vector<session::Entry>& entries, uint64_t first_index);
  // Transfers that did not end and delivered files that this one found, as numbered in the database.
  [[nodiscard]] const std::set<int64_t>& taken_over() const { return taken_over_; }

 private:
  class Job;  // the decisions on one segment
  OpenedRoot& root_;
  KnownDirectories& directories_;
  const Policy policy_;
  const std::string base_;
  const std::shared_ptr<Owner> owner_;
  LinkedNames& linked_;
  OlderTrees* older_ = nullptr;
  Backups* backups_ = nullptr;
  Deletions* deletions_ = nullptr;
  std::shared_ptr<EarlierSources> earlier_;
  bool base_ready_ = false;
  bool base_made_ = false;  // by this session: the directory that the session's path names
  std::string left_out_;    // --ignore-existing: what stands there is no directory and stays, so nothing in it can be made
  OpenDirectories open_directories_;
  CaselessNames caseless_names_;
  std::set<int64_t> taken_over_;
};

}  // namespace ccixfer::recv

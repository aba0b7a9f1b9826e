// From staged files to final names. The order is such that a power cut at any instant leaves the old
// file or the whole new one: attributes and length, sync of the data, rename, sync of the directory,
// removal of the ledger's rows, and only then the result.
// Files of packs are synced together, with one syncfs before the renames and one after them
// (disk_sync.h). Where syncfs does not tell of lost data, each file was synced by itself before, and
// each directory is synced after the renames. At last the target directories are looked at again: a
// file in a directory that is no longer where its path leads has failed (ESTALE).
// With --inplace a file that stood there was written to (pieces), or is written over now (packs): its data is synced before it gets
// its time, so that a run which is interrupted leaves a file that the next one takes for changed.
// With option_verify what was synced is read back from the disk before the rename (at_rest.h).
// Runs in a job, one at a time in a session.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/recv/backups.h"
#include "app/recv/deliveries.h"
#include "app/recv/held.h"
#include "app/recv/opened_root.h"
#include "app/recv/pieces.h"
#include "app/recv/task.h"

namespace ccixfer::recv {

// A file that is replaced is held if it has so many bytes.
inline constexpr uint64_t held_replaced_bytes = 64u << 20;

enum class CommitOutcome : uint8_t {
  ok,
  sync_failed,  // its data may be lost, so it has to be fetched again
  damaged,      // the disk has something else than what was written (option_verify): it has to be fetched again
  held,         // another receiver writes into it at this moment
  failed,       // it cannot be placed, because of error_number
};

struct CommitItem {
  FileTaskRef task;
  std::string staged;                        // name in staging
  std::string link_to = {};                  // set: nothing is staged, and the file becomes a further name of the file at this path
  std::shared_ptr<StagedFile> file;          // of pieces; nullptr: of a pack, attributes set already
  uint64_t size_bytes = 0;                   // final length
  DiskSync::Mark mark = 0;                   // of a pack: of before it was written
  Hash128 hash = {};                         // of a pack, with option_verify: of the content
  bool verified = false;                     // of a pack: it was read back already
  std::vector<Ledger::Piece> unsynced = {};  // of pieces: those that no sync was made for yet
  bool attributes_refused = false;           // as of apply_attributes: the content is there all the same
  bool copied = false;  // a copy is made in the target directory and renamed, because we may not give the staged file what that
                        // directory gives
  // Out: the large file that stood under the final name. It is held, because freeing its blocks takes long.
  HeldFileRef replaced = {};
  // Out: what stands under the final name, if its status cannot tell later that it is the source's.
  std::optional<Deliveries::Placed> placed = {};
  CommitOutcome outcome = CommitOutcome::ok;
  int error_number = 0;
  std::vector<uint64_t> damaged = {};      // pieces, with that outcome
  std::optional<Instant> held_since = {};  // the queue's: since when the outcome has been `held`
};
// `backups` is nullptr where none are kept.
void commit_batch(OpenedRoot& root, KnownDirectories& directories, const Policy& policy, const Owner& owner,
                  std::vector<CommitItem>& batch, Backups* backups = nullptr);

}  // namespace ccixfer::recv

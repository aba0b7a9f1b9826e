// What the sides count, against what the trees show: each file once, each byte once, and no more bytes than there are.
#include <fmt/format.h>

#include "tests/sim/swarm.h"

namespace ccixfer::testing {
namespace {

bool is_file(const sim::TreeEntry& entry) { return entry.stat.type == ports::FileType::regular; }

std::string words(const program::Tally& tally) {
  return fmt::format("{} files, {} unchanged, {} failed, {} vanished, {} bytes of {}", tally.files, tally.files_unchanged,
                     tally.failed(), tally.vanished(), tally.bytes, tally.bytes_total);
}

}  // namespace

// What stat tells to be unchanged, as it is before the transfer.
void Swarm::count_older() {
  if (!options_.attributes) return;
  const sim::Tree there = destination_->files.tree("/dst");
  for (const auto& [path, entry] : wanted_) {
    const auto old = there.find(path);
    if (!is_file(entry) || old == there.end() || !is_file(old->second)) continue;
    if (old->second.content.size() == entry.content.size() && old->second.stat.mtime == entry.stat.mtime) ++older_unchanged_;
  }
}

// At every event, at both sides.
void Swarm::watch_tally() {
  if (!violation_.empty()) return;
  for (const bool dialled : {true, false}) {
    const program::Tally tally =
        dialled ? (dialler_ ? dialler_->tally() : program::Tally{}) : (listener_ ? listener_->tally() : program::Tally{});
    if (tally.bytes > tally.bytes_total)
      violated(fmt::format("the {} counts {}", dialled ? "command" : "listening side", words(tally)));
  }
}

// After a transfer that came to the end of the tree: files + unchanged + failed = entries. Failures of directories and links count
// too, and what is below a directory that cannot be listed does not, so with refusals and broken disks nothing is exact. Nor are
// the numbers of files where an administrator takes away what was there or has just come.
void Swarm::judge_tally(const Error& result) {
  const bool whole = result.kind == ErrorKind::ok || result.kind == ErrorKind::partial || result.kind == ErrorKind::vanished;
  const bool exact = options_.disk_error_chance + options_.read_error_chance + options_.refused_chance +
                         options_.sync_error_chance + options_.close_error_chance + options_.disk.writeback_error_chance ==
                     0;
  if (!whole || !exact || !violation_.empty()) return;
  const program::Tally tally = dialler_->tally();
  uint64_t files = 0, bytes = 0;
  for (const auto& [path, entry] : wanted_) {
    if (!is_file(entry)) continue;
    ++files;
    bytes += entry.content.size();
  }
  const bool administered = options_.administrator_acts > 0;
  if (!administered && tally.ended() != files)
    return violated(fmt::format("of {} files the command counts {}", files, words(tally)));
  if (result.kind != ErrorKind::ok) return;
  if (tally.failed() + tally.vanished() > 0) return violated("ended well with failures: " + words(tally));
  if (tally.bytes != tally.bytes_total) return violated("ended well with bytes left: " + words(tally));
  if (dialler_crashed_ || rival_ || options_.changes > 0 || administered) return;
  // What this very process delivered is no unchanged file, however often the other side began anew.
  if (tally.files_unchanged != older_unchanged_) {
    return violated(fmt::format("{} files were there before, and the command counts {}", older_unchanged_, words(tally)));
  }
  if (older_unchanged_ == 0 && tally.bytes != bytes) violated(fmt::format("{} bytes came, counted as {}", bytes, words(tally)));
}

}  // namespace ccixfer::testing

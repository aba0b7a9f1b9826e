// What one transfer wanted of its files and said of them, over all of its sessions, so that each file
// and byte is counted once and told once. Every session walks the whole tree: a later one finds what
// an earlier one delivered unchanged, and its pieces present.
// The process that dialled the transfer keeps a record, and an acceptor keeps those of the transfers
// that it saw lately. A process that starts anew begins with an empty one.
// In: files, as name() of path and source version. Bound: files_max names; a file beyond that counts
// as new each time.
// Not thread-safe.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/session/kept_names.h"

namespace ccixfer::session {

class TransferRecord {
 public:
  static constexpr size_t files_max_of_dialler = 1u << 20;   // 8 bytes each, and as much again for the table's gaps
  static constexpr size_t files_max_of_acceptor = 1u << 16;  // which keeps the records of many transfers
  enum class Said : uint8_t { nothing, ok, unchanged, failed };

  explicit TransferRecord(size_t files_max = files_max_of_dialler) : files_max_(files_max) {}

  [[nodiscard]] static uint64_t name(std::string_view path, uint64_t version);
  // The destination wants `missing_bytes` of the file's `size_bytes` now. Gives what this transfer
  // moves of the file in all, which is more when an earlier session brought some.
  [[nodiscard]] uint64_t want(uint64_t file, uint64_t size_bytes, uint64_t missing_bytes);
  // The destination has the file. Gives what this transfer moved of it in an earlier session; none:
  // the file was there before.
  [[nodiscard]] std::optional<uint64_t> delivered(uint64_t file, uint64_t size_bytes) const;
  // What is done to the file, in the terms of item.h, from when it is wanted to when it was told that it is done, be it in a later
  // session. Bound: files_max.
  void keep_items(uint64_t file, uint16_t items);
  [[nodiscard]] uint16_t take_items(uint64_t file);  // 0: nothing is kept
  // Notes what is said of the file. True: it is news, and not what was said last.
  [[nodiscard]] bool say(uint64_t file, Said said);
  // A dry run would delete the file or directory `path`. True: it is news, for each of its sessions finds it again.
  [[nodiscard]] bool say_of_deletion(std::string_view path);
  void deleted(uint64_t count) { deleted_ += count; }  // by --delete, and not of a dry run
  [[nodiscard]] uint64_t deleted() const { return deleted_; }
  // Of which names a destination has kept a backup; none: it keeps none, or this is its first session.
  [[nodiscard]] std::shared_ptr<KeptNames>& kept_backups() { return kept_backups_; }

 private:
  static constexpr size_t parts_max = 1u << 12;  // files whose wanted bytes are not all of them
  [[nodiscard]] uint64_t* find(uint64_t file);   // its slot; nullptr: it is not there, and there is no room
  void grow();

  const size_t files_max_;
  size_t files_ = 0;
  uint64_t deleted_ = 0;
  std::shared_ptr<KeptNames> kept_backups_;
  std::vector<uint64_t> slots_;                   // name, with what is known of the file in its low bits; 0: free
  std::unordered_map<uint64_t, uint64_t> parts_;  // wanted bytes, where they are not all
  std::unordered_map<uint64_t, uint16_t> items_;
};

}  // namespace ccixfer::session

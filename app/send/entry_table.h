// The entries that were sent and have not ended: at most entries_outstanding_max, found by index. Slots
// are used again together with their strings, so a stream of small files allocates nothing.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "app/send/reader.h"
#include "app/session/entry.h"
#include "app/session/limits.h"
#include "app/session/messages.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"

namespace ccixfer::send {

// Pieces [first, end) of a file that still have to be read, as sorted disjoint ranges.
class PieceSet {
 public:
  static constexpr size_t ranges_max = 1u << 20;
  [[nodiscard]] bool add(uint64_t first, uint64_t count);     // false: too many ranges
  [[nodiscard]] uint64_t take();                              // the first one; not empty
  bool remove(uint64_t piece);                                // whether it was there
  [[nodiscard]] bool remove(uint64_t first, uint64_t count);  // false: not all of them were there, and nothing was removed
  // Those of [first, end) that were there, which are removed.
  std::vector<session::Want::Range> remove_range(uint64_t first, uint64_t end);
  [[nodiscard]] bool contains(uint64_t piece) const;
  [[nodiscard]] std::vector<session::Want::Range> missing(uint64_t first,
                                                          uint64_t end) const;  // those of [first, end) that are not
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] uint64_t count() const { return count_; }

 private:
  struct Range {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  RingBuffer<Range> ranges_;
  uint64_t count_ = 0;
};

class OpenFile;  // app/send/jobs.h

// A file that travels in pieces.
struct LargeFile {
  enum class Phase : uint8_t { idle, waiting, opening, open, checking };
  Phase phase = Phase::idle;
  std::shared_ptr<OpenFile> file;  // in the phases `open` and `checking`
  PieceSet wanted;
  PieceSet again;                     // those of the wanted pieces that were sent before
  PieceSet untold;                    // pieces that are wanted once a Compare names them
  bool is_compared = false;           // a Compare names each piece, and each is answered by itself
  bool tells_holes = false;           // its holes are told when the file is opened ...
  PieceSet told_holes;                // ... and are these: a Compare of one of them needs no answer
  std::map<uint64_t, Hash128> there;  // by wanted piece: the hash of what the destination has in its place
  uint32_t reading = 0;               // jobs that read the file
  uint64_t hashed = 0;                // pieces whose hash is known
  std::vector<Hash128> hashes;        // while the file is open, if every piece was wanted at first
  bool has_digest = false;
  Hash128 digest;
};

enum class EntryPhase : uint8_t {
  free,       // the slot is not in use
  announced,  // in an entries segment; the verdict is to come
  queued,     // wanted
  reading,    // small: in a pack job. Large: opening, open or checking
  sent,       // all of it is in segments; the result is to come
  refused,    // FileEnd said that it cannot be sent; the result is to come
  ended,      // the result came while a job still reads it, or it is to be read for a receipt
};
[[nodiscard]] bool may_move(EntryPhase from, EntryPhase to);

struct Entry {
  uint64_t index = 0;
  session::EntryType type = session::EntryType::file;
  EntryPhase phase = EntryPhase::free;
  bool resend = false;           // the destination has asked for it again
  bool was_sent = false;         // all of it was sent once: only then the destination can have it
  bool stream = false;           // its length is unknown: listed.size_bytes is 0 until all was read
  bool is_further_name = false;  // --hard-links: it is a further name of a file that was listed before
  bool is_link = false;          // it becomes a link to the first name, so nothing of it is wanted
  bool is_elsewhere = false;     // a team's file, of which no Give has said that this process is to send it
  uint16_t jobs = 0;             // in the work pool that use it
  uint16_t items = 0;            // what the destination does to it (session::Items), with option_itemize
  uint16_t mode = 0;             // 07777, as it was announced
  uint32_t source = 0;
  uint64_t counted_bytes = 0;  // its part in the total: its size, and after the verdict what the transfer moves of it
  uint64_t before_bytes = 0;   // of those: what an earlier session of the transfer brought
  Listed listed;
  ReadOutcome outcome;
  std::string path;
  std::string target;     // of a link, with option_itemize
  std::string linked_to;  // of a further name, with option_itemize
  std::unique_ptr<LargeFile> large;
};

// The entry's LargeFile, made if there was none.
[[nodiscard]] LargeFile& large_file_of(Entry& entry);

class EntryTable {
 public:
  EntryTable();
  [[nodiscard]] uint32_t add(uint64_t index, uint32_t source);  // CHECKs that there is room; the slot, announced
  [[nodiscard]] Entry* find(uint64_t index);                    // nullptr: never sent, or ended
  [[nodiscard]] Entry& at(uint32_t slot) { return slots_[slot]; }
  [[nodiscard]] uint32_t slot_of(const Entry& entry) const { return slots_.slot_of(entry); }
  void move(Entry& entry, EntryPhase to);  // CHECKs the transition
  // The entry is over at both ends: find() no longer gives it. Its slot is kept as long as a job uses it.
  void end(Entry& entry);
  [[nodiscard]] bool job_ended(Entry& entry);                 // false: the entry had ended meanwhile
  [[nodiscard]] bool has_entries_of(uint32_t source) const {  // ended ones with jobs included
    return source < of_source_.size() && of_source_[source] > 0;
  }
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(by_index_.size()); }
  [[nodiscard]] uint32_t used() const { return static_cast<uint32_t>(slots_.in_use()); }  // ended ones with jobs included
  template <typename Each>
  void for_each(Each&& each) {
    for (Entry& entry : slots_) {
      if (entry.phase != EntryPhase::free) each(entry);
    }
  }

 private:
  void release(Entry& entry);

  SlotVector<Entry> slots_;
  std::unordered_map<uint64_t, uint32_t> by_index_;
  std::vector<uint32_t> of_source_;  // slots in use
};

}  // namespace ccixfer::send

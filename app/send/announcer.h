// Makes entries segments of what was listed, and keeps a copy of each until all of it is answered,
// because a damaged segment must be sent again when its records are gone.
// In: records of a Listings, the indices that were answered. Out: entries in the EntryTable,
// segments to the sink, and what could not be listed to the handler.
// Bounds: entries_outstanding_max entries that have not ended; entries_unanswered_bytes_max of
// segments that are not answered; entries_segments_max segments in buffers.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "app/send/buffer_share.h"
#include "app/send/entry_table.h"
#include "app/send/listings.h"
#include "app/send/segment_sink.h"
#include "app/session/entry.h"
#include "app/session/open.h"
#include "app/session/tweaks.h"
#include "core/base/ring_buffer.h"

namespace ccixfer::send {

inline constexpr uint32_t entries_segments_max = 4;                                      // in buffers at once
inline constexpr uint32_t entries_resume_at = session::entries_outstanding_max / 4 * 3;  // so that entries segments stay large

class AnnouncerHandler {
 public:
  virtual ~AnnouncerHandler() = default;
  // A record that is no entry: something is left out, has vanished or cannot be listed.
  virtual void on_not_listed(WalkRecord::Kind kind, std::string_view path, std::string_view reason) = 0;
};

class Announcer {
 public:
  // The walk is asked only about the sources as such. `keeps_targets`: the table keeps the targets of links, for whoever tells of
  // them later.
  Announcer(const Walk& walk, EntryTable& entries, SegmentSink& sink, AnnouncerHandler& handler,
            std::shared_ptr<session::DataSealer> sealer = {}, bool keeps_targets = false, session::TweaksRef tweaks = {});

  // To be called before anything is announced: gives the entries that are listed, as far as they fit. They count as the first
  // segment. No copy of them is kept, as they are never sent again.
  [[nodiscard]] session::FirstEntries first_entries(Listings& listings, size_t bytes_max);
  // `in_buffers`: entries segments that have not been placed yet.
  void announce(Listings& listings, BufferShare& buffers, uint32_t in_buffers);
  void answered_before(uint64_t index);                           // the entries before this one have their verdicts
  void want_again(uint64_t sequence);                             // the entries segment of that number arrived damaged
  [[nodiscard]] uint64_t entries() const { return next_index_; }  // in segments so far

 private:
  struct Copy {
    session::SegmentHeader header;
    std::vector<std::byte> data;
    bool wanted_again = false;
  };
  [[nodiscard]] bool announce_again(BufferShare& buffers, uint32_t& in_buffers);  // false: no buffer
  [[nodiscard]] bool fill(Listings& listings, MutableBytes into, session::SegmentHeader& header);
  void seal(FilledSegment& segment) const;  // its data
  [[nodiscard]] bool has_room() const;      // for one more segment that is not answered
  void describe(const Listings& listings);  // the front record in entry_
  void add_to_table(const WalkRecord& record);

  const Walk& walk_;
  EntryTable& entries_;
  SegmentSink& sink_;
  AnnouncerHandler& handler_;
  const std::shared_ptr<session::DataSealer> sealer_;
  const bool keeps_targets_;
  const session::TweaksRef tweaks_;
  session::Entry entry_;  // one for all, so that its strings are allocated once
  bool paused_ = false;   // entries_outstanding_max was reached
  uint64_t next_index_ = 0;
  uint64_t next_sequence_ = 0;
  RingBuffer<Copy> copies_;    // of segments that are not answered
  uint64_t copied_bytes_ = 0;  // of copies_, with the trailers that their segments have
  bool copies_wanted_again_ = false;
};

}  // namespace ccixfer::send

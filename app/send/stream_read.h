// Reads standard input: a file whose length nobody knows until its end. Its pieces are read one
// after the other, and what left its buffer is gone: a piece that the destination wants again fails
// the file.
// Bounds: one job at a time, segments_ahead_max segments that wait for a lane. Whether standard
// input was read is the state of the process: a session that starts after another one took bytes
// would send the rest as if it were the whole.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "app/send/jobs.h"
#include "app/send/read_handler.h"
#include "app/send/segment_sink.h"
#include "app/send/wrapping.h"
#include "core/base/result.h"

namespace ccixfer::send {

// Standard input while it is read and placed. Outside of StreamRead, because clang 14 finds a nested
// one not default-constructible there.
struct InputStream {
  uint32_t slot = 0;
  bool reading = false;  // a job reads it
  bool over = false;
  uint64_t bytes = 0;  // in segments
  Buffer part;         // a piece that is not full yet
  uint32_t part_bytes = 0;
  uint32_t unplaced = 0;  // segments
  std::vector<Hash128> hashes;
};

class StreamRead {
 public:
  // `was_read`: whether any session took bytes of standard input. It outlives the jobs.
  StreamRead(std::shared_ptr<Jobs> jobs, EntryTable& entries, SegmentSink& sink, ReadHandler& handler, std::atomic<bool>& was_read,
             Wrapping wrapping = {});

  // ErrorKind::network: another session took bytes of it, and the rest is not the whole.
  [[nodiscard]] Result<void> want(Entry& entry);
  void cannot_repeat(Entry& entry);  // a part of it is wanted again
  void placed(Entry& entry);         // a piece of it
  void entry_ends() { stream_.reset(); }
  void start(const ReadPace& pace, BufferShare& buffers);
  [[nodiscard]] bool holds_buffer() const { return stream_ && (stream_->reading || stream_->part); }

 private:
  struct StreamData {
    Buffer buffer;
    std::atomic<bool>* was_read = nullptr;
    uint32_t slot = 0;
    uint32_t data_bytes = 0;
    bool end = false;
    int error = 0;
    Hash128 hash;
    Wrapping wrapping;
    Wrapped wrapped;
  };
  static void read(ports::FileSystem& files, StreamData& data, Jobs& jobs);
  void stream_read(StreamData& data);
  void add_piece(Entry& entry, StreamData& data);
  void settle(Entry& entry);
  void give_up(Entry& entry, int error);

  const std::shared_ptr<Jobs> jobs_;
  EntryTable& entries_;
  SegmentSink& sink_;
  ReadHandler& handler_;
  std::atomic<bool>& was_read_;
  const Wrapping wrapping_;
  std::optional<InputStream> stream_;
};

}  // namespace ccixfer::send

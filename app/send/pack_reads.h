// Reads small files into packs. A pack goes out when it is full; a smaller one goes only when a
// lane would be idle otherwise, or when no more files can come.
// In: small files that are wanted. Out: packs to the sink, files that cannot be sent to the
// handler.
#pragma once
#include <cstdint>
#include <memory>

#include "app/send/entry_queue.h"
#include "app/send/jobs.h"
#include "app/send/read_handler.h"
#include "app/send/segment_sink.h"
#include "app/send/wrapping.h"

namespace ccixfer::send {

class PackReads {
 public:
  PackReads(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, SegmentSink& sink,
            ReadHandler& handler, Wrapping wrapping = {});

  void want(Entry& entry);        // announced, or sent before
  void entry_ends(Entry& entry);  // of a small file, before it leaves the table
  // `reading`: jobs that read anything into a buffer. False: no pack is due, or there is no buffer.
  [[nodiscard]] bool start(const ReadPace& pace, uint32_t reading, BufferShare& buffers);
  [[nodiscard]] uint32_t reading() const { return reading_; }  // jobs

 private:
  struct PackData {
    std::shared_ptr<WalkHold> walk;
    Pack pack;
    Wrapping wrapping;
    Wrapped wrapped;
    Buffer buffer;
    bool resend = false;
  };
  [[nodiscard]] bool is_due(const ReadPace& pace, uint32_t reading) const;
  void add_item(PackData& data, Entry& entry);
  void pack_read(PackData& data);

  const std::shared_ptr<Jobs> jobs_;
  const std::shared_ptr<WalkHold> walk_;
  EntryTable& entries_;
  SegmentSink& sink_;
  ReadHandler& handler_;
  const Wrapping wrapping_;
  EntryQueue queue_;
  uint64_t wanted_bytes_ = 0;  // of the files that wait, with their records
  uint32_t wanted_count_ = 0;
  uint32_t reading_ = 0;
};

}  // namespace ccixfer::send

// What stands around one stage of a source in its unit tests: files in a directory, a pool, and
// ears for what the stage says.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/send/file_wants.h"
#include "app/send/jobs.h"
#include "app/send/read_handler.h"
#include "app/send/segment_sink.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {

class HeardSegments final : public send::SegmentSink {
 public:
  std::vector<send::FilledSegment> segments;
  void add(send::FilledSegment&& segment) override { segments.push_back(std::move(segment)); }
};

class HeardReads final : public send::ReadHandler {
 public:
  void on_holes(session::Holes told, uint64_t bytes) override {
    holes.push_back(std::move(told));
    hole_bytes += bytes;
  }
  std::vector<session::Holes> holes;
  uint64_t hole_bytes = 0;
  std::vector<uint64_t> refused;
  std::vector<session::FileEnd> ends;
  std::vector<uint64_t> same;  // pieces
  uint64_t grown_bytes = 0;
  void on_refused(const send::Entry& entry) override { refused.push_back(entry.index); }
  void on_file_end(const session::FileEnd& end) override { ends.push_back(end); }
  void on_same(const send::Entry&, uint64_t piece) override { same.push_back(piece); }
  void on_grown(send::Entry& entry, uint64_t bytes) override {
    grown_bytes += bytes;
    entry.counted_bytes += bytes;
  }
};

// The directory of the test as the only source, so that entries are named by their paths below it.
class StageBench {
 public:
  explicit StageBench(uint32_t buffers = 8) : pool(session::segment_bytes_max, buffers), share(pool, nullptr) {
    send::WalkOptions options;
    options.sources = {dir.path() + "/"};
    walk = std::make_shared<send::WalkHold>(jobs, options);
    REQUIRE((*walk)->select(files));
    send::WalkBatch batch;
    (*walk)->step(files, batch, true);  // opens the root
  }
  ~StageBench() {
    jobs->source_ends();
    walk.reset();
    while (work.in_flight() > 0) work.reap();
    jobs->flush();
    while (work.in_flight() > 0) work.reap();
  }
  StageBench(const StageBench&) = delete;
  StageBench& operator=(const StageBench&) = delete;

  // A file as it is now, in the table, announced.
  send::Entry& announced(const std::string& path, uint64_t index) {
    ports::FileStat stat;
    REQUIRE(files.stat_at(ports::FileSystem::no_directory, dir.path(path), stat, false) >= 0);
    send::Entry& entry = entries.at(entries.add(index, 0));
    entry.path = path;
    entry.listed = {stat.size_bytes, stat.mtime, send::version_of(stat)};
    return entry;
  }
  void reap() {
    while (work.in_flight() > 0) work.reap();
  }

  TempDir dir;
  WatchedFiles files;
  QueuePool work{files};
  std::shared_ptr<send::Jobs> jobs = std::make_shared<send::Jobs>(work);
  std::shared_ptr<send::WalkHold> walk;
  memory::Pool pool;
  send::BufferShare share;
  send::EntryTable entries;
  HeardSegments sink;
  HeardReads heard;
};

}  // namespace ccixfer::send_test

// What the tests of the destination's single objects give these instead of the others: a pool that runs jobs when it is told to,
// and handlers that write down what they hear.
#pragma once
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/recv/file_handler.h"
#include "app/recv/lanes.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"
#include "core/memory/pool.h"
#include "tests/unit/recv/destination_fixture.h"
#include "tests/unit/session/whole_segment.h"

namespace ccixfer::recv::test {

struct JobRig {
  FaultyFiles files;
  InlinePool pool{files};
  session::Wake wake;
  SessionJobs jobs{pool, wake};
};

class FakeSession final : public SessionHandler {
 public:
  std::vector<Error> errors;  // the first one ended the session
  int refusals = 0;
  std::vector<std::string> rejections;
  std::vector<std::pair<uint64_t, uint64_t>> puts;    // lane session, n
  std::vector<std::pair<uint64_t, uint64_t>> pieces;  // file, piece
  int progress = 0, intact = 0, damaged = 0;          // segments, of the latter
  std::vector<std::string> warnings, failures;

  bool has_failed() const override { return !errors.empty(); }
  void fail(Error reason) override { errors.push_back(std::move(reason)); }
  void refuse(Error reason) override {
    ++refusals;
    fail(std::move(reason));
  }
  void reject(std::string_view why) override { rejections.emplace_back(why); }
  void opened(bool is_intact) override { ++(is_intact ? intact : damaged); }
  void put_damaged() override {}
  void ask_for_put(uint64_t lane_session, uint64_t n) override { puts.emplace_back(lane_session, n); }
  void ask_for_piece(uint64_t index, uint64_t piece) override { pieces.emplace_back(index, piece); }
  void made_progress() override { ++progress; }
  void warn(const std::string& line) override { warnings.push_back(line); }
  void tell_failure(const std::string& line) override { failures.push_back(line); }
};

inline FileTaskRef task_of(uint64_t index, uint64_t size_bytes, uint64_t version = 5) {
  FileTask task;
  task.index = index;
  task.path = "file" + std::to_string(index);
  task.size_bytes = size_bytes;
  task.version = version;
  return std::make_shared<const FileTask>(task);
}

// Files without a disk: what is said of them is noted, and nothing follows.
class FakeFiles final : public FileHandler {
 public:
  std::map<uint64_t, FileInWork> files;
  std::vector<std::string> notes;
  std::vector<CommitItem> staged;

  FileInWork& add(uint64_t index, uint64_t size_bytes) {
    return files.try_emplace(index, task_of(index, size_bytes)).first->second;
  }
  FileInWork* find(uint64_t index) override {
    const auto at = files.find(index);
    return at == files.end() ? nullptr : &at->second;
  }
  FilePieces& pieces_of(FileInWork& file) override {
    return file.pieces() != nullptr ? *file.pieces() : file.begin_pieces(nullptr);
  }
  void on_written(FileInWork& file, uint64_t bytes) override { note("written", file, bytes); }
  void on_durable(FileInWork& file, uint64_t bytes) override { note("durable", file, bytes); }
  void on_staged(FileInWork& file, CommitItem item) override {
    note("staged", file, item.size_bytes);
    staged.push_back(std::move(item));
  }
  void on_failed(FileInWork& file, FileFailure why) override {
    note("failed: " + why.reason, file, 0);
    file.fail(std::move(why));
  }
  void on_io_failed(FileInWork& file, int error_number, const std::vector<uint64_t>& lost_pieces) override {
    note("io failed " + std::to_string(error_number), file, lost_pieces.size());
  }
  void on_damaged_at_rest(FileInWork& file, const std::vector<uint64_t>& pieces) override {
    note("damaged at rest", file, pieces.size());
  }
  void on_job_ended(uint64_t index) override { notes.push_back("job ended " + std::to_string(index)); }

 private:
  void note(const std::string& what, const FileInWork& file, uint64_t number) {
    notes.push_back(what + " " + std::to_string(file.task().index) + ": " + std::to_string(number));
  }
};

// A buffer of the pool with a segment in it, as if it had come as the put `n` of the lane session 3.
struct Segment {
  ReceivedSegment arrival;
  session::SegmentHeader header;
};
inline Segment segment_of(memory::Pool& pool, session::SegmentHeader header, Bytes data) {
  Segment segment;
  segment.arrival.buffer = pool.lend();
  REQUIRE(segment.arrival.buffer);
  header.session = 77;
  header.lane_session = segment.arrival.lane_session = 3;
  segment.arrival.n = header.n;
  header.data_bytes = static_cast<uint32_t>(data.size());
  const MutableBytes buffer = segment.arrival.buffer.bytes();
  std::copy(data.begin(), data.end(), buffer.begin());
  segment.arrival.length_bytes = session::seal(buffer, header);
  segment.header = session_test::peek(Bytes(buffer).first(static_cast<size_t>(segment.arrival.length_bytes))).value();
  return segment;
}

inline Hash128 hash_of(uint64_t number) { return {number, ~number}; }

inline session::FileEnd whole(uint64_t index) {
  session::FileEnd end;
  end.index = index;
  return end;
}

}  // namespace ccixfer::recv::test

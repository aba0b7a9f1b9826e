// Holes of files: found as the file system tells of them, and hashed without being read.
#include "app/session/holes.h"

#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "app/session/limits.h"
#include "tests/unit/session/no_files.h"

namespace ccixfer::session {
namespace {

constexpr uint64_t mib = 1u << 20;

// Data in [3 MiB, 5 MiB) and [9 MiB, 10 MiB).
class Islands final : public NoFiles {
 public:
  int next_data(int, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes) override {
    ++calls;
    if (from_bytes >= 10 * mib) return -ENXIO;
    const bool is_first = from_bytes < 5 * mib;
    begin_bytes = std::max(from_bytes, is_first ? 3 * mib : 9 * mib);
    end_bytes = is_first ? 5 * mib : 10 * mib;
    return 0;
  }
  int fstat(int, ports::FileStat& out) override {
    out.allocated_bytes = allocated_bytes;
    return 0;
  }
  int fsync(int) override {
    ++syncs;
    allocated_bytes = std::max(allocated_bytes, allocated_by_sync_bytes);
    return sync_error;
  }
  int calls = 0;
  int syncs = 0, sync_error = 0;
  uint64_t allocated_bytes = 3 * mib, allocated_by_sync_bytes = 0;
};

}  // namespace

TEST_CASE("holes__asked_in_order__one_call_for_each_run_of_data") {
  Islands files;
  HoleFinder finder(files, 0);
  CHECK(finder.is_hole(0, 3 * mib));
  CHECK_FALSE(finder.is_hole(0, 3 * mib + 1));
  CHECK_FALSE(finder.is_hole(3 * mib, mib));
  CHECK(finder.next_data(4 * mib) == 4 * mib);
  CHECK(files.calls == 1);
  CHECK(finder.is_hole(5 * mib, 4 * mib));
  CHECK_FALSE(finder.is_hole(8 * mib, 2 * mib));
  CHECK(files.calls == 2);
  CHECK(finder.is_hole(10 * mib, 1 << 20));
  CHECK(finder.is_hole(11 * mib, ~uint64_t{0} - 11 * mib));
  CHECK(files.calls == 3);
}

TEST_CASE("find_holes__runs_of_pieces_without_data__and_the_file_is_written_out_first") {
  Islands files;
  files.sync_error = GENERATE(0, -EROFS);
  // Pieces 0 to 2 have data, and the last one has none.
  HoleRuns holes(find_holes(files, 0, 13 * mib));
  CHECK(files.syncs == 1);
  for (const uint64_t piece : {0u, 1u, 2u}) CHECK_FALSE(holes.has(piece));
  CHECK(holes.has(3));
  CHECK_FALSE(holes.has(4));
  const auto far = find_holes(files, 0, 1024 * mib);
  REQUIRE(far.size() == 1);
  CHECK(far[0].first == 3);
  CHECK(far[0].count == 253);
}

TEST_CASE("find_holes__all_is_allocated__no_hole_is_believed") {
  Islands files;
  files.allocated_bytes = 13 * mib;
  CHECK(find_holes(files, 0, 13 * mib).empty());
  CHECK(files.calls == 0);
  CHECK(files.syncs == 0);
  // Or as soon as it is on the disk.
  files.allocated_bytes = 0;
  files.allocated_by_sync_bytes = 13 * mib;
  CHECK(find_holes(files, 0, 13 * mib).empty());
  CHECK(files.calls == 0);
}

TEST_CASE("find_holes__more_is_allocated_than_the_data_explain__no_hole_is_believed") {
  Islands files;
  files.allocated_bytes = 16 * mib;  // 12 MiB of pieces with data, a quarter for what describes them, and 1 MiB
  CHECK(find_holes(files, 0, 1024 * mib).size() == 1);
  files.allocated_bytes += 1;
  CHECK(find_holes(files, 0, 1024 * mib).empty());
}

TEST_CASE("holes__hash_of_zeros__is_that_of_zeros") {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{4097}, uint64_t{piece_bytes}}) {
    const std::vector<std::byte> zeros(static_cast<size_t>(bytes));
    CHECK(hash_of_zeros(bytes) == xxh3_128(zeros));
    CHECK(is_all_zeros(zeros));
  }
  std::vector<std::byte> data(4096);
  for (const size_t at : {size_t{0}, size_t{1}, size_t{4095}}) {
    data[at] = std::byte{1};
    CHECK_FALSE(is_all_zeros(data));
    data[at] = std::byte{0};
  }
}

}  // namespace ccixfer::session

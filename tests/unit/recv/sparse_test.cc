// --sparse: zeros that are written where data stand.
#include <catch2/catch.hpp>
#include <string>

#include "app/recv/held.h"
#include "app/recv/pieces.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::recv {

// As an older version's piece that was compared, or written in place: what differs comes from the source.
TEST_CASE("write_sparse__zeros_over_data__become_a_hole_or_are_written_where_there_are_none") {
  constexpr size_t size_bytes = 256u << 10, zeros_bytes = 128u << 10, at = 60'000;
  const test::TemporaryDirectory temporary;
  host::PosixFileSystem real;
  test::FaultyFiles without_holes;
  std::string data(size_bytes, 'n');
  data.replace(at, zeros_bytes, zeros_bytes, '\0');
  for (ports::FileSystem* files : {static_cast<ports::FileSystem*>(&real), static_cast<ports::FileSystem*>(&without_holes)}) {
    const int fd = files->open(ports::FileSystem::no_directory, temporary.path("f"),
                               {.mode = ports::OpenMode::read_write, .create = true, .truncate = true}, 0600);
    REQUIRE(fd >= 0);
    const HeldFile held(*files, fd);
    REQUIRE(write_all(*files, fd, as_bytes(std::string(size_bytes, 'o')), 0) == 0);
    ports::FileStat before, after;
    REQUIRE(files->fstat(fd, before) == 0);
    REQUIRE(write_sparse(*files, fd, as_bytes(data), 0) == 0);
    REQUIRE(files->fstat(fd, after) == 0);
    CHECK((temporary.read("f") == data));
    const bool has_holes = files == &real && files->make_hole(fd, 0, 1) >= 0;
    if (has_holes) CHECK(after.allocated_bytes <= before.allocated_bytes - zeros_bytes + 8192);
  }
}

}  // namespace ccixfer::recv

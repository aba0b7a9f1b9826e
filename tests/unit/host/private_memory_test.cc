// Whether the kernel counts private memory, so that it never promises more than there is; and what that means for files.
#include "core/host/private_memory.h"

#include <sys/mman.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <fstream>

#include "core/host/file_system.h"
#include "core/memory/pool.h"
#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;

TEST_CASE("private_memory__counts__where_the_kernel_never_promises_more_than_there_is") {
  const testing::TempDir directory;
  const std::string setting = directory.path() + "/overcommit_memory";
  CHECK_FALSE(host::counts_private_memory(setting));  // nothing can be read
  for (const char* value : {"0\n", "1\n", "2\n"}) {
    std::ofstream(setting) << value;
    CHECK(host::counts_private_memory(setting) == (*value == '2'));
  }
}

TEST_CASE("file_system__memory_that_might_not_come_back__gives_way_to_no_file") {
  constexpr uint32_t piece = 1u << 16;
  const int fd = ::memfd_create("shown", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  REQUIRE(::ftruncate(fd, piece) == 0);
  const std::string content(piece, 'x');
  REQUIRE(::pwrite(fd, content.data(), piece, 0) == piece);
  memory::Pool pool(piece, 1);
  for (const bool shows : {true, false}) {
    host::PosixFileSystem files(nullptr, shows);
    memory::Loan loan = pool.lend();
    CHECK(files.show(fd, loan.bytes(), 0) == (shows ? 0 : -ENOTSUP));
    if (shows) loan.shows_file(piece);
  }
  ::close(fd);
}

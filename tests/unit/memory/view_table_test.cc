// The table of views: as many as it has, each place used again, and no byte beyond a view belongs to it.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdio>

#include "core/memory/bulk_memory.h"
#include "core/memory/file_view.h"

using namespace ccixfer;
using namespace ccixfer::memory;

namespace {

constexpr size_t page = 4096;
constexpr size_t views_max = 4096;

struct File {
  FILE* handle = std::tmpfile();
  explicit File(size_t pages) {
    REQUIRE(handle != nullptr);
    REQUIRE(::ftruncate(fd(), static_cast<off_t>(pages * page)) == 0);
  }
  ~File() { std::fclose(handle); }
  [[nodiscard]] int fd() const { return ::fileno(handle); }
};

}  // namespace

TEST_CASE("file_view__bytes_beside_a_view__are_not_of_it") {
  const File file(2);
  BulkMemory memory(4 * page);
  const MutableBytes view = memory.bytes().subspan(page, 2 * page);
  REQUIRE(show_file(view, file.fd(), 0) == 0);
  CHECK(is_whole(view));
  CHECK(is_whole(view.last(1)));
  CHECK_FALSE(is_whole(memory.bytes().subspan(page - 1)));
  CHECK_FALSE(is_whole(memory.bytes().subspan(3 * page)));
  hide_file(view);
  CHECK_FALSE(is_whole(view));
}

TEST_CASE("file_view__a_missing_page__leaves_errno_as_it_was") {
  const File file(2);
  BulkMemory memory(2 * page);
  REQUIRE(show_file(memory.bytes(), file.fd(), 0) == 0);
  REQUIRE(::ftruncate(file.fd(), page) == 0);
  errno = ENOTTY;
  const volatile std::byte last = memory.bytes().back();
  CHECK(errno == ENOTTY);
  CHECK(last == std::byte{0});
  CHECK_FALSE(is_whole(memory.bytes()));
  hide_file(memory.bytes());
}

TEST_CASE("file_view__more_views_than_the_table_has__no_buffers_until_one_is_hidden") {
  const File file(1);
  BulkMemory memory((views_max + 1) * page);
  const auto at = [&](size_t i) { return memory.bytes().subspan(i * page, page); };
  for (size_t i = 0; i < views_max; ++i) REQUIRE(show_file(at(i), file.fd(), 0) == 0);
  CHECK(show_file(at(views_max), file.fd(), 0) == -ENOBUFS);
  CHECK(is_whole(at(views_max - 1)));
  hide_file(at(7));
  CHECK_FALSE(is_whole(at(7)));
  CHECK(is_whole(at(6)));
  CHECK(show_file(at(views_max), file.fd(), 0) == 0);
  CHECK(is_whole(at(views_max)));
  for (size_t i = 0; i <= views_max; ++i) {
    if (i != 7) hide_file(at(i));
  }
}

TEST_CASE("file_view__views_that_fail__leave_their_place_to_others") {
  const File file(1);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  BulkMemory memory(page);
  for (size_t i = 0; i <= views_max; ++i) REQUIRE(show_file(memory.bytes(), ends[0], 0) == -ENODEV);       // no pipe can be mapped
  for (size_t i = 0; i <= views_max; ++i) REQUIRE(show_file(memory.bytes(), file.fd(), page) == -EFAULT);  // beyond the end
  CHECK_FALSE(is_whole(memory.bytes()));
  CHECK(show_file(memory.bytes(), file.fd(), 0) == 0);
  hide_file(memory.bytes());
  ::close(ends[0]);
  ::close(ends[1]);
}

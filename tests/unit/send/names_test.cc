// The names of a directory and the file that they are spooled to, where the file system is of no help.
#include "app/send/names.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using send::DirectoryNames;
using send::NameSpool;

TEST_CASE("spool__its_name_is_taken__another_one_and_none_stays") {
  const TempDir dir;
  WatchedFiles files;
  std::set<std::string> tried;
  const size_t taken = GENERATE(0u, 1u, 63u, 64u);
  CAPTURE(taken);
  files.hook = [&](std::string_view call, std::string_view name) {
    return call == "open" && tried.insert(std::string(name)).second && tried.size() <= taken ? -EEXIST : 0;
  };
  NameSpool spool(dir.path());
  CHECK((spool.append(files, "abc") == 0) == (taken < 64));  // so often, and then there is no spool
  CHECK(tried.size() == std::min<size_t>(taken + 1, 64));
  CHECK(std::filesystem::is_empty(dir.path()));
  spool.close(files);
  CHECK(files.open_now == 0);
}

TEST_CASE("spool__cannot_be_made__is_tried_once") {
  const TempDir dir;
  WatchedFiles files;
  int tried = 0;
  files.hook = [&](std::string_view call, std::string_view) { return call == "open" ? ++tried, -ENOSPC : 0; };
  NameSpool spool(dir.path());
  CHECK(spool.append(files, "abc") < 0);
  CHECK(spool.append(files, "abc") < 0);
  CHECK(tried == 1);
  spool.close(files);
}

TEST_CASE("spool__a_write_fails_half_way__its_place_is_given_to_the_next") {
  const TempDir dir;
  WatchedFiles files;
  NameSpool spool(dir.path());
  REQUIRE(spool.append(files, "first") == 0);
  files.write_max = 2;
  int writes = 0;
  const int error = GENERATE(-ENOSPC, 0);
  files.hook = [&](std::string_view call, std::string_view) { return call == "pwrite" && ++writes == 2 ? -ENOSPC : 0; };
  if (error == 0) files.write_max = 0;  // takes nothing and says no error: as good as none
  CHECK(spool.append(files, "second") < 0);
  files.hook = [](std::string_view, std::string_view) { return 0; };
  files.write_max = 2;
  REQUIRE(spool.append(files, "third") == 5);
  std::string text;
  REQUIRE(spool.read(files, 0, 10, text));
  CHECK(text == "firstthird");
  CHECK_FALSE(spool.read(files, 5, 6, text));  // there is no more
  spool.give_up_from(files, 10);               // where nothing stands: nothing
  CHECK(spool.append(files, "x") == 10);
  spool.give_up_from(files, 3);
  CHECK(spool.append(files, "y") == 3);
  CHECK_FALSE(spool.read(files, 0, 5, text));
  spool.close(files);
  spool.close(files);                   // and nothing is closed twice
  CHECK(spool.append(files, "z") < 0);  // closed for good
  CHECK(files.open_now == 0);
}

TEST_CASE("name_list__keep_smallest__of_more_than_there_are_all") {
  send::NameList list;
  for (const char* name : {"b", "c", "a"}) list.add(name);
  const size_t count = GENERATE(2u, 3u, 4u);
  CHECK(list.keep_smallest(count) == (count == 2 ? "b" : "c"));
  CHECK(list.count() == std::min<size_t>(count, 3));
  list.sort();
  CHECK(list.take() == "a");
  CHECK(list.take() == "b");
  CHECK(list.empty() == (count == 2));
}

struct Directory {
  Directory() { fd = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY); }
  ~Directory() { ::close(fd); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  [[nodiscard]] std::string next() {
    return std::string(names.next(
        files, spool, bytes_max, [this] { return fd; }, error));
  }
  [[nodiscard]] std::vector<std::string> rest() {
    std::vector<std::string> all;
    for (std::string name = next(); !name.empty(); name = next()) all.push_back(name);
    return all;
  }
  TempDir dir;
  TempDir spools;
  WatchedFiles files;
  NameSpool spool{spools.path()};
  DirectoryNames names;
  size_t bytes_max = 1u << 20;
  int fd = -1;
  int error = 0;
};

TEST_CASE("directory_names__long_and_of_every_byte__leave_the_spool_as_they_entered") {
  Directory directory;
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) {
    expected.push_back(std::string(1, static_cast<char>('a' + i % 26)) + std::string(static_cast<size_t>(i * 6), '\xff') +
                       std::to_string(i));
    directory.dir.file(expected.back(), "");
  }
  std::sort(expected.begin(), expected.end());
  directory.bytes_max = 200;
  CHECK(directory.rest() == expected);
  CHECK(directory.error == 0);
  CHECK(directory.files.directory_reads == 1);
  CHECK(directory.names.spooled_to() == 0);  // all of it may be given up
  directory.spool.close(directory.files);
}

// A list is filled from the runs up to its bound, not with all that they have.
TEST_CASE("directory_names__read_from_the_spool__a_list_at_a_time") {
  Directory directory;
  constexpr int count = 4000;
  for (int i = 0; i < count; ++i) directory.dir.file(std::string(200, 'n') + std::to_string(i), "");
  directory.bytes_max = 100'000;
  size_t most = 0;
  int seen = 0;
  for (std::string name = directory.next(); !name.empty(); name = directory.next()) {
    most = std::max(most, directory.names.memory_bytes());
    ++seen;
  }
  CHECK(seen == count);
  const size_t runs = (count * 210 + directory.bytes_max - 1) / directory.bytes_max;
  CHECK(most < runs * send::spool_read_bytes + 3 * directory.bytes_max);
  directory.spool.close(directory.files);
}

// No system of today has a name that the spool's buffer does not take. It would come out all the same, by reading again.
TEST_CASE("directory_names__longer_than_the_spools_buffer__come_out_without_it") {
  Directory directory;
  std::vector<std::string> expected;
  for (int i = 0; i < 20; ++i) {
    expected.push_back(std::to_string(i));
    directory.dir.file(expected.back(), "");
  }
  const size_t length = GENERATE(send::spool_read_bytes - 2, send::spool_read_bytes - 1, size_t{70'000});
  directory.files.more_names = {std::string(length, 'n')};
  expected.push_back(directory.files.more_names[0]);
  std::sort(expected.begin(), expected.end());
  directory.bytes_max = 30;
  CHECK((directory.rest() == expected));
  CHECK((directory.files.directory_reads == 1) == (length == send::spool_read_bytes - 2));
  directory.spool.close(directory.files);
}

TEST_CASE("directory_names__the_directory_cannot_be_read__its_error_and_nothing_of_it") {
  Directory directory;
  for (int i = 0; i < 100; ++i) directory.dir.file(std::to_string(i), "");
  const bool spools = GENERATE(true, false);
  if (!spools) directory.spool.close(directory.files);
  directory.bytes_max = 300;
  SECTION("from the start") {
    directory.files.hook = [](std::string_view call, std::string_view) { return call == "read_directory" ? -EIO : 0; };
    CHECK(directory.next().empty());
    CHECK(directory.error == -EIO);
  }
  SECTION("it cannot be opened") {
    CHECK(directory.names
              .next(
                  directory.files, directory.spool, 300, [] { return -EACCES; }, directory.error)
              .empty());
    CHECK(directory.error == -EACCES);
  }
  SECTION("an error is no longer told when there is none") {
    directory.error = -EIO;
    CHECK_FALSE(directory.next().empty());
    CHECK(directory.error == 0);
    directory.error = -EIO;
    CHECK_FALSE(directory.next().empty());  // from the list
    CHECK(directory.error == 0);
    CHECK(directory.rest().size() == 98);
    CHECK(directory.error == 0);
  }
  directory.spool.close(directory.files);
}

// Whoever is started without a standard input may have a directory there.
TEST_CASE("directory_names__the_descriptor_is_0__read_as_any") {
  Directory directory;
  directory.dir.file("f", "");
  const int input = ::dup(0);
  REQUIRE(::dup2(directory.fd, 0) == 0);
  const std::string name(directory.names.next(
      directory.files, directory.spool, 1000, [] { return 0; }, directory.error));
  if (input < 0) ::close(0);
  if (input >= 0) {
    ::dup2(input, 0);
    ::close(input);
  }
  CHECK(name == "f");
  directory.spool.close(directory.files);
}

// Runs that are longer than one read of them.
TEST_CASE("directory_names__spool_cannot_be_read__the_directory_is_read_again") {
  Directory directory;
  std::vector<std::string> expected;
  for (int i = 0; i < 600; ++i) expected.push_back(std::to_string(1000 + i).append(200, static_cast<char>('a' + i % 26)));
  for (const std::string& name : expected) directory.dir.file(name, "");
  directory.bytes_max = 50'000;
  for (int fails = 1; fails < 9; ++fails) {
    CAPTURE(fails);
    int reads = 0;
    directory.files.hook = [&](std::string_view call, std::string_view) { return call == "pread" && ++reads == fails ? -EIO : 0; };
    directory.files.directory_reads = 0;
    directory.names = DirectoryNames();
    CHECK((directory.rest() == expected));
    CHECK(directory.files.directory_reads == (reads >= fails ? 2 : 1));
  }
  directory.spool.close(directory.files);
}

// Memory: what is held is said truly, and all of it is given back.
TEST_CASE("directory_names__let_go__hold_nothing_and_go_on_behind_the_last_name") {
  Directory directory;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) expected.push_back("name-" + std::to_string(1000 + i));
  for (const std::string& name : expected) directory.dir.file(name, "");
  const bool spools = GENERATE(true, false);
  directory.bytes_max = GENERATE(600u, 1u << 20);
  CAPTURE(spools, directory.bytes_max);
  if (!spools) directory.spool.close(directory.files);
  std::vector<std::string> seen = {directory.next()};
  CHECK(directory.names.grown());
  CHECK(directory.names.memory_bytes() > 0);
  directory.names.let_go(directory.files, directory.spool);
  CHECK(directory.names.memory_bytes() < 256);  // but for what strings without text have
  CHECK((directory.names.spooled_to() > 0) == spools);
  seen.push_back(directory.next());
  CHECK(directory.names.grown());
  if (directory.bytes_max > 600) {
    seen.push_back(directory.next());
    CHECK_FALSE(directory.names.grown());
  }
  for (const std::string& name : directory.rest()) seen.push_back(name);
  CHECK(seen == expected);
  if (spools) CHECK(directory.files.directory_reads == 1);
  directory.spool.close(directory.files);
  CHECK(directory.files.open_now == 0);
}

// More runs than are merged at once: no longer worth it, and right all the same.
TEST_CASE("directory_names__one_run_more_than_are_merged__the_spool_is_given_up") {
  for (const size_t more : {size_t{0}, size_t{1}}) {
    Directory directory;
    directory.bytes_max = 1;  // a name fills a list
    std::vector<std::string> all;
    for (size_t i = 0; i < send::spool_runs_max + more; ++i) {
      const std::string number = std::to_string(1000 + i);
      directory.dir.file(number, "");
      all.push_back(number);
    }
    CHECK(directory.next() == all.front());
    CHECK(directory.files.directory_reads == (more == 0 ? 1 : 2));
    all.erase(all.begin());
    CHECK((directory.rest() == all));
    CHECK(directory.error == 0);
    directory.spool.close(directory.files);
  }
}

}  // namespace
}  // namespace ccixfer::send_test

// A file that is written in place and given its old time back: only its change time tells, and must.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "app/session/for_later.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

constexpr uint64_t mib = 1u << 20;

// The byte at `at` becomes another one; size and mtime stay, and the change time does not (it has the grain of a tick).
void rewrite_in_place(const std::string& path, uint64_t at) {
  struct stat before {};
  REQUIRE(::stat(path.c_str(), &before) == 0);
  struct stat after = before;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  while (after.st_ctim.tv_sec == before.st_ctim.tv_sec && after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {
    REQUIRE(::pwrite(fd, "#", 1, static_cast<off_t>(at)) == 1);
    const timespec times[2] = {before.st_atim, before.st_mtim};
    REQUIRE(::futimens(fd, times) == 0);
    REQUIRE(::fstat(fd, &after) == 0);
  }
  REQUIRE(after.st_mtim.tv_sec == before.st_mtim.tv_sec);
  REQUIRE(after.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
  ::close(fd);
}

}  // namespace

TEST_CASE("source__large_file_rewritten_in_place_with_its_old_time__ends_as_changed") {
  const TempDir dir;
  dir.file_of("t/large", 21 * mib);
  Bench bench(options_of({dir.path("t")}));
  int reads = 0;
  bench.files.after_pread = [&](int) {
    if (++reads == 2) rewrite_in_place(dir.path("t/large"), 100);
  };
  bench.run();
  REQUIRE(reads >= 2);
  CHECK(bench.receiver.by_path("large")->end->outcome == session::SourceOutcome::changed);
  CHECK(bench.tally().files == 0);
}

// The receiver waits for a file that another session brings: that of a team gives others in its place.
TEST_CASE("source__a_file_that_changed_is_for_the_next_session__only_the_receiver_of_a_team_hears_so") {
  const bool leads = GENERATE(true, false);
  const TempDir dir;
  dir.file_of("t/large", 21 * mib);
  send::SourceOptions options = options_of({dir.path("t")});
  options.tries_changed_again = true;
  if (leads) options.seat = send::SourceOptions::Seat::leader;
  Bench bench(options);
  bench.receiver.giving_results = false;
  int reads = 0;
  bench.files.after_pread = [&](int) {
    if (++reads == 2) rewrite_in_place(dir.path("t/large"), 100);
  };
  bench.start();
  bench.run_until([&] { return bench.source->finished(); });
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::vanished);
  const std::optional<session::FileEnd>& end = bench.receiver.by_path("large")->end;
  REQUIRE(end.has_value() == leads);
  if (leads) CHECK(session::is_for_later(*end));
}

TEST_CASE("source__small_file_rewritten_in_place_while_it_is_read__is_read_again_whole") {
  const TempDir dir;
  dir.file("t/a", "before");
  Bench bench(options_of({dir.path("t")}));
  int reads = 0;
  bench.files.after_pread = [&](int) {
    if (++reads == 1) rewrite_in_place(dir.path("t/a"), 0);
  };
  bench.run();
  CHECK(reads >= 2);
  CHECK(bench.receiver.content("a") == "#efore");
  CHECK(bench.tally().files == 1);
}

}  // namespace ccixfer::send_test

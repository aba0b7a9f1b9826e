// What is read and written outside of the loop: it ends when the process is told to end, and a file that is written is durable.
#include "app/main/standard_io.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <ctime>
#include <fstream>
#include <thread>

#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program {
namespace {

// SIGTERM waits, as the loop's signals do, until the test is over.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    REQUIRE(pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0);
    alarm(60);  // what hangs ends
  }
  ~HeldSignals() {
    alarm(0);
    const timespec at_once{};
    while (sigtimedwait(&set_, nullptr, &at_once) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t set_{}, before_{};
};

struct Pipe {
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
  int ends[2] = {-1, -1};
};

std::string file_of(const recv::test::TemporaryDirectory& directory, const std::string& text) {
  std::ofstream(directory.path("f")) << text;
  return directory.path("f");
}

TEST_CASE("standard_io__a_text__is_written_whole_or_refused") {
  Pipe pipe;
  const std::string text(300'000, 't');  // more than a pipe holds
  std::string got;
  std::thread reader([&] {
    std::array<char, 4096> part{};
    for (ssize_t bytes = 0; (bytes = ::read(pipe.ends[0], part.data(), part.size())) > 0;)
      got.append(part.data(), static_cast<size_t>(bytes));
  });
  const auto written = write_text(text, pipe.ends[1], "cannot print");
  pipe.close_end(1);
  reader.join();
  CHECK(written);
  CHECK(got == text);
  const host::Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  REQUIRE(full);
  const auto refused = write_text("x", full.get(), "cannot print");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::file_io);
  CHECK(refused.error().message == "cannot print: standard output: No space left on device: make room there");
}

TEST_CASE("standard_io__a_text__is_read_to_its_end_or_to_the_byte_that_ends_it") {
  const recv::test::TemporaryDirectory directory;
  const std::string file = file_of(directory, "one\ntwo");
  CHECK(read_text(file, 7).value() == "one\ntwo");
  CHECK(read_text(file, 7, '\n').value() == "one");
  CHECK(read_text(file, 6).error().message == file + ": more than 6 bytes");
  CHECK(read_text(directory.path(), 7).error().message == directory.path() + ": Is a directory");
  CHECK(read_text(directory.path("none"), 7).error().kind == ErrorKind::usage);
}

TEST_CASE("standard_io__a_fifo_that_nobody_writes__is_left_when_the_process_is_told_to_end") {
  const recv::test::TemporaryDirectory directory;
  REQUIRE(mkfifo(directory.path("fifo").c_str(), 0600) == 0);
  const HeldSignals held;
  raise(SIGTERM);
  CHECK(read_text(directory.path("fifo"), 100).error().kind == ErrorKind::interrupted);
}

TEST_CASE("standard_io__a_pipe__takes_the_whole_file") {
  const recv::test::TemporaryDirectory directory;
  const std::string text(300'000, 'x');
  Pipe pipe;
  std::string got;
  std::thread reader([&] {
    char buffer[10'000];
    for (ssize_t n = 0; (n = read(pipe.ends[0], buffer, sizeof buffer)) > 0;) got.append(buffer, static_cast<size_t>(n));
  });
  CHECK(write_out(file_of(directory, text), pipe.ends[1]));
  pipe.close_end(1);
  reader.join();
  CHECK(got == text);
}

TEST_CASE("standard_io__a_pipe_that_nobody_reads_any_more__is_left_when_the_process_is_told_to_end") {
  const recv::test::TemporaryDirectory directory;
  const std::string file = file_of(directory, std::string(300'000, 'x'));
  const Pipe pipe;
  const int room = fcntl(pipe.ends[1], F_GETPIPE_SZ);
  REQUIRE(room < 300'000);
  const HeldSignals held;
  std::thread watcher([&] {  // it is full: a write of any length would wait
    for (int waiting = 0; waiting < room;) REQUIRE(ioctl(pipe.ends[0], FIONREAD, &waiting) == 0);
    kill(getpid(), SIGTERM);
  });
  const auto written = write_out(file, pipe.ends[1]);
  watcher.join();
  REQUIRE_FALSE(written);
  CHECK(written.error().kind == ErrorKind::interrupted);
}

TEST_CASE("standard_io__what_cannot_be_written__is_told_with_its_kind") {
  const recv::test::TemporaryDirectory directory;
  const std::string file = file_of(directory, "text");
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  const auto no_room = write_out(file, full);
  CHECK(no_room.error().kind == ErrorKind::file_io);
  CHECK(no_room.error().message == "cannot write: standard output: No space left on device: make room there");
  close(full);
  CHECK(write_out(directory.path("none"), full).error().kind == ErrorKind::file_io);
}

// A file system that finds out late says so at fsync(2). What has nothing to sync is no error.
TEST_CASE("standard_io__what_cannot_be_made_durable__is_told") {
  const recv::test::TemporaryDirectory directory;
  const std::string empty = file_of(directory, "");
  const auto lost = write_out(empty, -1);
  REQUIRE_FALSE(lost);
  CHECK(lost.error().message.find("cannot make it durable: standard output: Bad file descriptor") == 0);
  const Pipe pipe;
  CHECK(write_out(empty, pipe.ends[1]));
}

}  // namespace
}  // namespace ccixfer::program

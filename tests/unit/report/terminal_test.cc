// What a person at a terminal sees, and what happens when the place of the lines takes no more.
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "app/report/line_output.h"
#include "app/report/reporter.h"
#include "core/base/log.h"

namespace ccixfer::report {
namespace {

using namespace std::chrono_literals;
constexpr Instant start{10s};
const std::string wiped = "\r\x1b[K";

class IgnoredSignal {
 public:
  explicit IgnoredSignal(int number) : number_(number) {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    REQUIRE(sigaction(number, &ignore, &before_) == 0);
  }
  ~IgnoredSignal() { sigaction(number_, &before_, nullptr); }
  IgnoredSignal(const IgnoredSignal&) = delete;
  IgnoredSignal& operator=(const IgnoredSignal&) = delete;

 private:
  const int number_;
  struct sigaction before_ {};
};

// A terminal of which the test is the screen.
class Terminal {
 public:
  explicit Terminal(unsigned short columns) : screen_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    REQUIRE(screen_ >= 0);
    REQUIRE(grantpt(screen_) == 0);
    REQUIRE(unlockpt(screen_) == 0);
    fd_ = open(ptsname(screen_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(fd_ >= 0);
    termios raw{};
    REQUIRE(tcgetattr(fd_, &raw) == 0);
    cfmakeraw(&raw);
    REQUIRE(tcsetattr(fd_, TCSANOW, &raw) == 0);
    winsize size{};
    size.ws_col = columns;
    REQUIRE(ioctl(fd_, TIOCSWINSZ, &size) == 0);
  }
  ~Terminal() {
    close(fd_);
    close(screen_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  // Since the last call. The mark says that all before it is there: a terminal hands bytes on in its own time.
  std::string take() {
    REQUIRE(::write(fd_, "\x04", 1) == 1);
    std::string text;
    while (!text.ends_with('\x04')) {
      char byte = 0;
      REQUIRE(::read(screen_, &byte, 1) == 1);
      text += byte;
    }
    text.pop_back();
    return text;
  }

 private:
  int screen_;
  int fd_ = -1;
};

struct Pipe {
  Pipe() { REQUIRE(pipe(ends) == 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(size_t which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
  int ends[2];
};

// Another file in the place of a descriptor of the process while this lives.
class InPlaceOf {
 public:
  InPlaceOf(int fd, int other) : fd_(fd), saved_(fcntl(fd, F_DUPFD_CLOEXEC, 0)) {
    std::fflush(nullptr);
    REQUIRE(saved_ >= 0);
    dup2(other, fd_);
  }
  ~InPlaceOf() {
    dup2(saved_, fd_);
    close(saved_);
  }
  InPlaceOf(const InPlaceOf&) = delete;
  InPlaceOf& operator=(const InPlaceOf&) = delete;

 private:
  int fd_, saved_;
};

std::unique_ptr<Reporter> reporter_on(ReporterOptions options) {
  auto made = Reporter::create(options, start);
  REQUIRE(made.has_value());
  return std::move(*made);
}

}  // namespace

TEST_CASE("reporter__terminal__a_line_wipes_the_progress_once_and_progress_wipes_itself") {
  Terminal terminal(80);
  Pipe events;
  ReporterOptions options;
  options.text_fd = terminal.fd();
  options.json_fd = events.ends[1];
  auto reporter = reporter_on(options);
  CHECK(reporter->wants_progress());  // without being asked: somebody watches
  reporter->warn("before");
  CHECK(terminal.take() == "ccixfer: before\n");
  reporter->progress({1, 0, 1000, true});
  CHECK(terminal.take() == wiped + "0 B of 1.0 kB  0%  0 B/s  1 file");
  reporter->set_now(start + 200ms);
  CHECK(reporter->progress_due() == start + 200ms);
  reporter->progress({2, 0, 1000, true});
  CHECK(terminal.take() == wiped + "0 B of 1.0 kB  0%  0 B/s  2 files");
  reporter->warn("one");
  CHECK(terminal.take() == wiped + "ccixfer: one\n");
  reporter->warn("two");
  CHECK(terminal.take() == "ccixfer: two\n");  // no progress stands there any more
  Done done;
  done.seconds = 1;
  reporter->done(done, {}, true);
  CHECK(terminal.take() == "0 files, 0 B in 1.0 s (0 B/s)\n");  // who watches is told the end without asking
  reporter->done(done, {}, false);
  CHECK(terminal.take().empty());
}

TEST_CASE("reporter__terminal__events_or_quiet__no_progress_for_people") {
  Terminal terminal(80);
  Pipe events;
  ReporterOptions options;
  options.text_fd = terminal.fd();
  options.json_fd = events.ends[1];
  SECTION("events are asked for, and the progress is one of them") {
    options.json = true;
    auto reporter = reporter_on(options);
    reporter->progress({1, 0, 1000, true});
    CHECK(terminal.take().empty());
    reporter->done({}, {}, true);
    CHECK(terminal.take().empty());
  }
  SECTION("events and lines are asked for") {
    options.json = options.progress = true;
    auto reporter = reporter_on(options);
    reporter->progress({1, 0, 1000, true});
    CHECK(terminal.take() == wiped + "0 B of 1.0 kB  0%  0 B/s  1 file");
  }
  SECTION("quiet") {
    options.quiet = true;
    auto reporter = reporter_on(options);
    CHECK_FALSE(reporter->wants_progress());
    reporter->done({}, {}, true);
    CHECK(terminal.take().empty());
  }
}

// A line as long as the terminal is wide would go on in the next one, which nobody wipes. Of one that says it is no wider than ten
// columns, or that does not say, nothing is believed.
TEST_CASE("reporter__terminal__progress_keeps_off_the_last_column") {
  const auto [columns, shown] = GENERATE(table<unsigned short, std::string>({{0, "0 B of 0 B  0 B/s  1 file"},
                                                                             {10, "0 B of 0 B  0 B/s  1 file"},
                                                                             {11, "0 B 0 B/s"},
                                                                             {17, "0 B 0 B/s 1 file"},
                                                                             {20, "0 B  0 B/s  1 file"},
                                                                             {25, "0 B  0 B/s  1 file"},
                                                                             {26, "0 B of 0 B  0 B/s  1 file"}}));
  Terminal terminal(columns);
  Pipe events;
  ReporterOptions options;
  options.text_fd = terminal.fd();
  options.json_fd = events.ends[1];
  auto reporter = reporter_on(options);
  INFO(columns);
  reporter->progress({1, 0, 0, true});
  CHECK(terminal.take() == wiped + shown);
}

TEST_CASE("reporter__file_for_people__progress_comes_once_a_second_and_wipes_nothing") {
  Pipe text;
  Pipe events;
  ReporterOptions options;
  options.text_fd = text.ends[1];
  options.json_fd = events.ends[1];
  options.progress = true;
  auto reporter = reporter_on(options);
  reporter->progress({1, 0, 1000, true});
  CHECK(reporter->progress_due() == start + 1s);
  reporter->warn("one");
  std::string said(1000, '\0');
  const ssize_t got = read(text.ends[0], said.data(), said.size());
  REQUIRE(got > 0);
  said.resize(static_cast<size_t>(got));
  CHECK(said == "0 B of 1.0 kB  0%  0 B/s  1 file\nccixfer: one\n");
}

TEST_CASE("reporter__done__returns_when_the_slow_reader_has_every_event") {
  Pipe events, text;
  ReporterOptions options;
  options.json = true;
  options.json_fd = events.ends[1];
  options.text_fd = text.ends[1];
  auto reporter = reporter_on(options);
  const std::string line(4000, 'x');
  for (int i = 0; i < 40; ++i) reporter->event(line);  // more than a pipe takes
  REQUIRE(reporter->next_deadline() != never);
  std::string all;
  std::thread reader([&all, fd = events.ends[0]] {
    std::vector<char> some(4096);
    for (ssize_t got = 0; (got = read(fd, some.data(), some.size())) > 0;) all.append(some.data(), static_cast<size_t>(got));
  });
  reporter->done({}, {}, true);
  CHECK(reporter->next_deadline() == never);
  events.close_end(1);
  reader.join();
  CHECK(all.size() > 40 * 4001u);
  CHECK(all.find("\n{\"event\":\"done\"") != std::string::npos);
  CHECK(all.ends_with("}\n"));
}

TEST_CASE("reporter__list_to_standard_output__every_name_and_once_it_is_full_what_failed") {
  Pipe events, text;
  ReporterOptions options;
  options.json_fd = events.ends[1];
  options.text_fd = text.ends[1];
  options.list = true;
  const int flags = fcntl(text.ends[0], F_GETFL);
  REQUIRE(fcntl(text.ends[0], F_SETFL, flags | O_NONBLOCK) == 0);
  SECTION("a reader") {
    auto reporter = reporter_on(options);
    Pipe output;
    {
      const InPlaceOf replaced(1, output.ends[1]);
      reporter->file({"f\n", 3, "ok", "", ""});
      reporter->file({"g", 4, "failed", "why\n", ""});
    }
    std::string lines(1000, '\0');
    const ssize_t got = read(output.ends[0], lines.data(), lines.size());
    REQUIRE(got > 0);
    lines.resize(static_cast<size_t>(got));
    CHECK(lines == "ok f%0A (3 bytes)\nfailed g (4 bytes): why%0A\n");
    // What failed is an error besides: whoever sends the list to a file still sees it.
    std::string errors(1000, '\0');
    const ssize_t error_bytes = read(text.ends[0], errors.data(), errors.size());
    REQUIRE(error_bytes > 0);
    errors.resize(static_cast<size_t>(error_bytes));
    CHECK(errors == "ccixfer: g: why%0A\n");
    CHECK_FALSE(reporter->output_problem().has_value());
  }
  SECTION("full") {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    REQUIRE(full >= 0);
    auto reporter = reporter_on(options);
    Pipe later;
    {
      const InPlaceOf replaced(1, full);
      reporter->file({"f", 3, "ok", "", ""});
    }
    {
      const InPlaceOf replaced(1, later.ends[1]);
      reporter->output("after it failed nothing is written, as it would have a gap");
    }
    close(full);
    later.close_end(1);
    char byte = 0;
    CHECK(read(later.ends[0], &byte, 1) == 0);
    const auto problem = reporter->output_problem();
    REQUIRE(problem.has_value());
    CHECK(problem->kind == ErrorKind::file_io);
    CHECK(problem->message.starts_with("standard output cannot be written: No space left on device: "));
  }
  SECTION("nobody reads it any more") {
    auto reporter = reporter_on(options);
    Pipe output;
    output.close_end(0);
    struct sigaction ignore {
    }, before{};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before);
    {
      const InPlaceOf replaced(1, output.ends[1]);
      reporter->output("x");
    }
    sigaction(SIGPIPE, &before, nullptr);
    CHECK_FALSE(reporter->output_problem().has_value());
  }
  SECTION("events are asked for: standard output is theirs") {
    options.json = true;
    auto reporter = reporter_on(options);
    Pipe output;
    {
      const InPlaceOf replaced(1, output.ends[1]);
      reporter->file({"f", 3, "ok", "", ""});
      reporter->output("x");
    }
    output.close_end(1);
    char byte = 0;
    CHECK(read(output.ends[0], &byte, 1) == 0);
  }
}

TEST_CASE("reporter__events_on_standard_error_that_is_full__says_which") {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  Pipe text;
  ReporterOptions options;
  options.json = true;
  options.json_fd = 2;
  options.text_fd = text.ends[1];
  auto reporter = reporter_on(options);
  {
    const InPlaceOf replaced(2, full);
    reporter->event("{}");
  }
  close(full);
  const auto problem = reporter->output_problem();
  REQUIRE(problem.has_value());
  CHECK(problem->message.starts_with("standard error cannot be written: No space left on device: "));
}

// A service that goes on for months says more when its disk has room again.
TEST_CASE("reporter__lines_to_a_full_disk__are_lost_and_later_ones_are_not") {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  REQUIRE(full >= 0);
  Pipe text;
  REQUIRE(fcntl(text.ends[0], F_SETFL, O_NONBLOCK) == 0);
  ReporterOptions options;
  options.text_fd = text.ends[1];
  auto reporter = reporter_on(options);
  {
    const InPlaceOf replaced(text.ends[1], full);
    reporter->warn("lost");
  }
  close(full);
  reporter->warn("kept");
  char bytes[64];
  const ssize_t got = read(text.ends[0], bytes, sizeof bytes);
  REQUIRE(got > 0);
  CHECK(std::string(bytes, static_cast<size_t>(got)) == "ccixfer: kept\n");
}

// As main() leaves a standard output that whoever started the process had closed.
TEST_CASE("reporter__output_that_was_closed__is_a_failure_but_for_events_beside_a_transfer") {
  const bool json = GENERATE(true, false), beside = GENERATE(true, false);
  const int closed = open("/dev/null", O_RDONLY | O_CLOEXEC);
  REQUIRE(closed >= 0);
  Pipe text;
  ReporterOptions options;
  options.json = json;
  options.may_be_unheard = beside;
  options.text_fd = text.ends[1];
  auto reporter = reporter_on(options);
  {
    const InPlaceOf replaced(1, closed);
    reporter->output("x");
    reporter->event("{}");
  }
  close(closed);
  const auto problem = reporter->output_problem();
  REQUIRE(problem.has_value() == !(json && beside));
  if (problem) CHECK(problem->kind == ErrorKind::file_io);
}

TEST_CASE("line_output__a_line__goes_out_whole_and_in_order_however_the_reader_takes_it") {
  Pipe events;
  LineOutput output(events.ends[1]);
  std::string sent, got;
  std::vector<char> some(100000);
  // Over and again beyond what a pipe takes, and beyond the megabyte after which what is written is let go.
  for (int round = 0; round < 40; ++round) {
    const std::string line(60000, static_cast<char>('a' + round % 26));
    output.line(line);
    sent += line + '\n';
    if (round % 4 == 3) {
      const ssize_t read_bytes = read(events.ends[0], some.data(), some.size());
      REQUIRE(read_bytes > 0);
      got.append(some.data(), static_cast<size_t>(read_bytes));
    }
  }
  CHECK(output.waiting());
  while (got.size() < sent.size()) {
    output.flush();
    const ssize_t read_bytes = read(events.ends[0], some.data(), some.size());
    REQUIRE(read_bytes > 0);
    got.append(some.data(), static_cast<size_t>(read_bytes));
  }
  CHECK(got == sent);
  CHECK_FALSE(output.waiting());
  CHECK(output.error() == 0);
}

TEST_CASE("line_output__a_reader_that_goes_while_lines_wait__nothing_is_kept") {
  Pipe events;
  LineOutput output(events.ends[1]);
  for (int i = 0; i < 40; ++i) output.line(std::string(4000, 'x'));
  REQUIRE(output.waiting());
  events.close_end(0);
  const IgnoredSignal no_pipe_signal(SIGPIPE);
  output.flush();
  CHECK(output.error() == EPIPE);
  CHECK_FALSE(output.waiting());
  output.line("more");
  CHECK_FALSE(output.waiting());
  output.flush_all();  // returns
}

// Half of the events would tell its second reader a story that did not happen.
TEST_CASE("line_output__a_reader_that_went_and_another_that_comes__hears_nothing") {
  char directory[] = "/tmp/ccixfer_fifo_XXXXXX";
  REQUIRE(mkdtemp(directory) != nullptr);
  const std::string path = std::string(directory) + "/events";
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
  int reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  const int writer = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  REQUIRE(writer >= 0);
  const IgnoredSignal no_pipe_signal(SIGPIPE);
  LineOutput output(writer);
  output.line("first");
  CHECK(output.error() == 0);
  char bytes[32];
  CHECK(read(reader, bytes, sizeof bytes) == 6);
  close(reader);
  output.line("lost");
  CHECK(output.error() == EPIPE);
  CHECK_FALSE(output.waiting());
  reader = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  output.line("third");
  output.flush();
  output.flush_all();
  CHECK_FALSE(output.waiting());
  CHECK(read(reader, bytes, sizeof bytes) < 0);
  CHECK(errno == EAGAIN);
  CHECK(output.error() == EPIPE);
  close(reader);
  close(writer);
  CHECK(unlink(path.c_str()) == 0);
  CHECK(rmdir(directory) == 0);
}

}  // namespace ccixfer::report

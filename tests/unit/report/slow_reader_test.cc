// Whoever reads slowly, or not at all, what the program says. What may hang is tried in a child.
#include <fcntl.h>
#include <pty.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>
#include <thread>
#include <utility>

#include "app/report/line_output.h"
#include "tests/unit/report/desk.h"

namespace ccixfer::report {
namespace {

// How a child ended that did this: its exit code, or -signal.
int ended(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int number : {SIGALRM, SIGPIPE}) std::signal(number, SIG_DFL);
    alarm(30);  // a hang ends by a signal of its own
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct Pipe {
  Pipe() { REQUIRE(pipe2(ends, O_CLOEXEC) == 0); }
  ~Pipe() {
    for (const int end : ends) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int ends[2];
};

std::string number_of(int line) { return std::to_string(line) + std::string(90, '.'); }

// All lines that come until everybody has closed it, each a little later than the writer would like.
std::vector<std::string> read_lines(int fd) {
  std::vector<std::string> lines;
  std::string line;
  char bytes[1000];
  for (ssize_t got = 0; (got = read(fd, bytes, sizeof bytes)) > 0;) {
    for (ssize_t i = 0; i < got; ++i) {
      if (bytes[i] != '\n') {
        line += bytes[i];
      } else {
        lines.push_back(std::exchange(line, {}));
      }
    }
  }
  return lines;
}

constexpr size_t mebibyte = 1u << 20;

}  // namespace

// poll(2) never calls a descriptor that is none ready.
TEST_CASE("line_output__no_descriptor__waits_for_nobody") {
  LineOutput output(-1);
  output.line("nobody hears it");
  REQUIRE_FALSE(output.waiting());
  output.flush_all();
  CHECK(output.error() == 0);
}

TEST_CASE("reporter__lines_that_nobody_reads_yet__hold_up_nothing_and_come_all_in_the_end") {
  const bool nonblocking = GENERATE(true, false);
  Pipe text, output, events;
  constexpr int count = 5000;  // far more than a pipe takes
  if (nonblocking) {
    for (const int fd : {text.ends[1], output.ends[1]}) REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
  }
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGALRM, SIG_DFL);
    alarm(60);
    dup2(output.ends[1], STDOUT_FILENO);
    for (Pipe* one : {&text, &output}) close(one->ends[0]);
    ReporterOptions options;
    options.text_fd = text.ends[1];
    {
      auto reporter = Reporter::create(options, start);
      for (int i = 0; i < count; ++i) {
        (*reporter)->output(number_of(i));
        (*reporter)->warn(number_of(i));
      }
      if ((*reporter)->next_deadline() == never) _exit(2);
      const char said = '!';
      if (write(events.ends[1], &said, 1) != 1) _exit(3);
      (*reporter)->done({}, Counters(), false);
      if ((*reporter)->output_problem()) _exit(4);
    }
    _exit(0);
  }
  for (Pipe* one : {&text, &output, &events}) {
    close(one->ends[1]);
    one->ends[1] = -1;
  }
  char said = 0;
  CHECK(read(events.ends[0], &said, 1) == 1);  // it came that far without a reader
  std::vector<std::string> warnings;
  std::thread other([&] { warnings = read_lines(text.ends[0]); });
  const std::vector<std::string> answers = read_lines(output.ends[0]);
  other.join();
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  REQUIRE(answers.size() == count);
  REQUIRE(warnings.size() == count);
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (answers[at] != number_of(i) || warnings[at] != "ccixfer: " + number_of(i)) FAIL(i);
  }
}

TEST_CASE("line_output__more_than_may_wait_and_the_process_is_told_to_end__waits_no_longer") {
  CHECK(ended([] {
          Pipe unread;
          int asked = 0;
          LineOutput output(unread.ends[1], [&asked] { return ++asked > 2; });
          const std::string line(mebibyte, 'x');
          for (size_t i = 0; i < line_bytes_queued_max / mebibyte + 1; ++i) output.line(line);
          if (asked != 3 || !output.waiting()) return 1;
          output.flush_all();  // the reader gets some seconds more
          return output.waiting() || output.error() != 0 ? 2 : 0;
        }) == 0);
}

TEST_CASE("reporter__a_listener_whose_lines_nobody_reads__leaves_lines_out_and_says_how_many") {
  Pipe text, events;
  CHECK(ended([&] {
          ReporterOptions options;
          options.text_fd = text.ends[1];
          options.json_fd = events.ends[1];
          auto reporter = Reporter::create(options, start);
          (*reporter)->ready({"somewhere"});
          const std::string line(mebibyte, 'x');
          for (size_t i = 0; i < line_bytes_queued_max / mebibyte + 4; ++i) (*reporter)->warn(line);  // would wait for good
          size_t came = 0;
          std::string end;
          std::thread reader([&] {
            char bytes[1u << 16];
            for (ssize_t got = 0; !end.ends_with("next\n") && (got = read(text.ends[0], bytes, sizeof bytes)) > 0;) {
              came += static_cast<size_t>(got);
              end.append(bytes, static_cast<size_t>(got));
              end.erase(0, end.size() > 200 ? end.size() - 200 : 0);
            }
          });
          while ((*reporter)->next_deadline() != never) (*reporter)->set_now(start);
          (*reporter)->warn("next");
          reporter->reset();
          reader.join();
          const bool said = end.ends_with("\nccixfer: 4 lines are left out here: nobody read standard error\nccixfer: next\n");
          return said && came > line_bytes_queued_max ? 0 : 1;
        }) == 0);
}

// A terminal that polls writable may have room for a few bytes only.
TEST_CASE("reporter__a_terminal_that_stands_still__holds_up_nothing") {
  CHECK(ended([] {
          int screen = -1, terminal = -1;
          if (openpty(&screen, &terminal, nullptr, nullptr, nullptr) != 0) return 1;
          LineOutput output(terminal, [] { return true; });
          for (int i = 0; i < 5000; ++i) output.line(number_of(i));
          return output.waiting() ? 0 : 2;
        }) == 0);
}

TEST_CASE("reporter__progress_while_older_lines_wait__is_not_said") {
  Pipe text, events;
  CHECK(ended([&] {
          ReporterOptions options;
          options.text_fd = text.ends[1];
          options.json_fd = events.ends[1];
          options.progress = true;
          options.told_to_end = [] { return true; };
          auto reporter = Reporter::create(options, start);
          const std::string line(200, 'x');
          for (int i = 0; i < 500; ++i) (*reporter)->warn(line);
          (*reporter)->progress({1, 2, 3, true});
          (*reporter)->warn("last");
          std::string all;
          char bytes[1u << 16];
          while ((*reporter)->next_deadline() != never) {
            const ssize_t got = read(text.ends[0], bytes, sizeof bytes);
            if (got > 0) all.append(bytes, static_cast<size_t>(got));
            (*reporter)->set_now(start);
          }
          const ssize_t got = read(text.ends[0], bytes, sizeof bytes);
          if (got > 0) all.append(bytes, static_cast<size_t>(got));
          return all.ends_with("x\nccixfer: last\n") ? 0 : 1;
        }) == 0);
}

TEST_CASE("line_output__a_disk_is_full_in_the_middle_of_a_line__the_next_one_stands_alone") {
  const int fd = memfd_create("log", MFD_CLOEXEC);
  REQUIRE(fd >= 0);
  CHECK(ended([&] {
          std::signal(SIGXFSZ, SIG_IGN);
          rlimit limit{};
          getrlimit(RLIMIT_FSIZE, &limit);
          const rlim_t before = std::exchange(limit.rlim_cur, 10);
          setrlimit(RLIMIT_FSIZE, &limit);
          LineOutput output(fd, {}, AfterFailure::next);
          output.line("first");
          output.line("second");
          output.line("third");
          if (output.error() != EFBIG) return 1;
          limit.rlim_cur = before;
          setrlimit(RLIMIT_FSIZE, &limit);
          output.line("fourth");
          output.line("fifth");
          return output.waiting() ? 2 : 0;
        }) == 0);
  std::string text(100, '\0');
  text.resize(static_cast<size_t>(pread(fd, text.data(), text.size(), 0)));
  CHECK(text == "first\nseco\nfourth\nfifth\n");
  close(fd);
}

}  // namespace ccixfer::report

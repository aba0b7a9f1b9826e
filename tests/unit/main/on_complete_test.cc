// The command of --on-complete: its helper, and how long it is waited for.
#include "app/main/on_complete.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <set>
#include <string>

#include "app/main/turn_loop.h"
#include "tests/unit/main/running.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program {
namespace {

using recv::test::TemporaryDirectory;

std::set<pid_t> children() {
  const std::string self = std::to_string(::getpid());
  std::ifstream in("/proc/" + self + "/task/" + self + "/children");
  std::set<pid_t> all;
  for (pid_t child = 0; in >> child;) all.insert(child);
  return all;
}

struct Helped {
  explicit Helped(const std::string& command) {
    const std::set<pid_t> before = children();
    on_complete = std::move(OnComplete::start(command, *desk.reporter).value());
    for (const pid_t child : children()) {
      if (before.count(child) == 0) helper = child;
    }
    REQUIRE(helper > 0);
  }
  void kill_helper() const {
    REQUIRE(::kill(helper, SIGKILL) == 0);
    REQUIRE(::waitpid(helper, nullptr, 0) == helper);
  }
  [[nodiscard]] size_t told(const std::string& words) const { return desk.text.lines("ccixfer: --on-complete: " + words).size(); }
  test::Desk desk{Instant{}, false};
  std::unique_ptr<OnComplete> on_complete;
  pid_t helper = -1;
};

// Ends a while after it began, and counts how often it was called until then.
class Waiting final : public LoopHandler {
 public:
  Waiting(OnComplete& on_complete, Instant until) : on_complete_(on_complete), until_(until) {}
  bool turn(Instant now) override {
    on_complete_.turn();
    ++turns;
    return now < until_;
  }
  [[nodiscard]] Instant next_deadline() const override { return until_; }
  void on_signal(int, Instant) override {}
  unsigned turns = 0;

 private:
  OnComplete& on_complete_;
  const Instant until_;
};

}  // namespace

TEST_CASE("on_complete__a_result_that_is_too_long__is_named_as_what_it_is") {
  const size_t most = host::CommandHelper::text_bytes_max - 1;  // and the line feed
  Helped helped("cat > /dev/null");
  helped.on_complete->run(std::string(most, 'x'));
  helped.on_complete->finish([] { return false; });
  CHECK(helped.told("") == 0);
  helped.on_complete->run(std::string(most + 1, 'x'));
  CHECK(helped.told("the command is not run: its result is too long: 65537 bytes") == 1);
  CHECK(helped.told("") == 1);
}

TEST_CASE("on_complete__its_helper_is_killed__is_said_once_and_the_loop_waits_as_before") {
  TurnLoop loop;
  const Helped helped("cat > /dev/null");
  loop.watch(helped.on_complete->os_handle());
  helped.kill_helper();
  Waiting waiting(*helped.on_complete, after(loop.now(), std::chrono::milliseconds(200)));
  loop.run(waiting);
  CHECK(waiting.turns < 10);
  CHECK(helped.told("the helper that runs the command has gone") == 1);
  helped.on_complete->run("{}");
  CHECK(helped.told("the command is not run") == 1);
  helped.on_complete->finish([] { return false; });
}

TEST_CASE("on_complete__its_helper_is_killed__the_loop_of_a_push_looks_at_it") {
  const Helped helped("cat > /dev/null");
  helped.kill_helper();
  const TemporaryDirectory from;
  from.write("f", "x");
  SendCommand command = test::send_of({from.path("f")}, "tcp://127.0.0.1:1/f");
  command.transfer.retries = 0;
  const test::Ran sent([&](const Process& process) {
    Process with = process;
    with.on_complete = helped.on_complete.get();
    return run_send(with, command);
  });
  CHECK(sent.end.error.kind != ErrorKind::ok);  // nobody is there
  CHECK(helped.on_complete->os_handle() == -1);
}

TEST_CASE("on_complete__a_command_that_takes_long__is_waited_for_until_it_ends") {
  const TemporaryDirectory directory;
  const std::string gate = directory.path("gate");
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const Helped helped("cat '" + gate + "' > /dev/null; exit 3");
  helped.on_complete->run("{}");
  unsigned asked = 0;
  helped.on_complete->finish(
      [&] {
        if (++asked == 2) std::ofstream(gate) << "go";
        return false;
      },
      Duration(0));
  CHECK(asked >= 2);
  CHECK(helped.told("the command failed: exit code 3") == 1);
  CHECK(helped.told("1 command(s) have not ended") == 0);
}

TEST_CASE("on_complete__a_command_that_takes_long__is_left_by_who_is_told_to_end") {
  const TemporaryDirectory directory;
  const std::string gate = directory.path("gate");
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const Helped helped("cat '" + gate + "' > /dev/null");
  helped.on_complete->run("{}");
  helped.on_complete->finish([] { return true; }, Duration(0));
  CHECK(helped.told("1 command(s) have not ended: they go on without this process") == 1);
  std::ofstream(gate) << "go";
}

TEST_CASE("on_complete__a_command_that_takes_long__is_left_at_once_by_who_is_told_again") {
  const TemporaryDirectory directory;
  const std::string gate = directory.path("gate");
  REQUIRE(::mkfifo(gate.c_str(), 0600) == 0);
  const Helped helped("cat '" + gate + "' > /dev/null");
  helped.on_complete->run("{}");
  unsigned asked = 0;
  helped.on_complete->finish([] { return false; }, on_complete_patience,
                             [&] {
                               if (++asked == 3) std::ofstream(gate) << "go";  // it would wait no longer for anything
                               return asked == 2;
                             });
  CHECK(asked == 2);
  CHECK(helped.told("1 command(s) have not ended: they go on without this process") == 1);
  std::ofstream(gate) << "go";
}

}  // namespace ccixfer::program

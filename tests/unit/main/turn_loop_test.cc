// The one loop of a process: its signals, and that it leaves nothing behind. What ends a process is tried in a child.
#include "app/main/turn_loop.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <thread>

#include "app/main/uri_file.h"
#include "tests/unit/host/notify_socket.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program {
namespace {

// Turns until `turns` are over; `at_signal` is asked at each.
struct Counting final : LoopHandler {
  bool turn(Instant) override {
    if (at_turn) at_turn();
    return ++seen < turns;
  }
  [[nodiscard]] Instant next_deadline() const override { return waits ? never : deadline; }
  [[nodiscard]] bool spins() const override { return spinning; }
  void on_signal(int number, Instant) override {
    signals.push_back(number);
    if (at_signal) at_signal();
  }
  void stood_still() override { stops.push_back(seen); }
  int turns = 1, seen = 0;
  std::vector<int> stops;
  Instant deadline{};
  bool waits = false, spinning = false;
  std::vector<int> signals;
  std::function<void()> at_turn, at_signal;
};

// How a child ended that did this: its exit code, or -signal.
int ended(const std::function<int()>& body) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) std::signal(number, SIG_DFL);  // the framework's reports
    alarm(30);                                                                                 // a hang ends by a signal of its own
    _exit(body());
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

ptrdiff_t descriptors_open() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

}  // namespace

TEST_CASE("turn_loop__signals__are_turns_and_the_second_that_ends_ends_the_process") {
  const recv::test::TemporaryDirectory here;
  for (const bool action : {true, false}) {
    for (const int first : {SIGINT, SIGTERM}) {
      std::filesystem::remove(here.path("abrupt"));
      const int code = ended([&] {
        TurnLoop loop;
        if (action) loop.at_abrupt_end([&] { here.write("abrupt", "x"); });
        Counting user;
        user.turns = 1000;
        user.waits = true;
        user.at_turn = [&] {
          if (user.seen == 0) raise(SIGUSR1);
          if (user.seen == 1) raise(SIGUSR1);  // however often
          if (user.seen == 2) raise(first);
          if (user.seen == 3) raise(first == SIGINT ? SIGTERM : SIGINT);
        };
        loop.run(user);
        return 1;
      });
      CHECK(code == 20);
      CHECK(here.has("abrupt") == action);
    }
  }
}

// Another process may have one of that name by then.
TEST_CASE("turn_loop__a_uri_file_that_went__is_not_removed_again_at_the_second_signal") {
  const recv::test::TemporaryDirectory here;
  const int code = ended([&] {
    TurnLoop loop;
    {
      UriFile file(loop);
      if (!file.write(here.path("uris"), {"a"}) || !here.has("uris")) return 2;
    }
    if (here.has("uris")) return 3;
    here.write("uris", "another's");
    Counting user;
    user.turns = 1000;
    user.waits = true;
    user.at_turn = [] { raise(SIGINT); };
    loop.run(user);
    return 1;
  });
  CHECK(code == 20);
  CHECK(here.read("uris") == "another's");
}

TEST_CASE("turn_loop__each_run__has_a_first_signal_of_its_own") {
  const int code = ended([] {
    TurnLoop loop;
    std::vector<int> seen;
    for (int run = 0; run < 2; ++run) {
      Counting user;
      user.turns = 2;
      user.at_turn = [&] {
        if (user.seen == 0) raise(SIGINT);
      };
      loop.run(user);
      seen.insert(seen.end(), user.signals.begin(), user.signals.end());
    }
    return seen == std::vector<int>{SIGINT, SIGINT} ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("turn_loop__a_hangup__is_a_turn_and_no_second_signal") {
  enum class Kind { ends, taken, ignored };
  const auto hang_up = [](Kind kind, std::vector<int> expected, bool told) {
    return ended([&] {
      if (kind == Kind::ignored) std::signal(SIGHUP, SIG_IGN);
      TurnLoop loop;
      if (kind == Kind::taken) loop.take_hangups();
      raise(SIGHUP);
      if (TurnLoop::is_told_to_end() != told) return 2;
      Counting user;
      user.turns = 4;
      user.at_turn = [&] {
        if (user.seen < 3) raise(SIGHUP);  // the kernel, the shell
      };
      loop.run(user);
      return user.signals == expected ? 0 : 1;
    });
  };
  CHECK(hang_up(Kind::ends, {SIGHUP}, true) == 0);
  CHECK(hang_up(Kind::taken, {SIGHUP, SIGHUP, SIGHUP}, false) == 0);
  CHECK(hang_up(Kind::ignored, {}, false) == 0);
}

// A person is impatient behind a terminal that has gone too.
TEST_CASE("turn_loop__a_hangup__is_the_first_of_two_signals") {
  CHECK(ended([] {
          TurnLoop loop;
          Counting user;
          user.turns = 1000;
          user.waits = true;
          user.at_turn = [&] {
            if (user.seen == 0) raise(SIGHUP);
            if (user.seen == 1) raise(SIGTERM);
          };
          loop.run(user);
          return 1;
        }) == 20);
}

// As by Ctrl-Z: nothing else is late by seconds. A wait that was to be so long is not late.
TEST_CASE("turn_loop__a_process_that_was_stopped__is_told_of_it") {
  const int code = ended([] {
    TurnLoop loop;
    Counting user;
    user.turns = 4;
    user.at_turn = [&] {
      if (user.seen == 0) user.deadline = after(loop.now(), std::chrono::milliseconds(2500));
      if (user.seen == 1) user.deadline = Instant{};
      if (user.seen == 2) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    };
    loop.run(user);
    return user.stops == std::vector<int>{3} ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("turn_loop__signals_that_were_released__end_the_process_as_in_any_other") {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    CHECK(ended([&] {
            TurnLoop loop;
            loop.release_signals();
            raise(number);
            return 1;
          }) == -number);
  }
}

// It came in the last moments, when nobody took signals any more: what was done is done, and is said.
TEST_CASE("turn_loop__a_signal_that_waits_when_they_are_released__ends_nothing") {
  const int code = ended([] {
    TurnLoop loop;
    if (TurnLoop::is_told_to_end()) return 2;
    raise(SIGUSR1);
    if (TurnLoop::is_told_to_end()) return 3;  // which ends nothing
    raise(SIGTERM);
    if (!TurnLoop::is_told_to_end()) return 4;
    raise(SIGINT);
    loop.release_signals();
    return TurnLoop::is_told_to_end() ? 5 : 0;
  });
  CHECK(code == 0);
}

TEST_CASE("turn_loop__signals_behind_the_last_run__are_counted_with_the_one_that_ended_it") {
  for (const bool in_the_run : {false, true}) {
    const int code = ended([&] {
      TurnLoop loop;
      Counting user;
      user.turns = 1000;
      user.waits = true;
      user.at_turn = [&] {
        if (user.seen == 0) raise(SIGTERM);
      };
      user.at_signal = [&] { user.turns = user.seen; };
      if (in_the_run) loop.run(user);
      const unsigned before = in_the_run ? 1 : 0;
      if (loop.times_told_to_end() != before) return 1;
      raise(SIGINT);
      if (loop.times_told_to_end() != before + 1 || loop.times_told_to_end() != before + 1) return 2;
      raise(SIGTERM);
      return loop.times_told_to_end() == 2 ? 0 : 3;
    });
    CHECK(code == 0);
  }
}

// Whoever signals a whole group of processes, or a whole service, signals a job's two.
TEST_CASE("turn_loop__a_signal_that_the_parent_passes_on_too__counts_once") {
  const auto pass_on = [](int number) {
    sigval value{};
    value.sival_int = passed_on_mark;
    sigqueue(getpid(), number, value);
  };
  const auto outcome = [&](const std::string& steps) {  // d: directly, p: passed on, i: another one, directly
    return ended([&] {
      TurnLoop loop;
      int seen = 0;
      for (int run = 0; run < 2; ++run) {  // the second of the two may come when the next loop runs
        Counting user;
        user.turns = static_cast<int>(steps.size());
        user.at_turn = [&] {
          const char step = steps[static_cast<size_t>(user.seen)];
          if (step == '|' && run == 0) user.turns = user.seen;
          if (user.seen < static_cast<int>(steps.find('|')) && run == 1) return;
          if (step == 'd') raise(SIGTERM);
          if (step == 'p') pass_on(SIGTERM);
          if (step == 'i') raise(SIGINT);
        };
        loop.run(user);
        seen += static_cast<int>(user.signals.size());
        if (steps.find('|') == std::string::npos) break;
      }
      return seen;
    });
  };
  for (const char* once : {"d.", "p.", "dp.", "pd.", "dp|.", "d|p.", "p|d.", "d.|.p."}) {
    INFO(once);
    CHECK(outcome(once) == 1);
  }
  for (const char* twice : {"dd.", "pp.", "dpd.", "pdp.", "dpp.", "di.", "pi.", "dpi."}) {
    INFO(twice);
    CHECK(outcome(twice) == 20);
  }
}

// As timeout(1) does it. The second may come late where processors are scarce: then it is another one, and this is tried again.
TEST_CASE("turn_loop__one_process_sends_a_signal_twice_at_once__counts_once") {
  const auto outcome = [] {
    return ended([] {
      TurnLoop loop;
      Counting user;
      user.turns = 4;
      user.at_turn = [&] {
        if (user.seen == 0 || user.seen == 2) kill(getpid(), SIGTERM);
      };
      loop.run(user);
      return static_cast<int>(user.signals.size());
    });
  };
  int code = outcome();
  for (int tries = 0; tries < 50 && code == 20; ++tries) code = outcome();
  CHECK(code == 1);
}

TEST_CASE("turn_loop__while_it_spins__signals_are_taken_all_the_same") {
  const int code = ended([] {
    TurnLoop loop;
    Counting user;
    user.spinning = true;
    user.turns = 1 << 20;
    user.at_turn = [&] {
      if (user.seen == 0) raise(SIGINT);
    };
    user.at_signal = [&] { user.turns = user.seen; };
    loop.run(user);
    return user.signals == std::vector<int>{SIGINT} && user.seen < (1 << 20) ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("turn_loop__what_it_watches__wakes_it") {
  const int code = ended([] {
    int ends[2];
    if (pipe(ends) != 0) return 2;
    TurnLoop loop;
    loop.watch(ends[0]);
    loop.watch(-1);  // nothing
    Counting user;
    user.waits = true;
    user.turns = 2;
    user.at_turn = [&] {
      if (write(ends[1], "x", 1) != 1) _exit(3);
    };
    loop.run(user);
    return user.signals.empty() ? 0 : 1;
  });
  CHECK(code == 0);
}

// With a deadline of never, only the service manager's own wakes the loop.
TEST_CASE("turn_loop__with_a_service_manager__turns_in_time_for_its_signs_of_life_and_gives_them_after_turns") {
  const recv::test::TemporaryDirectory here;
  testing::NotifySocket socket(here.path("notify"));
  const int code = ended([&] {
    TurnLoop loop;
    auto manager = host::ServiceManager::connect(socket.name(), std::chrono::milliseconds(20));
    if (!manager) return 2;
    loop.take_service_manager(std::move(*manager));
    Counting user;
    user.waits = true;
    user.turns = 4;
    std::vector<size_t> given;  // before each turn
    user.at_turn = [&] { given.push_back(socket.all().size()); };
    loop.run(user);
    given.push_back(socket.all().size());
    return given[0] == 0 && given[1] == 1 && std::accumulate(given.begin(), given.end(), size_t{0}) > 1 ? 0 : 1;
  });
  CHECK(code == 0);
}

TEST_CASE("turn_loop__gone__has_closed_what_it_opened") {
  const auto before = descriptors_open();
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  { const TurnLoop loop; }
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  CHECK(descriptors_open() == before);
}

}  // namespace ccixfer::program

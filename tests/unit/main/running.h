// Commands of the program in this process: each in a thread of its own, over tcp on this host, with signals to that thread only.
#pragma once
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "app/main/commands.h"
#include "core/host/clock.h"
#include "tests/unit/main/desk.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::program::test {

using recv::test::TemporaryDirectory;
using Words = std::vector<std::string>;

// What a command says, in place of the process's own outputs. Its events go through a pipe: a test waits for one by reading.
class Said {
 public:
  explicit Said(bool json, unsigned verbose = 0, bool quiet = false) {
    REQUIRE(pipe2(ends_, O_CLOEXEC) == 0);
    report::ReporterOptions options;
    options.json = json;
    options.json_fd = ends_[1];
    options.text_fd = text.fd();
    options.verbose = verbose;
    options.quiet = quiet;
    reporter = std::move(report::Reporter::create(options, host::SystemClock().now()).value());
    set_log_sink({}, LogLevel::error);  // one for all commands of a test: nobody's
  }
  ~Said() {
    if (ends_[1] >= 0) end();
    close(ends_[0]);
  }
  Said(const Said&) = delete;
  Said& operator=(const Said&) = delete;
  // The next event of this name; those before it are gone through. A command that ends without it, or hangs, fails the test.
  std::string await(const std::string& event) {
    const std::string line = find(event);
    if (line.empty()) FAIL("no event " << event << "; text: " << text.all() << "; the last: " << last_);
    return line;
  }
  // The same where it may not come: false once the command has ended without it.
  bool comes(const std::string& event) { return !find(event).empty(); }
  // Whether the command has ended by itself: what it still says is gone through. One that hangs has not.
  bool has_ended() {
    while (!next_line().empty()) {
    }
    return readable();
  }
  // Nothing further is said: who waits for an event reads the end.
  void end() {
    reporter.reset();
    close(std::exchange(ends_[1], -1));
  }
  Written text;
  std::unique_ptr<report::Reporter> reporter;

 private:
  std::string find(const std::string& event) {
    for (;;) {
      const std::string line = next_line();
      if (line.empty() || line.rfind("{\"event\":\"" + event + "\"", 0) == 0) return line;
      last_ = line;
    }
  }
  std::string next_line() {
    std::string line;
    for (char c = 0; readable() && read(ends_[0], &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  [[nodiscard]] bool readable() const {
    pollfd one{ends_[0], POLLIN, 0};
    int ready = 0;
    while ((ready = poll(&one, 1, 60'000)) < 0 && errno == EINTR) {
    }
    return ready == 1;  // a hang is told before the limit of all tests ends them without a word
  }
  std::string last_;
  int ends_[2] = {-1, -1};
};

// How a command ended, in words.
inline std::string of(const CommandEnd& end) { return std::string(error_row(end.error.kind).name) + ": " + end.error.message; }

// A member of an event, as it stands in the line.
inline std::string member(const std::string& line, const std::string& name) {
  const size_t at = line.find("\"" + name + "\":");
  if (at == std::string::npos) return "";
  const size_t value = at + name.size() + 3;
  if (line[value] != '"') return line.substr(value, line.find_first_of(",}", value) - value);
  return line.substr(value + 1, line.find('"', value + 1) - value - 1);
}

// A command that runs until it ends by itself or by a signal. As it speaks while it runs, what it is asked to say is made first.
class Running {
 public:
  using Body = std::function<CommandEnd(const Process&)>;
  explicit Running(Body body, Config config = {}, bool json = true, unsigned verbose = 0, bool quiet = false)
      : said(json, verbose, quiet), config_(std::move(config)) {
    sigset_t ours, before;
    sigemptyset(&ours);
    for (const int number : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) sigaddset(&ours, number);
    pthread_sigmask(SIG_BLOCK, &ours, &before);  // the thread has it from its first instruction
    thread_ = std::thread([this, body = std::move(body)] {
      TurnLoop loop;
      said.reporter->set_now(loop.now());
      end_ = body(Process{loop, *said.reporter, counters, config_});
      said.end();
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Running() {
    if (!thread_.joinable()) return;
    signal(SIGTERM);
    thread_.join();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void signal(int number) { pthread_kill(thread_.native_handle(), number); }
  const CommandEnd& wait() {
    if (thread_.joinable()) thread_.join();
    return end_;
  }
  const CommandEnd& stop(int number = SIGTERM) {
    signal(number);
    return wait();
  }
  // The first of its addresses, once it is ready.
  std::string uri() {
    const std::string line = said.await("ready");
    const size_t at = line.find("[\"") + 2;
    return line.substr(at, line.find('"', at) - at);
  }

  Said said;
  Counters counters;

 private:
  const Config config_;
  CommandEnd end_;
  std::thread thread_;
};

// One that ends by itself.
struct Ran {
  explicit Ran(const Running::Body& body, Config config = {}, bool json = true) : running(body, std::move(config), json) {
    end = running.wait();
  }
  Running running;
  CommandEnd end;
};

// What is written to standard output meanwhile.
class Output {
 public:
  Output() : before_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) { REQUIRE(dup2(file.fd(), STDOUT_FILENO) == STDOUT_FILENO); }
  ~Output() { restore(); }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Words take() {
    restore();
    return file.lines();
  }
  Written file;

 private:
  void restore() {
    if (before_ < 0) return;
    dup2(before_, STDOUT_FILENO);
    close(std::exchange(before_, -1));
  }
  int before_;
};

// What is read from standard input meanwhile; a descriptor below 0: it is closed.
class Input {
 public:
  explicit Input(int fd) : before_(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (fd >= 0) {
      dup2(fd, STDIN_FILENO);
    } else {
      close(STDIN_FILENO);
    }
  }
  ~Input() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

 private:
  int before_;
};

inline Running::Body receiving(const ReceiveCommand& command) {
  return [command](const Process& process) { return run_receive(process, command); };
}
inline Running::Body sending(const SendCommand& command) {
  return [command](const Process& process) { return run_send(process, command); };
}

// What is dialled and interrupted may be in the disk: it then gives up what it made, as its process ends without.
inline Running::Body interrupted(const Running::Body& body) {
  return [body](const Process& process) {
#ifdef __SANITIZE_ADDRESS__
    const __lsan::ScopedDisabler not_a_leak;
#endif
    return body(process);
  };
}

inline CommonOptions insecure() {
  CommonOptions options;
  options.insecure = true;
  return options;
}
inline ListenOptions listening(bool once = false) {
  ListenOptions options;
  options.listen = "127.0.0.1:0";
  options.once = once;
  return options;
}
inline ReceiveCommand receiver(const std::string& root, bool once = false) {
  ReceiveCommand command;
  command.common = insecure();
  command.listen = listening(once);
  command.root = root;
  return command;
}
inline SendCommand server(const std::string& directory, bool once = false) {
  SendCommand command;
  command.common = insecure();
  command.listen = listening(once);
  command.serve = directory;
  return command;
}
inline SendCommand send_of(std::vector<std::string> sources, const std::string& destination) {
  SendCommand command;
  command.common = insecure();
  command.sources = std::move(sources);
  command.destination = destination;
  command.transfer.timeout = std::chrono::seconds(20);
  return command;
}
inline ReceiveCommand pull_of(std::vector<std::string> uris, const std::string& directory) {
  ReceiveCommand command;
  command.common = insecure();
  command.uris = std::move(uris);
  command.directory = directory;
  command.transfer.timeout = std::chrono::seconds(20);
  return command;
}

}  // namespace ccixfer::program::test

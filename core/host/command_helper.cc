#include "core/host/command_helper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

namespace ccixfer::host {
namespace {

constexpr int socket_of_helper = 3;
constexpr useconds_t look_first_us = 500, look_longest_us = 50'000;
constexpr int not_run = -1;

// Everything below runs in the helper or in the command's process: it makes system calls only, and ends by _exit.

void close_from(unsigned first) {
  if (::close_range(first, ~0u, 0) == 0) return;
  for (int fd = static_cast<int>(first); fd < 1024; ++fd) ::close(fd);
}

[[noreturn]] void become_command(const char* command, int input) {
  ::setpgid(0, 0);
  // What the helper ignores, and what the program that started it does: ignored signals stay so in whatever is run.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1, SIGXFSZ, SIGCHLD}) ::signal(number, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  close_from(STDERR_FILENO + 1);
  ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  ::_exit(127);
}

void write_all(int fd, const char* text, size_t bytes) {
  while (bytes > 0) {
    const ssize_t wrote = ::write(fd, text, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // a command that does not read all of it
    text += wrote;
    bytes -= static_cast<size_t>(wrote);
  }
}

int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

int wait_for(pid_t child) {
  const int64_t until = now_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(CommandHelper::command_time_max).count();
  int status = 0;
  for (useconds_t pause_us = look_first_us;; pause_us = std::min(2 * pause_us, look_longest_us)) {
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR) return not_run;
    if (now_ms() >= until) break;
    ::usleep(pause_us);
  }
  ::kill(-child, SIGKILL);
  ::waitpid(child, &status, 0);
  return not_run;
}

int run_command(const char* command, const char* text, size_t bytes) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return not_run;
  const pid_t child = ::fork();
  if (child == 0) become_command(command, ends[0]);
  ::close(ends[0]);
  if (child > 0) {
    ::setpgid(child, child);  // here too: whoever comes first
    // The pipe takes what fits without waiting for a command that reads nothing; the text is no longer than that.
    ::fcntl(ends[1], F_SETPIPE_SZ, static_cast<int>(CommandHelper::text_bytes_max));
    write_all(ends[1], text, bytes);
  }
  ::close(ends[1]);
  return child < 0 ? not_run : wait_for(child);
}

// Those of the program, which may end, or be killed, while a command runs: whoever reads its output waits for the end of that, and
// its input is for whoever reads it next.
bool leave_input_and_output() {
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const bool left = nothing >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(nothing, STDOUT_FILENO) >= 0;
  if (nothing > STDERR_FILENO) ::close(nothing);
  return left;
}

[[noreturn]] void help(const char* command, int socket, char* buffer) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1}) ::signal(number, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (socket != socket_of_helper && ::dup2(socket, socket_of_helper) < 0) ::_exit(1);
  close_from(socket_of_helper + 1);
  if (!leave_input_and_output()) ::_exit(1);
  while (true) {
    const ssize_t got = ::recv(socket_of_helper, buffer, CommandHelper::text_bytes_max, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) ::_exit(0);
    const int status = run_command(command, buffer, static_cast<size_t>(got));
    static_cast<void>(::send(socket_of_helper, &status, sizeof status, MSG_NOSIGNAL));
  }
}

}  // namespace

Result<std::unique_ptr<CommandHelper>> CommandHelper::start(const std::string& command) {
  const auto cannot = [] {
    return fail(ErrorKind::file_io, fmt::format("cannot start the helper that runs commands: {}", std::strerror(errno)));
  };
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return cannot();
  Descriptor ours(ends[0]), helpers(ends[1]);
  std::vector<char> buffer(text_bytes_max);
  const pid_t helper = ::fork();
  if (helper < 0) return cannot();
  if (helper == 0) help(command.c_str(), helpers.get(), buffer.data());
  const int flags = ::fcntl(ours.get(), F_GETFL);
  if (flags < 0 || ::fcntl(ours.get(), F_SETFL, flags | O_NONBLOCK) != 0) return cannot();
  return std::unique_ptr<CommandHelper>(new CommandHelper(std::move(ours)));
}

// The helper runs what it was asked for, and ends. Nobody waits for it: it is init's when this process has ended.
CommandHelper::~CommandHelper() = default;

bool CommandHelper::run(const std::string& text) {
  if (has_gone_ || text.size() > text_bytes_max || running() >= waiting_max) return false;
  waiting_.push_back(text);
  send_waiting();
  return !has_gone_;
}

// A socket whose other end is closed is readable for ever: whoever waits for it would wait no more.
void CommandHelper::is_gone() {
  has_gone_ = true;
  socket_.reset();
}

void CommandHelper::send_waiting() {
  while (!waiting_.empty() && !has_gone_) {
    const std::string& text = waiting_.front();
    const ssize_t sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return;
    if (sent < 0) return is_gone();
    ++running_;
    waiting_.pop_front();
  }
}

std::vector<int> CommandHelper::ended() {
  std::vector<int> statuses;
  while (!has_gone_) {
    int status = 0;
    const ssize_t got = ::recv(socket_.get(), &status, sizeof status, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got != static_cast<ssize_t>(sizeof status)) {
      is_gone();
      break;
    }
    if (running_ > 0) --running_;
    statuses.push_back(status);
  }
  send_waiting();
  return statuses;
}

void CommandHelper::wait(Duration patience) const {
  if (has_gone_) return;
  pollfd readable{socket_.get(), POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(patience).count();
  static_cast<void>(::poll(&readable, 1, static_cast<int>(std::max<int64_t>(ms, 0))));
}

}  // namespace ccixfer::host

#include "core/host/service_manager.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "core/base/units.h"
#include "core/host/number_of.h"

namespace ccixfer::host {
namespace {

std::string line_of(const std::string& status) {
  std::string line = printable(status);
  if (line.size() <= ServiceManager::status_bytes_max) return line;
  size_t end = ServiceManager::status_bytes_max;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xc0u) == 0x80) --end;  // a character is left out whole
  return line.substr(0, end);
}

}  // namespace

Duration watchdog_of(const char* microseconds, const char* of_process, pid_t self) {
  if (microseconds == nullptr) return forever;
  if (of_process != nullptr && number_of<pid_t>(of_process) != self) return forever;  // it is our parent's
  const auto count = number_of<uint64_t>(microseconds);
  constexpr uint64_t longest = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(forever).count());
  if (!count || *count == 0 || *count >= longest) return forever;
  return std::chrono::microseconds(static_cast<int64_t>(*count));
}

Result<ServiceManager> ServiceManager::connect(const std::string& socket, Duration watchdog) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  const bool is_abstract = socket.starts_with('@');
  if ((!is_abstract && !socket.starts_with('/')) || socket.size() < 2 || socket.size() >= sizeof to.sun_path)
    return fail(ErrorKind::usage, fmt::format("no socket of a service manager: NOTIFY_SOCKET={}", printable(socket)));
  std::memcpy(to.sun_path, socket.data(), socket.size());
  if (is_abstract) to.sun_path[0] = '\0';
  // An abstract name has no end but the length; a path may have its zero.
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size() + (is_abstract ? 0 : 1));
  ServiceManager manager;
  manager.socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!manager.socket_ || ::connect(manager.socket_.get(), reinterpret_cast<const sockaddr*>(&to), size) != 0)
    return fail(ErrorKind::network,
                fmt::format("cannot tell the service manager: NOTIFY_SOCKET={}: {}", printable(socket), std::strerror(errno)));
  if (watchdog != forever) {
    manager.sign_interval_ = watchdog / 2;
    manager.sign_at_ = manager.due_ = Instant{};
  }
  return manager;
}

Result<ServiceManager> ServiceManager::of_environment() {
  const char* socket = std::getenv("NOTIFY_SOCKET");
  const std::string name = socket == nullptr ? "" : socket;
  const Duration watchdog = watchdog_of(std::getenv("WATCHDOG_USEC"), std::getenv("WATCHDOG_PID"), ::getpid());
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(variable);
  if (name.empty()) return ServiceManager();
  return connect(name, watchdog);
}

void ServiceManager::ready(const std::string& status) {
  if (!socket_ || state_ == State::stopping) return;
  state_ = State::ready;
  told_ = wanted_ = line_of(status);
  tell("READY=1\nSTATUS=" + told_);
}

void ServiceManager::reloading(Instant now) {
  if (!socket_ || state_ != State::ready) return;
  const auto at = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  tell(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", at.count()));
}

void ServiceManager::stopping(const std::string& status) {
  if (!socket_ || state_ == State::stopping) return;
  state_ = State::stopping;
  told_ = wanted_ = line_of(status);
  tell("STOPPING=1\nSTATUS=" + told_);
}

void ServiceManager::status(const std::string& line) {
  if (!socket_ || state_ != State::ready) return;
  wanted_ = line_of(line);
  if (wanted_ != told_) due_ = std::min(due_, status_at_);
}

void ServiceManager::tell(std::string datagram) {
  if (waiting_.size() == waiting_max) waiting_.pop_front();
  waiting_.push_back(std::move(datagram));
  send_waiting();
  if (!waiting_.empty()) due_ = Instant{};
}

void ServiceManager::send_waiting() {
  while (!waiting_.empty()) {
    const std::string& datagram = waiting_.front();
    const ssize_t sent = ::send(socket_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) return;
    waiting_.pop_front();  // sent, or there is nobody who would take it
  }
}

void ServiceManager::turn_due(Instant now) {
  send_waiting();
  if (waiting_.empty() && wanted_ != told_ && now >= status_at_) {
    told_ = wanted_;
    status_at_ = after(now, status_interval);
    tell("STATUS=" + told_);
  }
  // At most one waits: a sign of life says that the loop turns now.
  if (waiting_.empty() && now >= sign_at_) {
    sign_at_ = after(now, sign_interval_);
    if (well_) tell("WATCHDOG=1");
  }
  find_due(now);
}

void ServiceManager::find_due(Instant now) {
  due_ = never;
  if (!waiting_.empty()) {
    due_ = after(now, retry_interval);
    return;
  }
  due_ = sign_at_;
  if (wanted_ != told_) due_ = std::min(due_, status_at_);
}

}  // namespace ccixfer::host

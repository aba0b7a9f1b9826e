// What a service tells the service manager that started it (systemd): that it is ready, reads its configuration again or stops, one
// line on what it does, and a sign of life that its own loop gives. A service that hangs gives none, and is started again.
// In: the calls, and turn() with the time. Out: datagrams of NAME=VALUE lines to $NOTIFY_SOCKET. Never blocks: what the manager has
// no room for is sent in a later turn, in order. Errors: connect: network (there is no such socket), usage (one of another kind).
// Bounds: waiting_max datagrams wait, of which the oldest goes first, status_bytes_max. Thread: one.
// Source: sd_notify(3). Deviation: not its library, as there is little to it and the process also meets strangers; the socket is
// connected once, before the process is confined.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <deque>
#include <string>

#include "core/base/result.h"
#include "core/base/time.h"
#include "core/host/descriptor.h"

namespace ccixfer::host {

class ServiceManager {
 public:
  static constexpr size_t waiting_max = 16;
  static constexpr size_t status_bytes_max = 256;
  static constexpr Duration status_interval = std::chrono::seconds(1);
  static constexpr Duration retry_interval = std::chrono::milliseconds(100);

  ServiceManager() = default;  // there is none: all calls do nothing
  // `socket`: a path, or with @ in front an abstract name. `watchdog`: for how long the manager waits for a sign of life; forever:
  // it does not.
  [[nodiscard]] static Result<ServiceManager> connect(const std::string& socket, Duration watchdog);
  // From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID, which go: no program that this one starts speaks for it.
  [[nodiscard]] static Result<ServiceManager> of_environment();

  // Each with its status line; what is not text in it is escaped. A service may be ready again after reloading(), with what it has.
  void ready(const std::string& status);
  void reloading(Instant now);               // SIGHUP came; now: of CLOCK_MONOTONIC, as SystemClock's
  void stopping(const std::string& status);  // the first time counts
  // Sent when it differs, at most once in status_interval, and only from ready() to stopping().
  void status(const std::string& line);

  // Whether signs of life are given; a process whose other threads hang is not well, although its loop turns.
  void set_well(bool well) { well_ = well; }

  void turn(Instant now) {
    if (now >= due_) turn_due(now);
  }
  [[nodiscard]] Instant next_deadline() const { return due_; }
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(socket_); }  // there is one

 private:
  enum class State : uint8_t { starting, ready, stopping };
  void turn_due(Instant now);
  void tell(std::string datagram);
  void send_waiting();
  void find_due(Instant now);

  Descriptor socket_;
  std::deque<std::string> waiting_;
  State state_ = State::starting;
  std::string told_, wanted_;  // status lines
  Instant status_at_{};        // the next one at the earliest
  bool well_ = true;
  Duration sign_interval_ = forever;
  Instant sign_at_ = never;
  Instant due_ = never;
};

// What WATCHDOG_USEC and WATCHDOG_PID say to process `self`; forever: nothing. nullptr: not set.
[[nodiscard]] Duration watchdog_of(const char* microseconds, const char* of_process, pid_t self);

}  // namespace ccixfer::host

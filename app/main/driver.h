// The one loop of a process: waits until a descriptor is readable, a signal came or a deadline passed, reads the clock once, and
// turns its handler. Signals SIGINT, SIGTERM and SIGUSR1 arrive as turns (signalfd); SIGPIPE is ignored. A second SIGINT or SIGTERM
// ends the process at once with the exit code of an interruption. One object a process, made before any thread is (threads inherit
// the signal mask).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/base/time.h"
#include "core/cci/endpoint.h"

namespace ccixfer::program {

class LoopHandler {
 public:
  virtual ~LoopHandler() = default;
  virtual bool turn(Instant now) = 0;  // false: the loop ends
  [[nodiscard]] virtual Instant next_deadline() const = 0;
  [[nodiscard]] virtual bool spins() const { return false; }   // do not wait: turn again at once
  virtual void on_signal(int signal_number, Instant now) = 0;  // before the turn of the same instant
};

class Driver {
 public:
  Driver();
  ~Driver();
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  [[nodiscard]] Instant now() const;
  void watch(int fd);                   // level-triggered, readable; it stays open as long as the driver
  void watch(cci::Endpoint& endpoint);  // one at most; it lives as long as anything runs
  void take_hangups();                  // SIGHUP arrives as a turn too; without this it ends the process
  void run(LoopHandler& handler);
  void at_abrupt_end(std::function<void()> action);  // before a second signal ends the process; empty: nothing
  void release_signals();                            // at the end: whoever waits for our last output may be interrupted again

 private:
  [[nodiscard]] bool wait(const LoopHandler& handler);
  void take_signals(LoopHandler& handler);
  std::function<void()> at_abrupt_end_;
  bool interrupted_ = false;
  cci::Endpoint* endpoint_ = nullptr;  // which does the waiting, if it can
  uint32_t spins_ = 0;
  int epoll_ = -1;
  int signals_ = -1;
};

}  // namespace ccixfer::program

// The one loop of a process: waits in its waker (core/host/waker.h), which the networks of its endpoints share, until one of them
// has something to do, a descriptor is readable, a signal came or a deadline passed; reads the clock once, and turns its handler.
// Signals SIGINT, SIGTERM, SIGHUP and SIGUSR1 arrive as turns (signalfd); SIGPIPE is ignored, and SIGHUP where the process was
// started so. A second SIGINT or SIGTERM ends the process at once with the exit code of an interruption. Of a job's transfer
// (job.h) one that its parent passes on and the same one that came by itself, in whatever order, are one: whoever signals a group
// of processes or a whole service signals both. So are two that one process sends at once (repeated_signals.h). The service
// manager, if there is one, gets a sign of life after a turn: a handler that does not come back from its turn gives none. One
// object a process, made before any thread is (threads inherit the signal mask).
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "app/main/repeated_signals.h"
#include "core/base/time.h"
#include "core/host/service_manager.h"
#include "core/host/waker.h"

namespace ccixfer::program {

inline constexpr int passed_on_mark = 0x63636a6f;  // sigqueue(3)'s value of a signal that a job's parent passes on

// From now on a write that nobody can take is an error of that write, and ends no process.
void let_writes_fail();

// nohup(1) and its like, for SIGHUP: the process is to outlive its terminal. A signal that is blocked would come in spite of that.
[[nodiscard]] bool is_ignored(int signal_number);

class LoopHandler {
 public:
  virtual ~LoopHandler() = default;
  virtual bool turn(Instant now) = 0;  // false: the loop ends
  [[nodiscard]] virtual Instant next_deadline() const = 0;
  [[nodiscard]] virtual bool spins() const { return false; }   // do not wait: turn again at once
  virtual void on_signal(int signal_number, Instant now) = 0;  // before the turn of the same instant
  // The next turn is later by seconds than it had to be: the process was stopped (Ctrl-Z), its machine was paused, or it stood in a
  // call for so long. That time says nothing of anybody else.
  virtual void stood_still() {}
};

class TurnLoop {
 public:
  TurnLoop();
  ~TurnLoop();
  TurnLoop(const TurnLoop&) = delete;
  TurnLoop& operator=(const TurnLoop&) = delete;
  // What the system did not give at the start: nothing else may be asked of the loop then. file_io
  [[nodiscard]] const std::optional<Error>& problem() const { return problem_; }
  [[nodiscard]] Instant now() const;
  // For the networks whose endpoints a handler turns.
  [[nodiscard]] const std::shared_ptr<host::Waker>& waker() const { return waker_; }
  void watch(int fd);   // level-triggered, readable; until it is closed
  void take_hangups();  // SIGHUP is no end, and comes also where the process was started to ignore it
  void run(LoopHandler& handler);
  void at_abrupt_end(std::function<void()> action);  // before a second signal ends the process; empty: nothing
  // Whom services tell that they are ready and so on; by itself there is nobody.
  void take_service_manager(host::ServiceManager manager) { service_manager_ = std::move(manager); }
  [[nodiscard]] host::ServiceManager& service_manager() { return service_manager_; }
  [[nodiscard]] bool is_interrupted() const { return interrupted_; }  // SIGINT or SIGTERM was taken. From any thread
  // After the last run: how often SIGINT or SIGTERM has come, those that wait now included: 0, 1, or 2 and more. A second one ends
  // nothing from here on: who asks does.
  [[nodiscard]] unsigned times_told_to_end();
  // At the end: whoever waits for our last output may be interrupted again. What came before ends nothing any more.
  void release_signals();
  // Of commands that do not run the loop, and look at this in their own: SIGINT, SIGTERM or an ending SIGHUP came, and
  // waits. From any thread.
  [[nodiscard]] static bool is_told_to_end();

 private:
  [[nodiscard]] bool wait(const LoopHandler& handler, Instant& due);
  [[nodiscard]] bool take_ready();
  void take_signals(LoopHandler& handler);
  // How often each signal came, as its parent passed it on and by itself.
  struct Came {
    unsigned passed_on = 0, directly = 0;
  };
  std::map<int, Came> came_;
  RepeatedSignals repeated_;
  std::function<void()> at_abrupt_end_;
  std::atomic<bool> interrupted_ = false;
  bool only_counts_ = false;
  bool told_again_ = false;
  // As SIGTERM, unless it is taken for a word of the administrator's, or the process ignores it.
  bool hangups_end_;
  static inline std::atomic<bool> last_hangups_end_ =
      false;  // of the loop made last: is_told_to_end() is asked where none is at hand
  host::ServiceManager service_manager_;
  std::optional<Error> problem_;
  std::shared_ptr<host::Waker> waker_;
  std::optional<host::WatchList> watched_;
  host::Descriptor signals_;
};

}  // namespace ccixfer::program

// A DialledTransfer over the fake net, with a role that does what the test says, and a peer that answers by the test's hand.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/main/dialled.h"
#include "core/host/file_system.h"
#include "core/host/work_pool.h"
#include "tests/unit/main/desk.h"
#include "tests/unit/session/link_fixture.h"

namespace ccixfer::program::test {

// What the role of a session is like, now and in sessions to come; and what was done to those that there were.
struct Script {
  bool finished = false;
  bool may_leave = false;
  std::optional<Error> error;
  bool idle = true;
  bool in_use = false;
  bool repeatable = true;
  bool takes_completions = false;
  std::string stuck_disk;
  Tally tally;
  Instant last_progress = Instant::min();
  Instant next_deadline = never;

  int made = 0, started = 0, living = 0;
  int turns = 0;
  std::vector<Error> aborted;
  std::vector<std::string> lanes;
  std::vector<Error> lost;
  std::vector<bool> tries_changed_again;
  bool has_listed = true;
  session::FirstEntries first;
  size_t room_for_first = 0;  // that the last one was given
  int listed_ahead = 0;
};

class ScriptedRole final : public TransferRole, public session::LinkHandler {
 public:
  explicit ScriptedRole(Script& script) : script_(script) {
    ++script_.made;
    ++script_.living;
  }
  ~ScriptedRole() override { --script_.living; }
  ScriptedRole(const ScriptedRole&) = delete;
  ScriptedRole& operator=(const ScriptedRole&) = delete;

  session::LinkHandler& handler() override { return *this; }
  void list_ahead() override { ++script_.listed_ahead; }
  bool has_listed_ahead() const override { return script_.has_listed; }
  session::FirstEntries first_entries(size_t bytes_max) override {
    script_.room_for_first = bytes_max;
    return script_.first;
  }
  void start(Instant) override { ++script_.started; }
  void turn(Instant) override { ++script_.turns; }
  Instant next_deadline() const override { return script_.next_deadline; }
  bool finished() const override { return script_.finished; }
  bool may_leave() const override { return script_.finished || script_.may_leave; }
  bool idle() const override { return script_.idle; }
  bool in_use() const override { return script_.in_use; }
  const Error* error() const override { return script_.error ? &*script_.error : nullptr; }
  Tally tally() const override { return script_.tally; }
  Instant last_progress() const override { return script_.last_progress; }
  bool repeatable() const override { return script_.repeatable; }
  std::string stuck_disk() const override { return script_.stuck_disk; }
  void abort(const Error& error) override { script_.aborted.push_back(error); }
  bool take_completion(const rvma::Completion&) override { return script_.takes_completions; }

  void on_lane_up(session::LaneIndex lane) override { script_.lanes.push_back("up " + std::to_string(lane)); }
  void on_lane_down(session::LaneIndex lane) override { script_.lanes.push_back("down " + std::to_string(lane)); }
  void on_lane_message(session::LaneIndex, const session::Message&) override {}
  void on_message(const session::Message&) override {}
  void on_put(session::LaneIndex, uint64_t, Status) override {}
  void on_link_lost(const Error& error) override { script_.lost.push_back(error); }

 private:
  Script& script_;
};

struct DialledRig {
  static constexpr uint64_t session = 77;

  explicit DialledRig(const std::function<void(DialPlan&)>& change = {})
      : near(net, "", 1),
        far(std::make_unique<session::fake::Side>(net, "fake://far", 2)),
        acceptor(std::make_unique<session::fake::Acceptor>(*far)),
        desk(began),
        work(files, 1),
        pool(4096, 4),
        services{*near.endpoint, files, work, pool, {}, near.entropy, near.counters, *desk.reporter} {
    acceptor->sessions = session - 1;  // the next one's number
    DialPlan plan;
    plan.uri = "fake://far";
    plan.hello.transfer[0] = 9;
    plan.open = {5, "some/path"};
    plan.lanes = 1;
    plan.timeout = std::chrono::seconds(20);
    plan.make_role = [this](session::Link& link, const RoleWish& wish) {
      script.tries_changed_again.push_back(wish.tries_changed_again);
      near_link = &link;
      return std::make_unique<ScriptedRole>(script);
    };
    if (change) change(plan);
    transfer = std::make_unique<DialledTransfer>(services, *near.hub, std::move(plan), now);
  }
  ~DialledRig() {
    transfer.reset();
    acceptor.reset();
  }

  // What the test changed is noticed at once: without `jump` the clock goes on by a little only.
  void turn(bool jump = false) {
    Instant next = std::min(near.hub->next_deadline(), transfer->next_deadline());
    if (!far_hangs) next = std::min(next, far->hub->next_deadline());
    const Instant soon = now + std::chrono::microseconds(10);
    now = jump && next != never ? std::max(soon, std::min(next, horizon))
          : jump                ? std::min(horizon, soon + std::chrono::hours(1))
                                : soon;
    desk.reporter->set_now(now);
    near.hub->turn(now);
    transfer->turn(now);
    if (far_hangs) return;
    far->hub->turn(now);
    if (opens && acceptor->link != nullptr && opened_by != acceptor->sessions && peer_asked()) open();
  }
  bool run(const std::function<bool()>& what, size_t turns = 20000) {
    for (size_t i = 0; i < turns; ++i) {
      if (what()) return true;
      turn(i > 0);
    }
    return what();
  }
  // Until the clock shows it.
  void run_to(Instant until) {
    const Instant before = std::exchange(horizon, until);
    run([&] { return now >= until; });
    horizon = before;
  }
  bool run_to_the_end() {
    return run([&] { return transfer->ended(); });
  }
  // The peer takes the session.
  void open(uint32_t lanes_max = 8) {
    opened_by = acceptor->sessions;
    acceptor->link->post(session::Opened{acceptor->sessions, lanes_max, takes_first});
  }
  bool run_until_moving() {
    return run([&] { return transfer->moving(); });
  }
  void post(const session::Message& message) const { acceptor->link->post(message); }
  // What came of Open.
  [[nodiscard]] bool peer_asked() const {
    for (const session::Message& message : acceptor->user.others) {
      if (std::holds_alternative<session::OpenPart>(message)) return true;
    }
    return false;
  }
  // The Aborts that the peer got.
  [[nodiscard]] std::vector<session::Abort> aborts() const {
    std::vector<session::Abort> found;
    for (const session::Message& message : acceptor->user.others) {
      if (const auto* abort = std::get_if<session::Abort>(&message)) found.push_back(*abort);
    }
    return found;
  }
  [[nodiscard]] std::vector<std::string> retries() const { return desk.told("retry", "reason"); }
  [[nodiscard]] Duration passed() const { return now - began; }

  session::fake::Net net;
  const Instant began{std::chrono::hours(5)};
  Instant now = began;
  Instant horizon = never;  // no turn is later
  bool opens = true;        // the peer answers Open by itself
  bool far_hangs = false;
  bool takes_first = false;  // the peer takes first entries, if there are any
  uint64_t opened_by = 0;
  session::fake::Side near;
  std::unique_ptr<session::fake::Side> far;
  std::unique_ptr<session::fake::Acceptor> acceptor;
  Desk desk;
  host::PosixFileSystem files;
  host::ThreadWorkPool work;
  memory::Pool pool;
  SessionServices services;
  Script script;
  session::Link* near_link = nullptr;
  std::unique_ptr<DialledTransfer> transfer;
};

}  // namespace ccixfer::program::test

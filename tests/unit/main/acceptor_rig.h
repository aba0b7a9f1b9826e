// An Acceptor with a real root over the fake net, and guests who dial it and say what the test says.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/main/acceptor.h"
#include "app/recv/destination.h"
#include "app/recv/root.h"
#include "tests/unit/main/desk.h"
#include "tests/unit/recv/destination_fixture.h"

namespace ccixfer::program::test {

inline session::SealSetup new_key() {
  return {trust::Identity::generate().value(), std::nullopt, [] { return int64_t{1'800'000'000}; }};
}

// Who dials: a session whose files are the test's.
class Guest final : public session::LinkHandler {
 public:
  // `key`: sealed, and this is the key that it proves.
  Guest(session::fake::Net& net, uint8_t transfer, session::Direction direction, uint64_t seed,
        const std::optional<session::SealSetup>& key = std::nullopt)
      : side(net, "", seed), source(side) {
    session::Hello hello;
    hello.transfer[0] = transfer;
    hello.direction = direction;
    hello.sealed = key.has_value();
    link = std::make_unique<session::Link>(*side.endpoint, hello, *this);
    if (key) {
      id = key->identity.id();
      link->secure(*key);
    }
    source.link = link.get();
    side.hub->add_link(link.get());
    dialler = std::make_unique<session::Dialler>(*side.endpoint, *link, "fake://far", seed);
    dialler->set_lanes(1);
    side.hub->add_dialler(dialler.get());
  }
  ~Guest() override {
    side.hub->remove_dialler(dialler.get());
    dialler.reset();
    link.reset();
  }
  Guest(const Guest&) = delete;
  Guest& operator=(const Guest&) = delete;

  void open(const session::Open& open) const {
    for (const session::Message& part : session::cut(open)) link->post(part);
  }
  template <typename T>
  [[nodiscard]] std::vector<T> all() const {
    std::vector<T> found;
    for (const session::Message& message : messages) {
      if (const auto* one = std::get_if<T>(&message)) found.push_back(*one);
    }
    return found;
  }
  template <typename T>
  [[nodiscard]] bool got() const {
    return !all<T>().empty();
  }
  [[nodiscard]] std::vector<uint32_t> places() const {
    std::vector<uint32_t> found;
    for (const session::Queued& queued : all<session::Queued>()) found.push_back(queued.before);
    return found;
  }

  void on_lane_up(session::LaneIndex lane) override { source.on_lane_up(lane); }
  void on_lane_down(session::LaneIndex lane) override { source.on_lane_down(lane); }
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override {
    if (const auto* credit = std::get_if<session::Credit>(&message)) {
      if (credit->limit <= std::exchange(limits_[lane], credit->limit)) return;  // what changed is whether it is to ask
    }
    source.on_lane_message(lane, message);
  }
  void on_message(const session::Message& message) override {
    messages.push_back(message);
    if (const auto* opened = std::get_if<session::Opened>(&message)) link->set_session(opened->session);
    source.on_message(message);
  }
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override { source.on_put(lane, context, status); }
  void on_link_lost(const Error& error) override { source.on_link_lost(error); }

  session::fake::Side side;
  recv::test::ScriptedSource source;
  std::unique_ptr<session::Link> link;
  std::unique_ptr<session::Dialler> dialler;
  std::vector<session::Message> messages;
  std::optional<trust::PeerId> id;  // sealed
  bool is_gone = false;             // its node has lost its power: what it has sent still arrives

 private:
  std::map<session::LaneIndex, uint64_t> limits_;
};

struct AcceptorRig {
  explicit AcceptorRig(const std::function<void(AcceptorOptions&)>& change = {}, bool json = true)
      : far(net, "fake://far", 2),
        desk(began, json),
        work(files),
        pool(session::segment_bytes_max, 16),
        region(far.memory->register_region(pool.memory(), 0)),
        services{*far.endpoint, files, work, pool, region, far.entropy, far.counters, *desk.reporter},
        root(recv::Root::open(files, directory.path()).value()) {
    AcceptorOptions options;
    options.root = root.get();
    if (change) change(options);
    acceptor = std::make_unique<Acceptor>(services, *far.hub, options);
  }
  ~AcceptorRig() {
    work.held = false;
    acceptor->stop({ErrorKind::interrupted, "the test is over"}, now);
    guests.clear();
    run([&] { return acceptor->idle(); });
    acceptor.reset();
    root.reset();
    static_cast<void>(far.memory->deregister_region(region));
  }

  Guest& dial(uint8_t transfer, session::Direction direction = session::Direction::push) {
    guests.push_back(std::make_unique<Guest>(net, transfer, direction, 100 + ++dialled));
    return *guests.back();
  }
  // With a lane, and its Open said.
  Guest& arrive(uint8_t transfer, const session::Open& open = {session::option_recursive, ""}) {
    Guest& guest = dial(transfer);
    REQUIRE(run([&] { return !guest.link->live_lanes().empty(); }));
    guest.open(open);
    return guest;
  }
  Guest& arrive_and_run(uint8_t transfer, const session::Open& open = {session::option_recursive, ""}) {
    Guest& guest = arrive(transfer, open);
    REQUIRE(run([&] { return guest.got<session::Opened>(); }));
    return guest;
  }
  // To its summary and the goodbye; so many entries could not be listed, of which the counts tell.
  void finish(Guest& guest, uint64_t failed = 0) {
    guest.link->post(session::End{0, failed, 0});
    REQUIRE(run([&] { return guest.got<session::Summary>(); }));
    guest.link->post(session::Bye{});
    const size_t before = acceptor->sessions();
    REQUIRE(run([&] { return acceptor->sessions() < before; }));
  }
  void leave(const Guest& guest) {
    for (auto at = guests.begin(); at != guests.end(); ++at) {
      if (at->get() == &guest) {
        guests.erase(at);
        return;
      }
    }
  }

  void turn(bool jump = false) {
    Instant next = std::min({far.hub->next_deadline(), acceptor->next_deadline(), horizon});
    for (const auto& guest : guests) next = std::min(next, guest->is_gone ? never : guest->side.hub->next_deadline());
    const Instant soon = now + std::chrono::microseconds(10);
    now = !jump ? soon : next == never ? soon + std::chrono::hours(1) : std::max(soon, next);
    desk.reporter->set_now(now);
    for (const auto& guest : guests) {
      if (!guest->is_gone) guest->side.hub->turn(now);
    }
    far.hub->turn(now);
    work.reap();
    while (const auto completion = far.endpoint->mailboxes().next_completion()) {
      if (!acceptor->take_completion(*completion)) ++stray_completions;
    }
    acceptor->turn(now);
  }
  bool run(const std::function<bool()>& what, size_t turns = 20000) {
    for (size_t i = 0; i < turns; ++i) {
      if (what()) return true;
      turn(i > 0);
    }
    return what();
  }
  void run_for(Duration time) {
    const Instant until = now + time;
    const Instant before = std::exchange(horizon, until);
    run([&] { return now >= until; });
    horizon = before;
  }

  session::fake::Net net;
  const Instant began{std::chrono::hours(5)};
  Instant now = began;
  Instant horizon = never;
  session::fake::Side far;
  Desk desk;
  recv::test::TemporaryDirectory directory;
  recv::test::FaultyFiles files;
  recv::test::InlinePool work;
  memory::Pool pool;
  ports::Handle region;
  SessionServices services;
  std::unique_ptr<recv::Root> root;
  std::unique_ptr<Acceptor> acceptor;
  std::deque<std::unique_ptr<Guest>> guests;
  uint64_t dialled = 0;
  uint64_t stray_completions = 0;
};

}  // namespace ccixfer::program::test

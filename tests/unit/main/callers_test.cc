// Listeners of `recv --root` and `send --serve`, asked by a caller who is in the test's hand: what their options come to at the
// peer.
#include <catch2/catch.hpp>
#include <list>
#include <thread>

#include "app/devices/node.h"
#include "app/main/acceptor.h"
#include "app/session/dialler.h"
#include "app/session/hub.h"
#include "core/host/entropy.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// Endpoint and hub of one who dials, turned in a loop of its own.
class Callers {
 public:
  Callers() : node_(make_node(chosen_device({}, std::nullopt).value(), {}, entropy_, counters_).value()) {
    hub_ = std::make_unique<session::Hub>(*node_.endpoint, counters_);
  }

  class Call final : public session::LinkHandler {
   public:
    Call(Callers& callers, const std::string& uri, session::Direction direction, uint8_t transfer) : callers_(callers) {
      session::Hello hello;
      hello.direction = direction;
      hello.transfer[0] = transfer;
      link_ = std::make_unique<session::Link>(*callers_.node_.endpoint, hello, *this);
      callers_.hub_->add_link(link_.get());
      dialler_ = std::make_unique<session::Dialler>(*callers_.node_.endpoint, *link_, uri, transfer);
      dialler_->set_lanes(1);
      callers_.hub_->add_dialler(dialler_.get());
      for (const session::Message& part : session::cut(session::Open{session::option_recursive, ""})) link_->post(part);
    }
    ~Call() override {
      callers_.hub_->remove_dialler(dialler_.get());
      dialler_.reset();
      callers_.hub_->remove_link(link_.get());
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    void on_lane_up(session::LaneIndex) override {}
    void on_lane_down(session::LaneIndex) override {}
    void on_lane_message(session::LaneIndex, const session::Message&) override {}
    void on_message(const session::Message& message) override {
      if (const auto* one = std::get_if<session::Opened>(&message)) {
        opened = *one;
        link_->set_session(one->session);
      }
      if (const auto* one = std::get_if<session::Queued>(&message)) queued = *one;
    }
    void on_put(session::LaneIndex, uint64_t, Status) override {}
    void on_link_lost(const Error& error) override { FAIL_CHECK(error.message); }
    std::optional<session::Opened> opened;
    std::optional<session::Queued> queued;

   private:
    Callers& callers_;
    std::unique_ptr<session::Link> link_;
    std::unique_ptr<session::Dialler> dialler_;
  };

  template <typename Condition>
  void await(const Condition& condition) {
    const Instant limit = clock_.now() + std::chrono::seconds(60);  // a hang is told
    while (!condition()) {
      REQUIRE(clock_.now() < limit);
      hub_->turn(clock_.now());
      std::this_thread::yield();
    }
  }

 private:
  host::SystemClock clock_;
  host::SystemEntropy entropy_;
  Counters counters_;
  Node node_;
  std::unique_ptr<session::Hub> hub_;
};

// A receiver or a server of this directory, with these options of a listener.
struct Options {
  uint16_t lanes = 0;
  std::optional<uint32_t> sessions;
};
Running::Body listener(bool receives, const std::string& directory, const Options& options) {
  ReceiveCommand receive = receiver(directory);
  SendCommand serve = server(directory);
  receive.transfer.lanes = serve.transfer.lanes = options.lanes;
  receive.listen.sessions = serve.listen.sessions = options.sessions;
  return receives ? receiving(receive) : sending(serve);
}
session::Direction to(bool receives) { return receives ? session::Direction::push : session::Direction::pull; }

}  // namespace

TEST_CASE("callers__lanes__are_told_as_many_as_were_asked_for_or_may_be") {
  for (const bool receives : {true, false}) {
    for (const uint16_t lanes : {uint16_t{0}, uint16_t{3}}) {
      INFO((receives ? "recv --root, " : "send --serve, ") << lanes << " lanes");
      TemporaryDirectory directory;
      Running listening_side(listener(receives, directory.path(), {lanes, std::nullopt}));
      Callers callers;
      const Callers::Call call(callers, listening_side.uri(), to(receives), 1);
      callers.await([&] { return call.opened.has_value(); });
      CHECK(call.opened->lanes_max == (lanes == 0 ? session::lanes_max : lanes));
    }
  }
}

TEST_CASE("callers__sessions__run_as_many_as_were_asked_for_and_the_next_one_waits") {
  for (const bool receives : {true, false}) {
    for (const uint32_t sessions : {1u, 2u}) {
      INFO((receives ? "recv --root, " : "send --serve, ") << sessions << " sessions");
      TemporaryDirectory directory;
      Running listening_side(listener(receives, directory.path(), {0, sessions}));
      const std::string uri = listening_side.uri();
      Callers callers;
      std::list<Callers::Call> calls;
      for (uint32_t i = 1; i <= sessions; ++i) {
        const Callers::Call& call = calls.emplace_back(callers, uri, to(receives), static_cast<uint8_t>(i));
        callers.await([&] { return call.opened.has_value(); });
        CHECK_FALSE(call.queued);
      }
      const Callers::Call late(callers, uri, to(receives), 99);
      callers.await([&] { return late.queued.has_value(); });
      CHECK(late.queued->before == 0);
      CHECK_FALSE(late.opened);
    }
  }
}

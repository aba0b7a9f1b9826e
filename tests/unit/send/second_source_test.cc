// The session of a helper with its second receiver: when nothing moves there, and when it ends.
#include "app/send/second_source.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

using namespace ccixfer;
using namespace ccixfer::send;

namespace {

struct User final : SecondPathUser {
  void on_second_path_news() override { ++news; }
  void tell_first_receiver(const session::Message&) override {}
  void on_not_placed(uint64_t, const std::set<uint64_t>& pieces) override { again += pieces.size(); }
  int news = 0;
  size_t again = 0;
};

struct NoPuts final : send_test::LinkEnd {
  Status on_put(session::LaneIndex, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) override { return Status::busy; }
};

// A link that has no lane yet: what is to be sent waits.
struct Rig {
  Rig() {
    path->attach(&user);
    source.start(now);
    static_cast<void>(path->route_of(7));
    path->on_place({7, 100, {1}, "a.part"});
    source.on_message(session::PlaceState{1, true, ""});
    REQUIRE(path->route_of(7) != nullptr);
  }
  ~Rig() { path->attach(static_cast<SecondPathUser*>(nullptr)); }
  void send(uint64_t piece) {
    FilledSegment segment;
    segment.header.kind = session::SegmentKind::piece;
    segment.header.index = 1;
    segment.header.sequence = piece;
    source.add(std::move(segment));
  }

  const Instant now{std::chrono::hours(1)};
  NoPuts end;
  User user;
  std::shared_ptr<SecondPath> path = std::make_shared<SecondPath>([](const std::string&) {});
  SecondSource source{{end.link(), {}, std::make_shared<RateCap>(0), path, nullptr, std::chrono::seconds(60)}};
};

}  // namespace

TEST_CASE("second_source__nothing_moves__it_is_told_after_a_while_and_again_when_it_moves") {
  Rig rig;
  rig.source.turn(rig.now + std::chrono::minutes(1));  // nothing was to be moved
  CHECK_FALSE(rig.source.load().is_stuck);
  const Instant began = rig.now + std::chrono::minutes(1);
  rig.send(4);
  rig.source.turn(began);
  CHECK(rig.source.next_deadline() == began + second_path_patience);
  rig.source.turn(began + second_path_patience - Duration(1));
  CHECK_FALSE(rig.source.load().is_stuck);
  rig.user.news = 0;
  rig.source.turn(began + second_path_patience);
  CHECK(rig.source.load().is_stuck);
  CHECK(rig.user.news == 1);
  CHECK(rig.path->route_of(7) == nullptr);
  rig.source.on_message(session::Placed{1, 4, {{1, 2}}});
  rig.source.turn(began + second_path_patience);
  CHECK_FALSE(rig.source.load().is_stuck);
  CHECK(rig.user.news == 2);
  CHECK(rig.source.bytes_placed() == session::piece_bytes);
}

TEST_CASE("second_source__silence_while_nothing_is_on_its_way__is_progress_and_else_it_is_not") {
  Rig rig;
  const Instant later = rig.now + std::chrono::minutes(5);
  rig.source.turn(later);
  CHECK(rig.source.last_progress() == later);
  rig.send(4);
  rig.source.turn(later + std::chrono::seconds(1));
  rig.source.turn(later + std::chrono::minutes(1));
  CHECK(rig.source.last_progress() <= later + std::chrono::seconds(1));
}

TEST_CASE("second_source__it_is_lost__its_pieces_are_the_first_receivers_again") {
  Rig rig;
  rig.send(4);
  rig.send(5);
  rig.source.on_link_lost({ErrorKind::network, "gone"});
  rig.source.turn(rig.now);
  CHECK(rig.source.finished());
  CHECK(rig.user.again == 2);
  CHECK(rig.path->route_of(7) == nullptr);
}

TEST_CASE("second_source__what_makes_no_sense__ends_it") {
  Rig rig;
  rig.source.on_message(session::FileEnd{});
  REQUIRE(rig.source.error() != nullptr);
  CHECK(rig.source.error()->kind == ErrorKind::protocol);
}

TEST_CASE("second_source__a_lane_that_moves__keeps_the_session_and_one_that_is_lost_ends_it") {
  Rig rig;
  rig.source.on_lane_up(0);
  rig.source.turn(rig.now);
  rig.source.on_lane_down(0);
  rig.source.on_lane_up(0);
  rig.source.turn(rig.now);
  CHECK(rig.source.error() == nullptr);
  rig.source.on_lane_down(0);
  rig.source.turn(rig.now);
  REQUIRE(rig.source.error() != nullptr);
  CHECK(rig.source.error()->kind == ErrorKind::network);
}

TEST_CASE("second_source__the_transfer_has_ended__it_says_goodbye") {
  Rig rig;
  rig.path->end();
  rig.source.turn(rig.now);
  CHECK(std::holds_alternative<session::Bye>(rig.end.posted.back()));
  CHECK(rig.source.finished());
  CHECK(rig.source.error() == nullptr);
}

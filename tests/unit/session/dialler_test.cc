// Dialler and Hub: who is dialled when, what a refusal means, which hellos are taken, and lanes that replace one another.
#include <catch2/catch.hpp>

#include "app/session/refusal.h"
#include "tests/unit/session/link_fixture.h"

using namespace ccixfer;
using namespace ccixfer::session;
using namespace ccixfer::session::fake;
using namespace std::chrono_literals;

TEST_CASE("dialler__lanes__lane_0_first_and_the_others_once_the_session_has_its_number") {
  World world(4);
  std::vector<size_t> dials_at_first_lane;
  world.user.lane_up = [&](LaneIndex lane) {
    if (lane == 0) dials_at_first_lane.push_back(world.net.dials);
  };
  REQUIRE(world.run_until_up(4));
  CHECK(dials_at_first_lane == std::vector<size_t>{1});
  CHECK(world.net.dials == 4);
  CHECK(world.link->live_lanes() == std::vector<LaneIndex>{0, 1, 2, 3});
}

// The path is long: by the time at which the session has its number the other connections are there, and only ask.
TEST_CASE("dialler__the_first_lane_takes_its_time__the_others_are_dialled_ahead_and_used") {
  World world(4);
  world.net.dials_ahead = true;
  world.dialler->expect_lanes(4);
  world.near.hub->turn(world.now);
  CHECK(world.net.dials == 1);
  CHECK(world.near.hub->next_deadline() <= world.now + 10ms);
  world.now += 10ms;
  world.near.hub->turn(world.now);
  CHECK(world.net.dials == 4);
  CHECK(world.net.dialled_ahead == 3);
  REQUIRE(world.run_until_up(4));
  CHECK(world.net.dials == 4);
  CHECK(world.near.transport->connections() == 4);
}

TEST_CASE("dialler__the_first_lane_is_quick__nothing_is_dialled_ahead") {
  World world(4);
  world.net.dials_ahead = true;
  world.dialler->expect_lanes(4);
  REQUIRE(world.run_until_up(4));
  CHECK(world.net.dialled_ahead == 0);
}

TEST_CASE("dialler__dialled_ahead_and_not_wanted__is_closed") {
  World world(1);
  world.net.dials_ahead = true;
  world.dialler->expect_lanes(4);
  world.near.hub->turn(world.now);
  world.now += 10ms;
  world.near.hub->turn(world.now);
  CHECK(world.net.dialled_ahead == 3);
  SECTION("fewer lanes are wanted") {
    REQUIRE(world.run_until_up(1));
    for (int i = 0; i < 5; ++i) world.turn();
  }
  SECTION("the session waits for its turn") {
    world.learns_session = false;
    REQUIRE(world.run_until_up(1));
    CHECK(world.near.transport->connections() == 4);
    world.now += 3s;
    for (int i = 0; i < 5; ++i) world.turn();
  }
  SECTION("they end before they are asked for anything") {
    world.near.transport->cut_newest();
    REQUIRE(world.run_until_up(1));
    for (int i = 0; i < 5; ++i) world.turn();
  }
  CHECK(world.near.transport->connections() == 1);
  CHECK(world.dialler->failure() == nullptr);
}

TEST_CASE("dialler__the_first_lane_fails__what_was_dialled_ahead_goes_with_it") {
  World world(4);
  world.net.dials_ahead = true;
  world.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::network, "busy"});
  world.dialler->expect_lanes(4);
  world.near.hub->turn(world.now);
  world.now += 10ms;
  world.near.hub->turn(world.now);
  REQUIRE(world.net.dialled_ahead == 3);
  REQUIRE(world.run([&] { return world.dialler->trouble() != nullptr; }));
  for (int i = 0; i < 5; ++i) world.near.hub->turn(world.now);
  CHECK(world.near.transport->connections() == 0);
  world.acceptor->refusal.reset();
  REQUIRE(world.run_until_up(4));
}

TEST_CASE("dialler__nobody_there__gives_up_with_the_kind_of_the_last_attempt") {
  struct Row {
    Status status;
    ErrorKind kind;
  };
  for (const Row row : {Row{Status::refused, ErrorKind::no_answer}, Row{Status::unreachable, ErrorKind::no_answer},
                        Row{Status::timed_out, ErrorKind::no_answer}, Row{Status::no_route, ErrorKind::no_route},
                        Row{Status::device_dead, ErrorKind::network}}) {
    INFO(to_string(row.status));
    World world;
    world.net.dial_status = [&](std::string_view) { return row.status; };
    world.dialler->set_patience(std::chrono::seconds(30));
    REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }));
    CHECK(world.dialler->failure()->kind == row.kind);
    CHECK(world.now >= world.began + std::chrono::seconds(30));
    CHECK(world.now < world.began + std::chrono::seconds(31));
    CHECK(world.net.dials >= 8);   // grows from 50 ms ...
    CHECK(world.net.dials <= 25);  // ... to 5 s
    CHECK(world.dialler->next_deadline() == never);
  }
}

TEST_CASE("dialler__version_differs__is_final_at_once") {
  World world;
  world.net.dial_status = [](std::string_view) { return Status::version; };
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 100));
  CHECK(world.dialler->failure()->kind == ErrorKind::protocol);
  CHECK(world.net.dials == 1);
}

TEST_CASE("dialler__a_name_that_no_host_has__is_final_at_once_unless_the_peer_was_reached") {
  World world;
  world.net.dial_status = [](std::string_view) { return Status::not_found; };
  SECTION("never reached: it is mistyped") {
    REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 100));
    CHECK(world.dialler->failure()->kind == ErrorKind::no_answer);
    CHECK(world.dialler->hopeless());
    CHECK(world.net.dials == 1);
  }
  SECTION("reached before: the name service fails, and may recover") {
    world.dialler->set_reached();
    REQUIRE(world.run([&] { return world.net.dials >= 3; }));
    CHECK(world.dialler->failure() == nullptr);
    CHECK_FALSE(world.dialler->hopeless());
  }
}

TEST_CASE("dialler__trouble__is_the_last_attempts_while_it_goes_on_trying") {
  World world;
  Status answer = Status::refused;
  world.net.dial_status = [&](std::string_view) { return answer; };
  CHECK(world.dialler->trouble() == nullptr);
  REQUIRE(world.run([&] { return world.dialler->trouble() != nullptr; }, 100));
  CHECK(world.dialler->trouble()->message.find("connection refused") != std::string::npos);
  answer = Status::timed_out;
  REQUIRE(world.run([&] { return world.dialler->trouble()->message.find("no answer in time") != std::string::npos; }));
  answer = Status::success;
  REQUIRE(world.run_until_up(1));
  CHECK(world.dialler->trouble() == nullptr);
}

TEST_CASE("dialler__all_lanes_go_again_later__what_an_earlier_outage_or_a_missing_lane_said_is_not_told") {
  World world(2);
  world.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::network, "busy"});
  REQUIRE(world.run([&] { return world.dialler->trouble() != nullptr; }, 100));
  CHECK(world.dialler->refused());
  world.acceptor->refusal.reset();
  REQUIRE(world.run_until_up(2));
  SECTION("of an earlier outage") {}
  SECTION("of a lane that was missing beside another") {
    Status answer = Status::timed_out;
    world.net.dial_status = [&](std::string_view) { return answer; };
    world.near.transport->cut_newest();
    const size_t dials = world.net.dials;
    REQUIRE(world.run([&] { return world.net.dials >= dials + 3; }));
    REQUIRE(world.link->live_lanes().size() == 1);
  }
  world.net.dial_status = [](std::string_view) { return Status::no_route; };
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.link->live_lanes().empty() || world.dialler->trouble() != nullptr; }));
  world.near.hub->turn(world.now);
  CHECK_FALSE(world.dialler->refused());
  REQUIRE(world.run([&] { return world.dialler->trouble() != nullptr; }));
  CHECK(world.dialler->trouble()->kind == ErrorKind::no_route);
}

TEST_CASE("dialler__what_answers_is_not_a_ccixfer__says_just_that") {
  World world;
  world.net.dial_status = [](std::string_view) { return Status::version; };
  world.net.dial_reason = "what answers there is not a ccixfer: malformed frame";
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 100));
  CHECK(world.dialler->failure()->message == "fake://far: what answers there is not a ccixfer: malformed frame");
}

TEST_CASE("dialler__no_patience__makes_one_attempt") {
  World world;
  world.net.dial_status = [](std::string_view) { return Status::refused; };
  world.dialler->set_patience(Duration::zero());
  REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 100));
  CHECK(world.net.dials == 1);
}

TEST_CASE("dialler__acceptor_that_answers_nothing__is_no_answer_when_patience_ends") {
  World world;
  world.far->hub->set_accept_handler(nullptr);
  world.dialler->set_patience(std::chrono::seconds(3));
  REQUIRE(world.run([&] {
    world.near.hub->turn(world.now);
    world.now += std::chrono::milliseconds(100);
    return true;
  }));
  for (int i = 0; i < 100 && world.dialler->failure() == nullptr; ++i) {  // the far side takes no turn: its process is stopped
    world.near.hub->turn(world.now);
    world.now += std::chrono::milliseconds(100);
  }
  REQUIRE(world.dialler->failure() != nullptr);
  CHECK(world.dialler->failure()->kind == ErrorKind::no_answer);
}

TEST_CASE("dialler__attempt_ends_after_a_long_wait__its_pause_begins_then") {
  World world;
  world.near.hub->turn(world.now);  // the far side takes no turn: its process is stopped
  REQUIRE(world.net.dials == 1);
  while (world.now < world.began + std::chrono::seconds(10)) {
    world.now = world.near.hub->next_deadline();  // nothing happens before the attempt's own end
    world.near.hub->turn(world.now);
  }
  CHECK(world.net.dials == 1);
  CHECK(world.near.hub->next_deadline() >= world.now + std::chrono::milliseconds(25));
  world.now = world.near.hub->next_deadline();
  world.near.hub->turn(world.now);
  CHECK(world.net.dials == 2);
}

TEST_CASE("dialler__refused_with_a_kind__final_or_tried_again_by_that_kind") {
  {
    World world;
    world.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::protocol, "this daemon wants encryption"});
    REQUIRE(world.run([&] { return world.dialler->failure() != nullptr; }, 1000));
    CHECK(world.dialler->failure()->kind == ErrorKind::protocol);
    CHECK(world.dialler->failure()->message.find("this daemon wants encryption") != std::string::npos);
    CHECK(world.net.dials == 1);
  }
  {
    World world;
    world.acceptor->refusal = std::make_unique<Error>(Error{ErrorKind::network, "busy"});
    REQUIRE(world.run([&] { return world.net.dials == 4; }));
    CHECK(world.dialler->failure() == nullptr);
    world.acceptor->refusal = nullptr;
    REQUIRE(world.run_until_up(1));
  }
}

TEST_CASE("dialler__acceptor_restarted__session_is_lost") {
  World world(2);
  REQUIRE(world.run_until_up(2));
  world.acceptor.reset();
  world.far.reset();
  world.far = std::make_unique<Side>(world.net, "fake://far", 4);
  world.acceptor = std::make_unique<Acceptor>(*world.far);
  REQUIRE(world.run([&] { return world.dialler->session_lost(); }));
  CHECK(world.dialler->failure() == nullptr);
  CHECK(world.acceptor->sessions == 0);
}

TEST_CASE("dialler__first_lane_dies_before_the_session_has_a_number__session_is_lost") {
  World world;
  world.learns_session = false;
  REQUIRE(world.run([&] { return !world.link->live_lanes().empty(); }, 100));
  world.near.transport->cut_all();
  REQUIRE(world.run([&] { return world.dialler->session_lost(); }, 100));
  CHECK(world.net.dials == 1);
}

TEST_CASE("dialler__destroyed_while_dialling__its_connection_goes_too") {
  World world;
  world.near.hub->turn(world.now);
  CHECK(world.net.dials == 1);
  world.near.hub->remove_dialler(world.dialler.get());
  world.dialler.reset();
  for (int i = 0; i < 10; ++i) world.turn();
  CHECK(world.link->live_lanes().empty());
  CHECK(world.near.transport->connections() == 0);
  CHECK(world.far->transport->connections() == 0);
}

TEST_CASE("hub__bad_hello__is_refused_with_a_reason_and_counted") {
  World world;
  REQUIRE(world.run_until_up(1));
  const std::vector<std::byte> good = encode(world.link->hello());
  std::vector<std::byte> bad = good;
  bad[10] ^= std::byte{1};
  CHECK(knock(world, bad) == "protocol: malformed session hello");
  CHECK(knock(world, {}) == "protocol: not a ccixfer session");
  CHECK(knock(world, as_bytes("GET / HTTP/1.1")) == "protocol: not a ccixfer session");
  std::vector<std::byte> version = good;
  version[4] = std::byte{9};
  CHECK(knock(world, version) == "protocol: session version 9 is not ours (3)");
  CHECK(world.far->counters.get(Counter::session_rejected) == 4);
  CHECK(knock(world, good, ports::Role::hop) == "protocol: not a session's kind of connection");
  CHECK(world.far->counters.get(Counter::session_rejected) == 5);
  CHECK(world.far->counters.get(Counter::connections_refused) == 5);
  CHECK(world.acceptor->sessions == 1);
}

TEST_CASE("hub__connection_of_another_kind__is_refused_and_that_of_a_ping_taken") {
  World world;
  REQUIRE(world.run_until_up(1));
  const std::vector<std::byte> good = encode(world.link->hello());
  CHECK(knock(world, good, ports::Role::application, ports::Attribute::reliable_unordered) ==
        "protocol: not a session's kind of connection");
  CHECK(knock(world, {}, ports::Role::admin, ports::Attribute::reliable_unordered) ==
        "protocol: not a session's kind of connection");
  CHECK(world.far->counters.get(Counter::session_rejected) == 2);
  CHECK(knock(world, {}, ports::Role::admin) == "accepted");
  CHECK(world.far->counters.get(Counter::session_rejected) == 2);
  CHECK(world.acceptor->sessions == 1);
}

TEST_CASE("hub__lane_of_an_unknown_session_or_of_another_transfer__is_refused") {
  World world;
  REQUIRE(world.run_until_up(1));
  Hello hello = world.link->hello();
  hello.session = 99;
  CHECK(knock(world, encode(hello)) == "unknown session");
  hello.session = world.link->session();
  hello.transfer[3] = 1;
  CHECK(knock(world, encode(hello)) == "unknown session");
  hello = world.link->hello();
  hello.session = world.link->session();
  hello.sealed = true;
  CHECK(knock(world, encode(hello)).substr(0, 9) == "protocol:");
  world.far->hub->set_accept_handler(nullptr);
  CHECK(knock(world, encode(world.link->hello())).substr(0, 6) == "usage:");
}

// A lane that is dialled while the session ends: its refusal may overtake the end's last words.
TEST_CASE("dialler__further_lane_is_refused_as_of_no_session__counts_once_no_lane_lives") {
  World world;
  REQUIRE(world.run_until_up(1));
  world.acceptor->link->set_session(99);
  world.dialler->set_lanes(2);
  CHECK_FALSE(world.run([&] { return world.dialler->session_lost(); }, 2000));
  world.acceptor->link->post(End{1});
  CHECK(world.run([&] { return world.user.messages == std::vector<uint64_t>{1}; }, 1000));
  world.net.fault = [](size_t, FrameKind) { return Fault::cut_before; };
  world.link->post(End{2});
  CHECK(world.run([&] { return world.link->live_lanes().empty(); }, 1000));
  world.net.fault = nullptr;
  CHECK(world.run([&] { return world.dialler->session_lost(); }, 5000));
}

TEST_CASE("hub__lane_dialled_again_while_it_lives__replaces_the_old_one") {
  World world;
  REQUIRE(world.run_until_up(1));
  world.acceptor->user.lanes.clear();
  // The dialler lost the connection and the acceptor has not noticed: a half-open connection.
  bool done = false;
  world.net.fault = [&](size_t, FrameKind kind) {
    if (done || kind != FrameKind::message_ack) return Fault::none;
    done = true;
    return Fault::half_before;
  };
  world.link->post(End{1});
  REQUIRE(world.run([&] { return world.acceptor->user.lanes.size() == 2 && world.link->messages_delivered(); }, 5000));
  CHECK(world.acceptor->user.lanes == std::vector<std::string>{"down 0", "up 0"});
  CHECK(world.acceptor->user.messages == std::vector<uint64_t>{1});
  CHECK(world.acceptor->link->live_lanes() == std::vector<LaneIndex>{0});
  world.acceptor->link->post(End{5});
  REQUIRE(world.run([&] { return world.user.messages.size() == 1; }, 1000));
}

TEST_CASE("hub__peer_goes_before_its_first_lane_is_confirmed__session_ends") {
  World world;
  world.net.fault = [](size_t, FrameKind kind) { return kind == FrameKind::accept ? Fault::cut_before : Fault::none; };
  REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr; }, 1000));
  CHECK(world.acceptor->user.lost->kind == ErrorKind::network);
  world.net.fault = nullptr;
  REQUIRE(world.run_until_up(1));  // the dialler tries again, with a new session
  CHECK(world.acceptor->sessions >= 2);
}

TEST_CASE("hub__more_undecided_connections_than_its_bound__are_told_busy") {
  World world;
  Side crowd(world.net, "", 5);
  const std::vector<std::byte> hello = encode(world.link->hello());
  cci::ConnectOptions options;
  options.data = hello;
  for (uint32_t i = 0; i < accepts_pending_max + 10; ++i) REQUIRE(crowd.endpoint->connect("fake://far", options));
  world.far->hub->turn(world.now);  // all at once; the crowd confirms nothing
  crowd.endpoint->turn(world.now);
  size_t accepted = 0;
  size_t busy = 0;
  while (auto event = crowd.endpoint->get_event()) {
    if (event->type != cci::EventType::connect) continue;
    if (event->status == Status::success) ++accepted;
    if (event->reason.find("network: busy") == 0) ++busy;
  }
  CHECK(accepted == accepts_pending_max);
  CHECK(busy == 10);
}

TEST_CASE("refusal__every_kind_that_ends_a_session__comes_back_and_foreign_words_do_not") {
  for (auto kind = static_cast<int>(ErrorKind::ok); kind <= static_cast<int>(ErrorKind::bug); ++kind) {
    const auto refusal = parse_refusal(format_refusal({static_cast<ErrorKind>(kind), "some: words"}));
    REQUIRE(refusal.has_value() == ends_a_session(static_cast<ErrorKind>(kind)));
    if (!refusal) continue;
    CHECK(static_cast<int>(refusal->kind) == kind);
    CHECK(refusal->message == "some: words");
  }
  CHECK(!parse_refusal("connection refused"));
  CHECK(!parse_refusal("ECONNREFUSED: nobody"));
  CHECK(!parse_refusal(""));
  CHECK(!parse_refusal("ok: fine"));
  CHECK(!parse_refusal(error_row(ErrorKind::timeout).name));  // a name and no words
  CHECK(parse_refusal("usage: \x1b[31mred")->message.find('\x1b') == std::string::npos);
  CHECK(format_refusal({ErrorKind::usage, std::string(5000, 'x')}).size() == reject_reason_bytes_max);
}

// Which router is dialled next, for how long, what it is asked, and whose answer is believed.
#include "routing/transport/router_attempts.h"

#include <catch2/catch.hpp>

#include "core/base/units.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Instant start = Instant{} + seconds(1000);

ports::DialRequest usual(Duration timeout) {
  ports::DialRequest request;
  request.uri = "cci://1:2:10.0.0.9:7000";
  request.timeout = timeout;
  return request;
}

// Two routers, of which the first is being tried.
struct Trying {
  explicit Trying(Duration timeout = seconds(8)) : attempts(usual(timeout)) {
    attempts.begin({"b", "a"}, start);
    REQUIRE(attempts.next());
  }
  RouterAttempts attempts;
};

ConnectReply failure(Status status, const std::string& reason = "") {
  ConnectReply reply;
  reply.status = status;
  reply.reason = reason;
  return reply;
}

}  // namespace

TEST_CASE("router_attempts__several_routers__the_last_of_the_list_first_each_once") {
  Trying trying;
  CHECK(trying.attempts.router() == "a");
  CHECK(trying.attempts.next());
  CHECK(trying.attempts.router() == "b");
  CHECK_FALSE(trying.attempts.next());
}

TEST_CASE("router_attempts__patience__what_is_left_is_shared_and_has_bounds") {
  Trying trying;
  CHECK(trying.attempts.deadline() == start + seconds(8));
  CHECK(trying.attempts.patience(start) == seconds(4));
  CHECK(trying.attempts.patience(start + seconds(8)) == milliseconds(1));
  REQUIRE(trying.attempts.next());
  CHECK(trying.attempts.patience(start) == router_dial_timeout);
  CHECK(trying.attempts.patience(start + seconds(6)) == seconds(2));
  const Trying forever_long(forever);
  CHECK(forever_long.attempts.deadline() == never);
  CHECK(forever_long.attempts.patience(start + seconds(1'000'000)) == router_dial_timeout);
}

TEST_CASE("router_attempts__a_request__is_what_was_dialled_with_the_time_that_is_left") {
  std::vector<std::byte> data(3, std::byte{7});
  ports::DialRequest dialled = usual(seconds(8));
  dialled.attribute = ports::Attribute::unreliable;
  dialled.data = data;
  RouterAttempts attempts(dialled);
  data[0] = std::byte{1};  // it was copied
  attempts.begin({"a"}, start);
  REQUIRE(attempts.next());
  const ConnectRequest request = attempts.ask(start + seconds(3));
  CHECK(request.destination == "cci://1:2:10.0.0.9:7000");
  CHECK(request.attribute == ports::Attribute::unreliable);
  CHECK(request.data == std::vector<std::byte>(3, std::byte{7}));
  CHECK(request.timeout == seconds(5));
  CHECK(attempts.ask(start + seconds(9)).timeout == milliseconds(1));
  CHECK(attempts.round_trip(start + seconds(10)) == seconds(1));
  CHECK(attempts.round_trip(start + seconds(9)) == ports::round_trip_min);
  Trying patient(forever);
  CHECK(patient.attempts.ask(start).timeout == forever);
}

TEST_CASE("router_attempts__several_failures__the_one_that_says_most_of_equals_the_last") {
  RouterAttempts attempts(usual(forever));
  CHECK(attempts.answer().status == Status::unreachable);
  attempts.begin({"d", "c", "b", "a"}, start);
  REQUIRE(attempts.next());
  attempts.note_unreachable("nobody");
  CHECK(attempts.answer().reason == "router a: nobody");
  REQUIRE(attempts.next());
  attempts.note_unreachable("nobody");
  CHECK(attempts.answer().reason == "router b: nobody");
  attempts.note_not_let_in(Status::version, "0.1");
  CHECK(attempts.answer().status == Status::version);
  CHECK(attempts.answer().reason == "router b: 0.1");
  REQUIRE(attempts.next());
  attempts.note_unreachable("nobody");
  CHECK(attempts.answer().status == Status::version);
  CHECK(attempts.note_reply(failure(Status::no_route)));
  CHECK(attempts.answer().status == Status::no_route);
  CHECK(attempts.answer().reason == to_string(Status::no_route));
  CHECK(attempts.note_reply(failure(Status::unreachable, "it is silent")));
  CHECK(attempts.answer().status == Status::unreachable);
  attempts.note_not_let_in(Status::not_authenticated, "0.1");
  CHECK(attempts.answer().reason == "it is silent");
  CHECK_FALSE(attempts.note_reply(failure(Status::refused, "no\n")));
  CHECK(attempts.answer().status == Status::refused);
  CHECK(attempts.answer().reason == printable("no\n"));
}

TEST_CASE("router_attempts__the_last_router_fails__no_other_helps") {
  Trying trying;
  CHECK(trying.attempts.note_reply(failure(Status::no_route)));
  REQUIRE(trying.attempts.next());
  CHECK_FALSE(trying.attempts.note_reply(failure(Status::no_route)));
}

TEST_CASE("router_attempts__too_late__says_the_most_that_is_known") {
  Trying trying;
  RouterAttempts& attempts = trying.attempts;
  CHECK(attempts.why_late() == words_of({"a", false}));
  static_cast<void>(attempts.ask(start));
  CHECK(attempts.why_late() == words_of({"a", true}));
  attempts.note_pending({"far\n", false});
  CHECK(attempts.why_late() == words_of({printable("far\n"), false}));
  REQUIRE(attempts.next());  // nobody has been asked by this one
  CHECK(attempts.why_late() == words_of({"b", false}));
  attempts.note_pending({"", true});
  CHECK(attempts.why_late() == "no answer in time");
  attempts.note_unreachable("nobody");
  CHECK(attempts.why_late() == "router b: nobody");
}

// How a session of a source ends, and what is said of it.
#include "app/send/session_course.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

class SilentLink final : public LinkEnd {
 public:
  Status on_put(LaneIndex, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) override { return Status::disconnected; }
};

TEST_CASE("course__listing_and_summary__said_once_and_over_with_the_goodbye") {
  SilentLink link;
  Counters counters;
  send::SessionCourse course(link.link(), counters);
  CHECK_FALSE(course.is_open());
  course.open();
  CHECK(course.is_open());
  course.listing_over(session::End{5, 0, 0});
  course.listing_over(session::End{6, 0, 0});
  CHECK(course.listing_is_over());
  REQUIRE(link.posted.size() == 1);
  CHECK(std::get<session::End>(link.posted[0]).entries == 5);
  link.delivered = false;
  CHECK_FALSE(course.finished(true));
  course.summary_came();
  CHECK(std::holds_alternative<session::Bye>(link.posted.at(1)));
  CHECK_FALSE(course.is_open());
  CHECK_FALSE(course.finished(true));
  CHECK(course.finished(false));  // nobody hears it any more
  link.delivered = true;
  CHECK(course.finished(true));
}

TEST_CASE("course__the_goodbye_has_left__all_is_said_though_nobody_has_heard_it") {
  SilentLink link;
  Counters counters;
  link.delivered = false;
  send::SessionCourse course(link.link(), counters);
  course.open();
  CHECK_FALSE(course.said_all());
  link.sent = false;
  course.summary_came();
  CHECK_FALSE(course.said_all());
  link.sent = true;
  CHECK(course.said_all());
  CHECK_FALSE(course.finished(true));
}

TEST_CASE("course__link_is_lost__an_error_only_before_the_summary") {
  for (const bool summary : {true, false}) {
    SilentLink link;
    link.delivered = false;
    Counters counters;
    send::SessionCourse course(link.link(), counters);
    course.open();
    if (summary) course.summary_came();
    course.link_lost(Error{ErrorKind::timeout, "gone"});
    CHECK(course.finished(true));
    CHECK((course.error() == nullptr) == summary);
  }
}

TEST_CASE("course__errors__the_first_is_told_to_the_peer_and_stays") {
  SilentLink link;
  Counters counters;
  send::SessionCourse course(link.link(), counters);
  course.open();
  course.judge({});
  CHECK(course.error() == nullptr);
  course.judge(fail(ErrorKind::protocol, std::string(600, 'x')));
  CHECK(counters.get(Counter::session_rejected) == 1);
  course.judge(fail(ErrorKind::network, "later"));
  course.fail(Error{ErrorKind::interrupted, "later still"});
  CHECK(counters.get(Counter::session_rejected) == 1);
  REQUIRE(link.posted.size() == 1);
  CHECK(std::get<session::Abort>(link.posted[0]).message.size() == 600);
  REQUIRE(course.error() != nullptr);
  CHECK(course.error()->kind == ErrorKind::protocol);
  CHECK(course.finished(true));
}

TEST_CASE("course__peer_ends_the_session__nothing_is_said_to_it") {
  SilentLink link;
  Counters counters;
  send::SessionCourse course(link.link(), counters);
  course.open();
  course.ended_by_peer(Error{ErrorKind::no_space, "full"});
  CHECK(link.posted.empty());
  CHECK(course.error()->kind == ErrorKind::no_space);
  CHECK_FALSE(course.is_open());
}

}  // namespace
}  // namespace ccixfer::send_test

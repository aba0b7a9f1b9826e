// How a session ends: errors, summary, Bye and a lost link.
#include "app/recv/session_end.h"

#include <catch2/catch.hpp>

#include "app/session/limits.h"

namespace ccixfer::recv {
namespace {

TEST_CASE("session_end__errors__the_first_one_ends_it_and_none_after_bye") {
  SessionEnd end;
  CHECK_FALSE(end.is_over());
  CHECK(end.error() == nullptr);
  CHECK(end.fail({ErrorKind::network, "one"}));
  CHECK_FALSE(end.fail({ErrorKind::timeout, "two"}));
  REQUIRE(end.error() != nullptr);
  CHECK(end.error()->message == "one");
  CHECK(end.is_over());
  SessionEnd well;
  well.summary_posted();
  CHECK(well.on_bye());
  CHECK(well.is_over());
  CHECK_FALSE(well.fail({ErrorKind::network, "late"}));
  CHECK(well.error() == nullptr);
}

TEST_CASE("session_end__bye_before_the_summary__is_none") {
  SessionEnd end;
  CHECK_FALSE(end.on_bye());
  CHECK_FALSE(end.is_over());
  CHECK_FALSE(end.is_closing());
}

TEST_CASE("session_end__link_that_goes__is_the_end_only_after_the_summary") {
  SessionEnd early;
  early.on_link_lost();
  CHECK_FALSE(early.is_over());
  CHECK(early.is_link_gone());
  SessionEnd late;
  late.summary_posted();
  CHECK_FALSE(late.is_over());
  late.on_link_lost();
  CHECK(late.is_over());
  CHECK_FALSE(late.is_closing());
}

TEST_CASE("session_end__the_source_departs__is_the_end_only_after_the_summary") {
  SessionEnd early;
  early.on_departure();
  CHECK_FALSE(early.is_link_gone());  // it may be a router that went
  early.summary_posted();
  CHECK_FALSE(early.is_over());
  early.on_departure();
  CHECK(early.is_over());
  CHECK(early.error() == nullptr);
}

TEST_CASE("session_end__count_of_entries__may_be_repeated_and_not_changed") {
  SessionEnd end;
  CHECK(end.on_end({7, 1, 2}).value());
  CHECK_FALSE(end.on_end({7, 1, 2}).value());
  const Result<bool> changed = end.on_end({8, 1, 2});
  REQUIRE_FALSE(changed);
  CHECK(changed.error().kind == ErrorKind::protocol);
  constexpr uint64_t most = uint64_t{1} << 48;
  CHECK(SessionEnd().on_end({7, most, most}));
  CHECK_FALSE(SessionEnd().on_end({7, most + 1, 0}));
  CHECK_FALSE(SessionEnd().on_end({7, 0, most + 1}));
}

TEST_CASE("session_end__last_sync__is_due_once_when_the_count_is_known_and_nothing_failed") {
  SessionEnd end;
  CHECK_FALSE(end.entries_before_last_sync());
  REQUIRE(end.on_end({7, 0, 0}));
  CHECK(end.entries_before_last_sync() == 7u);
  end.begin_last_sync();
  CHECK_FALSE(end.entries_before_last_sync());
  end.end_last_sync();
  CHECK(end.entries_before_last_sync() == 7u);
  end.summary_posted();
  CHECK_FALSE(end.entries_before_last_sync());
  SessionEnd failed;
  REQUIRE(failed.on_end({7, 0, 0}));
  REQUIRE(failed.fail({ErrorKind::network, ""}));
  CHECK_FALSE(failed.entries_before_last_sync());
}

TEST_CASE("session_end__names_of_what_was_not_listed__are_bounded") {
  SessionEnd end;
  for (uint32_t i = 0; i < session::unlisted_named_max; ++i) CHECK(end.on_unlisted());
  CHECK_FALSE(end.on_unlisted());
  CHECK(end.unlisted_named() == session::unlisted_named_max);
}

}  // namespace
}  // namespace ccixfer::recv

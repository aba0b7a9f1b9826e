// Counts over several sessions and transfers.
#include "app/session/tally.h"

#include <catch2/catch.hpp>

namespace ccixfer::session {
namespace {

TEST_CASE("continued__two_sessions__files_count_once_and_sent_bytes_add_up") {
  Tally first;
  first.files = 100;
  first.files_failed = 3;
  first.bytes = 1000;
  first.bytes_total = 4000;
  first.bytes_sent = 1500;
  first.segments_resent = 2;
  Tally second = first;
  second.files = 40;
  second.files_failed = 0;
  second.bytes = 700;
  second.bytes_total = 900;
  // Not as far as the first had come: its counts are what is known.
  const Tally early = continued(first, second);
  CHECK(early.files == 100);
  CHECK(early.files_failed == 3);
  CHECK(early.bytes == 1000);
  CHECK(early.bytes_total == 4000);
  CHECK(early.bytes_sent == 3000);
  CHECK(early.segments_resent == 4);
  second.files = 105;
  second.bytes = 900;
  const Tally farther = continued(first, second);
  CHECK(farther.files == 105);
  CHECK(farther.files_failed == 0);
  CHECK(farther.bytes == 900);
  CHECK(farther.bytes_total == 900);
  // It has come to the end of the tree: files that are no more in it do not count.
  second.files = 2;
  second.over = true;
  CHECK(continued(first, second).files == 2);
  CHECK(continued(first, second).over);
}

TEST_CASE("continued__as_many_entries_with_fewer_bytes__is_not_as_far") {
  Tally first;
  first.attributes_refused = 1;
  first.unlisted_failed = 1;
  first.unlisted_vanished = 1;
  first.bytes = 10;
  Tally second;
  second.files_unchanged = 2;
  second.files_vanished = 1;
  second.bytes = 9;
  CHECK(continued(first, second).files_unchanged == 0);
  second.bytes = 10;
  CHECK(continued(first, second).files_unchanged == 2);
}

TEST_CASE("tally__what_was_not_listed_or_refused__counts_as_failed_or_vanished") {
  Tally tally;
  tally.files = 7;
  tally.files_unchanged = 20;
  tally.files_failed = 3;
  tally.attributes_refused = 90;
  tally.setid_refused = 10;
  tally.unlisted_failed = 1000;
  tally.files_vanished = 40;
  tally.unlisted_vanished = 500;
  CHECK(tally.failed() == 1103);
  CHECK(tally.vanished() == 540);
  CHECK(tally.ended() == 1670);
}

TEST_CASE("add__two_transfers__every_count_is_the_sum_and_the_total_is_as_known_as_the_last") {
  Tally one;
  one.files = one.files_unchanged = one.files_failed = one.files_vanished = 1;
  one.attributes_refused = one.setid_refused = one.unlisted_failed = one.unlisted_vanished = 2;
  one.bytes = one.bytes_total = one.bytes_sent = 3;
  one.segments_resent = one.entries_answered = 4;
  one.total_known = one.over = true;
  Tally sum;
  add(sum, one);
  add(sum, one);
  CHECK(sum.files == 2);
  CHECK(sum.files_unchanged == 2);
  CHECK(sum.files_failed == 2);
  CHECK(sum.files_vanished == 2);
  CHECK(sum.attributes_refused == 4);
  CHECK(sum.setid_refused == 4);
  CHECK(sum.unlisted_failed == 4);
  CHECK(sum.unlisted_vanished == 4);
  CHECK(sum.bytes == 6);
  CHECK(sum.bytes_total == 6);
  CHECK(sum.bytes_sent == 6);
  CHECK(sum.segments_resent == 8);
  CHECK(sum.entries_answered == 8);
  CHECK(sum.total_known);
  CHECK_FALSE(sum.over);
  one.total_known = false;
  add(sum, one);
  CHECK_FALSE(sum.total_known);
}

}  // namespace
}  // namespace ccixfer::session

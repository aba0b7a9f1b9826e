// Destinations that ignore case: two names of the source that are one there.
#include "app/recv/caseless_names.h"

#include <catch2/catch.hpp>

#include "app/session/receiver_words.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv::test {

TEST_CASE("caseless__names_that_differ_in_case_only__the_second_one_is_refused") {
  CaselessNames names;
  CHECK(names.take("d/Readme", false));
  CHECK_FALSE(names.take("D/README", false));
  CHECK_FALSE(names.take("d/readme", true));
  CHECK(names.take("d/readme2", false));
  CHECK(names.take("d/[", false));  // next to Z and z
  CHECK(names.take("d/{", false));
}

TEST_CASE("caseless__directories_that_differ_in_case_only__are_one") {
  CaselessNames names;
  CHECK(names.take("Data", true));
  CHECK(names.take("data", true));
  CHECK_FALSE(names.take("DATA", false));
  CHECK(names.take("Data/a", false));
  CHECK_FALSE(names.take("data/A", false));
}

TEST_CASE("caseless__letters_outside_ascii__differ_for_sending_and_are_one_for_deleting") {
  CHECK(without_case("A\xc3\x84z") == "a\xc3\x84z");
  CHECK(without_case_or_accents("A\xc3\x84z") == without_case_or_accents("a\xc3\xa4Z"));
}

TEST_CASE("entries__a_root_that_ignores_case__one_of_two_files_fails_and_both_are_delivered_elsewhere") {
  const bool ignores_case = GENERATE(true, false);
  Place place;
  CHECK_FALSE(place.root->opened()->ignores_case);  // as the temporary directory tells
  place.root->opened()->ignores_case = ignores_case;
  CHECK(place.decide_one(file("A", 1)).verdict == session::Verdict::send);
  const Decision second = place.decide_one(file("a", 1));
  CHECK(second.verdict == (ignores_case ? session::Verdict::failed : session::Verdict::send));
  CHECK(second.error_number == (ignores_case ? session::errno_of_same_name : 0));
}

TEST_CASE("entries__the_first_name_of_a_file_fails_at_once__further_ones_do_not_become_links_of_what_stands_there") {
  Place place(archive_options | session::option_hard_links);
  place.root->opened()->ignores_case = true;
  place.temporary.write("A", "x");  // what `a` is there
  CHECK(place.decide_one(file("a", 1)).verdict == session::Verdict::send);
  Entry first = file("A", 1), further = file("b", 1);
  first.is_linked = further.is_linked = true;
  further.linked_to = "A";
  CHECK(place.decide_one(first).verdict == session::Verdict::failed);
  CHECK(place.decide_one(further).verdict == session::Verdict::send);
}

}  // namespace ccixfer::recv::test

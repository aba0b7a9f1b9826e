// Names of one file (--hard-links): which of them lead, and which become links.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint32_t linking = archive_options | session::option_hard_links | session::option_itemize;

Entry first(const std::string& path, uint64_t size_bytes = 3) {
  Entry entry = file(path, size_bytes);
  entry.is_linked = true;
  return entry;
}

Entry further(const std::string& path, const std::string& leader, uint64_t size_bytes = 3) {
  Entry entry = first(path, size_bytes);
  entry.linked_to = leader;
  return entry;
}

CommitItem link(Place& place, const FileTaskRef& task, const std::string& to) {
  std::vector<CommitItem> batch(1);
  batch[0].task = task;
  batch[0].link_to = to;
  commit_batch(*place.root->opened(), *place.directories, place.policy, *place.owner, batch);
  place.root->opened()->claims.release(task->key, place.owner);
  return batch[0];
}

}  // namespace

TEST_CASE("linked__first_name_is_wanted__further_ones_wait_for_it") {
  Place place(linking);
  const Decision leader = place.decide_one(first("a"));
  CHECK(leader.verdict == Verdict::send);
  CHECK(place.linked.find("a").state == LinkedNames::State::pending);
  const Decision name = place.decide_one(further("b", "a"));
  CHECK(name.verdict == Verdict::link);
  CHECK(name.items == (session::item_made | session::item_linked | session::item_named | session::item_new));
  CHECK(name.target == "a");
  place.deliver(leader.task, "abc");
  place.linked.place("a", "a", true);
  CHECK(link(place, name.task, "a").outcome == CommitOutcome::ok);
  CHECK(place.stat_of("b").st_ino == place.stat_of("a").st_ino);
}

TEST_CASE("linked__first_name_stands__a_further_one_is_linked_or_is_it_already") {
  Place place(linking);
  place.deliver(place.decide_one(first("a")).task, "abc");
  place.linked.place("a", "a", true);
  REQUIRE(place.decide_one(first("a")).verdict == Verdict::unchanged);
  REQUIRE(::link(place.temporary.path("a").c_str(), place.temporary.path("b").c_str()) == 0);
  const Decision same = place.decide_one(further("b", "a"));
  CHECK((same.verdict == Verdict::unchanged && same.items == 0));
  place.temporary.write("c", "abc");  // as long, and another file
  const Decision other = place.decide_one(further("c", "a"));
  CHECK(other.verdict == Verdict::link);
  CHECK(link(place, other.task, "a").outcome == CommitOutcome::ok);
  CHECK(place.stat_of("c").st_ino == place.stat_of("a").st_ino);
}

TEST_CASE("linked__first_name_failed_or_is_not_it__the_next_one_leads") {
  Place place(linking);
  std::filesystem::create_directories(place.temporary.path("a/full"));
  CHECK(place.decide_one(first("a")).verdict == Verdict::failed);
  const Decision next = place.decide_one(further("b", "a"));
  CHECK(next.verdict == Verdict::send);
  CHECK(next.task->first_name == "a");
  CHECK(place.linked.find("a").path == "b");
  CHECK(place.decide_one(further("c", "a")).verdict == Verdict::link);
  CHECK(place.decide_one(further("d", "never listed")).verdict == Verdict::send);
  place.temporary.write("longer", "abcdef");
  CHECK(place.decide_one(further("e", "longer")).verdict == Verdict::send);  // not what the source says it is
  CHECK(place.decide_one(further("f", ".ccixfer/ledger.db")).verdict == Verdict::send);
}

TEST_CASE("linked__a_dry_run__says_what_would_be_linked_and_links_nothing") {
  Place place(linking | session::option_dry_run);
  CHECK(place.decide_one(first("a")).verdict == Verdict::send);
  const Decision name = place.decide_one(further("b", "a"));
  CHECK(name.verdict == Verdict::make);
  CHECK(session::is_told(name.items));
  CHECK_FALSE(place.temporary.has("b"));
}

TEST_CASE("linked__symbolic_links__are_linked_at_once") {
  Place place(linking);
  Entry leader = test::link("l", "target");
  leader.is_linked = true;
  CHECK(place.decide_one(leader).verdict == Verdict::done);
  Entry name = leader;
  name.path = "m";
  name.linked_to = "l";
  CHECK(place.decide_one(name).verdict == Verdict::done);
  CHECK(place.stat_of("m").st_ino == place.stat_of("l").st_ino);
  CHECK(place.decide_one(name).items == 0);
}

}  // namespace ccixfer::recv

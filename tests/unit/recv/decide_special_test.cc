// Devices, sockets and pipes: who may make them, and what they are then.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "app/session/receiver_words.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv::test {
namespace {

Entry special(const std::string& path, EntryType type, ports::SpecialKind kind) {
  Entry entry = file(path, 0, 0640);
  entry.type = type;
  entry.special = kind;
  return entry;
}

}  // namespace

TEST_CASE("special__a_peer_without_the_right_to_devices__makes_none_of_them") {
  const bool may = GENERATE(true, false);
  Place place(archive_options | session::option_specials);
  Policy policy = place.policy;
  policy.devices = may;
  EntryDecider decider(*place.root->opened(), *place.directories, policy, "", place.owner, place.linked);
  const std::vector<Entry> entries{special("device", EntryType::device, ports::SpecialKind::character),
                                   special("pipe", EntryType::special, ports::SpecialKind::fifo),
                                   special("socket", EntryType::special, ports::SpecialKind::socket)};
  const DecidedEntries decided = decider.decide(entries, 0);
  REQUIRE_FALSE(decided.fatal.has_value());
  REQUIRE(decided.decisions.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CAPTURE(entries[i].path);
    const Decision& decision = decided.decisions[i];
    CHECK(decision.error_number == (may ? 0 : session::errno_of_no_devices));
    CHECK((decision.verdict == session::Verdict::failed) == !may);
    const bool is_left_out = may && entries[i].type == EntryType::device && policy.uid != 0;
    CHECK((decision.verdict == session::Verdict::left_out) == is_left_out);
    struct stat stat {};
    const bool is_there = ::lstat(place.temporary.path(entries[i].path).c_str(), &stat) == 0;
    const bool needs_root = entries[i].type == EntryType::device;
    CHECK(is_there == (may && (!needs_root || policy.uid == 0)));
    if (is_there && i == 1) CHECK((S_ISFIFO(stat.st_mode) && (stat.st_mode & 07777u) == 0640));
  }
}

TEST_CASE("special__a_receiver_that_is_not_root__leaves_devices_out_and_makes_pipes") {
  const uint32_t more = GENERATE(0u, uint32_t{session::option_dry_run});
  Place place(archive_options | session::option_specials | more);
  Policy policy = place.policy;
  policy.uid = 1000;
  EntryDecider decider(*place.root->opened(), *place.directories, policy, "", place.owner, place.linked);
  const DecidedEntries decided = decider.decide({special("device", EntryType::device, ports::SpecialKind::character),
                                                 special("pipe", EntryType::special, ports::SpecialKind::fifo)},
                                                0);
  REQUIRE_FALSE(decided.fatal.has_value());
  CHECK(decided.decisions.at(0).verdict == session::Verdict::left_out);
  CHECK(decided.decisions.at(1).verdict == (more != 0 ? session::Verdict::make : session::Verdict::done));
  CHECK_FALSE(place.temporary.has("device"));
}

// As in a directory that is there.
TEST_CASE("special__in_a_directory_that_a_dry_run_has_not_made__what_the_run_leaves_out_or_refuses_is_told") {
  Place place(archive_options | session::option_specials | session::option_dry_run);
  Policy policy = place.policy;
  const bool may = GENERATE(true, false);
  policy.uid = 1000;
  policy.devices = may;
  EntryDecider decider(*place.root->opened(), *place.directories, policy, "", place.owner, place.linked);
  const DecidedEntries decided =
      decider.decide({directory("d"), special("d/device", EntryType::device, ports::SpecialKind::character),
                      special("d/pipe", EntryType::special, ports::SpecialKind::fifo)},
                     0);
  REQUIRE_FALSE(decided.fatal.has_value());
  CHECK(decided.decisions.at(0).verdict == session::Verdict::make);
  CHECK(decided.decisions.at(1).verdict == (may ? session::Verdict::left_out : session::Verdict::failed));
  CHECK(decided.decisions.at(2).verdict == (may ? session::Verdict::make : session::Verdict::failed));
  CHECK(decided.decisions.at(2).error_number == (may ? 0 : session::errno_of_no_devices));
}

}  // namespace ccixfer::recv::test

// Set-ID bits and capabilities of a peer that may not bring them: the files and directories that are without them count, and no
// others.
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "app/recv/leaves.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv::test {
namespace {

constexpr uint32_t somebody = 1000;

struct Without : Place {
  Without(uint32_t uid, uint32_t options, bool may = false)
      : Place(options), other(*root->opened(), *directories, policy_of(uid, options, may), "", owner, linked) {}
  ~Without() { files.hook = nullptr; }
  static Policy policy_of(uint32_t uid, uint32_t options, bool may) {
    Policy policy{options, 022, uid, uid};
    policy.setid = may;
    return policy;
  }
  Decision look(Entry entry, uint32_t uid, uint32_t gid) {
    entry.uid = uid;
    entry.gid = gid;
    DecidedEntries decided = other.decide({entry}, next_index++);
    REQUIRE_FALSE(decided.fatal.has_value());
    root->opened()->claims.release_all(owner);
    return std::move(decided.decisions.at(0));
  }
  bool counts(const Entry& entry, uint32_t uid, uint32_t gid) { return look(entry, uid, gid).setid_refused; }

  EntryDecider other;
};

}  // namespace

TEST_CASE("setid__a_peer_without_the_right__each_that_loses_a_bit_counts") {
  for (const uint32_t more : {0u, uint32_t{session::option_dry_run}}) {
    Without place(0, archive_options | more);
    CHECK(place.counts(directory("d", 02775), 5, 6));
    CHECK(place.counts(directory("d", 02775), 5, 6));  // also when it is there
    CHECK(place.counts(file("f", 3, 04755), 5, 6));
    CHECK_FALSE(place.counts(file("f", 3, 0755), 5, 6));
    CHECK_FALSE(place.counts(directory("e", 01777), 5, 6));
    Entry link_of_any_mode = link("l", "f");
    link_of_any_mode.mode = 06777;
    CHECK_FALSE(place.counts(link_of_any_mode, 5, 6));
    Entry leave = directory("d", 02775);
    leave.type = EntryType::leave;
    CHECK_FALSE(place.counts(leave, 5, 6));
    CHECK_FALSE(place.counts(file(".ccixfer", 3, 04755), 5, 6));  // it fails, and counts for that
  }
  Without permitted(0, archive_options, true);
  CHECK_FALSE(permitted.counts(file("f", 3, 04755), 5, 6));
  Without without_modes(0, archive_options & ~session::option_permissions);
  CHECK_FALSE(without_modes.counts(file("f", 3, 04755), 5, 6));
}

TEST_CASE("setid__the_owner_or_group_cannot_be_given__the_right_would_bring_no_bit") {
  Without place(somebody, archive_options);
  place.files.hook = [](std::string_view call, std::string_view) { return call == "set_owner" ? -EPERM : 0; };
  CHECK(place.counts(file("f", 3, 04755), somebody, 6));
  CHECK_FALSE(place.counts(file("f", 3, 04755), 5, 6));
  CHECK_FALSE(place.counts(file("g", 3, 02755), somebody, 6));
  place.files.hook = nullptr;
  CHECK(place.counts(file("g", 3, 02755), 5, ::getgid()));
}

TEST_CASE("setid__what_stays_as_it_is__loses_nothing") {
  Without place(0, archive_options | session::option_ignore_existing | session::option_specials);
  place.temporary.write("f", "abc");
  place.temporary.write("d", "abc");
  place.temporary.write("p", "abc");
  Entry pipe = file("p", 0, 02640);
  pipe.type = EntryType::special;
  pipe.special = ports::SpecialKind::fifo;
  CHECK_FALSE(place.counts(file("f", 3, 04755), 5, 6));
  CHECK_FALSE(place.counts(directory("d", 02775), 5, 6));
  CHECK_FALSE(place.counts(pipe, 5, 6));
  CHECK(place.counts(file("new", 3, 04755), 5, 6));  // what stood before it has stayed, and this one has not
}

// -A alone keeps modes. Whose rights a program has at the source is not kept with them.
TEST_CASE("setid__modes_without_owners__a_program_of_another_comes_without_its_bits_and_counts") {
  constexpr uint32_t modes = (archive_options & ~session::option_owner) | session::option_acls;
  for (const uint32_t more : {0u, uint32_t{session::option_dry_run}}) {
    Without place(0, modes | more, true);
    CHECK(place.counts(file("f", 3, 04755), 5, 0));
    CHECK(place.counts(file("f", 3, 02755), 0, 6));
    CHECK_FALSE(place.counts(file("f", 3, 06755), 0, 0));
    CHECK_FALSE(place.counts(file("f", 3, 0755), 5, 6));
    CHECK_FALSE(Without(0, modes | session::option_owner | more, true).counts(file("f", 3, 06755), 5, 6));
    CHECK_FALSE(Without(0, (modes & ~session::option_permissions) | more, true).counts(file("f", 3, 06755), 5, 6));
  }
}

TEST_CASE("setid__modes_without_owners__bits_that_do_not_come_are_no_difference") {
  Without place(::getuid(), (archive_options & ~session::option_owner) | session::option_acls | session::option_itemize, true);
  place.temporary.write("f", "abc");
  REQUIRE(::chmod(place.temporary.path("f").c_str(), 0755) == 0);
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 123'456'789}};
  REQUIRE(::utimensat(AT_FDCWD, place.temporary.path("f").c_str(), times, 0) == 0);
  const Decision unchanged = place.look(file("f", 3, 06755), ::getuid() + 1, ::getgid() + 1);
  CHECK(unchanged.verdict == session::Verdict::unchanged);
  CHECK(unchanged.items == 0);
  CHECK((place.stat_of("f").st_mode & 07777) == 0755);
}

TEST_CASE("setid__capabilities_of_a_program__count_as_the_bits_do") {
  constexpr uint32_t with_attributes = archive_options | session::option_xattrs;
  Entry program = file("f", 3, 0755);
  program.has_extended = true;
  program.extended = {{"security.capability", "abc"}, {"security.selinux", "label"}};
  CHECK(Without(0, with_attributes).counts(program, 5, 6));
  CHECK(Without(0, with_attributes & ~session::option_permissions).counts(program, 5, 6));
  CHECK_FALSE(Without(0, with_attributes, true).counts(program, 5, 6));
  CHECK_FALSE(Without(0, archive_options).counts(program, 5, 6));
  CHECK_FALSE(Without(somebody, with_attributes).counts(program, somebody, 6));
  program.extended = {{"security.selinux", "label"}, {"user.a", "b"}};
  CHECK_FALSE(Without(0, with_attributes).counts(program, 5, 6));
}

}  // namespace ccixfer::recv::test

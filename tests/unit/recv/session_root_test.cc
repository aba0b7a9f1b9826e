// The root as one session uses it: paths, owners, verdicts, and what goes when it ends.
#include "app/recv/session_root.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <limits>

#include "app/recv/leftovers.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {
namespace {

using test::archive_options;

struct Rig {
  test::TemporaryDirectory temporary;
  test::FaultyFiles files;
  std::unique_ptr<Root> root = Root::open(files, temporary.path()).value();
  std::vector<std::byte> bytes = std::vector<std::byte>(session::entries_segment_bytes + session::segment_trailer_bytes);

  // A segment with these entries, the first of which has the number 4.
  JudgedSegment judge(SessionRoot& place, const std::vector<session::Entry>& entries, uint64_t first_index, bool damaged = false) {
    const MutableBytes whole = segment(entries);
    const session::SegmentHeader header = session::open_trailer(whole).value();
    if (damaged) whole[0] ^= std::byte{1};
    return place.judge(whole, header, nullptr, first_index);
  }
  MutableBytes segment(const std::vector<session::Entry>& entries) {
    session::EntryEncoder encoder(MutableBytes(bytes).first(session::entries_segment_bytes));
    for (const session::Entry& entry : entries) REQUIRE(encoder.add(entry));
    session::SegmentHeader header;
    header.kind = session::SegmentKind::entries;
    header.index = 4;
    header.count = encoder.count();
    header.data_bytes = static_cast<uint32_t>(encoder.size_bytes());
    return MutableBytes(bytes).first(session::seal(bytes, header));
  }
};

TEST_CASE("session_root__path_of_the_session__must_not_lead_out_of_the_root") {
  Rig rig;
  SessionRoot place(*rig.root, archive_options, {});
  REQUIRE(place.opened());
  CHECK(place.begin("a/../..", std::nullopt).error().kind == ErrorKind::not_authorised);
  CHECK(place.begin("a", std::nullopt));
}

TEST_CASE("session_root__owner_that_cannot_be_looked_up__ends_the_session_before_anything_is_decided") {
  Rig rig;
  const bool by_number = GENERATE(false, true);
  SessionRoot place(*rig.root, archive_options | session::option_owner | (by_number ? session::option_numeric_ids : 0u), {});
  REQUIRE(place.begin("", std::nullopt));
  session::Entry entry = test::file("a", 3);
  entry.uid = 4'000'000;
  entry.user = "somebody";
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "owner_of_name" ? -EIO : 0; };
  const JudgedSegment judged = rig.judge(place, {entry}, 4);
  REQUIRE(judged.decisions.has_value() == by_number);
  if (!by_number) CHECK(judged.decisions.error().kind == ErrorKind::file_io);
}

TEST_CASE("session_root__segment__is_judged_only_whole_in_order_and_as_asked_for") {
  Rig rig;
  SessionRoot place(*rig.root, archive_options, {});
  REQUIRE(place.begin("", std::nullopt));
  const JudgedSegment good = rig.judge(place, {test::file("a", 3)}, 4);
  REQUIRE(good.decisions);
  REQUIRE(good.decisions->size() == 1);
  CHECK(good.decisions->at(0).verdict == session::Verdict::send);
  CHECK(place.steps() > 0);
  CHECK(rig.judge(place, {test::file("b", 3)}, 5).decisions.error().kind == ErrorKind::protocol);
  CHECK(rig.judge(place, {test::file("b", 3)}, 4, true).is_damaged);
  SessionRoot pull(*rig.root, archive_options, {});
  REQUIRE(pull.begin("", asked_for("c", archive_options)));
  CHECK(rig.judge(pull, {test::file("d", 3)}, 4).decisions.error().kind == ErrorKind::protocol);
  CHECK(rig.judge(pull, {test::file("c", 3)}, 4).decisions);
}

TEST_CASE("session_root__path_of_another_session__is_free_when_that_one_ends_or_is_cut_off") {
  Rig rig;
  const auto verdict_of = [&](SessionRoot& place) { return rig.judge(place, {test::file("a", 3)}, 4).decisions->at(0).verdict; };
  auto first = std::make_unique<SessionRoot>(*rig.root, archive_options, Deliveries::Transfer{});
  SessionRoot second(*rig.root, archive_options, {});
  REQUIRE(first->begin("", std::nullopt));
  REQUIRE(second.begin("", std::nullopt));
  CHECK(verdict_of(*first) == session::Verdict::send);
  CHECK(verdict_of(second) == session::Verdict::failed);
  first->release(path_key("a"));
  CHECK(verdict_of(second) == session::Verdict::send);
  second.set_link_dead(true);
  CHECK(verdict_of(*first) == session::Verdict::send);
  CHECK(second.is_taken_over());
  CHECK_FALSE(first->is_taken_over());
  SessionRoot third(*rig.root, archive_options, {});
  REQUIRE(third.begin("", std::nullopt));
  CHECK(verdict_of(third) == session::Verdict::failed);
  first.reset();
  CHECK(verdict_of(third) == session::Verdict::send);
}

TEST_CASE("session_root__ended__what_it_staged_and_could_not_record_goes__and_what_others_write_or_resume_stays") {
  Rig rig;
  OpenedRoot& opened = *rig.root->opened();
  const auto stage = [&](SessionRoot& place, const char* path) {
    const JudgedSegment judged = rig.judge(place, {test::file(path, 3 * session::piece_bytes)}, 4);
    REQUIRE(judged.decisions);
    const FileTaskRef task = judged.decisions->at(0).task;
    REQUIRE(task);
    const auto staged = place.make_staged(*task, false);
    HeldFileRef file;
    REQUIRE(staged->open(file) == 0);
    REQUIRE(staged->write(*file, as_bytes("abc"), 0) == 0);
    return *task;
  };
  const auto is_there = [&](const FileTask& task) { return rig.temporary.has(".ccixfer/" + staged_name(task.key, task.version)); };
  CHECK_FALSE(opened.may_have_unrecorded);
  auto first = std::make_unique<SessionRoot>(*rig.root, archive_options, Deliveries::Transfer{});
  SessionRoot second(*rig.root, archive_options, {});
  REQUIRE(first->begin("", std::nullopt));
  REQUIRE(second.begin("", std::nullopt));
  const FileTask unrecorded = stage(*first, "a");
  const FileTask recorded = stage(*first, "b");
  const FileTask in_work = stage(second, "c");
  REQUIRE(opened.ledger->add({{recorded.ledger_file(), "b", {{0, {1, 2}}}}}));
  rig.temporary.write(".ccixfer/other.part", "abc");
  remove_unrecorded(opened);
  CHECK(is_there(unrecorded));  // it is being written
  first.reset();
  CHECK(opened.may_have_unrecorded);
  remove_unrecorded(opened);
  CHECK_FALSE(is_there(unrecorded));
  CHECK(is_there(recorded));
  CHECK(is_there(in_work));
  CHECK(rig.temporary.has(".ccixfer/other.part"));
  remove_expired(opened, {std::numeric_limits<int64_t>::max() / 2, 0}, 1);
  CHECK_FALSE(is_there(recorded));
  CHECK(opened.ledger->empty());
  CHECK(is_there(in_work));
}

TEST_CASE("session_root__what_goes__goes_also_where_a_full_disk_has_no_room_for_another_name") {
  Rig rig;
  const std::string name = ".ccixfer/" + staged_name({1, 2}, 3);
  rig.temporary.write(name, "abc");
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "rename_at" ? -ENOSPC : 0; };
  remove_unrecorded(*rig.root->opened());
  CHECK_FALSE(rig.temporary.has(name));
}

TEST_CASE("session_root__request_to_expire__as_a_link_or_as_a_file__is_heard_once") {
  Rig rig;
  OpenedRoot& opened = *rig.root->opened();
  CHECK_FALSE(serve_expire_request(opened));
  const bool as_link = GENERATE(true, false);
  const std::string request = rig.temporary.path(".ccixfer/" + std::string(expire_request_name));
  const auto ask = [&](const char* age) {
    if (as_link) {
      REQUIRE(::symlink(age, request.c_str()) == 0);
    } else {
      rig.temporary.write(".ccixfer/" + std::string(expire_request_name), age);
    }
    CHECK(serve_expire_request(opened));
    CHECK_FALSE(serve_expire_request(opened));
  };
  REQUIRE(opened.ledger->add({{{{1, 2}, 3}, "b", {{0, {1, 2}}}}}));
  rig.temporary.write(".ccixfer/" + staged_name({1, 2}, 3), "abc");
  ask("1000000");
  ask("nonsense");
  CHECK_FALSE(opened.ledger->empty());
  ask("0");
  CHECK(opened.ledger->empty());
  CHECK_FALSE(rig.temporary.has(".ccixfer/" + staged_name({1, 2}, 3)));
}

TEST_CASE("session_root__the_disk_says_at_the_last_sync_that_it_is_full__no_space") {
  const int error = GENERATE(ENOSPC, EDQUOT, EIO);
  Rig rig;
  SessionRoot place(*rig.root, archive_options, {});
  rig.files.hook = [error](std::string_view call, std::string_view) { return call == "syncfs" || call == "fsync" ? -error : 0; };
  const std::optional<Error> problem = place.sync_all();
  rig.files.hook = nullptr;
  REQUIRE(problem.has_value());
  CHECK(problem->kind == (error == EIO ? ErrorKind::file_io : ErrorKind::no_space));
}

TEST_CASE("session_root__dry_run__syncs_nothing_at_the_end") {
  Rig rig;
  int syncs = 0;
  rig.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "syncfs") ++syncs;
    return 0;
  };
  SessionRoot dry(*rig.root, archive_options | session::option_dry_run, {});
  CHECK_FALSE(dry.sync_all());
  CHECK(syncs == 0);
  SessionRoot real(*rig.root, archive_options, {});
  CHECK_FALSE(real.sync_all());
  CHECK(syncs > 0);
}

}  // namespace
}  // namespace ccixfer::recv

// What the observer of a destination is told of each file: how it ended, how long it is, and why it failed; and what a session that
// has ended still does with what arrives.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/recv/outbox.h"
#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv {

using namespace test;

using Words = std::vector<std::string>;

namespace {

session::FileEnd end_with_size(uint64_t index, uint64_t size_bytes) {
  session::FileEnd end = end_of(index);
  end.size_bytes = size_bytes;
  return end;
}

DestinationOptions with(uint32_t options) { return {.options = options, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0}; }

}  // namespace

TEST_CASE("destination_told__files_that_are_there__with_their_length") {
  Rig rig;
  rig.announce({file_entry("a", 3), file_entry("pipe", size_unknown), file_entry("empty", 0)});
  CHECK(rig.session->notes.told.empty());
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  rig.put_piece(1, 0, as_bytes("12345"));
  rig.session->source_link->post(end_with_size(1, 5));
  REQUIRE(rig.run_until_result(1));
  rig.session->source_link->post(end_of(2));
  REQUIRE(rig.run_until_result(2));
  CHECK(rig.session->notes.told == Words{"a: ok, 3, ", "pipe: ok, 5, ", "empty: ok, 0, "});
  rig.finish(3);
  CHECK(rig.session->notes.warnings.empty());
  // The next session finds two of them as they are.
  rig.again();
  rig.announce({file_entry("a", 3), file_entry("empty", 0), directory_entry("d")});
  rig.finish(3);
  CHECK(rig.session->notes.told == Words{"a: unchanged, 3, ", "empty: unchanged, 0, "});
  CHECK(rig.session->destination->tally().files_unchanged == 2);
  CHECK(rig.source().summary->files_unchanged == 2);
}

TEST_CASE("destination_told__the_source_gives_files_up__why_and_how_long_they_were_to_be") {
  Rig rig;
  rig.announce({file_entry("a", 11), file_entry("b", 22), file_entry("c", 33), file_entry("pipe", size_unknown),
                file_entry("short", size_unknown)});
  rig.session->source_link->post(end_of(0, session::SourceOutcome::changed));
  rig.session->source_link->post(end_of(1, session::SourceOutcome::vanished));
  rig.session->source_link->post(end_of(2, session::SourceOutcome::unreadable));
  rig.session->source_link->post(end_of(3, session::SourceOutcome::unreadable));
  REQUIRE(rig.run_until_result(3));
  rig.put_piece(4, 0, as_bytes("12345"));
  rig.put_piece(4, 1, as_bytes("6"));
  REQUIRE(rig.session->run([&] { return rig.session->destination->tally().bytes_sent >= 6; }));
  rig.session->source_link->post(end_with_size(4, 5));
  REQUIRE(rig.run_until_result(4));
  CHECK(rig.session->notes.told == Words{"a: failed, 11, it changed while it was read", "b: failed, 22, it vanished at the source",
                                         "c: failed, 33, it cannot be read at the source",
                                         "pipe: failed, 0, it cannot be read at the source",
                                         "short: failed, 0, it is shorter than what was sent of it"});
  CHECK(rig.source().results[0].kind == ErrorKind::vanished);
  CHECK(rig.source().results[1].kind == ErrorKind::vanished);
  CHECK(rig.source().results[2].kind == ErrorKind::partial);
  CHECK(rig.source().results[3].kind == ErrorKind::partial);
  CHECK(rig.source().results[4].kind == ErrorKind::vanished);
  for (auto& [index, result] : rig.source().results) CHECK(result.error_number == 0);
  rig.finish(5);
  CHECK(rig.session->destination->tally().files_vanished == 3);
  CHECK(rig.session->destination->tally().files_failed == 2);
  CHECK(rig.source().summary->files_failed == 5);
}

TEST_CASE("destination_told__other_content_than_promised__said_of_packs_and_of_pieces") {
  Rig rig;
  session::Entry small = file_entry("small", 3), large = file_entry("large", piece + 1);
  small.has_digest = true;
  small.digest = {1, 2};
  rig.announce({small, large});
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  rig.put_piece(1, 0, pattern(piece, 1));
  rig.put_piece(1, 1, as_bytes("x"));
  session::FileEnd end = end_of(1);
  end.has_digest = true;
  end.digest = {3, 4};
  rig.session->source_link->post(end);
  REQUIRE(rig.run_until_result(1));
  const std::string reason = "its content is not what its digest says";
  CHECK(rig.session->notes.told ==
        Words{"small: failed, 3, " + reason, "large: failed, " + std::to_string(piece + 1) + ", " + reason});
  for (const uint64_t i : {0u, 1u}) CHECK(rig.source().results[i].kind == ErrorKind::integrity);
  CHECK_FALSE(rig.temporary.has("small"));
  CHECK_FALSE(rig.temporary.has("large"));
  rig.finish(2);
}

// One length is that of all files whose length nobody knows yet: it is no number to tell people.
TEST_CASE("destination_told__no_place_for_a_file__the_systems_reason_and_its_known_length") {
  Rig rig;
  rig.temporary.write("d/x", "theirs");
  rig.temporary.write("f", "theirs");
  rig.announce(
      {file_entry("d", 3), file_entry("f/below", 7), file_entry("f/pipe", size_unknown), file_entry("long", file_bytes_max + 1)});
  CHECK(rig.session->notes.told == Words{"d: failed, 3, " + describe_errno(EISDIR),
                                         "f/below: failed, 7, " + describe_errno(ENOTDIR),
                                         "f/pipe: failed, 0, " + describe_errno(ENOTDIR),
                                         "long: failed, " + std::to_string(file_bytes_max + 1) + ", " + describe_errno(EOVERFLOW)});
  CHECK(rig.session->destination->tally().files_failed == 4);
  CHECK(rig.session->destination->tally().bytes_total == 0);
  rig.finish(4);
  CHECK(rig.source().summary->files_failed == 4);
}

TEST_CASE("destination_told__dry_run__what_would_come_of_each_and_its_length") {
  Rig rig(with(archive | session::option_dry_run));
  rig.temporary.write("same", "abc");
  rig.announce({file_entry("new", 9), file_entry("pipe", size_unknown), file_entry("same", 4)});
  CHECK(rig.session->notes.told == Words{"new: would-send, 9, ", "pipe: would-send, 0, ", "same: would-send, 4, "});
  CHECK(rig.session->destination->tally().bytes_total == 13);
  CHECK(rig.session->destination->tally().bytes == 0);
  rig.finish(3);
  CHECK_FALSE(rig.temporary.has("new"));
}

TEST_CASE("destination_told__it_cannot_be_placed__the_reason_of_the_system") {
  Rig rig;
  rig.announce({file_entry("f", 3), file_entry("pipe", size_unknown)});
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "rename_at" ? -EPERM : 0; };
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  rig.put_piece(1, 0, as_bytes("12345"));
  rig.session->source_link->post(end_with_size(1, 5));
  REQUIRE(rig.run_until_result(1));
  CHECK(rig.session->notes.told == Words{"f: failed, 3, " + describe_errno(EPERM), "pipe: failed, 0, " + describe_errno(EPERM)});
  CHECK(rig.source().results[0].error_number == EPERM);
  CHECK(rig.source().results[1].error_number == EPERM);
  rig.files.hook = nullptr;
  rig.finish(2);
}

TEST_CASE("destination_told__write_fails_once__said_as_a_warning_and_the_file_as_it_ended") {
  Rig rig;
  rig.announce({file_entry("f", 3)});
  bool once = true;
  rig.files.hook = [&](std::string_view call, std::string_view) {
    return call == "pwrite" && std::exchange(once, false) ? -ENXIO : 0;
  };
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 1; }));
  CHECK(rig.session->notes.warnings == Words{"f: " + describe_errno(ENXIO) + ": asked for again"});
  CHECK(rig.session->notes.told.empty());
  CHECK(rig.session->destination->tally().segments_resent == 1);
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.session->notes.told == Words{"f: ok, 3, "});
  rig.finish(1);
  CHECK(rig.session->notes.warnings.size() == 1);
}

TEST_CASE("destination_told__what_the_source_could_not_list__by_name_with_its_words") {
  Rig rig;
  rig.session->source_link->post(session::Unlisted{false, "locked", "Permission denied"});
  rig.session->source_link->post(session::Unlisted{true, "new\nline", "vanished"});
  rig.session->source_link->post(session::End{0, 2, 3});
  REQUIRE(rig.session->run([&] { return rig.source().summary != nullptr; }));
  CHECK(rig.session->notes.told == Words{"locked: failed, 0, the source could not list it: Permission denied",
                                         "new\nline: failed, 0, the source could not list it: vanished"});
  CHECK(rig.session->notes.failures == Words{"the source could not list 3 more: its own lines name them"});
  CHECK(rig.session->notes.unnamed == 3);
  CHECK(rig.session->destination->tally().unlisted_failed == 2);
  CHECK(rig.session->destination->tally().unlisted_vanished == 3);
}

// What is in the air when a session ends is nobody's: neither counted nor answered, nor written.
TEST_CASE("destination__ended_by_what_came_first__what_came_with_it_is_given_back_unseen") {
  Rig rig;
  rig.announce({file_entry("a", 3)});
  REQUIRE(rig.session->run([&] { return rig.source().lanes[0].credit >= rig.source().lanes[0].next_n + 4; }));
  const uint64_t received = rig.session->destination->tally().bytes_sent;
  const uint64_t rejected = rig.session->counters().get(Counter::session_rejected);
  const auto wrong = pattern(100, 1);
  session::SegmentHeader header;
  header.kind = session::SegmentKind::entries;
  header.count = 1;
  header.index = 1;
  header.sequence = rig.sequence + session::entries_outstanding_max + 1;
  rig.source().put(header, wrong);
  rig.source().put_pack({{0, "abc"}});
  rig.source().put_pack({{0, "abc"}}, Damage::trailer);
  session::SegmentHeader strange;
  strange.kind = session::SegmentKind::pack;
  strange.session = 12345;
  rig.source().put(strange, wrong);
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  rig.session->settle();
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
  CHECK(rig.source().aborted->message == "entries beyond what may be outstanding");
  CHECK(rig.session->destination->tally().bytes_sent == received + wrong.size());
  CHECK(rig.session->destination->tally().segments_resent == 0);
  CHECK(rig.session->counters().get(Counter::segments_bad) == 0);
  CHECK(rig.session->counters().get(Counter::session_rejected) == rejected + 1);
  CHECK(rig.source().resends.empty());
  CHECK(rig.source().results.empty());
  CHECK(rig.session->notes.told.empty());
  CHECK_FALSE(rig.temporary.has("a"));
  CHECK(rig.session->destination->idle());
  CHECK(rig.session->pool.free_count() == rig.session->pool.count());
}

}  // namespace ccixfer::recv

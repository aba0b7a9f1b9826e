// How files and sessions end at the destination: what comes too early, too late, twice, or from nobody, and what waits when one
// stops.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "app/recv/syncer.h"
#include "tests/unit/recv/rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

session::FileEnd end_with_size(uint64_t index, uint64_t size_bytes) {
  session::FileEnd end = end_of(index);
  end.size_bytes = size_bytes;
  return end;
}
uint64_t rejected(const Rig& rig) { return rig.session->counters().get(Counter::session_rejected); }

size_t staged_in(const Rig& rig, std::string_view suffix) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(rig.temporary.path(".ccixfer"))) {
    count += entry.path().filename().string().ends_with(suffix) ? 1u : 0u;
  }
  return count;
}

}  // namespace

TEST_CASE("destination__file_without_a_byte__is_there_when_the_source_says_so") {
  Rig rig;
  rig.announce({file_entry("pipe", size_unknown), file_entry("f", 0)});
  rig.session->source_link->post(end_with_size(0, 0));
  rig.session->source_link->post(end_of(1));
  REQUIRE(rig.run_until_result(1));
  CHECK(rig.source().results[0].kind == ErrorKind::ok);
  CHECK(rig.source().results[1].kind == ErrorKind::ok);
  CHECK(rig.temporary.has("pipe"));
  CHECK(rig.temporary.has("f"));
  CHECK(rig.temporary.read("pipe").empty());
  rig.finish(2);
  CHECK(rig.source().summary->files_ok == 2);
  CHECK(rig.source().summary->bytes == 0);
}

TEST_CASE("destination__unknown_length__ends_shorter_than_what_came__vanished") {
  Rig rig;
  rig.announce({file_entry("pipe", size_unknown)});
  const auto data = pattern(piece, 1);
  rig.put_piece(0, 0, data);
  rig.put_piece(0, 1, as_bytes("x"));
  REQUIRE(
      rig.session->run([&] { return rig.source().durable.bytes == 0 && rig.root->opened()->ledger->all().value().size() == 1; }));
  rig.session->source_link->post(end_with_size(0, piece));
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::vanished);
  CHECK_FALSE(rig.temporary.has("pipe"));
  CHECK(rig.root->opened()->ledger->empty());
  CHECK(staged_in(rig, session::part_suffix) == 0);
  rig.finish(1);
  CHECK(rig.session->destination->tally().bytes_total == 0);
}

TEST_CASE("destination__unknown_length__ends_without_a_possible_one__protocol") {
  Rig rig;
  rig.announce({file_entry("pipe", size_unknown)});
  session::FileEnd end = end_of(0);
  end.size_bytes = GENERATE(as<uint64_t>(), size_unknown, file_bytes_max + 1);
  CAPTURE(end.size_bytes);
  rig.session->source_link->post(end);
  rig.session->settle();
  REQUIRE(rig.session->destination->error() != nullptr);
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
}

TEST_CASE("destination__end_of_a_file__rejected_if_unknown_ignored_after_its_result") {
  Rig rig;
  rig.announce({file_entry("a", 3)});
  rig.session->source_link->post(end_of(1));
  REQUIRE(rig.session->run([&] { return rejected(rig) == 1; }));
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  rig.session->source_link->post(end_of(0, session::SourceOutcome::changed));
  rig.session->settle();
  CHECK(rejected(rig) == 1);
  CHECK(rig.source().result_count == 1);
  CHECK(rig.temporary.read("a") == "abc");
  rig.finish(1);
}

TEST_CASE("destination__messages_of_the_other_direction__rejected_and_it_goes_on") {
  Rig rig;
  rig.announce({file_entry("a", 3)});
  session::Answer answer;
  answer.runs.push_back({1, Verdict::send});
  rig.session->source_link->post(answer);
  REQUIRE(rig.session->run([&] { return rejected(rig) == 1; }));
  rig.session->source_link->post(session::Bye{});  // before the summary
  REQUIRE(rig.session->run([&] { return rejected(rig) == 2; }));
  rig.session->source_link->post_on_lane(0, session::Credit{5});
  REQUIRE(rig.session->run([&] { return rejected(rig) == 3; }));
  CHECK_FALSE(rig.session->destination->finished());
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  rig.finish(1);
}

TEST_CASE("destination__more_entries_than_the_end_says__protocol") {
  Rig rig;
  rig.announce({directory_entry("a"), directory_entry("b")});
  rig.session->source_link->post(session::End{1});
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
  CHECK(rig.source().summary == nullptr);
}

TEST_CASE("destination__fewer_entries_than_the_end_says__waits_for_the_others") {
  Rig rig;
  rig.announce({directory_entry("a")});
  rig.session->source_link->post(session::End{2});
  rig.session->settle();
  CHECK(rig.source().summary == nullptr);
  rig.announce({file_entry("a/f", 1)});
  rig.session->settle();
  CHECK(rig.source().summary == nullptr);  // and for their content
  rig.source().put_pack({{1, "x"}});
  REQUIRE(rig.session->run([&] { return rig.source().summary != nullptr; }));
  CHECK(rig.session->destination->tally().over);
  CHECK_FALSE(rig.session->destination->finished());  // until the source has heard of it
}

TEST_CASE("destination__link_lost__a_success_after_the_summary_and_an_error_before_it") {
  Rig rig;
  rig.announce({file_entry("a", 1)});
  const bool after = GENERATE(true, false);
  if (after) {
    rig.source().put_pack({{0, "x"}});
    rig.session->source_link->post(session::End{1});
    REQUIRE(rig.session->run([&] { return rig.source().summary != nullptr; }));
  }
  rig.session->destination->on_link_lost({ErrorKind::timeout, "gone"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  CHECK(rig.session->destination->finished());
  CHECK((rig.session->destination->error() == nullptr) == after);
  if (!after) CHECK(rig.session->destination->error()->kind == ErrorKind::timeout);
  CHECK(rig.session->pool.free_count() == rig.session->pool.count());
}

TEST_CASE("destination__the_source_departs_after_the_summary__ends_without_waiting_for_it") {
  Rig rig;
  rig.announce({file_entry("a", 1)});
  rig.source().put_pack({{0, "x"}});
  rig.session->source_link->post(session::End{1});
  REQUIRE(rig.session->run([&] { return rig.source().summary != nullptr; }));
  const bool departs = GENERATE(true, false);
  if (departs) rig.session->net.cut_reason = "the peer: the endpoint was destroyed";
  rig.session->net.dial_status = [](std::string_view) { return Status::unreachable; };
  const Instant gone = rig.session->now;
  rig.session->source_side().transport->cut_all();
  REQUIRE(rig.session->run([&] { return rig.session->destination->finished(); }));
  CHECK(rig.session->destination->error() == nullptr);
  CHECK((rig.session->now < gone + std::chrono::seconds(1)) == departs);  // the grace of a link without lanes
}

TEST_CASE("destination__entries_with_a_wrong_number__protocol") {
  Rig rig;
  rig.announce({file_entry("a", 3)});
  rig.source().put_entries({file_entry("b", 3)}, GENERATE(0u, 2u), 1);
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
  CHECK(rejected(rig) == 1);
}

TEST_CASE("destination__a_piece_comes_twice_or_of_another_version__counts_once") {
  Rig rig;
  const auto data = pattern(2 * piece, 1);
  rig.announce({file_entry("f", data.size())});
  const uint64_t entries_bytes = rig.session->destination->tally().bytes_sent;
  rig.put_piece(0, 0, Bytes(data).first(piece));
  rig.put_piece(0, 0, Bytes(data).first(piece));
  session::SegmentHeader other;
  other.kind = session::SegmentKind::piece;
  other.file_version = 6;
  other.sequence = 1;
  REQUIRE(rig.session->run([&] { return rig.source().has_credit(); }));
  rig.source().put(other, pattern(piece, 9));
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == piece; }));
  rig.put_piece(0, 0, Bytes(data).first(piece));  // durable by now
  rig.session->source_link->post(end_of(0));
  rig.session->settle();
  CHECK(rig.source().results.empty());
  rig.put_piece(0, 1, Bytes(data).subspan(piece));
  REQUIRE(rig.run_until_result(0));
  CHECK((rig.temporary.read("f") == hex_free(data)));
  CHECK(rejected(rig) == 0);
  CHECK(rig.source().resends.empty());
  rig.finish(1);
  CHECK(rig.source().summary->bytes == data.size());
  CHECK(rig.session->destination->tally().bytes_sent - entries_bytes == 5 * piece);
}

// Sixteen pieces are as much as may be lost at once.
TEST_CASE("destination__much_was_written__is_synced_before_its_time") {
  constexpr uint64_t enough = sync_bytes_max / piece;
  Rig rig;
  const auto data = pattern(piece, 1);
  rig.announce({file_entry("f", (enough + 2) * piece)});
  const Instant still = rig.session->now;
  const auto put = [&](uint64_t number) {
    while (!rig.source().has_credit()) {
      rig.session->turn();
      rig.session->now = still;
    }
    rig.source().put_piece(0, 5, number, data);
    for (int i = 0; i < 20; ++i) {
      rig.session->turn();
      rig.session->now = still;
    }
  };
  for (uint64_t number = 0; number + 1 < enough; ++number) put(number);
  CHECK(rig.source().durable.bytes == 0);
  put(enough - 1);
  CHECK(rig.source().durable.bytes == enough * piece);
  put(enough);
  CHECK(rig.source().durable.bytes == enough * piece);  // it begins anew
  rig.session->now = still + sync_interval - std::chrono::milliseconds(1);
  rig.session->turn();
  rig.session->now = still + sync_interval - std::chrono::milliseconds(1);
  for (int i = 0; i < 10; ++i) {
    rig.session->turn();
    rig.session->now = still + sync_interval - std::chrono::milliseconds(1);
  }
  CHECK(rig.source().durable.bytes == enough * piece);
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == (enough + 1) * piece; }));
}

// What was complete and not yet in the committer's hands when the session stopped.
TEST_CASE("destination__stopped_with_commits_that_wait__packs_go_and_pieces_are_kept") {
  Rig rig;
  const auto data = pattern(piece + 5, 1);
  rig.announce({file_entry("f", data.size()), file_entry("g", 1)});
  rig.session->source_link->post(end_of(0));
  rig.put_piece(0, 0, Bytes(data).first(piece));
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == piece; }));
  rig.work.held = true;
  rig.put_piece(0, 1, Bytes(data).subspan(piece));
  rig.source().put_pack({{1, "x"}});
  REQUIRE(rig.session->run([&] { return rig.work.in_flight() == 2; }));
  rig.work.held = false;
  rig.work.reap();
  CHECK(staged_in(rig, temporary_suffix) == 1);
  rig.session->destination->abort({ErrorKind::interrupted, "stop"});
  CHECK_FALSE(rig.session->destination->idle());
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  CHECK_FALSE(rig.temporary.has("f"));
  CHECK_FALSE(rig.temporary.has("g"));
  CHECK(staged_in(rig, temporary_suffix) == 0);
  CHECK(rig.root->opened()->ledger->pieces({path_key("f"), 5}).value().size() == 2);
  rig.again();
  rig.announce({file_entry("f", data.size())});
  CHECK(rig.source().verdicts[0] == Verdict::pieces);
  CHECK(rig.source().wants[0].empty());
}

TEST_CASE("destination__commit_ends_for_want_of_space__what_was_written_is_kept") {
  Rig rig;
  const auto data = pattern(piece + 5, 1);
  rig.announce({file_entry("f", data.size())});
  rig.files.hook = [](std::string_view call, std::string_view name) { return call == "rename_at" && name == "f" ? -ENOSPC : 0; };
  rig.session->source_link->post(end_of(0));
  rig.put_piece(0, 0, Bytes(data).first(piece));
  rig.put_piece(0, 1, Bytes(data).subspan(piece));
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr && rig.session->destination->idle(); }));
  rig.files.hook = nullptr;
  CHECK(rig.source().aborted->kind == ErrorKind::no_space);
  CHECK_FALSE(rig.temporary.has("f"));
  CHECK(rig.root->opened()->ledger->pieces({path_key("f"), 5}).value().size() == 2);
}

TEST_CASE("destination__modes_and_times_are_refused__each_counts_and_it_is_said_once") {
  Rig rig;
  rig.temporary.write("same", "s");
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "set_mtime" || call == "set_mode" ? -EPERM : 0; };
  rig.announce({directory_entry("d"), file_entry("d/a", 1), file_entry("d/large", piece + 1),
                directory_entry("d", session::EntryType::leave)});
  rig.source().put_pack({{1, "x"}});
  const auto data = pattern(piece + 1, 1);
  rig.put_piece(2, 0, Bytes(data).first(piece));
  rig.put_piece(2, 1, Bytes(data).subspan(piece));
  rig.session->source_link->post(end_of(2));
  REQUIRE(rig.session->run([&] { return rig.source().results.size() == 2; }));
  rig.session->source_link->post(session::End{4});
  REQUIRE(rig.session->run([&] { return rig.source().summary != nullptr; }));
  CHECK(rig.session->destination->tally().attributes_refused == 3);
  CHECK(rig.session->destination->tally().files == 2);
  CHECK(rig.session->destination->tally().files_failed == 0);
  CHECK(rig.source().summary->files_failed == 3);
  CHECK(rig.source().summary->files_ok == 2);
  REQUIRE(rig.session->notes.failures.size() == 1);
  CHECK(rig.session->notes.failures[0].find("3 files and directories") != std::string::npos);
}

TEST_CASE("destination__nothing_could_not_be_listed__nothing_is_said") {
  Rig rig;
  rig.announce({directory_entry("d")});
  SECTION("all of it was") { rig.session->source_link->post(session::End{1}); }
  SECTION("and what could not was named") {
    rig.session->source_link->post(session::Unlisted{true, "gone", "vanished"});
    rig.session->source_link->post(session::End{1, 0, 1});
    rig.session->source_link->post(session::End{1, 5, 5});  // again: the first counts
  }
  REQUIRE(rig.session->run([&] { return rig.source().summary != nullptr; }));
  CHECK(rig.session->destination->tally().unlisted_failed == 0);
  CHECK(rig.session->destination->tally().unlisted_vanished == rig.session->notes.files.size());
  CHECK(rig.session->notes.warnings.empty());
}

TEST_CASE("destination__source_gives_up_a_file_while_a_piece_is_written__ends_after_that") {
  Rig rig;
  rig.announce({file_entry("f", 2 * piece), file_entry("g", 1)});
  rig.work.held = true;
  rig.put_piece(0, 0, pattern(piece, 1), GENERATE(Damage::none, Damage::data));
  REQUIRE(rig.session->run([&] { return rig.work.in_flight() == 1; }));
  rig.session->source_link->post(end_of(0, session::SourceOutcome::vanished));
  rig.session->settle(20);
  CHECK(rig.source().results.empty());
  rig.work.held = false;
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::vanished);
  CHECK(rig.source().resends.empty());
  CHECK(staged_in(rig, session::part_suffix) == 0);
  CHECK(rig.root->opened()->ledger->empty());
  rig.put_piece(0, 1, pattern(piece, 1));  // late
  rig.session->settle(20);
  CHECK(rejected(rig) == 0);
  rig.source().put_pack({{1, "x"}});
  REQUIRE(rig.run_until_result(1));
  rig.finish(2);
  CHECK(rig.session->destination->tally().files_vanished == 1);
  CHECK(rig.session->destination->tally().files == 1);
}

// It may be read again another time: what is here of it stays for that run.
TEST_CASE("destination__source_cannot_read_a_file__its_pieces_are_kept") {
  Rig rig;
  const auto data = pattern(2 * piece, 1);
  rig.announce({file_entry("f", data.size())});
  rig.put_piece(0, 0, Bytes(data).first(piece));
  REQUIRE(rig.session->run([&] { return rig.session->destination->tally().bytes_sent > piece; }));
  rig.session->source_link->post(end_of(0, session::SourceOutcome::unreadable));
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::partial);
  CHECK(rig.root->opened()->ledger->pieces({path_key("f"), 5}).value().size() == 1);
  rig.finish(1);
  rig.again();
  rig.announce({file_entry("f", data.size())});
  CHECK(rig.source().verdicts[0] == Verdict::pieces);
}

TEST_CASE("destination__promised_digest_of_a_pack__other_content_has_failed") {
  Rig rig;
  session::Entry entry = file_entry("a", 3);
  entry.has_digest = true;
  entry.digest = session::file_digest({xxh3_128(as_bytes("abc"))});
  rig.announce({entry, file_entry("b", 1)});
  rig.source().put_pack({{0, "abd"}, {1, "x"}});
  REQUIRE(rig.session->run([&] { return rig.source().results.size() == 2; }));
  CHECK(rig.source().results[0].kind == ErrorKind::integrity);
  CHECK(rig.source().results[1].kind == ErrorKind::ok);
  CHECK_FALSE(rig.temporary.has("a"));
  CHECK(rig.temporary.read("b") == "x");
  rig.finish(2);
}

// What a source may have outstanding bounds the memory here: twice as much is nobody's slip.
TEST_CASE("destination__entries_without_end__protocol_at_twice_what_may_be_outstanding") {
  constexpr uint64_t most = 2 * uint64_t{session::entries_outstanding_max};
  constexpr uint64_t segment = session::entries_per_segment_max;
  static_assert(most % segment == 0);
  Rig rig;
  const auto announce = [&](uint64_t count) {
    std::vector<session::Entry> entries;
    for (uint64_t i = 0; i < count; ++i) entries.push_back(file_entry(std::to_string(rig.announced + i), 1));
    REQUIRE(rig.session->run([&] { return rig.source().has_credit(); }));
    rig.source().put_entries(entries, rig.announced, rig.sequence++);
    rig.announced += count;
    REQUIRE(rig.session->run([&] { return rig.source().verdicts.size() == rig.announced || rig.source().aborted; }));
  };
  while (rig.announced < most) announce(segment);
  CHECK(rig.source().aborted == nullptr);
  CHECK(rig.session->destination->tally().entries_answered == most);
  announce(1);
  REQUIRE(rig.source().aborted != nullptr);
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
}

TEST_CASE("destination__nothing_under_way__wants_no_turn_and_what_was_written_one_in_time") {
  Rig rig;
  rig.announce({file_entry("f", 2 * piece)});
  REQUIRE(rig.session->run([&] { return rig.session->destination->next_deadline() == never; }, 2000));
  rig.put_piece(0, 0, pattern(piece, 1));
  REQUIRE(rig.session->run([&] { return rig.session->destination->tally().bytes_sent > piece; }));
  for (int i = 0; i < 3; ++i) {
    const Instant still = rig.session->now;
    rig.session->turn();
    rig.session->now = still;
  }
  CHECK(rig.session->destination->next_deadline() > rig.session->now);
  CHECK(rig.session->destination->next_deadline() <= rig.session->now + sync_interval);
  CHECK_FALSE(rig.session->destination->in_disk());
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == piece; }));
  rig.session->destination->abort({ErrorKind::interrupted, "stop"});
  CHECK(rig.session->destination->next_deadline() <= rig.session->now);
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  rig.session->settle(20);
  CHECK(rig.session->destination->next_deadline() == never);
  const uint32_t free = rig.session->pool.free_count();
  rig.session->destination->on_lane_up(7);  // it takes none any more
  rig.session->destination->turn(rig.session->now);
  CHECK(rig.session->pool.free_count() == free);
  CHECK(rig.session->destination->idle());
}

// Held, a directory keeps its file system mounted.
TEST_CASE("root__its_last_session_ends__directories_of_other_file_systems_are_let_go") {
  Rig rig;
  auto second = std::make_unique<Session>(*rig.root, rig.work, rig.options);
  const int fd = rig.files.open(ports::FileSystem::no_directory, rig.temporary.path(), {.directory = true}, 0);
  auto directory = std::make_shared<HeldDirectory>(rig.files, fd);
  directory->identity.device = rig.root->opened()->device + 1;
  const std::weak_ptr<HeldDirectory> held = directory;
  rig.root->opened()->disk->look_at(directory);
  directory.reset();
  CHECK_FALSE(held.expired());
  rig.session.reset();
  CHECK_FALSE(held.expired());
  second.reset();
  CHECK(held.expired());
}

// Its bytes say nothing, so nobody is blamed: it is asked for again.
TEST_CASE("destination__trailer_is_damaged__counts_as_bad_and_not_as_a_fault_of_the_peer") {
  Rig rig;
  rig.announce({file_entry("a", 3)});
  const auto put = rig.source().put_pack({{0, "abc"}}, Damage::trailer);
  REQUIRE(rig.session->run([&] { return !rig.source().resends.empty(); }));
  rig.session->settle(20);
  REQUIRE(rig.source().resends.size() == 1);
  CHECK(rig.source().resends[0].n == put.second);
  CHECK(rejected(rig) == 0);
  CHECK(rig.session->counters().get(Counter::segments_bad) == 1);
  CHECK(rig.session->destination->tally().segments_resent == 1);
}

}  // namespace ccixfer::recv

// What a source may do wrong, or differently from what other tests' sources do, and what it and the observer are told then.
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <utility>

#include "app/recv/entry_queue.h"
#include "app/recv/opened_root.h"
#include "app/recv/piece_writer.h"
#include "app/recv/session_reports.h"
#include "app/session/for_later.h"
#include "app/session/receiver_words.h"
#include "app/session/tlv.h"
#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;
using namespace std::chrono_literals;

TEST_CASE("destination__source_that_is_alone_says_that_a_file_is_for_later__is_a_mistake") {
  Rig rig;
  rig.announce({file_entry("f", 10)});
  for (uint64_t i = 0; i <= rejected_max; ++i) rig.session->source_link->post(session::end_for_later(0));
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
}

// Its hash is right, so it arrived as it was sent: what is not a list of files is never half a delivery.
TEST_CASE("destination__pack_with_fewer_files_than_it_says__nothing_of_it_is_delivered") {
  Rig rig;
  rig.announce({file_entry("a", 3), file_entry("b", 3)});
  std::vector<std::byte> data(session::pack_record_bytes + 3);
  const Bytes content = as_bytes("abc");
  session::put_pack_record(data, {0, 3, xxh3_128(content), content});
  std::copy(content.begin(), content.end(), data.begin() + session::pack_record_bytes);
  session::SegmentHeader header;
  header.kind = session::SegmentKind::pack;
  header.count = 2;
  const auto put = rig.source().put(header, data);
  REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 1; }));
  CHECK(rig.source().resends[0].index == session::Resend::by_segment);
  CHECK(rig.source().resends[0].n == put.second);
  rig.session->settle();
  CHECK(rig.source().results.empty());
  rig.source().put_pack({{0, "abc"}, {1, "def"}});
  REQUIRE(rig.run_until_result(1));
  CHECK(rig.temporary.read("a") == "abc");
  rig.finish(2);
}

TEST_CASE("destination__impossible_pieces__are_rejected_and_the_file_comes_all_the_same") {
  Rig rig;
  rig.announce({file_entry("f", piece + 1), file_entry("pipe", ~uint64_t{0})});
  const auto data = pattern(piece, 1);
  uint64_t rejected = 0;
  const auto reject = [&](uint64_t index, uint64_t number, size_t length_bytes) {
    rig.put_piece(index, number, Bytes(data).first(length_bytes));
    CHECK(rig.session->run([&] { return rig.session->counters().get(Counter::session_rejected) == rejected + 1; }));
    rejected = rig.session->counters().get(Counter::session_rejected);
  };
  reject(2, 0, 1);                            // of a file that nobody told of
  reject(0, 2, 1);                            // behind its end
  reject(0, 0, 1);                            // too short, too long
  reject(0, 1, 2);                            //
  reject(1, 0, 0);                            // nothing
  reject(1, piece_count(file_bytes_max), 1);  // beyond the longest file
  rig.put_piece(1, 0, data);
  rig.session->settle();
  reject(1, pieces_ahead_max + 2, 1);                            // far ahead of what is there
  rig.put_piece(1, pieces_ahead_max + 1, Bytes(data).first(1));  // as far ahead as may be
  rig.session->settle();
  CHECK(rig.session->counters().get(Counter::session_rejected) == rejected);
  rig.put_piece(0, 0, data);
  rig.put_piece(0, 1, Bytes(data).first(1));
  rig.session->source_link->post(end_of(0));
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::ok);
}

// What opens a session is read before its destination is there.
TEST_CASE("destination__words_of_the_wrong_time_or_direction__counted_and_nothing_else") {
  Rig rig;
  uint64_t rejected = 0;
  for (const session::Message& message :
       std::vector<session::Message>{session::OpenPart{}, session::Opened{1, 1}, session::Queued{}, session::Answer{},
                                     session::Summary{}, session::Durable{}, session::Bye{}}) {
    CAPTURE(message.index());
    rig.session->destination->on_message(message);
    CHECK(rig.session->counters().get(Counter::session_rejected) == ++rejected);
  }
  CHECK(rig.session->destination->error() == nullptr);
  rig.announce({file_entry("f", 1)});
  rig.source().put_pack({{0, "x"}});
  REQUIRE(rig.run_until_result(0));
  rig.finish(1);
}

TEST_CASE("destination__started__it_counts_from_then_on_whether_it_gets_on") {
  Rig rig;
  CHECK(rig.session->destination->last_progress() >= rig.session->began);
  CHECK(rig.session->destination->last_progress() <= rig.session->now);
}

// It has ended; an answer would be one to an answer.
TEST_CASE("destination__the_source_aborts__hears_no_abort_in_return") {
  Rig rig;
  const ErrorKind kind = GENERATE(ErrorKind::interrupted, ErrorKind::ok);  // the second is no end of a session
  rig.session->source_link->post(session::Abort{kind, "stop"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->finished(); }));
  rig.session->settle();
  CHECK(rig.source().aborted == nullptr);
  CHECK(rig.session->destination->error()->kind == (kind == ErrorKind::ok ? ErrorKind::protocol : kind));
}

TEST_CASE("destination__dry_run_below_a_root_that_is_not_there__says_that_it_would_be_made") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const auto root = Root::look(files, temporary.path("absent")).value();
  InlinePool work(files);
  Session session(*root, work, {.options = archive | session::option_dry_run, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0});
  session.source.put_entries({directory_entry(""), file_entry("f", 3), directory_entry("", session::EntryType::leave)}, 0, 0);
  REQUIRE(session.run([&] { return session.source.verdicts.size() == 3; }));
  CHECK(session.source.verdicts[0] == Verdict::make);
  CHECK(session.source.verdicts[1] == Verdict::send);
  CHECK_FALSE(temporary.has("absent"));
}

// As a source of a later version would send it: a field of the second entry that must be understood.
TEST_CASE("destination__entry_with_an_unknown_mandatory_field__fails_alone_with_its_reason") {
  Rig rig;
  std::vector<std::byte> data;
  for (const char* name : {"a", "b", "c"}) {
    std::vector<std::byte> bytes(256);
    session::EntryEncoder encoder(bytes);
    REQUIRE(encoder.add(file_entry(name, 1)));
    const size_t at = data.size();
    data.insert(data.end(), bytes.begin(), bytes.begin() + encoder.size_bytes());
    if (std::string_view(name) != "b") continue;
    data[at + 1] = std::byte{1};  // has TLVs
    wire::Writer out(data);
    out.u32(6);
    out.u16(session::tlv_mandatory | 7);
    out.u32(0);
  }
  session::SegmentHeader header;
  header.kind = session::SegmentKind::entries;
  header.count = 3;
  rig.source().put(header, data);
  REQUIRE(rig.session->run([&] { return rig.source().verdicts.size() == 3; }));
  CHECK(rig.source().verdicts[0] == Verdict::send);
  CHECK(rig.source().verdicts[1] == Verdict::failed);
  CHECK(rig.source().verdicts[2] == Verdict::send);
  CHECK(rig.source().results[1].error_number == session::errno_of_unknown_field);
  rig.source().put_pack({{0, "x"}, {2, "z"}});
  REQUIRE(rig.run_until_result(2));
  rig.finish(3);
  CHECK(rig.source().summary->files_ok == 2);
  CHECK(rig.source().summary->files_failed == 1);
  CHECK(rig.temporary.has("a"));
  CHECK_FALSE(rig.temporary.has("b"));
  CHECK(rig.temporary.has("c"));
}

// A bound on memory: segments that come ahead of their turn wait in it.
TEST_CASE("destination__entries_held_ahead__up_to_a_bound_of_bytes") {
  Rig rig;
  const auto data = pattern(entries_segment_bytes_max - session::segment_trailer_bytes, 1);
  const uint64_t held_max = entries_held_bytes_max / entries_segment_bytes_max;
  session::SegmentHeader header;
  header.kind = session::SegmentKind::entries;
  header.count = 1;
  for (uint64_t i = 1; i <= held_max + 1; ++i) {
    REQUIRE(rig.session->run([&] { return rig.source().has_credit(); }));
    CHECK(rig.source().aborted == nullptr);
    header.sequence = i;
    rig.source().put(header, data);
  }
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
}

TEST_CASE("destination__unknown_length__counts_in_the_totals_when_it_is_there") {
  Rig rig;
  rig.announce({file_entry("f", ~uint64_t{0}), file_entry("g", 2)});
  CHECK(rig.session->destination->tally().bytes_total == 2);
  rig.put_piece(0, 0, as_bytes("abc"));
  session::FileEnd end = end_of(0);
  end.size_bytes = 3;
  rig.session->source_link->post(end);
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.session->destination->tally().bytes_total == 5);
  CHECK(rig.session->destination->tally().bytes == 3);
}

// A write that fails for a reason of this file only: once it is asked for again, then it fails alone.
TEST_CASE("destination__writes_of_one_file_fail_twice__it_fails_and_others_go_on") {
  Rig rig;
  const bool whole = GENERATE(true, false);
  rig.announce({file_entry("f", whole ? 3 : piece + 1), file_entry("g", 1)});
  const auto data = pattern(piece, 1);
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "pwrite" ? -ENXIO : 0; };
  for (size_t i = 0; i < 2; ++i) {
    whole ? (void)rig.source().put_pack({{0, "abc"}}) : rig.put_piece(0, 0, data);
    if (i == 0) REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 1; }));
  }
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::file_io);
  CHECK(rig.source().results[0].error_number == ENXIO);
  CHECK(rig.session->notes.warnings.size() == 1);
  CHECK(rig.session->notes.warnings.at(0).find("asked for again") != std::string::npos);
  rig.files.hook = nullptr;
  rig.source().put_pack({{1, "x"}});
  REQUIRE(rig.run_until_result(1));
  CHECK(rig.source().results[1].kind == ErrorKind::ok);
  rig.finish(2);
  CHECK(rig.source().summary->files_failed == 1);
}

// All of it was durable before, so that there is nothing to ask for again.
TEST_CASE("destination__sync_at_the_commit_fails_and_no_piece_is_lost__the_file_fails") {
  Rig rig;
  const auto data = pattern(2 * piece, 1);
  rig.announce({file_entry("f", data.size())});
  for (const uint64_t i : {0u, 1u}) rig.put_piece(0, i, Bytes(data).subspan(i * piece, piece));
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == data.size(); }));
  bool once = true;
  rig.files.hook = [&](std::string_view call, std::string_view) {
    return call == "fsync" && std::exchange(once, false) ? -EIO : 0;
  };
  rig.session->source_link->post(end_of(0));
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::file_io);
  CHECK(rig.source().results[0].error_number == EIO);
  CHECK_FALSE(rig.temporary.has("f"));
  CHECK(rig.source().resends.empty());
  rig.finish(1);
}

// What is written is still to be saved then. Nobody is left whom one could ask again.
TEST_CASE("destination__last_sync_after_an_abort_fails__nothing_is_asked_for_nor_said") {
  Rig rig;
  rig.announce({file_entry("f", 2 * piece)});
  rig.put_piece(0, 0, pattern(piece, 1));
  REQUIRE(rig.session->run([&] { return rig.session->destination->tally().bytes_sent >= piece; }));
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "fsync" ? -EIO : 0; };
  rig.session->destination->abort({ErrorKind::interrupted, "stop"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  CHECK(rig.session->notes.warnings.empty());
  CHECK(rig.source().resends.empty());
  CHECK(rig.session->destination->error()->kind == ErrorKind::interrupted);
  CHECK(rig.root->opened()->ledger->empty());
}

TEST_CASE("destination__end_with_another_count_than_before__protocol_and_the_source_is_told") {
  Rig rig;
  rig.announce({file_entry("f", 1)});
  rig.session->source_link->post(session::End{2});
  rig.session->source_link->post(session::End{2});
  rig.session->settle();
  CHECK(rig.source().aborted == nullptr);
  rig.session->source_link->post(session::End{3});
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
}

TEST_CASE("destination__directory_that_takes_no_time__said_and_counted") {
  Rig rig;
  rig.announce({directory_entry("d")});
  rig.files.hook = [](std::string_view call, std::string_view) { return call == "set_mtime" ? -ENXIO : 0; };
  rig.announce({directory_entry("d", session::EntryType::leave)});
  rig.finish(2);
  CHECK(rig.source().summary->files_failed == 1);
  REQUIRE(rig.session->notes.failures.size() == 1);
  CHECK(rig.session->notes.failures[0].find("d: cannot set mode or times: ") == 0);
}

TEST_CASE("destination__dry_run__tells_of_each_file_and_counts_it") {
  DestinationOptions options;
  options.options = archive | session::option_dry_run;
  Rig rig(options);
  rig.temporary.write("there", "x");
  rig.announce({file_entry("new", 3), file_entry("there", 5), directory_entry("d")});
  rig.finish(3);
  CHECK(rig.session->notes.files ==
        std::map<std::string, std::string>{{"new", "would-send"}, {"there", "would-send"}, {"d", "would-make"}});
  CHECK(rig.session->destination->tally().bytes_total == 8);
  CHECK(rig.session->destination->tally().files_unchanged == 0);
  CHECK(rig.temporary.read("there") == "x");
  CHECK_FALSE(rig.temporary.has("new"));
}

// All that was there is used up and the source has more: it asks, within the credit that it has.
TEST_CASE("destination__asked_for_credit__beyond_what_was_given_it_is_rejected") {
  Rig rig;
  const uint64_t credit = rig.source().lanes.at(0).credit;
  rig.session->source_link->post_on_lane(0, session::Ask{credit});
  rig.session->settle();
  CHECK(rig.session->counters().get(Counter::session_rejected) == 0);
  rig.session->source_link->post_on_lane(0, session::Ask{credit - 1});
  rig.session->settle();
  CHECK(rig.session->counters().get(Counter::session_rejected) == 0);
  rig.session->source_link->post_on_lane(0, session::Ask{credit + 1});
  REQUIRE(rig.session->run([&] { return rig.session->counters().get(Counter::session_rejected) == 1; }));
}

// A mailbox of the lane is somebody else's already: the lane is closed and comes back with others, and nothing is posted there.
TEST_CASE("destination__next_mailbox_of_a_lane_is_taken__another_lane_in_its_place") {
  Rig rig;
  const session::LaneOpen first = rig.source().lanes.at(0).open;
  constexpr uint64_t taken = 20;
  auto& mailboxes = rig.session->destination_side().endpoint->mailboxes();
  REQUIRE(mailboxes.open(first.mailbox_base + taken, {.key = first.key + 1}) == Status::success);
  for (uint64_t i = 0; i < taken + 5; ++i) {
    REQUIRE(rig.session->run([&] { return rig.source().has_credit(); }));
    rig.source().put({}, {});
  }
  CHECK(rig.source().lanes.at(0).open.lane_session != first.lane_session);
  CHECK(mailboxes.close(first.mailbox_base + taken) == Status::success);
  CHECK_FALSE(mailboxes.next_completion().has_value());
}

// The disk is slow, but what is read back of a large file gets on, piece by piece.
TEST_CASE("destination__reads_back_what_is_staged_for_long__each_piece_counts_as_alive") {
  DestinationOptions options;
  options.options = archive;
  options.disk_patience = 90s;
  Rig rig(options);
  const auto data = pattern(4 * piece, 1);
  rig.announce({file_entry("f", 5 * piece)});
  for (uint64_t i = 0; i < 4; ++i) rig.put_piece(0, i, Bytes(data).subspan(i * piece, piece));
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == 4 * piece; }));
  rig.session->destination->abort({ErrorKind::network, "lost"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  rig.session = std::make_unique<Session>(*rig.root, rig.work, options);
  rig.session->settle();
  std::string stuck;
  rig.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "pread") {
      rig.session->now += 60s;
      rig.session->destination->turn(rig.session->now);
      stuck += rig.session->destination->stuck_disk();
    }
    return 0;
  };
  rig.source().put_entries({file_entry("f", 5 * piece)}, 0, 0);
  REQUIRE(rig.session->run([&] { return rig.source().verdicts.size() == 1; }));
  CHECK(rig.source().verdicts[0] == Verdict::pieces);
  CHECK(stuck.empty());
}

}  // namespace ccixfer::recv

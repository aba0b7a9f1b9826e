// The whole source against a scripted destination.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "core/host/work_pool.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

using session::EntryType;
using session::SegmentKind;
using session::SourceOutcome;

constexpr uint64_t mib = 1u << 20;

size_t resends(const Bench& bench) { return static_cast<size_t>(bench.tally().segments_resent); }

TEST_CASE("source__one_file__is_sent_under_the_empty_name") {
  const TempDir dir;
  dir.file("data.bin", "hello");
  Bench bench(options_of({dir.path("data.bin")}));
  bench.run();
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.receiver.entries.size() == 1);
  CHECK(bench.receiver.content("") == "hello");
  CHECK(bench.tally().files == 1);
  CHECK(bench.tally().bytes == 5);
  CHECK(bench.tally().bytes_total == 5);
  CHECK(bench.tally().bytes_sent == 5);
  CHECK(bench.tally().total_known);
  CHECK(bench.receiver.bye);
  CHECK(bench.seen.files.at(0).path == dir.path("data.bin"));
}

TEST_CASE("source__one_file_into_a_directory__keeps_its_name") {
  const TempDir dir;
  dir.file("data.bin", "hello");
  Bench bench(options_of({dir.path("data.bin")}, session::option_directory));
  bench.run();
  CHECK(bench.receiver.content("data.bin") == "hello");
}

TEST_CASE("source__tree__every_file_is_whole_and_leave_follows_content") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file("t/b/c", "C");
  dir.file_of("t/b/large", 9 * mib + 17);
  dir.file("t/empty", "");
  dir.file_of("t/z/just-below", 4 * mib - 32);
  dir.file_of("t/z/just-above", 4 * mib - 31);
  dir.file_of("t/z/one-piece", 4 * mib);
  for (const bool newest_first : {false, true}) {
    Bench bench(options_of({dir.path("t")}, archive));
    bench.work.newest_first = newest_first;
    bench.run();
    CHECK(bench.receiver.content("a") == "A");
    CHECK(bench.receiver.content("b/c") == "C");
    CHECK(bench.receiver.content("b/large") == pattern(9 * mib + 17));
    CHECK(bench.receiver.content("empty").empty());
    CHECK(bench.receiver.content("z/just-below") == pattern(4 * mib - 32));
    CHECK(bench.receiver.content("z/just-above") == pattern(4 * mib - 31));
    CHECK(bench.receiver.content("z/one-piece") == pattern(4 * mib));
    CHECK(bench.receiver.by_path("z/just-below")->packed);
    CHECK(!bench.receiver.by_path("z/just-above")->packed);
    std::vector<std::string> order;
    for (const auto& [index, file] : bench.receiver.entries) {
      order.push_back((file.entry.type == EntryType::leave       ? "<"
                       : file.entry.type == EntryType::directory ? ">"
                                                                 : "") +
                      file.entry.path);
    }
    CHECK(order == std::vector<std::string>{">", "a", ">b", "b/c", "b/large", "<b", "empty", ">z", "z/just-above", "z/just-below",
                                            "z/one-piece", "<z", "<"});
    CHECK(bench.tally().files == 7);
    CHECK(bench.tally().bytes_sent == bench.tally().bytes);
  }
}

TEST_CASE("source__large_file_sent_whole__its_end_carries_the_digest") {
  const TempDir dir;
  dir.file_of("f", 9 * mib);
  Bench bench(options_of({dir.path("f")}));
  bench.work.newest_first = true;
  bench.run();
  const ReceivedFile& file = *bench.receiver.by_path("");
  REQUIRE(file.end);
  REQUIRE(file.end->has_digest);
  std::vector<Hash128> hashes;
  for (const auto& [piece, bytes] : file.pieces) hashes.push_back(xxh3_128(as_bytes(bytes)));
  CHECK(file.end->digest == session::file_digest(hashes));
}

TEST_CASE("source__some_pieces_wanted__only_those_are_sent") {
  const TempDir dir;
  dir.file_of("f", 21 * mib);
  Bench bench(options_of({dir.path("f")}));
  bench.receiver.decide = [](const session::Entry&, uint64_t) { return Verdict::pieces; };
  bench.receiver.want = [](uint64_t) { return std::vector<session::Want::Range>{{1, 2}, {5, 1}}; };
  bench.run();
  const ReceivedFile& file = *bench.receiver.by_path("");
  REQUIRE(file.pieces.size() == 3);
  CHECK(file.pieces.at(5).size() == mib);
  CHECK(file.pieces.at(1) == pattern(21 * mib).substr(4 * mib, 4 * mib));
  CHECK(!file.end->has_digest);
  CHECK(bench.tally().bytes_sent == 9 * mib);
  CHECK(bench.tally().bytes_total == 9 * mib);
}

TEST_CASE("source__nothing_of_a_file_wanted__end_only") {
  const TempDir dir;
  dir.file_of("f", 9 * mib);
  Bench bench(options_of({dir.path("f")}));
  bench.receiver.decide = [](const session::Entry&, uint64_t) { return Verdict::pieces; };
  bench.run();
  CHECK(bench.receiver.by_path("")->end->outcome == SourceOutcome::ok);
  CHECK(bench.tally().bytes_sent == 0);
}

TEST_CASE("source__unchanged__nothing_is_sent") {
  const TempDir dir;
  for (int i = 0; i < 300; ++i) dir.file("t/" + std::to_string(i), "content");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.decide = [](const session::Entry& entry, uint64_t) {
    return entry.type == EntryType::file ? Verdict::unchanged : Verdict::done;
  };
  bench.run();
  CHECK(bench.tally().files_unchanged == 300);
  CHECK(bench.tally().bytes_sent == 0);
  CHECK(bench.tally().bytes_total == 0);
}

TEST_CASE("source__pool_of_two_buffers__all_is_sent") {
  const TempDir dir;
  for (int i = 0; i < 3000; ++i) dir.file("t/" + std::to_string(i), std::to_string(i));
  dir.file_of("t/large", 14 * mib);
  const uint32_t buffers = GENERATE(1u, 2u);
  Bench bench(options_of({dir.path("t")}), buffers);
  bench.run();
  CHECK(bench.tally().files == 3001);
  CHECK(bench.receiver.content("2999") == "2999");
  CHECK(bench.receiver.content("large") == pattern(14 * mib));
}

TEST_CASE("source__lane_dies__its_puts_go_again_on_another") {
  const TempDir dir;
  dir.file_of("t/large", 40 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.start();
  bench.receiver.lane_up(1);
  bench.receiver.puts_per_turn = 1;
  bench.run_until([&] { return bench.receiver.in_air() >= 4; });
  bench.receiver.puts_per_turn = 0;
  for (int i = 0; i < 5; ++i) bench.step();
  bench.receiver.lane_down(0);
  bench.receiver.puts_per_turn = 3;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("large") == pattern(40 * mib));
  CHECK(resends(bench) >= 1);
  CHECK(bench.tally().bytes_sent > bench.tally().bytes);
}

TEST_CASE("source__every_lane_dies_and_one_comes_back__goes_on_with_a_new_numbering") {
  const TempDir dir;
  dir.file_of("t/large", 40 * mib);
  for (int i = 0; i < 10; ++i) dir.file("t/" + std::to_string(i), "small");
  Bench bench(options_of({dir.path("t")}));
  bench.start();
  for (int death = 0; death < 3; ++death) {
    const size_t before = bench.receiver.puts.size();
    bench.run_until([&] { return bench.receiver.puts.size() > before + 1; });
    bench.receiver.lane_down(0);
    for (int i = 0; i < 3; ++i) bench.step();
    bench.receiver.lane_up(0);
  }
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("large") == pattern(40 * mib));
  CHECK(bench.tally().files == 11);
}

TEST_CASE("source__mailbox_not_ready__the_same_number_goes_again") {
  const TempDir dir;
  dir.file_of("t/large", 20 * mib);
  Bench bench(options_of({dir.path("t")}));
  int failures = 0;
  bench.receiver.put_status = [&failures](const Put& put) {
    return put.header.kind == SegmentKind::piece && ++failures <= 3 ? Status::mailbox_empty : Status::success;
  };
  bench.run();
  CHECK(failures > 3);
  CHECK(resends(bench) == 3);
  CHECK(bench.receiver.closed.empty());
  CHECK(bench.receiver.every_number_placed(0));
  CHECK(bench.receiver.content("large") == pattern(20 * mib));
}

TEST_CASE("source__put_is_refused_after_a_long_wait__its_pause_begins_then") {
  const TempDir dir;
  dir.file_of("t/large", 20 * mib);
  Bench bench(options_of({dir.path("t")}));
  bool refusing = true;
  bench.receiver.put_status = [&refusing](const Put& put) {
    return put.header.kind == SegmentKind::piece && refusing ? Status::mailbox_empty : Status::success;
  };
  bench.start();
  bench.run_until([&] { return bench.receiver.count(SegmentKind::entries) > 0 && bench.receiver.in_air() == 0; });
  bench.receiver.puts_per_turn = 0;
  bench.run_until([&] { return bench.receiver.in_air() > 0; });
  bench.now += std::chrono::hours(1);  // nobody turned the source meanwhile
  bench.receiver.puts_per_turn = 1;
  bench.step();
  CHECK(resends(bench) == 0);
  refusing = false;
  bench.receiver.puts_per_turn = 1000;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(resends(bench) == 1);
  CHECK(bench.receiver.content("large") == pattern(20 * mib));
}

TEST_CASE("source__lane_dies_while_a_put_waits_for_its_next_try__it_goes_elsewhere") {
  const TempDir dir;
  dir.file_of("t/large", 20 * mib);
  Bench bench(options_of({dir.path("t")}));
  int refused = 0;
  bench.receiver.put_status = [&refused](const Put& put) {
    return put.header.kind == SegmentKind::piece && ++refused == 1 ? Status::mailbox_empty : Status::success;
  };
  bench.start();
  bench.run_until([&] { return refused >= 1; });
  CHECK(resends(bench) == 0);  // its pause is not over
  bench.receiver.lane_down(0);
  bench.receiver.lane_up(0);  // before any turn: another lane session under the same index
  bench.receiver.put_status = [](const Put&) { return Status::success; };
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("large") == pattern(20 * mib));
  CHECK(bench.receiver.every_number_placed(0));
}

TEST_CASE("source__mailbox_stale__lane_is_closed_and_its_segment_goes_elsewhere") {
  const TempDir dir;
  dir.file_of("t/large", 20 * mib);
  Bench bench(options_of({dir.path("t")}));
  int failures = 0;
  bench.receiver.put_status = [&failures](const Put& put) {
    return put.header.kind == SegmentKind::piece && ++failures == 1 ? Status::mailbox_stale : Status::success;
  };
  bench.start();
  bench.run_until([&] { return !bench.receiver.closed.empty(); });
  CHECK(bench.receiver.closed == std::vector<LaneIndex>{0});
  bench.receiver.lane_down(0);
  bench.receiver.lane_up(1);
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("large") == pattern(20 * mib));
}

TEST_CASE("source__link_takes_no_more__tries_again") {
  const TempDir dir;
  dir.file_of("t/large", 20 * mib);
  Bench bench(options_of({dir.path("t")}));
  int asked = 0;
  bench.receiver.accept = [&asked](LaneIndex) { return ++asked % 3 == 0 ? Status::success : Status::no_buffers; };
  bench.run();
  CHECK(bench.receiver.content("large") == pattern(20 * mib));
  CHECK(resends(bench) == 0);
}

TEST_CASE("source__file_vanishes__its_end_says_so_and_the_rest_arrives") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file("t/gone", "G");
  dir.file_of("t/gone-large", 9 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.decide = [&dir](const session::Entry& entry, uint64_t) {
    std::filesystem::remove(dir.path("t/gone"));
    std::filesystem::remove(dir.path("t/gone-large"));
    return entry.type == EntryType::file ? Verdict::send : Verdict::done;
  };
  bench.run();
  CHECK(bench.receiver.by_path("gone")->end->outcome == SourceOutcome::vanished);
  CHECK(bench.receiver.by_path("gone-large")->end->outcome == SourceOutcome::vanished);
  CHECK(bench.receiver.content("a") == "A");
  CHECK(bench.tally().files == 1);
  CHECK(bench.tally().files_vanished == 2);
  CHECK(bench.tally().files_failed == 0);
  CHECK(bench.seen.find("gone")->status == "failed");
  CHECK(bench.seen.find("gone")->reason == "vanished");
  CHECK(bench.seen.warnings.empty());
}

TEST_CASE("source__file_cannot_be_read__unreadable_and_the_rest_arrives") {
  const TempDir dir;
  dir.file("t/a", "A");
  dir.file("t/secret", "S");
  dir.file_of("t/secret-large", 9 * mib);
  Bench bench(options_of({dir.path("t")}));
  bench.files.hook = [](std::string_view call, std::string_view name) {
    return call == "open" && name.starts_with("secret") ? -EACCES : 0;
  };
  bench.run();
  CHECK(bench.receiver.by_path("secret")->end->outcome == SourceOutcome::unreadable);
  CHECK(bench.receiver.by_path("secret-large")->end->outcome == SourceOutcome::unreadable);
  CHECK(bench.receiver.content("a") == "A");
  CHECK(bench.tally().files_failed == 2);
  CHECK(bench.tally().files_vanished == 0);
}

TEST_CASE("source__read_error__that_file_fails") {
  const TempDir dir;
  dir.file_of("t/large", 9 * mib);
  Bench bench(options_of({dir.path("t")}));
  int reads = 0;
  bench.files.hook = [&reads](std::string_view call, std::string_view) { return call == "pread" && ++reads == 2 ? -EIO : 0; };
  bench.run();
  CHECK(bench.receiver.by_path("large")->end->outcome == SourceOutcome::unreadable);
  CHECK(bench.tally().files_failed == 1);
}

TEST_CASE("source__small_file_changes_while_read__never_a_mixture") {
  const TempDir dir;
  dir.file("t/a", "before");
  Bench bench(options_of({dir.path("t")}));
  bench.files.after_pread = [&dir](int) { dir.file("t/a", "longer than before"); };
  bench.run();
  const ReceivedFile& file = *bench.receiver.by_path("a");
  CHECK(!file.packed);
  CHECK(file.end->outcome == SourceOutcome::changed);
  CHECK(bench.tally().files_vanished == 1);
}

TEST_CASE("source__small_file_touched_once_while_read__read_again") {
  const TempDir dir;
  dir.file("t/a", "before");
  Bench bench(options_of({dir.path("t")}));
  int reads = 0;
  bench.files.after_pread = [&](int) {  // a new mode changes the version, and neither size nor mtime
    if (++reads == 1) std::filesystem::permissions(dir.path("t/a"), std::filesystem::perms::owner_all);
  };
  bench.run();
  CHECK(bench.receiver.content("a") == "before");
  CHECK(reads >= 2);
}

TEST_CASE("source__large_file_changes__shrinks_or_grows__ends_as_changed") {
  const TempDir dir;
  dir.file_of("t/large", 21 * mib);
  const uint64_t size = GENERATE(5 * mib, 30 * mib);
  Bench bench(options_of({dir.path("t")}));
  int reads = 0;
  bench.files.after_pread = [&](int) {
    if (++reads == 2) std::filesystem::resize_file(dir.path("t/large"), size);
  };
  bench.run();
  CHECK(bench.receiver.by_path("large")->end->outcome == SourceOutcome::changed);
  CHECK(bench.tally().files_vanished == 1);
  CHECK(bench.tally().files == 0);
}

TEST_CASE("source__pieces_wanted_again__are_read_and_sent_again") {
  const TempDir dir;
  dir.file_of("t/large", 13 * mib);
  dir.file("t/small", "S");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.giving_results = false;
  bench.start();
  bench.run_until([&] {
    const ReceivedFile* large = bench.receiver.by_path("large");
    const ReceivedFile* small = bench.receiver.by_path("small");
    return large != nullptr && large->end && small->packed;
  });
  for (auto& [index, file] : bench.receiver.entries) {
    if (file.entry.path == "large") {
      file.pieces.erase(2);
      file.end.reset();
      session::Resend resend;
      resend.index = index;
      resend.piece = 2;
      bench.receiver.say(resend);
    }
    if (file.entry.path == "small") {
      file.packed.reset();
      session::Resend resend;
      resend.index = index;
      bench.receiver.say(resend);
    }
  }
  bench.receiver.giving_results = true;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.receiver.content("large") == pattern(13 * mib));
  CHECK(bench.receiver.by_path("large")->end->has_digest);
  CHECK(bench.receiver.content("small") == "S");
  CHECK(resends(bench) == 2);
  CHECK(bench.tally().bytes_sent == 13 * mib + 1 + 4 * mib + 1);
}

TEST_CASE("source__segments_damaged_on_the_way__named_by_lane_and_number__go_again") {
  const TempDir dir;
  dir.file_of("t/large", 13 * mib);
  for (int i = 0; i < 50; ++i) dir.file("t/" + std::to_string(i), std::to_string(i));
  Bench bench(options_of({dir.path("t")}));
  std::set<SegmentKind> hit;
  bench.receiver.damaged = [&hit](const Put& put) { return hit.insert(put.header.kind).second; };
  bench.run();
  CHECK(hit.size() == 3);
  CHECK(bench.receiver.content("large") == pattern(13 * mib));
  for (int i = 0; i < 50; ++i) CHECK(bench.receiver.content(std::to_string(i)) == std::to_string(i));
  CHECK(resends(bench) == 3);
}

TEST_CASE("source__checksum__entries_carry_digests") {
  const TempDir dir;
  for (int i = 0; i < 200; ++i) dir.file("t/" + std::to_string(i), std::to_string(i));
  dir.file_of("t/large", 9 * mib);
  dir.file("t/x-empty", "");
  const uint32_t buffers = GENERATE(2u, 8u);
  Bench bench(options_of({dir.path("t")}, session::option_checksum), buffers);
  bench.work.newest_first = true;
  bench.run();
  const session::Entry& seven = bench.receiver.by_path("7")->entry;
  REQUIRE(seven.has_digest);
  CHECK(seven.digest == session::file_digest({xxh3_128(as_bytes("7"))}));
  CHECK(bench.receiver.by_path("x-empty")->entry.digest == session::file_digest({}));
  CHECK(bench.receiver.by_path("large")->entry.digest == bench.receiver.by_path("large")->end->digest);
}

TEST_CASE("source__all_missing__source_selection_with_the_first_name") {
  const TempDir dir;
  Bench bench(options_of({dir.path("nothing"), dir.path("none")}, session::option_directory));
  bench.run();
  REQUIRE(bench.source->error() != nullptr);
  CHECK(bench.source->error()->kind == ErrorKind::source_selection);
  CHECK(bench.source->error()->message.find("nothing") != std::string::npos);
  REQUIRE(bench.receiver.abort);
  CHECK(bench.receiver.entries.empty());
}

TEST_CASE("source__one_of_two_missing__the_other_is_sent_and_it_has_failed") {
  const TempDir dir;
  dir.file("a", "A");
  Bench bench(options_of({dir.path("nothing"), dir.path("a")}, session::option_directory));
  bench.run();
  CHECK(bench.source->error() == nullptr);
  CHECK(bench.tally().files_failed == 1);
  CHECK(bench.receiver.by_path("a") != nullptr);
}

TEST_CASE("source__rate_cap__bytes_wait_for_their_time") {
  const TempDir dir;
  dir.file_of("f", 40 * mib);
  send::SourceOptions options = options_of({dir.path("f")});
  options.rate_bytes_per_s = 100 * mib;
  Bench bench(options);
  bench.run();
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(bench.now - bench.began).count();
  CHECK(spent >= 340);
  CHECK(spent <= 450);
}

TEST_CASE("source__peer_talks_nonsense__rejected_counted_never_a_crash") {
  const TempDir dir;
  dir.file("t/a", "A");
  const std::vector<session::Message> nonsense = {
      session::Answer{0, {{5, Verdict::done}}},
      session::Answer{0, {{0xffffffffu, Verdict::send}}},
      session::Answer{1, {{1, Verdict::done}}},
      session::Want{99, {{0, 1}}},
      session::Want{1, {{0, ~uint64_t{0}}}},
      session::Want{1, {{~uint64_t{0}, 2}}},
      session::Want{0, {{0, 1}}},
      session::Resend{99, 0, 0, 0},
      session::FileResults{{{99, ErrorKind::ok, 0}}},
      session::FileResults{{{1, ErrorKind::ok, 0}}},  // offered, but nothing of it was wanted or sent
      session::Summary{},
      session::End{3},
      session::Bye{},
      session::FileEnd{},
  };
  for (const session::Message& message : nonsense) {
    Bench bench(options_of({dir.path("t")}));
    bench.receiver.answering = false;
    bench.start();
    bench.run_until([&] { return bench.receiver.outstanding == 3; });
    if (std::holds_alternative<session::Summary>(message)) {
      while (!bench.tally().total_known) bench.step();
    }
    bench.receiver.say(message);
    bench.step();
    REQUIRE(bench.source->error() != nullptr);
    CHECK(bench.source->error()->kind == ErrorKind::protocol);
    CHECK(bench.counters.get(Counter::session_rejected) == 1);
    for (int i = 0; i < 5; ++i) bench.step();
  }
}

// One case, for a process has one standard input.
TEST_CASE("source__standard_input__pieces_until_its_end_and_never_a_second_time") {
  {  // empty: nothing of it was read, and a piece of it that is wanted again fails the file alone
    Bench bench(options_of({"-"}));
    bench.receiver.giving_results = false;
    bench.start();
    bench.run_until([&] { return bench.receiver.by_path("") != nullptr && bench.receiver.by_path("")->end; });
    CHECK(bench.receiver.by_path("")->end->outcome == SourceOutcome::ok);
    bench.receiver.say(session::Resend{0, 0, 0, 0});
    for (int i = 0; i < 3; ++i) bench.step();
    bench.receiver.giving_results = true;
    bench.run_until([&] { return bench.source->finished(); });
    CHECK(bench.source->error() == nullptr);
    CHECK(bench.receiver.by_path("")->end->outcome == SourceOutcome::unreadable);
    CHECK(bench.tally().files_failed == 1);
    CHECK_FALSE(bench.source->input_is_spent());
  }
  {
    Bench bench(options_of({"-"}));
    bench.files.stream = pattern(9 * mib + 5);
    int asked = 0;
    bench.files.hook = [&asked](std::string_view call, std::string_view) {
      return call == "read_stream" && ++asked % 2 == 0 ? -EAGAIN : 0;
    };
    bench.start();
    for (int i = 0; i < 100000 && !bench.source->finished(); ++i) {
      bench.step();
      bench.source->turn(bench.now);  // also before the job of the last turn is back: it is read by one at a time
    }
    REQUIRE(bench.source->finished());
    CHECK(bench.receiver.content("") == pattern(9 * mib + 5));
    const ReceivedFile& file = *bench.receiver.by_path("");
    CHECK(file.entry.size_bytes == ~uint64_t{0});
    CHECK(file.entry.mode == 0644);
    CHECK(file.end->size_bytes == 9 * mib + 5);
    CHECK(file.end->has_digest);
    CHECK(bench.tally().bytes == 9 * mib + 5);
    CHECK(bench.tally().bytes_total == 9 * mib + 5);
    CHECK(bench.seen.files.at(0).bytes == 9 * mib + 5);
  }
  Bench again(options_of({"-"}));
  again.run();
  REQUIRE(again.source->error() != nullptr);
  CHECK(again.source->error()->kind == ErrorKind::network);
  Bench nameless(options_of({"-"}, session::option_directory));
  nameless.run();
  REQUIRE(nameless.source->error() != nullptr);
  CHECK(nameless.source->error()->kind == ErrorKind::source_selection);
}

TEST_CASE("source__real_threads__a_tree_of_many_files_is_whole") {
  const TempDir dir;
  for (int i = 0; i < 4000; ++i) dir.file("t/" + std::to_string(i % 13) + "/" + std::to_string(i), std::to_string(i));
  dir.file_of("t/5/large", 33 * mib);
  host::PosixFileSystem posix;
  host::ThreadWorkPool work(posix, 3);
  Counters counters;
  memory::Pool pool(session::segment_bytes_max, 6);
  FakeReceiver receiver;
  receiver.memory = pool.memory();
  SeenByUser seen;
  {
    send::Source source(options_of({dir.path("t")}, archive), receiver.link(), work, pool, ports::Handle{}, seen, counters);
    receiver.source = &source;
    Instant now{};
    source.start(now);
    receiver.lane_up(0);
    while (!source.finished()) {
      work.reap();
      receiver.turn();
      source.turn(now);
      now += std::chrono::microseconds(50);
    }
    CHECK(source.error() == nullptr);
    CHECK(source.tally().files == 4001);
  }
  CHECK(receiver.content("5/large") == pattern(33 * mib));
  CHECK(receiver.content("7/7") == "7");
}

TEST_CASE("source__control_queue_full__file_ends_wait") {
  const TempDir dir;
  for (int i = 0; i < 20; ++i) dir.file("t/" + std::to_string(i), "x");
  Bench bench(options_of({dir.path("t")}));
  bench.receiver.decide = [&dir](const session::Entry& entry, uint64_t) {
    std::filesystem::remove_all(dir.path("t"));
    return entry.type == EntryType::file ? Verdict::send : Verdict::done;
  };
  bench.receiver.queue_room = 0;
  bench.start();
  for (int i = 0; i < 50; ++i) bench.step();
  CHECK(bench.tally().files_vanished == 0);
  bench.receiver.queue_room = 4096;
  bench.run_until([&] { return bench.source->finished(); });
  CHECK(bench.tally().files_vanished == 20);
}

}  // namespace
}  // namespace ccixfer::send_test

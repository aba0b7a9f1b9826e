// What a destination counts and says of itself: over sessions, from a slow disk, and of a source that is not to be believed.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "app/recv/opened_root.h"
#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

DestinationOptions counted(const std::shared_ptr<session::TransferRecord>& record) {
  DestinationOptions options;
  options.options = archive;
  options.record = record;
  return options;
}

}  // namespace

// A log that grew between two sessions of one transfer: its backup is of what the user had, and not of what the first one brought.
TEST_CASE("destination__second_session_of_a_transfer_with_backups__keeps_those_of_the_first") {
  const auto record = std::make_shared<session::TransferRecord>();
  DestinationOptions options = counted(record);
  options.aside.backup = Aside::Backup{std::nullopt, "~"};
  Rig rig(options);
  rig.temporary.write("f", "the user's");
  const auto bring = [&](const std::string& content) {
    rig.announce({file_entry("f", content.size())});
    CHECK(rig.source().verdicts[0] == Verdict::send);
    rig.source().put_pack({{0, content}});
    REQUIRE(rig.session->run([&] { return rig.temporary.read("f") == content; }));
    rig.session->destination->abort({ErrorKind::network, "lost"});
    REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  };
  bring("x");
  CHECK(rig.temporary.read("f~") == "the user's");
  rig.session = std::make_unique<Session>(*rig.root, rig.work, options);
  rig.announced = rig.sequence = 0;
  bring("longer");
  CHECK(rig.temporary.read("f~") == "the user's");
}

// What --ignore-existing leaves is not the source's, unless this transfer has brought it.
TEST_CASE("destination__second_session_of_a_transfer_that_ignores_what_is_there__says_what_is_its_own") {
  const auto record = std::make_shared<session::TransferRecord>();
  DestinationOptions options = counted(record);
  options.options |= session::option_ignore_existing;
  Rig rig(options);
  rig.temporary.write("there", "the user's");
  const std::vector entries{file_entry("brought", 1), file_entry("there", 1)};
  rig.announce(entries);
  CHECK(rig.source().verdicts[0] == Verdict::send);
  CHECK(rig.source().verdicts[1] == Verdict::kept);
  rig.source().put_pack({{0, "x"}});
  REQUIRE(rig.session->run([&] { return rig.temporary.has("brought"); }));
  rig.session->destination->abort({ErrorKind::network, "lost"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  rig.session = std::make_unique<Session>(*rig.root, rig.work, options);
  rig.announced = rig.sequence = 0;
  rig.announce(entries);
  CHECK(rig.source().verdicts[0] == Verdict::unchanged);
  CHECK(rig.source().verdicts[1] == Verdict::kept);
}

// A second session of one transfer: the file of the first was delivered by it, the pieces too, and nothing is told twice.
TEST_CASE("destination__second_session_of_a_transfer__counts_and_tells_each_file_once") {
  const auto record = std::make_shared<session::TransferRecord>();
  Rig rig(counted(record));
  const auto data = pattern(3 * piece, 1);
  const auto entries = [&] { return std::vector{file_entry("small", 1), file_entry("large", data.size()), file_entry("old", 2)}; };
  const int old = ::open(rig.temporary.path("old").c_str(), O_CREAT | O_WRONLY, 0644);
  REQUIRE(::write(old, "ab", 2) == 2);
  const timespec times[2] = {{0, UTIME_OMIT}, {1'000'000'000, 123'456'789}};
  REQUIRE(::futimens(old, times) == 0);
  ::close(old);
  rig.announce(entries());
  CHECK(rig.source().verdicts[2] == Verdict::unchanged);
  rig.source().put_pack({{0, "x"}});
  rig.put_piece(1, 0, Bytes(data).first(piece));
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == piece + 1; }));
  rig.session->destination->abort({ErrorKind::network, "lost"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
  CHECK(rig.session->destination->tally().bytes_total == data.size() + 1);
  const auto before = rig.session->notes.files;
  CHECK(before == std::map<std::string, std::string>{{"small", "ok"}, {"old", "unchanged"}});

  rig.session = std::make_unique<Session>(*rig.root, rig.work, counted(record));
  rig.announced = rig.sequence = 0;
  rig.announce(entries());
  CHECK(rig.source().verdicts[0] == Verdict::unchanged);
  CHECK(rig.source().verdicts[1] == Verdict::pieces);
  const session::Tally& tally = rig.session->destination->tally();
  CHECK(tally.files == 1);
  CHECK(tally.files_unchanged == 1);
  CHECK(tally.bytes == piece + 1);
  CHECK(tally.bytes_total == data.size() + 1);
  CHECK(rig.session->notes.files.empty());
  bool whole = false;
  SECTION("it arrives") {
    whole = true;
    for (const uint64_t i : {1u, 2u}) rig.put_piece(1, i, Bytes(data).subspan(i * piece, piece));
    rig.session->source_link->post(end_of(1));
  }
  SECTION("it changed meanwhile") { rig.session->source_link->post(end_of(1, session::SourceOutcome::changed)); }
  REQUIRE(rig.run_until_result(1));
  rig.finish(3);
  CHECK(tally.files == (whole ? 2 : 1));
  CHECK(tally.files_vanished == (whole ? 0 : 1));
  CHECK(tally.bytes == (whole ? data.size() + 1 : 1));
  CHECK(tally.bytes_total == tally.bytes);
  CHECK(rig.source().summary->bytes == (whole ? 2 * piece : 0));  // of this session
  CHECK(rig.session->notes.files == std::map<std::string, std::string>{{"large", whole ? "ok" : "failed"}});
}

// One call of the disk takes minutes: the source hears again and again that we live, and how long the disk has not answered.
TEST_CASE("destination__jobs_in_a_slow_disk__tells_the_source_and_lives_for_its_patience") {
  using namespace std::chrono_literals;
  DestinationOptions options;
  options.options = archive;
  options.disk_patience = 90s;
  Rig rig(options);
  rig.announce({file_entry("f", 1)});
  rig.work.held = true;
  rig.source().put_pack({{0, "x"}});
  Session& session = *rig.session;
  REQUIRE(session.run([&] { return session.destination->in_disk(); }));
  const Instant began = session.now;
  const auto sleep_until = [&](Instant at) {
    while (session.now < at) {
      session.now = std::min(at, session.destination->next_deadline());
      for (int i = 0; i < 20; ++i) session.turn();
    }
  };
  sleep_until(began + 80s);
  CHECK(session.destination->last_progress() > began + 79s);
  CHECK(rig.source().alive.silent_ms > 75'000);
  CHECK(session.destination->stuck_disk().empty());
  const uint64_t steps = rig.source().alive.steps;
  sleep_until(began + 120s);
  CHECK(session.destination->last_progress() < began + 91s);
  CHECK(session.destination->stuck_disk().find("has not answered for 1") != std::string::npos);
  rig.work.held = false;
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().alive.steps == steps);  // nothing was done meanwhile
  CHECK(session.destination->last_progress() > began + 119s);
  rig.finish(1);
}

// Its own counts say how a session ended, never the kind that a peer gives to its abort.
TEST_CASE("destination__abort_that_ends_no_session__protocol_error") {
  const auto kind = GENERATE(ErrorKind::ok, ErrorKind::partial, ErrorKind::vanished, ErrorKind::max_delete, ErrorKind::no_space);
  Rig rig;
  rig.announce({file_entry("f", 1)});
  rig.session->source_link->post(session::Abort{kind, "that was all"});
  REQUIRE(rig.session->run([&] { return rig.session->destination->finished(); }));
  CHECK(rig.session->destination->error()->kind == (kind == ErrorKind::no_space ? kind : ErrorKind::protocol));
}

// 2^64 failures more would make the sum 0, and the end a success.
TEST_CASE("destination__end_with_impossible_counts__protocol_error") {
  Rig rig;
  rig.announce({file_entry("f", 1)});
  session::End end{1};
  SECTION("failed") { end.unlisted_failed = ~uint64_t{0}; }
  SECTION("vanished") { end.unlisted_vanished = ~uint64_t{0}; }
  rig.session->source_link->post(end);
  REQUIRE(rig.session->run([&] { return rig.session->destination->finished(); }));
  CHECK(rig.session->destination->error()->kind == ErrorKind::protocol);
}

}  // namespace ccixfer::recv

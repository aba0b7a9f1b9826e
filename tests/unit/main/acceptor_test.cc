// The side that listens: whom it takes, in which order, what it says of each, and how sessions end.
#include "app/main/acceptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "app/main/farewell.h"
#include "core/base/log.h"
#include "tests/unit/main/acceptor_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

namespace {

session::Hello hello_of(uint8_t transfer, uint64_t session = 0) {
  session::Hello hello;
  hello.transfer[0] = transfer;
  hello.session = session;
  return hello;
}

// What an acceptor answers to a hello; "": taken.
std::string answer(AcceptorRig& rig, const session::Hello& hello) {
  const auto link = rig.acceptor->on_new_session(hello, rig.now);
  if (link) return "";
  return std::string(error_row(link.error().kind).name) + ": " + link.error().message;
}

std::string reason_of(AcceptorRig& rig, const Guest& guest) {
  REQUIRE(rig.run([&] { return guest.got<session::Abort>(); }));
  const session::Abort abort = guest.all<session::Abort>().front();
  return std::string(error_row(abort.kind).name) + ": " + abort.message;
}

}  // namespace

TEST_CASE("acceptor__a_session_to_its_end__is_reported_and_counted") {
  AcceptorRig rig([](AcceptorOptions& options) { options.lanes_max = 5; });
  ports::HopInfo hop;
  hop.node = "fake://guest";
  hop.transport = "fake";
  rig.net.path = {hop, hop};
  rig.net.path[1].node = "fake://beyond";
  CHECK(rig.acceptor->idle());
  Guest& guest = rig.arrive_and_run(9, {session::option_recursive, "run/1/"});
  CHECK(guest.all<session::Opened>().front().lanes_max == 5);
  CHECK(guest.all<session::Opened>().front().session != 0);
  CHECK_FALSE(rig.acceptor->idle());
  CHECK(rig.acceptor->sessions() == 1);
  CHECK(rig.acceptor->unfinished() == 1);
  CHECK_FALSE(rig.acceptor->first_end());
  CHECK(rig.desk.told("session", "peer") == Words{"fake://beyond"});
  CHECK(rig.desk.told("session", "transfer") == Words{"09000000000000000000000000000000"});
  CHECK(guest.places().empty());  // it did not have to wait
  rig.finish(guest, 2);
  CHECK(rig.acceptor->idle());
  CHECK(rig.acceptor->unfinished() == 0);
  REQUIRE(rig.acceptor->first_end());
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::partial);
  CHECK(rig.acceptor->tally().failed() == 2);
  CHECK(rig.stray_completions == 0);
  REQUIRE(rig.desk.events.lines("\"ended\"").size() == 1);
  CHECK(rig.desk.told("ended", "transfer") == Words{"09000000000000000000000000000000"});
  CHECK(rig.desk.told("ended", "peer") == Words{"fake://beyond"});
  CHECK(rig.desk.told("ended", "path") == Words{"run/1"});
  CHECK(rig.desk.told("ended", "status") == Words{"partial"});
  CHECK(rig.desk.told("ended", "files_failed") == Words{"2"});
  CHECK(rig.desk.told("ended", "reason")[0].rfind("2 files failed", 0) == 0);
  CHECK(rig.pool.free_count() == rig.pool.count());
}

TEST_CASE("acceptor__a_file_arrives__its_completions_find_their_session_and_are_counted") {
  AcceptorRig rig;
  Guest& first = rig.arrive_and_run(8);
  Guest& guest = rig.arrive_and_run(9);
  REQUIRE(rig.run([&] { return guest.source.has_credit(); }));
  session::Entry entry;
  entry.path = "f";
  entry.type = session::EntryType::file;
  entry.size_bytes = 5;
  entry.mode = 0644;
  guest.source.put_entries({entry}, 0, 0);
  REQUIRE(rig.run([&] { return guest.source.verdicts.size() == 1; }));
  REQUIRE(rig.run([&] { return guest.source.has_credit(); }));
  guest.source.put_pack({{0, "hello"}});
  guest.link->post(session::FileEnd{0, session::SourceOutcome::ok, ~uint64_t{0}, false, {}});
  guest.link->post(session::End{1, 0, 0});
  REQUIRE(rig.run([&] { return guest.got<session::Summary>(); }));
  CHECK(rig.acceptor->tally().files == 1);  // while it runs too
  guest.link->post(session::Bye{});
  REQUIRE(rig.run([&] { return rig.acceptor->sessions() == 1; }));
  CHECK(rig.directory.read("f") == "hello");
  CHECK(rig.stray_completions == 0);
  CHECK(rig.desk.told("ended", "files") == Words{"1"});
  CHECK(rig.desk.told("ended", "bytes") == Words{"5"});
  CHECK(rig.desk.told("ended", "bytes_sent")[0] != "0");
  CHECK(rig.desk.told("ended", "status") == Words{"ok"});
  rig.finish(first);
  CHECK(rig.desk.told("ended", "files") == Words{"1", "0"});
  CHECK(rig.acceptor->tally().files == 1);
  CHECK(rig.acceptor->tally().bytes == 5);
  REQUIRE(rig.acceptor->first_end());
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::ok);
  rvma::Completion nobodys{};
  nobodys.mailbox = 1;
  CHECK_FALSE(rig.acceptor->take_completion(nobodys));
}

TEST_CASE("acceptor__a_peer_without_hops__is_told_by_a_question_mark") {
  AcceptorRig rig({}, false);
  Guest& guest = rig.arrive_and_run(9);
  rig.finish(guest);
  CHECK(rig.desk.text.lines("transfer from ") ==
        Words{"transfer from ? into the root ended well: 0 files delivered, 0 unchanged, 0 failed, 0 B"});
}

TEST_CASE("acceptor__who_serves__says_so_of_each_session") {
  recv::test::TemporaryDirectory served;
  served.write("d/f", "x");
  const int fd = ::open(served.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  AcceptorRig rig(
      [&](AcceptorOptions& options) {
        options.root = nullptr;
        options.served_root = fd;
      },
      false);
  Guest& guest = rig.dial(9, session::Direction::pull);
  REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
  session::Open open{session::option_recursive, "d/"};
  open.first = {1, std::vector<std::byte>(5)};  // of a pull it means nothing
  guest.open(open);
  REQUIRE(rig.run([&] { return guest.got<session::Opened>(); }));
  CHECK_FALSE(guest.all<session::Opened>().at(0).took_first_entries);
  guest.link->post(session::Abort{ErrorKind::no_space, "full"});
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  INFO(rig.desk.text.all());
  REQUIRE(rig.desk.text.lines("transfer of d to ? ended: no_space: ").size() == 1);
  CHECK(rig.desk.text.has("full"));
  ::close(fd);
}

TEST_CASE("acceptor__hellos__are_taken_or_refused_with_the_remedy") {
  AcceptorRig receives;
  session::Hello pull = hello_of(1);
  pull.direction = session::Direction::pull;
  CHECK(answer(receives, pull) == "usage: the peer receives (recv --root): send to it");
  session::Hello sealed = hello_of(1);
  sealed.sealed = true;
  CHECK(answer(receives, sealed) == "authentication: the peer runs with --insecure: start both sides with it, or both without it");
  CHECK(receives.acceptor->idle());
  CHECK(answer(receives, hello_of(1)) == "");
  CHECK(answer(receives, hello_of(2)) == "");
  CHECK(receives.acceptor->sessions() == 2);
  receives.acceptor->stop({ErrorKind::interrupted, "going down"}, receives.now);
  CHECK(answer(receives, hello_of(3)) == "network: the peer is going down");

  AcceptorRig serves([](AcceptorOptions& options) {
    options.root = nullptr;
    options.served_root = 0;
  });
  CHECK(answer(serves, hello_of(1)) == "usage: the peer serves (send --serve): pull from it");
  CHECK(answer(serves, pull) == "");
}

TEST_CASE("acceptor__once__one_transfer_at_a_time_and_its_dialler_may_begin_anew") {
  AcceptorRig rig([](AcceptorOptions& options) { options.once = true; });
  CHECK(answer(rig, hello_of(1)) == "");
  CHECK(answer(rig, hello_of(2)) == "network: the peer is busy with other transfers: try again later");
  CHECK(answer(rig, hello_of(1)) == "");
}

TEST_CASE("acceptor__as_many_wait_as_may__the_next_one_is_refused_and_so_is_it_told") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 2; });
  for (size_t i = 0; i < 2 + sessions_waiting_max; ++i) {
    session::Hello hello;
    hello.transfer[0] = static_cast<uint8_t>(i);
    hello.transfer[1] = static_cast<uint8_t>(i >> 8);
    hello.transfer[2] = 1;
    REQUIRE(answer(rig, hello) == "");
  }
  CHECK(answer(rig, hello_of(1)) == "network: the peer is busy with other transfers: try again later");
}

TEST_CASE("acceptor__a_session_is_found__by_its_number_and_transfer_while_it_lives") {
  AcceptorRig rig;
  Guest& guest = rig.arrive_and_run(9);
  const uint64_t number = guest.link->session();
  session::Link* link = rig.acceptor->find_session(hello_of(9, number));
  REQUIRE(link != nullptr);
  CHECK(link->session() == number);
  CHECK(rig.acceptor->find_session(hello_of(9, number + 1)) == nullptr);
  CHECK(rig.acceptor->find_session(hello_of(8, number)) == nullptr);
  // One that has no number yet cannot be named.
  CHECK(answer(rig, hello_of(3)) == "");
  CHECK(rig.acceptor->find_session(hello_of(3, 0)) == nullptr);
  rig.finish(guest);
  CHECK(rig.acceptor->find_session(hello_of(9, number)) == nullptr);
}

TEST_CASE("acceptor__unknown_options_and_paths_that_leave_the_root__are_refused") {
  AcceptorRig rig;
  Guest& unknown = rig.arrive(1, {session::option_recursive | 1u << 23, ""});
  CHECK(reason_of(rig, unknown) == "protocol: the peer asks for options that this version does not have");
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  REQUIRE(rig.acceptor->first_end());  // a transfer was wanted
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::protocol);
  for (const char* path : {"a/../../b", ".."}) {
    Guest& outside = rig.arrive(2, {session::option_recursive, path});
    CHECK(reason_of(rig, outside) == std::string("not_authorised: the path leaves the root: ") + path + ": name a place below it");
    REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
    rig.leave(outside);
  }
  CHECK(rig.desk.told("ended", "status").empty());  // none was open
  for (const uint32_t known :
       {session::option_recursive, session::option_links, session::option_permissions, session::option_times, session::option_owner,
        session::option_checksum, session::option_dry_run, session::option_directory}) {
    Guest& fine = rig.arrive_and_run(static_cast<uint8_t>(10 + known % 101), {known, "/d/"});
    rig.finish(fine);
    rig.leave(fine);
  }
  CHECK(rig.desk.told("ended", "status") == Words(8, "ok"));
}

TEST_CASE("acceptor__open_with_a_mandatory_field_it_does_not_know__both_sides_are_told") {
  AcceptorRig rig;
  Guest& guest = rig.dial(1);
  REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
  guest.link->post(session::OpenPart{10, 0, std::string("\1\0\0\0\7\x80\0\0\0\0", 10)});  // options 1, TLV 7
  const std::string why =
      "the version of the accepting side does not know field 7 of the request to open a session: run the same version at both ends";
  CHECK(reason_of(rig, guest) == "protocol: " + why);
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  REQUIRE(rig.acceptor->first_end());
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::protocol);
  CHECK(rig.acceptor->first_end()->message == why);
}

TEST_CASE("acceptor__open_with_an_optional_field_it_does_not_know__runs") {
  AcceptorRig rig;
  Guest& guest = rig.dial(1);
  REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
  guest.link->post(session::OpenPart{11, 0, std::string("\1\0\0\0\7\0\1\0\0\0x", 11)});
  REQUIRE(rig.run([&] { return guest.got<session::Opened>(); }));
  rig.finish(guest);
  CHECK(rig.desk.told("ended", "status") == Words{"ok"});
}

TEST_CASE("acceptor__a_path_from_the_root__is_taken_as_below_it") {
  AcceptorRig rig;
  Guest& guest = rig.arrive_and_run(1, {session::option_recursive, "//a/./b//"});
  rig.finish(guest);
  CHECK(rig.desk.told("ended", "path") == Words{"a/b"});
}

TEST_CASE("acceptor__a_session_that_is_not_opened__ends_in_time_and_counts_for_nothing") {
  AcceptorRig rig([](AcceptorOptions& options) { options.once = true; });
  Guest& guest = rig.dial(9);
  const Instant at = rig.now;
  REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
  CHECK(rig.acceptor->next_deadline() >= at + open_timeout);
  CHECK(rig.acceptor->next_deadline() < at + open_timeout + 10ms);
  CHECK(rig.acceptor->unfinished() == 0);
  rig.run_for(open_timeout - 10ms);
  CHECK_FALSE(guest.got<session::Abort>());
  CHECK(reason_of(rig, guest) == "protocol: no session was opened in time");
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK(rig.now - at < open_timeout + 1s);
  CHECK_FALSE(rig.acceptor->first_end());  // --once waits for a transfer
  CHECK(rig.desk.events.lines("\"ended\"").empty());
  CHECK(rig.acceptor->tally().failed() == 0);
}

TEST_CASE("acceptor__a_malformed_open_or_an_abort__ends_what_was_not_opened") {
  AcceptorRig rig;
  Guest& odd = rig.dial(9);
  REQUIRE(rig.run([&] { return !odd.link->live_lanes().empty(); }));
  odd.link->post(session::OpenPart{4, 2, "cd"});
  CHECK(reason_of(rig, odd) == "protocol: the peer's request to open a session is malformed");
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK_FALSE(rig.acceptor->first_end());
  Guest& gone = rig.dial(8);
  REQUIRE(rig.run([&] { return !gone.link->live_lanes().empty(); }));
  gone.link->post(session::Abort{ErrorKind::interrupted, "never mind"});
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK_FALSE(rig.acceptor->first_end());
  CHECK(rig.desk.events.lines("\"ended\"").empty());
}

TEST_CASE("acceptor__a_dialler_begins_anew__has_the_place_of_the_session_that_it_lost") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  Guest& first = rig.arrive_and_run(1);
  Guest& second = rig.arrive(2);
  REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  Guest& third = rig.arrive(3);
  REQUIRE(rig.run([&] { return third.got<session::Queued>(); }));
  Guest& again = rig.arrive(2);
  CHECK(reason_of(rig, second) == "network: the peer began this transfer anew");
  REQUIRE(rig.run([&] { return again.got<session::Queued>(); }));
  CHECK(again.places().front() == 0);
  CHECK(third.places().back() == 1);
  rig.finish(first);
  REQUIRE(rig.run([&] { return again.got<session::Opened>(); }));
  CHECK_FALSE(third.got<session::Opened>());
  CHECK(rig.acceptor->first_end()->kind == ErrorKind::ok);
}

TEST_CASE("acceptor__sessions_that_never_began__are_in_the_log_loudly_if_they_went_wrong") {
  AcceptorRig rig;
  Words warned;
  set_log_sink([&](LogLevel, std::string_view line) { warned.emplace_back(line); }, LogLevel::warning);
  const std::shared_ptr<void> no_sink(nullptr, [](void*) { set_log_sink({}, LogLevel::error); });  // also when a check fails
  Guest& outside = rig.arrive(1, {session::option_recursive, "../x"});
  REQUIRE(rig.run([&] { return outside.got<session::Abort>(); }));
  rig.run_for(farewell_timeout + 1s);
  Guest& gone = rig.dial(2);
  REQUIRE(rig.run([&] { return !gone.link->live_lanes().empty(); }));
  gone.link->post(session::Abort{ErrorKind::interrupted, "never mind"});
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  REQUIRE(warned.size() == 2);
  CHECK(warned[1].rfind("session 02000000000000000000000000000000: interrupted: ", 0) == 0);
  CHECK(warned[1].find("never mind") != std::string::npos);
  CHECK(warned[0].rfind("session 01000000000000000000000000000000: not_authorised: the path leaves the root: ../x", 0) == 0);
}

TEST_CASE("acceptor__a_dialler_begins_anew__waits_for_the_jobs_of_the_session_that_it_lost") {
  AcceptorRig rig;
  Guest& lost = rig.arrive_and_run(1);
  REQUIRE(rig.run([&] { return lost.source.has_credit(); }));
  session::Entry entry;
  entry.path = "f";
  entry.type = session::EntryType::file;
  entry.size_bytes = 5;
  entry.mode = 0644;
  rig.work.held = true;
  lost.source.put_entries({entry}, 0, 0);
  REQUIRE(rig.run([&] { return rig.work.in_flight() > 0; }));
  Guest& again = rig.arrive(1);
  Guest& other = rig.arrive(2);
  REQUIRE(rig.run([&] { return other.got<session::Opened>(); }));
  rig.run_for(60s);
  REQUIRE_FALSE(again.places().empty());
  CHECK(again.places().front() == 0);
  CHECK_FALSE(again.got<session::Opened>());
  CHECK(rig.acceptor->sessions() == 3);
  CHECK(rig.acceptor->unfinished() == 1);
  rig.work.held = false;
  REQUIRE(rig.run([&] { return again.got<session::Opened>(); }));
  CHECK_FALSE(rig.acceptor->first_end());  // what was begun anew has not ended
  CHECK(rig.desk.told("ended", "status") == Words{"network"});
  CHECK(rig.desk.told("ended", "reason") == Words{"the peer began this transfer anew"});
}

TEST_CASE("acceptor__stopped__each_session_is_told_and_nobody_is_taken_any_more") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  Guest& runs = rig.arrive_and_run(1);
  Guest& waits = rig.arrive(2);
  REQUIRE(rig.run([&] { return waits.got<session::Queued>(); }));
  CHECK(rig.acceptor->unfinished() == 1);
  rig.acceptor->stop({ErrorKind::interrupted, "enough"}, rig.now);
  rig.acceptor->stop({ErrorKind::bug, "a second word"}, rig.now);
  CHECK(rig.acceptor->unfinished() == 0);
  CHECK(reason_of(rig, runs) == "interrupted: enough");
  CHECK(reason_of(rig, waits) == "interrupted: enough");
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK(rig.desk.told("ended", "status") == Words{"interrupted"});
  CHECK(rig.desk.told("ended", "reason") == Words{"enough"});
  REQUIRE(rig.acceptor->first_end());
  CHECK(rig.acceptor->first_end()->message == "enough");
  CHECK(rig.pool.free_count() == rig.pool.count());
}

TEST_CASE("acceptor__a_long_reason__is_cut_to_what_an_abort_can_bear") {
  AcceptorRig rig;
  Guest& guest = rig.dial(9);
  REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
  rig.acceptor->stop({ErrorKind::interrupted, std::string(2000, 'x')}, rig.now);
  CHECK(reason_of(rig, guest) == "interrupted: " + std::string(512, 'x'));
}

// What we say goes out before we go; to a peer that takes nothing, not for ever.
TEST_CASE("acceptor__a_peer_that_takes_nothing__the_farewell_ends") {
  AcceptorRig rig;
  Guest& guest = rig.dial(9);
  REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
  guest.side.transport->hold_oldest(true);
  rig.acceptor->stop({ErrorKind::interrupted, "enough"}, rig.now);
  CHECK(rig.acceptor->next_deadline() == rig.now + farewell_timeout);
  rig.run_for(farewell_timeout - 1ms);
  CHECK_FALSE(rig.acceptor->idle());
  rig.run_for(2ms);
  CHECK(rig.acceptor->idle());
  CHECK_FALSE(guest.got<session::Abort>());
}

TEST_CASE("acceptor__a_session_ended_while_jobs_run__lives_until_they_are_back") {
  AcceptorRig rig;
  Guest& guest = rig.arrive_and_run(1);
  REQUIRE(rig.run([&] { return guest.source.has_credit(); }));
  session::Entry entry;
  entry.path = "f";
  entry.type = session::EntryType::file;
  entry.size_bytes = 5;
  entry.mode = 0644;
  rig.work.held = true;
  guest.source.put_entries({entry}, 0, 0);
  REQUIRE(rig.run([&] { return rig.work.in_flight() > 0; }));
  rig.acceptor->stop({ErrorKind::interrupted, "enough"}, rig.now);
  rig.run_for(1h);
  CHECK_FALSE(rig.acceptor->idle());
  CHECK(rig.acceptor->next_deadline() > rig.now);  // a job's end wakes it, and no clock
  rig.work.held = false;
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
}

TEST_CASE("acceptor__a_transfer_of_several_sessions__is_counted_once") {
  AcceptorRig rig;
  for (int i = 0; i < 3; ++i) {
    Guest& guest = rig.arrive_and_run(1);
    rig.finish(guest, 2);
    rig.leave(guest);
  }
  CHECK(rig.acceptor->tally().failed() == 2);
  CHECK(rig.desk.told("ended", "files_failed") == Words{"2", "2", "2"});
  Guest& other = rig.arrive_and_run(2);
  rig.finish(other, 3);
  CHECK(rig.acceptor->tally().failed() == 5);
  CHECK(rig.acceptor->first_end()->message.rfind("2 files failed", 0) == 0);  // the first one's
}

// Of transfers long past only the sum is known: one of them that comes again counts anew.
TEST_CASE("acceptor__more_transfers_than_are_remembered__the_sum_stays_right") {
  AcceptorRig rig;
  Guest& stays = rig.arrive_and_run(200);  // it has a session all the time: it is not forgotten
  for (uint8_t i = 1; i < transfers_remembered_max; ++i) {
    Guest& guest = rig.arrive_and_run(i);
    rig.finish(guest, 1);
    rig.leave(guest);
  }
  CHECK(rig.acceptor->tally().failed() == transfers_remembered_max - 1);
  const auto again = [&](uint8_t transfer) {
    Guest& guest = rig.arrive_and_run(transfer);
    rig.finish(guest, 1);
    rig.leave(guest);
  };
  again(1);  // as many as are remembered: known
  CHECK(rig.acceptor->tally().failed() == transfers_remembered_max - 1);
  again(100);  // one more: the oldest without a session goes
  CHECK(rig.acceptor->tally().failed() == transfers_remembered_max);
  again(2);
  CHECK(rig.acceptor->tally().failed() == transfers_remembered_max);
  again(1);
  CHECK(rig.acceptor->tally().failed() == transfers_remembered_max + 1);
  rig.finish(stays, 1);
  again(200);
  CHECK(rig.acceptor->tally().failed() == transfers_remembered_max + 2);
}

TEST_CASE("acceptor__nobody_there__no_deadline") {
  AcceptorRig rig;
  CHECK(rig.acceptor->next_deadline() == never);
  Guest& guest = rig.arrive_and_run(1);
  rig.run_for(1s);
  CHECK(rig.acceptor->next_deadline() > rig.now);
  rig.finish(guest);
  CHECK(rig.acceptor->next_deadline() == never);
}

TEST_CASE("acceptor__buffers__are_shared_by_all_sessions") {
  AcceptorRig rig;
  std::vector<const Guest*> guests;
  for (uint8_t transfer = 1; transfer <= 3; ++transfer) {
    guests.push_back(&rig.arrive_and_run(transfer));
    rig.run_for(1ms);
  }
  CHECK(guests[0]->source.has_credit());
  CHECK(guests[1]->source.has_credit());
  CHECK_FALSE(guests[2]->source.has_credit());  // a third's part would be too small: it is to ask
}

TEST_CASE("acceptor__rate__is_one_for_all_sessions") {
  for (const uint64_t rate : {uint64_t{0}, uint64_t{1}}) {
    AcceptorRig rig([&](AcceptorOptions& options) { options.rate_bytes_per_s = rate; });
    const Guest& first = rig.arrive_and_run(1);
    rig.run_for(1s);
    CHECK(first.source.has_credit());
    const Guest& second = rig.arrive_and_run(2);
    rig.run_for(1s);
    CHECK(second.source.has_credit() == (rate == 0));  // else the first one's buffers are all that it allows for ages
  }
}

// Which transfers it knows, and what of them: a later session of one tells and counts nothing twice.
TEST_CASE("acceptor__a_later_session_of_a_transfer__tells_and_counts_no_file_twice") {
  AcceptorRig rig;
  session::Entry entry;
  entry.path = "f";
  entry.type = session::EntryType::file;
  entry.size_bytes = 5;
  entry.mode = 0644;
  Guest& first = rig.arrive_and_run(1);
  REQUIRE(rig.run([&] { return first.source.has_credit(); }));
  first.source.put_entries({entry}, 0, 0);
  REQUIRE(rig.run([&] { return first.source.verdicts.size() == 1 && first.source.has_credit(); }));
  first.source.put_pack({{0, "hello"}});
  first.link->post(session::FileEnd{0, session::SourceOutcome::ok, ~uint64_t{0}, false, {}});
  REQUIRE(rig.run([&] { return first.source.results.size() == 1; }));
  Guest& second = rig.arrive_and_run(1);
  REQUIRE(rig.run([&] { return second.source.has_credit(); }));
  second.source.put_entries({entry}, 0, 0);
  REQUIRE(rig.run([&] { return second.source.verdicts.size() == 1; }));
  CHECK(second.source.verdicts.at(0) == session::Verdict::unchanged);
  second.link->post(session::End{1, 0, 0});
  REQUIRE(rig.run([&] { return second.got<session::Summary>(); }));
  second.link->post(session::Bye{});
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK(rig.acceptor->tally().files == 1);
  CHECK(rig.acceptor->tally().files_unchanged == 0);
  CHECK(rig.acceptor->tally().bytes == 5);
  CHECK(rig.desk.told("file", "status") == Words{"ok"});
}

// What the second session found delivered is the first one's: its line has that already.
TEST_CASE("acceptor__audit_of_a_transfer_of_several_sessions__counts_each_session_by_itself") {
  std::vector<policy::AuditRecord> records;
  AcceptorRig rig([&](AcceptorOptions& options) { options.audit = [&](const auto& record) { records.push_back(record); }; });
  const auto send = [&rig](Guest& guest, const std::vector<std::pair<std::string, std::string>>& files) {
    REQUIRE(rig.run([&] { return guest.source.has_credit(); }));
    std::vector<session::Entry> entries;
    for (const auto& [path, content] : files) {
      session::Entry& entry = entries.emplace_back();
      entry.path = path;
      entry.type = session::EntryType::file;
      entry.size_bytes = content.size();
      entry.mode = 0644;
    }
    guest.source.put_entries(entries, 0, 0);
    REQUIRE(rig.run([&] { return guest.source.verdicts.size() == files.size() && guest.source.has_credit(); }));
    size_t sent = 0;
    for (uint64_t i = 0; i < files.size(); ++i) {
      if (guest.source.verdicts.at(i) == session::Verdict::unchanged) continue;
      guest.source.put_pack({{i, files[i].second}});
      guest.link->post(session::FileEnd{i, session::SourceOutcome::ok, ~uint64_t{0}, false, {}});
      ++sent;
      REQUIRE(rig.run([&] { return guest.source.results.size() == sent && guest.source.has_credit(); }));
    }
  };
  Guest& first = rig.arrive_and_run(1);
  send(first, {{"f", "hello"}});
  Guest& second = rig.arrive_and_run(1);
  send(second, {{"f", "hello"}, {"g", "you"}});
  second.link->post(session::End{2, 0, 0});
  REQUIRE(rig.run([&] { return second.got<session::Summary>(); }));
  second.link->post(session::Bye{});
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK(rig.acceptor->tally().bytes == 8);
  REQUIRE(records.size() == 2);
  CHECK((records[0].files == 1 && records[0].bytes == 5));
  CHECK((records[1].files == 1 && records[1].bytes == 3));
}

TEST_CASE("acceptor__who_is_refused_at_its_hello__has_a_line_in_the_audit_log") {
  std::vector<policy::AuditRecord> records;
  AcceptorRig rig([&](AcceptorOptions& options) { options.audit = [&](const auto& record) { records.push_back(record); }; });
  const Guest& guest = rig.dial(9, session::Direction::pull);
  REQUIRE(rig.run([&] { return guest.dialler->failure() != nullptr; }));
  REQUIRE(records.size() == 1);
  CHECK(records[0].event == policy::AuditRecord::Event::refused);
  CHECK(records[0].direction == "pull");
  CHECK(records[0].transfer == "09000000000000000000000000000000");
  CHECK(records[0].outcome == ErrorKind::usage);
  CHECK(records[0].reason == "the peer receives (recv --root): send to it");
}

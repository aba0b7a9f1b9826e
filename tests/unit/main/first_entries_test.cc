// What a push lists before its session is open, at both ends of the session.
#include <algorithm>
#include <catch2/catch.hpp>
#include <iterator>

#include "app/session/entry.h"
#include "tests/unit/main/acceptor_rig.h"
#include "tests/unit/main/dialled_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

namespace {

session::FirstEntries one_file(const std::string& path) {
  session::Entry entry;
  entry.type = session::EntryType::file;
  entry.path = path;
  entry.size_bytes = 3;
  std::vector<std::byte> bytes(500);
  session::EntryEncoder encoder(bytes);
  REQUIRE(encoder.add(entry));
  bytes.resize(encoder.size_bytes());
  return {1, bytes};
}

}  // namespace

TEST_CASE("dialled__lists_ahead_and_the_peer_takes_the_entries__the_role_that_listed_is_the_sessions") {
  DialledRig rig([](DialPlan& plan) { plan.lists_ahead = true; });
  rig.script.first = {2, std::vector<std::byte>(10, std::byte{7})};
  rig.script.has_listed = false;
  rig.script.next_deadline = never;
  rig.takes_first = true;
  rig.run_to(rig.began + 1ms);
  CHECK(rig.script.listed_ahead == 1);
  CHECK(rig.script.turns > 0);
  CHECK(rig.near_link->live_lanes().empty());  // the entries travel with the first request
  CHECK(rig.acceptor->link == nullptr);
  CHECK_FALSE(rig.transfer->moving());
  CHECK(rig.transfer->next_deadline() > rig.now);  // it does not spin meanwhile
  CHECK(rig.transfer->next_deadline() <= rig.began + 21ms);
  rig.script.has_listed = true;
  REQUIRE(rig.run_until_moving());
  CHECK(rig.script.made == 1);
  CHECK(rig.script.started == 1);
  const session::Open plain{5, "some/path"};
  CHECK(rig.script.room_for_first == session::room_for_first_entries(plain));
  session::OpenJoiner joiner;
  const auto open = joiner.add(std::get<session::OpenPart>(rig.acceptor->user.others.front()));
  REQUIRE(open);
  CHECK(open->first.count == 2);
  CHECK(open->first.bytes == rig.script.first.bytes);
  CHECK(rig.script.lanes == Words{"up 0"});
}

TEST_CASE("dialled__lists_ahead_and_the_peer_does_not_take_the_entries__another_role_begins") {
  for (const bool had_some : {true, false}) {
    DialledRig rig([](DialPlan& plan) { plan.lists_ahead = true; });
    if (had_some) rig.script.first = {2, std::vector<std::byte>(10, std::byte{7})};
    rig.takes_first = !had_some;  // of one that gave none there is nothing to take
    REQUIRE(rig.run_until_moving());
    CHECK(rig.script.made == 2);
    CHECK(rig.script.living == 1);
    CHECK(rig.script.listed_ahead == 1);
    CHECK(rig.script.started == 1);
  }
}

TEST_CASE("dialled__lists_ahead_on_a_slow_disk__asks_without_entries_after_a_while") {
  DialledRig rig([](DialPlan& plan) { plan.lists_ahead = true; });
  rig.script.first = {2, std::vector<std::byte>(10, std::byte{7})};
  rig.script.has_listed = false;
  rig.run_to(rig.began + 19ms);
  CHECK(rig.acceptor->link == nullptr);
  CHECK(rig.transfer->next_deadline() <= rig.began + 21ms);
  REQUIRE(rig.run_until_moving());
  CHECK(rig.passed() >= 20ms);
  session::OpenJoiner joiner;
  const auto open = joiner.add(std::get<session::OpenPart>(rig.acceptor->user.others.front()));
  REQUIRE(open);
  CHECK(open->first.count == 0);
  CHECK(rig.script.made == 2);
}

TEST_CASE("dialled__what_is_listed_ahead_is_wrong__ends_the_transfer_before_it_dials") {
  DialledRig rig([](DialPlan& plan) { plan.lists_ahead = true; });
  rig.script.error = Error{ErrorKind::source_selection, "no such file: a"};
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::source_selection);
  CHECK(rig.transfer->result().message.find("no such file: a") != std::string::npos);
  CHECK(rig.acceptor->link == nullptr);
  CHECK(rig.script.started == 0);
}

TEST_CASE("dialled__what_is_listed_ahead_is_wrong_while_the_request_is_on_its_way__ends_the_transfer_with_that") {
  DialledRig rig([](DialPlan& plan) { plan.lists_ahead = true; });
  rig.script.first = {2, std::vector<std::byte>(10, std::byte{7})};
  rig.opens = false;  // it has to wait for its turn
  REQUIRE(rig.run([&] { return rig.acceptor->link != nullptr && rig.peer_asked(); }));
  rig.post(session::Queued{3});
  rig.script.error = Error{ErrorKind::usage, "a file of rules is wrong"};
  REQUIRE(rig.run_to_the_end());
  CHECK(rig.transfer->result().kind == ErrorKind::usage);
  CHECK(rig.script.made == 1);
  REQUIRE(rig.run([&] { return !rig.aborts().empty(); }));
  CHECK(rig.aborts().size() == 1);
  CHECK(rig.aborts().at(0).kind == ErrorKind::usage);
  CHECK(rig.retries().empty());
}

TEST_CASE("acceptor__first_entries__are_taken_and_answered_unless_the_session_had_to_wait") {
  AcceptorRig rig([](AcceptorOptions& options) { options.sessions_max = 1; });
  session::Open open{session::option_recursive, "a"};
  open.first = one_file("f");
  Guest& first = rig.arrive_and_run(1, open);
  CHECK(first.all<session::Opened>().at(0).took_first_entries);
  REQUIRE(rig.run([&] { return first.got<session::Answer>(); }));
  CHECK(first.all<session::Answer>().at(0).first_index == 0);
  Guest& second = rig.arrive(2, open);
  REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  first.link->post(session::Abort{ErrorKind::interrupted, "enough"});
  REQUIRE(rig.run([&] { return second.got<session::Opened>(); }));
  CHECK_FALSE(second.all<session::Opened>().at(0).took_first_entries);
  rig.run_for(1s);
  CHECK_FALSE(second.got<session::Answer>());
}

TEST_CASE("acceptor__first_entries_that_make_no_sense_or_leave_the_root__end_the_session") {
  for (const bool leaves : {true, false}) {
    AcceptorRig rig;
    session::Open open{session::option_recursive, "a"};
    open.first = one_file("ab/cdef");
    if (leaves) {
      const auto at = std::search(open.first.bytes.begin(), open.first.bytes.end(), std::begin("ab/"), std::prev(std::end("ab/")),
                                  [](std::byte have, char want) { return have == static_cast<std::byte>(want); });
      REQUIRE(at != open.first.bytes.end());
      at[0] = at[1] = std::byte{'.'};
    } else {
      open.first.count = 2;
    }
    Guest& guest = rig.arrive(1, open);
    REQUIRE(rig.run([&] { return guest.got<session::Abort>(); }));
    CHECK(guest.all<session::Abort>().at(0).kind == (leaves ? ErrorKind::not_authorised : ErrorKind::protocol));
  }
}

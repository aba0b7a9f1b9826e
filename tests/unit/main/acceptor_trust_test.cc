// The side that listens and whom it knows: strangers keep nobody out, and each peer has what it was granted.
#include <catch2/catch.hpp>
#include <filesystem>
#include <set>

#include "app/main/farewell.h"
#include "app/main/gate.h"
#include "tests/unit/main/acceptor_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

namespace {

// Knows one peer, and lets nobody in.
struct OneKnown final : PeerGate {
  std::optional<trust::PeerId> known{};
  Result<void> may_wait(const session::Link&, const session::Open&, const std::string&) override {
    return fail(ErrorKind::not_authorised, "nobody may");
  }
  Result<policy::Grant> admit(const session::Link&, const session::Open&, const std::string&) override {
    return fail(ErrorKind::not_authorised, "nobody may");
  }
  std::optional<Error> ended(const session::Link&, const Error&) override { return std::nullopt; }
  std::string name_of(const trust::ProvedPeer& peer) const override { return peer.id == known ? "one" : ""; }
};

struct Everybody final : PeerGate {
  Result<void> may_wait(const session::Link&, const session::Open&, const std::string&) override { return {}; }
  Result<policy::Grant> admit(const session::Link&, const session::Open&, const std::string&) override { return policy::Grant{}; }
  std::optional<Error> ended(const session::Link&, const Error&) override { return std::nullopt; }
  std::string name_of(const trust::ProvedPeer&) const override { return ""; }
};

struct SealedRig : AcceptorRig {
  explicit SealedRig(PeerGate& gate, const std::function<void(AcceptorOptions&)>& change = {})
      : AcceptorRig([&](AcceptorOptions& options) {
          options.seal = new_key;
          options.gate = &gate;
          if (change) change(options);
        }) {}
  // It has proved its key, which is made for this where none is given, and says nothing.
  Guest& arrive(uint8_t transfer, const session::SealSetup& key = new_key()) {
    guests.push_back(std::make_unique<Guest>(net, transfer, session::Direction::push, 100 + ++dialled, key));
    Guest& guest = *guests.back();
    REQUIRE(run([&] { return guest.link->is_secured() && guest.link->messages_delivered(); }));
    return guest;
  }
};

// Its own files cannot be read, when it is asked `looks` times.
struct BrokenTickets final : PeerGate {
  explicit BrokenTickets(int looks_that_go_well) : looks(looks_that_go_well) {}
  int looks;
  Result<void> may_wait(const session::Link&, const session::Open&, const std::string&) override {
    if (looks-- > 0) return {};
    return fail(ErrorKind::usage, "/home/secret/tickets: others may read it: chmod 600 /home/secret/tickets");
  }
  Result<policy::Grant> admit(const session::Link&, const session::Open&, const std::string&) override {
    return fail(ErrorKind::no_space, "cannot lock the tickets: /home/secret/tickets.lock: No space left on device");
  }
  std::optional<Error> ended(const session::Link&, const Error&) override { return std::nullopt; }
  std::string name_of(const trust::ProvedPeer&) const override { return ""; }
};

}  // namespace

// They come as fast as they can, and the first of them makes room when it has had its time.
TEST_CASE("acceptor__strangers_who_prove_nothing__are_bounded_and_the_oldest_makes_room") {
  OneKnown gate;
  SealedRig rig(gate);
  session::Hello hello;
  hello.sealed = true;
  for (size_t i = 0; i < strangers_max; ++i) REQUIRE(rig.acceptor->on_new_session(hello, rig.now));
  const auto one_more = rig.acceptor->on_new_session(hello, rig.now);
  REQUIRE_FALSE(one_more);
  CHECK(one_more.error().kind == ErrorKind::network);  // it may try again
  for (int i = 0; i < 20; ++i) {
    rig.run_for(stranger_kept);
    CHECK(rig.acceptor->on_new_session(hello, rig.now));
  }
  rig.run_for(farewell_timeout * 2);
  CHECK(rig.acceptor->sessions() <= strangers_max);
  rig.run_for(open_timeout);
  CHECK(rig.acceptor->sessions() == 0);
}

// A key costs nothing: who has proved one that nobody knows is as much a stranger as before.
TEST_CASE("acceptor__strangers_who_prove_keys_of_their_own_and_say_nothing__are_bounded_too") {
  OneKnown gate;
  SealedRig rig(gate);
  Guest& known = rig.arrive(0);
  gate.known = known.id;
  for (size_t i = 0; i < strangers_max; ++i) rig.arrive(1).is_gone = true;  // it is there and takes nothing any more
  CHECK(rig.acceptor->sessions() == 1 + strangers_max);
  for (int i = 0; i < 10; ++i) {
    rig.run_for(stranger_kept);
    rig.arrive(2).is_gone = true;
    CHECK(rig.acceptor->sessions() == 1 + strangers_max);
  }
  CHECK_FALSE(known.got<session::Abort>());
  known.open({session::option_recursive, ""});
  REQUIRE(rig.run([&] { return known.got<session::Abort>(); }));
  CHECK(known.all<session::Abort>().front().message == "nobody may");  // it was there to the end
}

TEST_CASE("acceptor__a_stranger_who_leaves_before_it_says_what_it_wants__leaves_nothing_behind") {
  OneKnown gate;
  SealedRig rig(gate);
  Guest& stranger = rig.arrive(1);
  REQUIRE(rig.acceptor->sessions() == 1);
  const Instant before = rig.now;
  rig.leave(stranger);
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  CHECK(rig.now < after(before, stranger_kept));
}

TEST_CASE("acceptor__tickets_that_cannot_be_read__are_the_operators_to_hear_of_and_no_strangers") {
  BrokenTickets gate(GENERATE(0, 1));
  std::vector<policy::AuditRecord> records;
  SealedRig rig(gate, [&](AcceptorOptions& options) { options.audit = [&](const auto& record) { records.push_back(record); }; });
  Guest& stranger = rig.arrive(1);
  stranger.open({session::option_recursive, ""});
  REQUIRE(rig.run([&] { return stranger.got<session::Abort>(); }));
  const session::Abort told = stranger.all<session::Abort>().front();
  CHECK(told.kind == ErrorKind::file_io);
  CHECK(told.message == "the peer cannot look at its tickets: its log says why: ask who runs it");
  rig.leave(stranger);
  REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
  REQUIRE(records.size() == 1);
  CHECK(records.front().event == policy::AuditRecord::Event::refused);
  CHECK(records.front().reason.find("/home/secret/tickets") != std::string::npos);
}

// The id is the peer's choice, and stands in clear in each hello.
TEST_CASE("acceptor__two_peers_with_one_transfer_id__have_a_receipt_each") {
  recv::test::TemporaryDirectory receipts;
  Everybody gate;
  SealedRig rig(gate, [&](AcceptorOptions& options) { options.receipts = {receipts.path(), "/data", receipt::Side::destination}; });
  std::set<std::string> expected;
  for (int i = 0; i < 2; ++i) {
    Guest& guest = rig.arrive(9);
    expected.insert("09000000000000000000000000000000." + trust::to_string(*guest.id) + ".receipt");
    guest.open({session::option_recursive, ""});
    REQUIRE(rig.run([&] { return guest.got<session::Opened>(); }));
    rig.finish(guest);
    REQUIRE(rig.run([&] { return rig.acceptor->idle(); }));
    rig.leave(guest);
  }
  std::set<std::string> there;
  for (const auto& entry : std::filesystem::directory_iterator(receipts.path())) there.insert(entry.path().filename());
  CHECK(there == expected);
}

// Its node is gone, or it was killed: its session waits for it, and whoever runs the command once more has another transfer id.
TEST_CASE("acceptor__a_killed_command_is_run_again__has_the_place_of_the_lost_one_soon") {
  for (const bool once : {true, false}) {
    INFO(once);
    Everybody gate;
    SealedRig rig(gate, [&](AcceptorOptions& options) {
      options.once = once;
      options.sessions_max = 1;
    });
    const session::SealSetup key = new_key();
    Guest& lost = rig.arrive(1, key);
    lost.open({session::option_recursive, "a"});
    REQUIRE(rig.run([&] { return lost.got<session::Opened>(); }));
    rig.far.transport->cut_newest();
    rig.leave(lost);
    rig.run_for(lost_patience + 1ms);
    // Whoever is another peer, or means another place, is not the same command.
    if (once) {
      Guest& stranger = rig.arrive(2);
      stranger.open({session::option_recursive, "a"});
      REQUIRE(rig.run([&] { return stranger.got<session::Abort>(); }));
      CHECK(stranger.all<session::Abort>()[0].message.find("busy with other transfers") != std::string::npos);
    }
    Guest& other = rig.arrive(3, key);
    other.open({session::option_recursive, "b"});
    if (once) {
      REQUIRE(rig.run([&] { return other.got<session::Abort>(); }));
    } else {
      REQUIRE(rig.run([&] { return other.got<session::Queued>(); }));
      rig.run_for(1s);
      CHECK_FALSE(other.got<session::Opened>());
      rig.far.transport->cut_newest();  // it does not wait for its turn any more
      rig.leave(other);
    }
    CHECK(rig.acceptor->unfinished() == 1);
    const Instant before = rig.now;
    Guest& again = rig.arrive(4, key);
    again.open({session::option_recursive, "a"});
    REQUIRE(rig.run([&] { return again.got<session::Opened>(); }));
    CHECK(rig.now < after(before, lost_patience));
    CHECK_FALSE(rig.acceptor->first_end());
    rig.finish(again);
    CHECK(rig.acceptor->first_end()->kind == ErrorKind::ok);
  }
}

// What a peer that has a connection does takes as long as it takes, and a short outage loses nobody its place.
TEST_CASE("acceptor__the_same_command_twice__the_first_keeps_its_place_while_it_is_there_or_has_just_gone") {
  Everybody gate;
  SealedRig rig(gate, [](AcceptorOptions& options) { options.sessions_max = 1; });
  const session::SealSetup key = new_key();
  Guest& first = rig.arrive(1, key);
  first.open({session::option_recursive, "a"});
  REQUIRE(rig.run([&] { return first.got<session::Opened>(); }));
  rig.far.transport->cut_newest();
  rig.leave(first);
  Guest& second = rig.arrive(2, key);
  second.open({session::option_recursive, "a"});
  rig.run_for(lost_patience / 2);
  REQUIRE(second.got<session::Queued>());
  CHECK_FALSE(second.got<session::Opened>());
  REQUIRE(rig.run([&] { return second.got<session::Opened>(); }));
  Guest& third = rig.arrive(3, key);
  third.open({session::option_recursive, "a"});
  rig.run_for(lost_patience * 4);
  CHECK_FALSE(third.got<session::Opened>());
  CHECK(rig.acceptor->unfinished() == 1);
}

// It was proved when the peer came. Until it says what it wants, and until its turn comes, there may be other lists.
TEST_CASE("acceptor__a_certificate_that_lapses_after_its_handshake__begins_no_session") {
  const bool while_it_waits = GENERATE(true, false);
  const recv::test::TemporaryDirectory state;
  policy::TicketStore tickets(state.path() + "/tickets", [] { return int64_t{1'800'000'000}; });
  std::string lapsed;
  Gate gate(policy::Peers{}, policy::Direction::write, "/srv", tickets, [&](const trust::ProvedPeer&) { return lapsed; });
  std::vector<PeerConfig> tables(2);
  SealedRig rig(gate, [](AcceptorOptions& options) { options.sessions_max = 1; });
  const auto arrive_known = [&](uint8_t transfer) -> Guest& {
    Guest& guest = rig.arrive(transfer);
    tables[transfer].id = guest.id;
    tables[transfer].write = {""};
    gate.set_peers(policy::Peers(tables));
    return guest;
  };
  Guest& first = arrive_known(0);
  first.open({session::option_recursive, ""});
  REQUIRE(rig.run([&] { return first.got<session::Opened>(); }));
  Guest& second = arrive_known(1);
  if (while_it_waits) {
    second.open({session::option_recursive, ""});
    REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  }
  lapsed = "the peer's certificate has expired (2027-01-25): renew it";
  if (while_it_waits) {
    rig.finish(first);
  } else {
    second.open({session::option_recursive, ""});
  }
  REQUIRE(rig.run([&] { return second.got<session::Abort>(); }));
  CHECK(second.all<session::Abort>().front().kind == ErrorKind::authentication);
  CHECK(second.all<session::Abort>().front().message.find("has expired or is revoked") != std::string::npos);
}

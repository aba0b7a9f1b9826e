// What the side that listens makes of the limits in a peer's [peer.NAME]: they hold for that peer's sessions and for no others.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "app/session/receiver_words.h"
#include "tests/unit/main/acceptor_rig.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

namespace {

// Everybody may; the transfer's number says whose it is.
struct Granting final : PeerGate {
  std::map<uint8_t, policy::Grant> of;
  std::string denied = "nowhere";
  Result<void> may_wait(const session::Link&, const session::Open&, const std::string& path) override {
    if (path == denied) return fail(ErrorKind::not_authorised, path + " is not yours");
    return {};
  }
  Result<policy::Grant> admit(const session::Link& link, const session::Open&, const std::string&) override {
    return of.at(link.hello().transfer[0]);
  }
  std::optional<Error> ended(const session::Link&, const Error&) override { return std::nullopt; }
  std::string name_of(const trust::ProvedPeer&) const override { return ""; }

  void let(uint8_t transfer, const std::string& name, std::optional<uint64_t> rate_bytes_per_s) {
    of[transfer].name = name;
    of[transfer].rate_bytes_per_s = rate_bytes_per_s;
  }
};

// The first one has a rate of 1 byte/s. The second one shares it, or has none.
void let_two(Granting& gate, bool is_same_peer) {
  gate.let(1, "slow", 1);
  if (is_same_peer) {
    gate.let(2, "slow", 1);
  } else {
    gate.let(2, "other", std::nullopt);
  }
}

}  // namespace

// What the first session had is all that the rate allows its peer for ages.
TEST_CASE("acceptor__rate_of_a_peer_that_sends__is_one_for_its_sessions_and_none_for_others") {
  const bool is_same_peer = GENERATE(true, false);
  Granting gate;
  let_two(gate, is_same_peer);
  AcceptorRig rig([&](AcceptorOptions& options) { options.gate = &gate; });
  const Guest& first = rig.arrive_and_run(1);
  rig.run_for(1s);
  CHECK(first.source.has_credit());
  const Guest& second = rig.arrive_and_run(2);
  rig.run_for(1s);
  CHECK(second.source.has_credit() == !is_same_peer);
}

TEST_CASE("acceptor__rate_of_a_peer_that_pulls__is_one_for_its_sessions_and_none_for_others") {
  const bool is_same_peer = GENERATE(true, false);
  recv::test::TemporaryDirectory served;
  served.write("d/f", "x");
  const int fd = ::open(served.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  REQUIRE(fd >= 0);
  Granting gate;
  let_two(gate, is_same_peer);
  std::map<uint64_t, size_t> puts;  // by the key of the mailboxes
  AcceptorRig rig([&](AcceptorOptions& options) {
    options.root = nullptr;
    options.served_root = fd;
    options.gate = &gate;
  });
  rig.net.in_between = [&](std::string_view, std::vector<session::fake::Frame>& frames) {
    for (const session::fake::Frame& frame : frames) {
      if (frame.kind == session::fake::FrameKind::put) ++puts[frame.remote.handle.key];
    }
  };
  for (const uint8_t transfer : {uint8_t{1}, uint8_t{2}}) {
    Guest& guest = rig.dial(transfer, session::Direction::pull);
    REQUIRE(rig.run([&] { return !guest.link->live_lanes().empty(); }));
    guest.open({session::option_recursive, "d/"});
    REQUIRE(rig.run([&] { return guest.got<session::Opened>(); }));
    guest.link->post_on_lane(0, session::LaneOpen{1, 1024, transfer, session::stripes});
    guest.link->post_on_lane(0, session::Credit{8, false});
    rig.run_for(1s);
  }
  CHECK(puts[1] > 0);
  CHECK((puts[2] == 0) == is_same_peer);
  rig.net.in_between = nullptr;
  ::close(fd);
}

TEST_CASE("acceptor__devices_of_a_peer__are_made_as_its_grant_says") {
  const bool may = GENERATE(false, true);
  Granting gate;
  gate.let(1, "one", std::nullopt);
  gate.of[1].devices = may;
  AcceptorRig rig([&](AcceptorOptions& options) { options.gate = &gate; });
  Guest& guest = rig.arrive_and_run(1, {session::option_recursive | session::option_specials, ""});
  REQUIRE(rig.run([&] { return guest.source.has_credit(); }));
  session::Entry entry;
  entry.path = "pipe";
  entry.type = session::EntryType::special;
  entry.special = ports::SpecialKind::fifo;
  entry.mode = 0644;
  guest.source.put_entries({entry}, 0, 0);
  REQUIRE(rig.run([&] { return guest.source.verdicts.size() == 1; }));
  CHECK(guest.source.verdicts.at(0) == (may ? session::Verdict::done : session::Verdict::failed));
  CHECK(::access((rig.directory.path() + "/pipe").c_str(), F_OK) == (may ? 0 : -1));
  if (!may) CHECK(guest.source.results.at(0).error_number == session::errno_of_no_devices);
}

// It may have waited for hours, and the configuration was read again.
TEST_CASE("acceptor__a_grant_that_loses_a_place_while_its_session_waits__counts_when_its_turn_comes") {
  const bool of_backups = GENERATE(true, false);
  Granting gate;
  gate.let(1, "first", std::nullopt);
  gate.let(2, "second", std::nullopt);
  AcceptorRig rig([&](AcceptorOptions& options) {
    options.gate = &gate;
    options.sessions_max = 1;
  });
  Guest& first = rig.arrive_and_run(1);
  session::Open open{session::option_recursive, "new"};
  if (of_backups) {
    open.backup.emplace();
    open.backup->directory = "../old";
  } else {
    open.link_dest = {"../old"};
  }
  Guest& second = rig.arrive(2, open);
  REQUIRE(rig.run([&] { return second.got<session::Queued>(); }));
  gate.denied = "old";
  rig.finish(first);
  REQUIRE(rig.run([&] { return second.got<session::Abort>(); }));
  CHECK(second.all<session::Abort>().front().kind == ErrorKind::not_authorised);
  CHECK_FALSE(second.got<session::Opened>());
}

// Processes that share a transfer, as commands: what they must agree on.
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// Under a cap of 1 byte/s the first two segments pass, and then nothing.
const std::string without_end(16u << 20, 'x');

}  // namespace

// Whichever of them led would have deleted, or not.
TEST_CASE("team_parts__deletions__are_what_all_of_them_must_ask_for_alike") {
  TemporaryDirectory from, to;
  from.write("d/f", without_end);
  ReceiveCommand receive = receiver(to.path());
  receive.transfer.rate = RateTable(1);  // it cannot end by itself
  Running receiving_side(receiving(receive));
  SendCommand send = send_of({from.path("d") + "/"}, receiving_side.uri() + "/d/");
  send.team.part = "1/3";
  send.transfer.sync.deletes = true;
  send.transfer.sync.max_delete = 5;
  Running leader(interrupted(sending(send)));
  static_cast<void>(leader.said.await("session"));
  send.team.part = "2/3";
  const auto refused = [&] {
    Running other(interrupted(sending(send)));
    if (other.said.comes("session")) return false;
    const CommandEnd& end = other.wait();
    return end.error.kind == ErrorKind::usage &&
           end.error.message.find("asks for something else than part 1/3") != std::string::npos;
  };
  send.transfer.sync.max_delete = 6;
  CHECK(refused());
  send.transfer.sync.max_delete = std::nullopt;
  CHECK(refused());
  send.transfer.sync.deletes = false;
  CHECK(refused());
  send.transfer.sync.deletes = true;
  send.transfer.sync.max_delete = 5;
  Running helper(interrupted(sending(send)));
  static_cast<void>(helper.said.await("session"));
  CHECK(helper.stop(SIGINT).error.kind == ErrorKind::interrupted);
  CHECK(leader.stop(SIGINT).error.kind == ErrorKind::interrupted);
}

// As on a node where nothing is mounted at SRC, or something else is.
TEST_CASE("team_parts__another_source_of_the_same_name__is_refused_and_the_leader_goes_on") {
  TemporaryDirectory from, to;
  from.write("d/f", without_end);
  from.write("other/f", without_end);
  ReceiveCommand receive = receiver(to.path());
  receive.transfer.rate = RateTable(1);  // it cannot end by itself
  Running receiving_side(receiving(receive));
  SendCommand send = send_of({from.path("d")}, receiving_side.uri() + "/");
  send.team.part = "1/2";
  Running leader(interrupted(sending(send)));
  static_cast<void>(leader.said.await("session"));
  send.team.part = "2/2";
  std::filesystem::rename(from.path("d"), from.path("was"));
  std::filesystem::rename(from.path("other"), from.path("d"));
  {
    Running other(interrupted(sending(send)));
    REQUIRE_FALSE(other.said.comes("session"));
    const CommandEnd& end = other.wait();
    CHECK(end.error.kind == ErrorKind::usage);
    CHECK(end.error.message.find("part 2/2 sees another source than part 1/2") != std::string::npos);
  }
  std::filesystem::rename(from.path("d"), from.path("other"));
  std::filesystem::rename(from.path("was"), from.path("d"));
  Running helper(interrupted(sending(send)));
  static_cast<void>(helper.said.await("session"));
  CHECK(helper.stop(SIGINT).error.kind == ErrorKind::interrupted);
  CHECK(leader.stop(SIGINT).error.kind == ErrorKind::interrupted);
}

// Only the receiver that owns a file makes holes in it, so another one would wait for work that never comes.
TEST_CASE("team_parts__sparse_with_a_second_receiver__says_that_all_goes_to_the_first") {
  TemporaryDirectory from, to;
  from.write("d/f", "x");
  Running receiving_side(receiving(receiver(to.path())));
  const std::string first = receiving_side.uri();
  const std::string second = "tcp://127.0.0.1:1";  // nobody is there, and nobody is asked
  const auto said_of = [&](bool sparse, const std::string& name) {
    SendCommand send = send_of({from.path("d") + "/"}, first + name);
    send.more_destinations = {second + name};
    send.team.part = "2/2";  // it is alone, and leads
    send.transfer.metadata.sparse = sparse;
    Ran ran(sending(send));
    INFO(of(ran.end));
    CHECK(ran.end.error.kind == ErrorKind::ok);
    CHECK(to.read(name.substr(1) + "f") == "x");
    return ran.running.said.text.all();
  };
  CHECK(said_of(true, "/a/").find("second receiver " + second + ": with --sparse only the first receiver writes") !=
        std::string::npos);
  CHECK(said_of(false, "/b/").find("--sparse") == std::string::npos);
}

// Processes that share a transfer, as commands: what they must agree on.
#include <catch2/catch.hpp>

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

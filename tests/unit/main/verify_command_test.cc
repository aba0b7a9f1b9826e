// Whom `ccixfer verify --signer` asks for.
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

Error verified_by(const std::string& signer) {
  Config config;
  config.peers.resize(2);
  config.peers[0].name = "lab";
  config.peers[0].certified_name = "dtn1.lab.example";
  config.peers[1].name = "dtn1";
  config.peers[1].id = trust::PeerId();
  VerifyCommand command;
  command.receipt = "/no/receipt";
  command.signer = signer;
  return Ran([command](const Process& process) { return run_verify(process, command); }, config).end.error;
}

}  // namespace

TEST_CASE("verify__a_signer_that_nobody_can_be__is_bad_use_and_not_another_signer") {
  const std::string id = trust::to_string(trust::PeerId());
  for (const std::string& signer : {std::string("lab"), std::string("nosuch"), std::string("Dtn1"), id.substr(0, id.size() - 1),
                                    std::string("cx1-"), std::string("")}) {
    CAPTURE(signer);
    const Error error = verified_by(signer);
    CHECK(error.kind == ErrorKind::usage);
    CHECK(error.message.find("cannot read the receipt") == std::string::npos);
  }
  CHECK(verified_by("nosuch").message ==
        "bad value: --signer nosuch: no such [peer.nosuch] in the configuration: give an id, or NAME of a [peer.NAME]");
  CHECK(verified_by("lab").message ==
        "bad value: --signer lab: [peer.lab] is known by a certificate and has no id: give the id of its key");
  for (const std::string& signer : {std::string("dtn1"), id})
    CHECK(verified_by(signer).message.starts_with("cannot read the receipt: "));
}

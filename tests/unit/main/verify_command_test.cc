// `ccixfer verify`: whom --signer asks for, what a receipt proves, and where it comes from.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "app/receipt/format.h"
#include "tests/unit/host/few_processes.h"
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

// A tree of one file, and a receipt of it that nobody signed.
struct Listed {
  Listed(const std::string& content, bool has_digest) : file(temporary.path("receipt")) {
    std::filesystem::create_directory(temporary.path("tree"));
    std::ofstream(temporary.path("tree/f")) << content;
    receipt::Entry entry;
    entry.path = "f";
    entry.size_bytes = 3;
    trust::Sha256 hash;
    hash.update(as_bytes("abc"));
    if (has_digest) entry.sha256 = hash.digest();
    receipt::Header header;
    header.status = "ok";
    receipt::End end{1, 0, 0, 3};
    text = encode(header) + encode(entry) + encode(end) + encode(receipt::Signed{});
    std::ofstream(file) << text;
  }
  [[nodiscard]] VerifyCommand command() const {
    VerifyCommand command;
    command.common = insecure();
    command.receipt = file;
    command.directory = temporary.path("tree");
    return command;
  }
  TemporaryDirectory temporary;
  const std::string file;
  std::string text;
};

Running::Body verifying(const VerifyCommand& command) {
  return [command](const Process& process) { return run_verify(process, command); };
}

}  // namespace

TEST_CASE("verify__file_without_a_digest__is_told_and_not_taken_for_good") {
  const auto ended = [](const Listed& listed, const std::string& status) {
    Running running(verifying(listed.command()));
    if (!status.empty()) CHECK(member(running.said.await("file"), "status") == status);
    return running.wait().error.kind;
  };
  CHECK(ended(Listed("abc", true), "") == ErrorKind::ok);
  CHECK(ended(Listed("abc", false), "unproved") == ErrorKind::partial);
  CHECK(ended(Listed("xyz", false), "unproved") == ErrorKind::partial);
  CHECK(ended(Listed("abcd", false), "altered") == ErrorKind::integrity);
  CHECK(ended(Listed("xyz", true), "altered") == ErrorKind::integrity);
}

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

TEST_CASE("verify__host_gives_no_thread__the_files_are_read_one_after_the_other") {
  const Listed listed("abc", true);
  REQUIRE(chmod(listed.temporary.path().c_str(), 0755) == 0);
  for (const char* name : {"g", "h"}) {
    std::filesystem::copy_file(listed.temporary.path("tree/f"), listed.temporary.path(std::string("tree/") + name));
  }
  const size_t entry = listed.text.find("{\"type\""), end = listed.text.find("{\"end\"");
  std::string text = listed.text.substr(0, entry);
  for (const char* name : {"f", "g", "h"}) {
    std::string line = listed.text.substr(entry, end - entry);
    text += line.replace(line.find("\"f\""), 3, '"' + std::string(name) + '"');
  }
  std::ofstream(listed.file) << text << encode(receipt::End{3, 0, 0, 9}) << encode(receipt::Signed{});
  CHECK(testing::with_few_processes(1, [&] {
    const Said said(false);
    TurnLoop loop;
    Counters counters;
    const Config config;
    const CommandEnd ended = run_verify(Process{loop, *said.reporter, counters, config}, listed.command());
    return ended.error.kind == ErrorKind::ok && ended.tally.files_unchanged == 3;
  }));
}

TEST_CASE("verify__receipt_comes_through_a_pipe__is_read_as_one_from_a_file") {
  const Listed listed("abc", true);
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(write(ends[1], listed.text.data(), listed.text.size()) == static_cast<ssize_t>(listed.text.size()));
  close(ends[1]);
  VerifyCommand command = listed.command();
  command.receipt = "/proc/self/fd/" + std::to_string(ends[0]);
  CHECK(Ran(verifying(command)).end.error.message == "");
  close(ends[0]);
  command.receipt = "/";
  CHECK(Ran(verifying(command)).end.error.kind == ErrorKind::usage);
}

TEST_CASE("verify__fifo_without_a_writer__ends_when_it_is_told_to") {
  const Listed listed("abc", true);
  VerifyCommand command = listed.command();
  command.receipt = listed.temporary.path("fifo");
  REQUIRE(mkfifo(command.receipt.c_str(), 0600) == 0);
  Running running(verifying(command));
  CHECK(running.stop(SIGINT).error.kind == ErrorKind::interrupted);
}

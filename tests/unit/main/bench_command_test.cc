// `ccixfer bench` between two commands of this process: what scripts read, and who is interrupted in the middle.
#include "app/main/bench_row.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

Running::Body measuring(const BenchCommand& command) {
  return [command](const Process& process) { return run_bench(process, command); };
}
BenchCommand serving(bool once, bench::Wait wait = bench::Wait::poll) {
  BenchCommand command;
  command.common = insecure();
  command.listen = listening(once);
  command.serve = true;
  command.wait = wait;
  return command;
}
BenchCommand asking(const std::string& uri, const bench::PlanText& text) {
  BenchCommand command;
  command.common = insecure();
  command.uri = uri;
  command.plan = bench::make_plan(text).value();
  return command;
}

}  // namespace

TEST_CASE("bench_command__for_scripts__the_path_once_and_then_an_event_a_row") {
  Running server(measuring(serving(true, bench::Wait::spin)));
  const std::string uri = server.uri();
  Running asker(measuring(asking(uri, {.tests = "message-latency,rma-write", .sizes = "4KiB", .count = "4"})));
  const std::string path = asker.said.await("path");
  CHECK(member(path, "uri") == uri);
  CHECK(member(path, "wait") == "poll");
  CHECK(member(path, "peer_wait") == "spin");
  CHECK(path.find("\"transport\":\"tcp\"") != std::string::npos);
  const std::string latency = asker.said.await("bench"), write = asker.said.await("bench");
  CHECK(member(latency, "test") == "message-latency");
  CHECK(member(latency, "count") == "4");
  CHECK(member(write, "test") == "rma-write");
  CHECK(member(write, "size_bytes") == "4096");
  CHECK(of(asker.wait()) == "ok: ");
  CHECK(of(server.wait()) == "ok: ");
}

TEST_CASE("bench_command__a_server_stopped_within_a_measurement__both_sides_say_so") {
  Running server(measuring(serving(false)));
  const std::string uri = server.uri();
  Running asker(measuring(asking(uri, {.tests = "message-latency", .seconds = "1000"})));
  static_cast<void>(asker.said.await("path"));
  CHECK(of(server.stop()) == "interrupted: interrupted: by a signal: a measurement was under way, or none had come");
  CHECK(of(asker.wait()).rfind("network: ", 0) == 0);
  CHECK(of(asker.wait()).find(uri) != std::string::npos);
}

TEST_CASE("bench_command__an_asking_side_interrupted_within_a_measurement__says_of_which") {
  Running server(measuring(serving(false)));
  const std::string uri = server.uri();
  Running asker(measuring(asking(uri, {.tests = "message-latency", .seconds = "1000"})));
  static_cast<void>(asker.said.await("path"));
  CHECK(of(asker.stop(SIGINT)) == "interrupted: interrupted: by a signal: " + uri);
}

TEST_CASE("bench_command__a_server_with_a_file_for_its_addresses__writes_them_or_fails") {
  TemporaryDirectory here;
  BenchCommand command = serving(false);
  command.listen.uri_file = here.path("uris");
  {
    Running server(measuring(command));
    const std::string uri = server.uri();
    CHECK(here.read("uris") == uri + "\n");
    CHECK(of(server.stop()) == "ok: ");
    CHECK_FALSE(here.has("uris"));
  }
  command.listen.uri_file = here.path("none/uris");
  Running server(measuring(command), {}, false);
  CHECK(of(server.stop()) == "usage: cannot write the uri file: " + here.path("none/uris") +
                                 ": No such file or directory: give --uri-file a writable place");
  CHECK(server.said.text.lines("ready").empty());
}

TEST_CASE("bench_command__places_that_cannot_be_measured__said_before_anything_is_dialled") {
  const auto end = [](const std::string& uri, bool insecurely = true) {
    BenchCommand command = asking(uri, {});
    command.common.insecure = insecurely;
    return of(Ran(measuring(command)).end);
  };
  CHECK(end("tcp://127.0.0.1:1/d/f") == "usage: bad address: tcp://127.0.0.1:1/d/f: a measurement has no path: give it without");
  CHECK(end("cci://1:1:127.0.0.1:1").rfind("usage: routed address without routing: cci://1:1:127.0.0.1:1: ", 0) == 0);
  CHECK(end("nonsense").rfind("usage: not an address: nonsense: ", 0) == 0);
  CHECK(end("tcp://127.0.0.1:1", false).rfind("authentication: ", 0) == 0);
  CHECK(end("tcp://127.0.0.1:1").rfind("no_answer: ", 0) == 0);
}

TEST_CASE("bench_command__for_people__the_way_the_head_and_a_line_a_row") {
  Running server(measuring(serving(true)));
  const std::string uri = server.uri();
  Words shown;
  {
    Output output;
    CHECK(of(Ran(measuring(asking(uri, {.tests = "message-latency,rma-read", .sizes = "4KiB", .count = "3"})), {}, false).end) ==
          "ok: ");
    shown = output.take();
  }
  REQUIRE(shown.size() >= 5);
  CHECK(shown[0] == uri + ": this side waits by poll, the peer by poll");
  CHECK(shown[1] == "hop 1: tcp " + uri);
  CHECK(shown[2] == bench_head());
  CHECK(shown[3].rfind("message-latency ", 0) == 0);
  CHECK(shown.back().rfind("rma-read ", 0) == 0);
  CHECK(of(server.wait()) == "ok: ");
}

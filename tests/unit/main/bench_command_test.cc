// `ccixfer bench` between two commands of this process: what scripts read, and who is interrupted in the middle.
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

std::string of(const CommandEnd& end) { return std::string(error_row(end.error.kind).name) + ": " + end.error.message; }

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

// What `ccixfer sim` prints: each line whole, beside the outcome that a run of the same world gives.
#include "app/simulate/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "app/report/outcome.h"
#include "app/simulate/simulation.h"
#include "core/base/units.h"

using namespace ccixfer;
using namespace ccixfer::simulate;

namespace {

const std::string world = R"(seed = 7
[link.lan]
rate = "8Mb/s"
[node.a]
links = ["lan"]
[node.b]
links = ["lan"]
[[transfer]]
from = "a"
to = "b"
large = "2MB"
entries = 3
[[fault]]
at = "1s"
kind = "reset"
link = "lan"
[[fault]]
at = "1500ms"
kind = "partition"
node = "a"
link = "lan"
for = "250ms"
[[fault]]
at = "1600ms"
kind = "reset"
node = "b"
)";

// Standard output goes to a file as long as this lives.
class Captured {
 public:
  Captured() : file_(std::tmpfile()), before_(dup(1)) {
    REQUIRE(file_ != nullptr);
    std::fflush(stdout);
    REQUIRE(dup2(fileno(file_), 1) == 1);
  }
  ~Captured() {
    if (before_ >= 0) end();
    std::fclose(file_);
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  std::string end() {
    std::fflush(stdout);
    dup2(before_, 1);
    close(std::exchange(before_, -1));
    std::string text(1u << 22, '\0');
    const ssize_t got = pread(fileno(file_), text.data(), text.size(), 0);
    REQUIRE(got >= 0);
    text.resize(static_cast<size_t>(got));
    return text;
  }

 private:
  std::FILE* file_;
  int before_;
};

struct Ran {
  std::string out;
  program::CommandEnd end;
};

class Lab {
 public:
  Lab() {
    const int fd = mkstemp(name_);
    REQUIRE(fd >= 0);
    close(fd);
  }
  ~Lab() { std::remove(name_); }
  Lab(const Lab&) = delete;
  Lab& operator=(const Lab&) = delete;
  Ran run(const std::string& text, program::SimCommand command = {}) {
    std::ofstream(name_, std::ios::binary) << text;
    command.scenario = name_;
    Captured captured;
    report::ReporterOptions options;
    options.json = command.common.json;
    options.quiet = true;
    auto reporter = report::Reporter::create(options, loop_.now());
    REQUIRE(reporter);
    Ran ran;
    ran.end = run_sim({loop_, **reporter, counters_, config_}, command);
    reporter->reset();
    ran.out = captured.end();
    return ran;
  }
  WorldOutcome outcome(const std::string& text, uint64_t seed) {
    const auto parsed = parse_scenario("w.toml", text);
    REQUIRE(parsed);
    scenario_ = *parsed;
    return simulate::simulate(scenario_, seed, {});
  }

 private:
  char name_[32] = "/tmp/ccixfer-sim-XXXXXX";
  program::TurnLoop loop_;
  Counters counters_;
  program::Config config_;
  Scenario scenario_;
};

double in_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string world_line(const WorldOutcome& one) {
  return fmt::format(
      "seed {}: {}: {:.6f} s of virtual time, {} events, {} faults, {} connections reset, {} packets corrupted, trace {:016x}\n",
      one.seed, error_row(one.end.kind).name, in_seconds(one.took), one.events, one.faults, one.resets, one.corruptions,
      one.trace_hash);
}

std::string counts_of(const TransferOutcome& one) {
  return fmt::format("{} files, {} in {:.6f} s: {} sent, {} segments sent again", one.tally.files, format_bytes(one.tally.bytes),
                     in_seconds(one.took), format_bytes(one.tally.bytes_sent), one.tally.segments_resent);
}

}  // namespace

TEST_CASE("sim_command__one_world__its_faults_its_transfer_and_itself") {
  Lab lab;
  const Ran ran = lab.run(world);
  CHECK(ran.end.error.kind == ErrorKind::ok);
  const WorldOutcome one = lab.outcome(world, 7);
  REQUIRE(one.transfers[0].end.kind == ErrorKind::ok);
  REQUIRE(one.transfers[0].tally.segments_resent > 0);
  CHECK(ran.out == fmt::format("1.000000 reset of link lan\n"
                               "1.500000 partition of a on lan for 0.25 s\n"
                               "1.600000 reset of b\n"
                               "1.750000 partition of a on lan is over\n"
                               "{:.6f} end of transfer1: ok\n"
                               "transfer transfer1: ok (exit 0): a -> b: {}, 1 run, verified after a power cut\n",
                               in_seconds(one.transfers[0].took), counts_of(one.transfers[0])) +
                       world_line(one));
  CHECK(ran.end.tally.files == one.transfers[0].tally.files);
  CHECK(ran.end.tally.bytes == one.transfers[0].tally.bytes);
}

TEST_CASE("sim_command__a_transfer_that_fails__why_and_how_often_it_ran") {
  Lab lab;
  const std::string text = world +
                           "[[fault]]\nat = \"1900ms\"\nkind = \"crash\"\nnode = \"a\"\nfor = \"20ms\"\n"
                           "[[fault]]\nat = \"1950ms\"\nkind = \"crash\"\nnode = \"a\"\n";
  const Ran ran = lab.run(text);
  const WorldOutcome one = lab.outcome(text, 7);
  REQUIRE(one.transfers[0].runs == 2);
  CHECK(ran.out.find("1.900000 crash of a for 0.02 s\n1.920000 crash of a is over\n1.950000 crash of a\n"
                     "1.950000 end of transfer1: interrupted\n"
                     "transfer transfer1: interrupted (exit 20): its host crashed and did not come back: a -> b: " +
                     counts_of(one.transfers[0]) + ", 2 runs\n" + world_line(one)) != std::string::npos);
  CHECK(ran.end.error.kind == ErrorKind::interrupted);
  CHECK(ran.end.error.message == "seed 7: transfer1: its host crashed and did not come back");
}

TEST_CASE("sim_command__json__an_event_for_each") {
  Lab lab;
  program::SimCommand command;
  command.common.json = true;
  const Ran ran = lab.run(world, command);
  const WorldOutcome one = lab.outcome(world, 7);
  const TransferOutcome& transfer = one.transfers[0];
  const auto begins = [&](const std::string& line) {
    INFO(line << "\n in\n" << ran.out);
    CHECK(("\n" + ran.out).find("\n" + line) != std::string::npos);
  };
  begins(R"({"event":"fault","t":1.0,"seed":7,"kind":"reset","node":"","link":"lan","for_s":null,"over":false})"
         "\n");
  begins(R"({"event":"fault","t":1.5,"seed":7,"kind":"partition","node":"a","link":"lan","for_s":0.25,"over":false})"
         "\n");
  begins(R"({"event":"fault","t":1.75,"seed":7,"kind":"partition","node":"a","link":"lan","for_s":0.25,"over":true})"
         "\n");
  begins(R"({"event":"transfer","t":)");
  const std::string counts = fmt::format(
      R"("files":{},"files_unchanged":0,"files_failed":0,"bytes":{},"bytes_sent":{},"segments_resent":{},"runs":1,"verified":true}})",
      transfer.tally.files, transfer.tally.bytes, transfer.tally.bytes_sent, transfer.tally.segments_resent);
  CHECK(ran.out.find(counts + "\n") != std::string::npos);
  CHECK(ran.out.find(
            R"("seed":7,"name":"transfer1","from":"a","to":"b","routed":false,"status":"ok","exit":0,"reason":"","seconds":)") !=
        std::string::npos);
  CHECK(ran.out.find(fmt::format(R"("events":{},"faults":3,"connections_reset":{},"packets_corrupted":0,"bytes_delivered":{},)"
                                 R"("trace_hash":"{:016x}"}})",
                                 one.events, one.resets, one.bytes_delivered, one.trace_hash)) != std::string::npos);
  CHECK(ran.out.find(R"("seed":7,"status":"ok","exit":0,"seconds":)") != std::string::npos);
  CHECK(ran.out.find("\"trace\"") == std::string::npos);
  CHECK(ran.out.find("transfer transfer1") == std::string::npos);  // no lines for people

  command.trace = true;
  const Ran traced = lab.run(world, command);
  CHECK(traced.out.find(R"({"event":"trace","t":)") != std::string::npos);
  CHECK(traced.out.find(R"({"event":"trace","t":0.0,"line":")") != std::string::npos);
  CHECK(traced.out.find(R"({"event":"trace","t":1.)") != std::string::npos);
}

TEST_CASE("sim_command__trace__a_line_for_each_event") {
  Lab lab;
  program::SimCommand command;
  command.trace = true;
  const Ran ran = lab.run(world, command);
  CHECK(("\n" + ran.out).find("\ntrace ") != std::string::npos);
  CHECK(ran.out.find("\"event\"") == std::string::npos);
}

TEST_CASE("sim_command__seeds__a_line_for_each_and_more_for_the_bad_ones") {
  Lab lab;
  program::SimCommand command;
  command.seed = 40;
  command.seeds = 3;
  const Ran good = lab.run(world, command);
  CHECK(good.end.error.kind == ErrorKind::ok);
  CHECK(good.out == world_line(lab.outcome(world, 40)) + world_line(lab.outcome(world, 41)) + world_line(lab.outcome(world, 42)) +
                        "3 seeds, 0 of them not well\n");
  uint64_t files = 0;
  for (const uint64_t seed : {40u, 41u, 42u}) files += lab.outcome(world, seed).transfers[0].tally.files;
  CHECK(good.end.tally.files == files);

  const std::string text = world + "[[fault]]\nat = \"1800ms\"\nkind = \"crash\"\nnode = \"a\"\n";
  const Ran bad = lab.run(text, command);
  CHECK(bad.end.error.kind == ErrorKind::interrupted);
  CHECK(bad.end.error.message == "seed 40: transfer1: its host crashed and did not come back");  // the first of equal ones
  const WorldOutcome first = lab.outcome(text, 40);
  CHECK(bad.out.rfind("transfer transfer1: interrupted (exit 20): its host crashed and did not come back: a -> b: " +
                          counts_of(first.transfers[0]) + ", 1 run\n" + world_line(first) + "transfer transfer1: ",
                      0) == 0);
  CHECK(bad.out.find("3 seeds, 3 of them not well\n") != std::string::npos);
  CHECK(bad.out.find("crash of") == std::string::npos);
}

TEST_CASE("sim_command__interrupted__says_which_seed") {
  Lab lab;  // its loop keeps the signals pending
  for (const int number : {SIGINT, SIGTERM}) {
    program::SimCommand command;
    command.seeds = 1000;
    std::raise(number);
    const Ran ran = lab.run(world, command);
    CHECK(ran.end.error.kind == ErrorKind::interrupted);
    CHECK(ran.end.error.message == "interrupted: seed 7: run it again");
    CHECK(ran.out == "1000 seeds, 0 of them not well\n");
    sigset_t pending;
    sigemptyset(&pending);
    sigaddset(&pending, number);
    CHECK(sigwaitinfo(&pending, nullptr) == number);
  }
}

TEST_CASE("sim_command__scenario_that_is_none__its_line") {
  Lab lab;
  const Ran ran = lab.run("seed = 1\n");
  CHECK(ran.end.error.kind == ErrorKind::usage);
  CHECK(ran.end.error.message.find(":1: link: is missing") != std::string::npos);
  CHECK(ran.out.empty());
}

// Every option of every command gets where it belongs, and every refusal has its whole line.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <vector>

#include "app/main/cli.h"

namespace ccixfer::program {
namespace {

using Words = std::vector<std::string>;

Result<Command> parse(const Words& words) {
  std::vector<const char*> arguments{"ccixfer"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}
std::string said(const Words& words) {
  const auto command = parse(words);
  return command ? "" : command.error().message;
}
Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}
template <typename Kind>
Kind of(const Words& words) {
  const auto command = parse(words);
  INFO((command ? "" : command.error().message));
  REQUIRE(command);
  REQUIRE(std::holds_alternative<Kind>(*command));
  return std::get<Kind>(*command);
}

const Words send{"send", "a", "tcp://h:1"}, serve{"send", "--serve", "d"}, pull{"recv", "tcp://h:1", "d"},
    receive{"recv", "--root", "d"};
const Words all_common{"-c", "f.toml", "--device", "lan", "--insecure", "--json", "-P", "-vv", "-q", "--stats", "--log-file", "l"};

template <typename Kind>
void has_the_common_options(const Words& words) {
  INFO(words[0]);
  const CommonOptions none = of<Kind>(words).common;
  CHECK_FALSE(none.config_file);
  CHECK_FALSE(none.device);
  CHECK_FALSE((none.insecure || none.json || none.progress || none.quiet || none.stats));
  CHECK(none.verbose == 0);
  CHECK(none.log_file.empty());
  const CommonOptions all = of<Kind>(with(words, all_common)).common;
  CHECK(all.config_file == "f.toml");
  CHECK(all.device == "lan");
  CHECK((all.insecure && all.json && all.progress && all.quiet && all.stats));
  CHECK(all.verbose == 2);
  CHECK(all.log_file == "l");
  CHECK(of<Kind>(with(words, {"--config", "g", "--progress", "--verbose", "--quiet"})).common.verbose == 1);
}

template <typename Kind>
void has_the_listening_options(const Words& words) {
  const ListenOptions none = of<Kind>(words).listen;
  CHECK_FALSE(none.listen);
  CHECK(none.uri_file.empty());
  CHECK_FALSE(none.once);
  CHECK_FALSE(none.sessions);
  const ListenOptions some = of<Kind>(with(words, {"--listen", "h:1", "--uri-file", "u", "--once"})).listen;
  CHECK(some.listen == "h:1");
  CHECK(some.uri_file == "u");
  CHECK(some.once);
}

template <typename Kind>
void has_the_transfers_options(const Words& words, bool dials) {
  const TransferOptions none = of<Kind>(words).transfer;
  CHECK_FALSE((none.archive || none.dry_run || none.checksum));
  CHECK(none.lanes == 0);
  CHECK(none.rate.at(0) == 0);
  CHECK(none.timeout == std::chrono::seconds(60));
  CHECK_FALSE(none.retries);
  CHECK(none.memory_bytes == 256u << 20);
  const TransferOptions some = of<Kind>(with(words, {"-j", "1024", "--bwlimit", "8b/s", "--memory", "1"})).transfer;
  CHECK(some.lanes == 1024);
  CHECK(some.rate.at(0) == 1);
  CHECK(some.memory_bytes == 1);
  CHECK(of<Kind>(with(words, {"--lanes", "1"})).transfer.lanes == 1);
  CHECK(of<Kind>(with(words, {"--bwlimit", "off"})).transfer.rate.at(0) == 0);
  const std::string rate = "give a rate above zero with its unit, such as 800MB/s or 10Gb/s, or off";
  CHECK(said(with(words, {"--bwlimit", "7b/s"})) == "bad value: --bwlimit 7b/s: " + rate);
  CHECK(said(with(words, {"--bwlimit", "800"})) == "bad value: --bwlimit 800: " + rate);
  CHECK(of<Kind>(with(words, {"--bwlimit", "08:00,8b/s 18:00,off"})).transfer.rate.at(9 * 60) == 1);
  CHECK(
      said(with(words, {"--bwlimit", "1GB/s 2GB/s"})) ==
      "bad value: --bwlimit 1GB/s 2GB/s: give a timetable as 08:00,1Gb/s 18:00,off: times of the day in order, each with its rate");
  CHECK(said(with(words, {"--lanes", "1025"})) == "bad value: --lanes 1025: give a whole number from 1 to 1024");
  CHECK(said(with(words, {"--lanes", "1x"})) == "bad value: --lanes 1x: give a whole number from 1 to 1024");
  CHECK(said(with(words, {"--retries", "4294967296"})) ==
        "bad value: --retries 4294967296: give a whole number from 0 to 4294967295");
  for (const char* bad : {"0", "-1", "inf", "1s"})
    CHECK(said(with(words, {std::string("--timeout=") + bad})) ==
          fmt::format("bad value: --timeout {}: give seconds above zero", bad));
  for (const char* bad : {"0", "much"})
    CHECK(said(with(words, {"--memory", bad})) == fmt::format("bad value: --memory {}: give a size such as 256MiB", bad));
  if (!dials) return;
  const TransferOptions patient = of<Kind>(with(words, {"--timeout", "0.5", "--retries", "4294967295", "-0"})).transfer;
  CHECK(patient.timeout == std::chrono::milliseconds(500));
  CHECK(patient.retries == UINT32_MAX);
  CHECK(patient.from0);
  const TransferOptions flags = of<Kind>(with(words, {"-a", "-n", "--checksum"})).transfer;
  CHECK((flags.archive && flags.dry_run && flags.checksum));
  const TransferOptions whole = of<Kind>(with(words, {"--archive", "--dry-run"})).transfer;
  CHECK((whole.archive && whole.dry_run && !whole.checksum));
}

}  // namespace

TEST_CASE("cli_lines__options_of_all__in_each_command") {
  has_the_common_options<SendCommand>(send);
  has_the_common_options<SendCommand>(serve);
  has_the_common_options<ReceiveCommand>(receive);
  has_the_common_options<ReceiveCommand>(pull);
  has_the_common_options<RouteCommand>({"route"});
  has_the_common_options<RoutesCommand>({"routes"});
  has_the_common_options<PingCommand>({"ping", "tcp://h:1"});
  has_the_common_options<DevicesCommand>({"devices"});
  has_the_common_options<SimCommand>({"sim", "s"});
  has_the_common_options<BenchCommand>({"bench", "tcp://h:1"});
  has_the_common_options<BenchCommand>({"bench", "--serve"});
}

TEST_CASE("cli_lines__options_of_transfers_and_of_who_listens") {
  has_the_transfers_options<SendCommand>(send, true);
  has_the_transfers_options<SendCommand>(serve, false);
  has_the_transfers_options<ReceiveCommand>(pull, true);
  has_the_transfers_options<ReceiveCommand>(receive, false);
  has_the_listening_options<SendCommand>(serve);
  has_the_listening_options<ReceiveCommand>(receive);
  has_the_listening_options<BenchCommand>({"bench", "--serve"});
  for (const auto& [words, listener] : {std::pair{send, "--serve"}, {pull, "--root"}, {Words{"bench", "tcp://h:1"}, "--serve"}}) {
    const std::string only = fmt::format(": only with {}", listener);
    CHECK(said(with(words, {"--listen", "h:1"})) == "bad command line: --listen" + only);
    CHECK(said(with(words, {"--uri-file", "u"})) == "bad command line: --uri-file" + only);
    CHECK(said(with(words, {"--once"})) == "bad command line: --once" + only);
  }
  CHECK(said(with(send, {"--sessions", "3"})) == "bad command line: --sessions: only with --serve");
  CHECK(said(with(receive, {"--sessions", "1025"})) == "bad value: --sessions 1025: give a whole number from 1 to 1024");
  CHECK(of<ReceiveCommand>(with(receive, {"--sessions", "1"})).listen.sessions == 1u);
}

TEST_CASE("cli_lines__places__what_is_missing_or_too_much") {
  const std::string of_send = ": ccixfer send [options] SRC... DEST, or --serve DIR";
  CHECK(said({"send"}) == "bad command line: SRC and DEST are missing" + of_send);
  CHECK(said({"send", "a"}) == "bad command line: DEST is missing" + of_send);
  CHECK(said({"send", "tcp://h:1"}) == "bad command line: SRC is missing" + of_send);
  CHECK(said(with(serve, {"a"})) == "bad command line: a: --serve takes no SRC and no DEST");
  CHECK(said(with(serve, {"-n"})) == "bad command line: --dry-run with --serve: give it to the side that dials");
  CHECK(said({"send", "-", "b", "tcp://h:1"}) == "bad command line: -: standard input is sent alone");
  CHECK(of<SendCommand>({"send", "-", "tcp://h:1"}).sources == Words{"-"});
  CHECK(of<SendCommand>(serve).serve == "d");
  const std::string of_recv = ": ccixfer recv --root DIR, or ccixfer recv [options] SRC_URI... DIR";
  CHECK(said({"recv"}) == "bad command line: SRC_URI and DIR are missing" + of_recv);
  CHECK(said({"recv", "tcp://h:1"}) == "bad command line: DIR is missing" + of_recv);
  CHECK(said({"recv", "d"}) == "bad command line: SRC_URI is missing" + of_recv);
  CHECK(said(with(receive, {"tcp://h:1"})) == "bad command line: tcp://h:1: --root takes no SRC_URI");
  for (const char* option : {"--dry-run", "--archive", "--checksum", "--verify"}) {
    CHECK(said(with(receive, {option})) == fmt::format("bad command line: {} with --root: give it to the side that dials", option));
  }
  const ReceiveCommand two = of<ReceiveCommand>({"recv", "tcp://h:1/a", "tcp://h:1/b", "d"});
  CHECK(two.uris == Words{"tcp://h:1/a", "tcp://h:1/b"});
  CHECK(two.directory == "d");
  CHECK_FALSE(two.root);
  CHECK(said({"bench"}) == "bad command line: URI is missing: ccixfer bench [options] URI, or ccixfer bench --serve");
  CHECK(said({"bench", "--serve", "tcp://h:1"}) == "bad command line: tcp://h:1: --serve takes no URI");
}

TEST_CASE("cli_lines__the_other_commands__their_own_options") {
  const RouteCommand route = of<RouteCommand>({"route", "--uri-file", "u", "--bwlimit", "1GB/s", "--memory", "2MiB"});
  CHECK(route.uri_file == "u");
  CHECK(route.rate.at(0) == 1'000'000'000);
  CHECK(route.memory_bytes == 2u << 20);
  CHECK_FALSE(of<RouteCommand>({"route"}).memory_bytes);
  CHECK(of<RouteCommand>({"route"}).rate.at(0) == 0);
  CHECK(said({"route", "--bwlimit", "1"}).rfind("bad value: --bwlimit 1: ", 0) == 0);
  CHECK(said({"route", "--memory", "0"}) == "bad value: --memory 0: give a size such as 256MiB");
  const RoutesCommand routes = of<RoutesCommand>({"routes", "a", "b", "--dot"});
  CHECK(routes.places == Words{"a", "b"});
  CHECK(routes.dot);
  CHECK_FALSE(of<RoutesCommand>({"routes"}).dot);
  CHECK(said({"routes", "--dot", "--json"}) == "--dot and --json: one of them");
  CHECK(of<PingCommand>({"ping", "u"}).count == 5);
  CHECK(of<PingCommand>({"ping", "u"}).timeout == std::chrono::seconds(5));
  const PingCommand ping = of<PingCommand>({"ping", "-n", "100000", "--timeout", "9223372036", "tcp://h:1"});
  CHECK(ping.uri == "tcp://h:1");
  CHECK(ping.count == 100'000);
  CHECK(said({"ping", "--count", "100001", "u"}) == "bad value: --count 100001: give a whole number from 1 to 100000");
  CHECK(said({"ping", "--timeout", "0", "u"}) == "bad value: --timeout 0: give seconds above zero");
  CHECK(of<SimCommand>({"sim", "s", "--seed", "18446744073709551615"}).seed == UINT64_MAX);
  CHECK(of<SimCommand>({"sim", "s", "--seeds", "4294967295"}).seeds == UINT32_MAX);
  CHECK_FALSE(of<SimCommand>({"sim", "s"}).seed);
  CHECK(of<SimCommand>({"sim", "s"}).seeds == 1);
  CHECK_FALSE(of<SimCommand>({"sim", "s"}).trace);
  CHECK(said({"sim", "s", "--seeds", "4294967296"}) == "bad value: --seeds 4294967296: give a whole number from 1 to 4294967295");
  CHECK(said({"sim", "s", "--seed", "-1"}) == "bad value: --seed -1: give a whole number from 0 to 18446744073709551615");
  const BenchCommand bench = of<BenchCommand>({"bench", "--message-size", "100", "--sizes", "1,2", "--seconds", "2", "--count", "3",
                                               "--connections", "4", "--timeout", "6", "tcp://h:1"});
  CHECK(bench.plan.message_bytes == 100);
  CHECK(bench.plan.sizes_bytes == std::vector<uint64_t>{1, 2});
  CHECK(bench.plan.row_time == std::chrono::seconds(2));
  CHECK(bench.plan.count == 3);
  CHECK(bench.plan.connections == 4);
  CHECK(bench.plan.timeout == std::chrono::seconds(6));
  CHECK(bench.wait == bench::Wait::poll);
  for (const char* name :
       {"--tests", "--message-size", "--sizes", "--depth", "--seconds", "--count", "--connections", "--timeout"}) {
    CHECK(said({"bench", "--serve", name, "1"}) ==
          fmt::format("bad command line: {}: only where URI is given: that side chooses", name));
  }
  CHECK(said({"bench", "--serve", "--wait", "sleep"}) == "bad value: --wait sleep: give spin or poll");
}

TEST_CASE("cli_lines__help_version_and_what_is_unknown") {
  CHECK(of<HelpCommand>({"--version"}).text == "ccixfer 0.1.0\n");
  CHECK(of<HelpCommand>({"-V"}).text == "ccixfer 0.1.0\n");
  const std::string help = of<HelpCommand>({"--help"}).text;
  CHECK(help.find("Exit codes: 0 done and durable") != std::string::npos);
  CHECK(help.find("verify") != std::string::npos);
  CHECK(help.find("status") != std::string::npos);
  CHECK(of<HelpCommand>({"send", "-h"}).text.find("--bwlimit") != std::string::npos);
  CHECK(said({"sned"}) == "bad command line: sned: no such command: see ccixfer --help");
  CHECK(said({"s\nned"}) == "bad command line: s%0Aned: no such command: see ccixfer --help");
  CHECK(said({"--sned"}) == "bad command line: --sned: no option here, a command comes first: see ccixfer --help");
  CHECK(said(with(send, {"--nonsense"})).find(": see ccixfer send --help") != std::string::npos);
  CHECK(said({"verify", "--sha256sum", "r", "d"}) == "bad command line: d: --sha256sum reads no DIR");
  const VerifyCommand verify = of<VerifyCommand>({"verify", "--signer", "lab", "--ignore-extra", "r", "d"});
  CHECK((verify.receipt == "r" && verify.directory == "d" && verify.signer == "lab" && verify.ignore_extra && !verify.sha256sum));
  CHECK_FALSE(of<VerifyCommand>({"verify", "r"}).directory);
  CHECK(of<VerifyCommand>({"verify", "--sha256sum", "r"}).sha256sum);
  CHECK(said({"status", "--expire", "1h", "--history", "d"}) == "--expire and --history: one of them");
  CHECK(said({"status", "--expire", "7", "d"}).find("bad value: --expire 7") == 0);
  CHECK(of<StatusCommand>({"status", "d", "--expire", "2h"}).expire_s == 7200);
  CHECK(of<StatusCommand>({"status", "d", "--history"}).history);
  CHECK(of<ReceiveCommand>(with(receive, {"--staging-max-age", "2d"})).listen.staging_age_max_s == 172800);
  CHECK(said({"recv", "--staging-max-age", "2d", "tcp://h:1", "d"}) == "bad command line: --staging-max-age: only with --root");
  CHECK(said(with(send, {"--receipt", "f", "-n"})) ==
        "bad command line: --receipt with --dry-run: nothing is delivered that it could list");
  CHECK(of<SendCommand>(with(send, {"--on-complete", "true", "--receipt", "f"})).transfer.on_complete == "true");
  CHECK(said({"send", "--receipt", "f", "-", "tcp://h:1"}) ==
        "bad command line: --receipt: standard input cannot be read again: let the receiver write one");
  CHECK(of<SendCommand>(with(send, {"-H"})).transfer.metadata.hard_links);
  CHECK(said({"send", "--serve", "d", "-H"}) == "bad command line: --hard-links with --serve: give it to the side that dials");
}

}  // namespace ccixfer::program

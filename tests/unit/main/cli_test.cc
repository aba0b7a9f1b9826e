// The command line as structs, and the one line that says what is wrong with it.
#include "app/main/cli.h"

#include <catch2/catch.hpp>
#include <vector>

#include "app/session/messages.h"

namespace ccixfer::program {
namespace {

Result<Command> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ccixfer");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

std::string complaint(std::vector<const char*> arguments) {
  const auto command = parse(std::move(arguments));
  if (command) return "";
  CHECK(command.error().kind == ErrorKind::usage);
  CHECK(command.error().message.find('\n') == std::string::npos);
  return command.error().message;
}

}  // namespace

TEST_CASE("cli__send_with_sources_and_destination__last_is_destination") {
  const auto command = parse({"send", "-a", "--insecure", "-j", "7", "a", "b", "tcp://h:1/x/"});
  REQUIRE(command);
  const auto& send = std::get<SendCommand>(*command);
  CHECK(send.sources == std::vector<std::string>{"a", "b"});
  CHECK(send.destination == "tcp://h:1/x/");
  CHECK(send.transfer.archive);
  CHECK(send.transfer.lanes == 7);
  CHECK(send.common.insecure);
  CHECK_FALSE(send.serve);
}

TEST_CASE("cli__values_with_units__become_bytes_and_durations") {
  const auto command =
      parse({"send", "--bwlimit", "10Gb/s", "--memory", "64MiB", "--timeout", "2.5", "--retries", "0", "a", "tcp://h:1"});
  REQUIRE(command);
  const auto& transfer = std::get<SendCommand>(*command).transfer;
  CHECK(transfer.rate.at(0) == 1'250'000'000);
  CHECK(transfer.memory_bytes == 64u << 20);
  CHECK(transfer.timeout == std::chrono::milliseconds(2500));
  CHECK(transfer.retries == 0u);
}

TEST_CASE("cli__standard_input__is_a_source_of_its_own") {
  REQUIRE(parse({"send", "-", "tcp://h:1/x"}));
  CHECK(std::get<SendCommand>(*parse({"send", "-", "tcp://h:1/x"})).sources == std::vector<std::string>{"-"});
  CHECK_FALSE(complaint({"send", "-", "b", "tcp://h:1/x"}).empty());
}

TEST_CASE("cli__bad_values__one_line_that_names_the_option") {
  CHECK(complaint({"send", "--lanes", "0", "a", "b"}).find("--lanes 0") != std::string::npos);
  CHECK(complaint({"send", "--lanes", "1025", "a", "b"}).find("1 to 1024") != std::string::npos);
  CHECK(complaint({"send", "--bwlimit", "100", "a", "b"}).find("--bwlimit 100") != std::string::npos);
  CHECK(complaint({"send", "--bwlimit", "0MB/s", "a", "b"}).find("--bwlimit") != std::string::npos);
  CHECK(complaint({"send", "--timeout", "0", "a", "b"}).find("--timeout 0") != std::string::npos);
  CHECK(complaint({"send", "--timeout", "-1", "a", "b"}).find("--timeout") != std::string::npos);
  CHECK(complaint({"send", "--timeout", "nan", "a", "b"}).find("--timeout") != std::string::npos);
  CHECK(complaint({"send", "--memory", "0", "a", "b"}).find("--memory") != std::string::npos);
  CHECK(complaint({"send", "--retries", "-1", "a", "b"}).find("--retries") != std::string::npos);
  CHECK(complaint({"ping", "--count", "0", "tcp://h:1"}).find("--count 0") != std::string::npos);
}

TEST_CASE("cli__an_option_without_a_value__does_not_take_the_next_word") {
  for (const char* option : {"--failed-list=", "--receipt=", "--log-file=", "--exclude=", "--bwlimit=", "--suffix="}) {
    const std::string line = complaint({"send", option, "a", "b", "tcp://h:1/x/"});
    INFO(line);
    CHECK(line.find(option) != std::string::npos);
    CHECK(line.find("give it a value") != std::string::npos);
  }
  CHECK_FALSE(complaint({"send", "--", "--receipt=", "tcp://h:1/x/"}).find("value") != std::string::npos);  // a file's name
}

TEST_CASE("cli__an_empty_value__is_none") {
  for (const char* option : {"--lock", "--failed-list", "--receipt", "--on-complete", "--stop-at", "--bwlimit", "--log-file",
                             "--backup-dir", "--exclude"}) {
    const std::string line = complaint({"send", option, "", "a", "tcp://h:1/x/"});
    INFO(line);
    CHECK(line.find(option) != std::string::npos);
    CHECK(line.find("give it a value") != std::string::npos);
  }
  CHECK(parse({"send", "--backup-dir", "k", "--suffix", "", "a", "tcp://h:1/x/"}));  // as rsync has it
}

TEST_CASE("cli__max_delete__is_a_count") {
  for (const char* value : {"-1", "1.5", "ten", "18446744073709551616", "18446744073709551615", " 1", "0x10"}) {
    const std::string line = complaint({"send", "--delete", "--max-delete", value, "a", "tcp://h:1/x/"});
    INFO(value);
    CHECK(line.find("--max-delete") != std::string::npos);
    CHECK(line.find("whole number") != std::string::npos);
  }
  const auto none = parse({"send", "--delete", "--max-delete=0", "a", "tcp://h:1/x/"});
  REQUIRE(none);
  CHECK(std::get<SendCommand>(*none).transfer.sync.max_delete == 0);
}

TEST_CASE("cli__timeout_at_the_end_of_int64__means_none") {
  CHECK(std::get<SendCommand>(*parse({"send", "--timeout", "9223372036854775807", "a", "b"})).transfer.timeout == forever);
}

TEST_CASE("cli__no_command_or_an_unknown_one__said_so") {
  CHECK(complaint({}).find("subcommand") != std::string::npos);
  CHECK(complaint({"sned"}).find("sned: no such command") != std::string::npos);
  CHECK(complaint({"sned", "-a", "x"}).find("sned") != std::string::npos);
  CHECK(complaint({"--sned"}).find("--sned") != std::string::npos);
}

TEST_CASE("cli__one_place_is_given__the_other_one_is_missing") {
  CHECK(complaint({"send"}).find("SRC and DEST are missing") != std::string::npos);
  CHECK(complaint({"send", "run42"}).find(": DEST is missing") != std::string::npos);
  CHECK(complaint({"send", "tcp://h:1/x"}).find(": SRC is missing") != std::string::npos);
  CHECK(complaint({"recv"}).find("SRC_URI and DIR are missing") != std::string::npos);
  CHECK(complaint({"recv", "tcp://h:1/x"}).find(": DIR is missing") != std::string::npos);
  CHECK(complaint({"recv", "dir"}).find(": SRC_URI is missing") != std::string::npos);
}

TEST_CASE("cli__missing_or_surplus_places__usage") {
  CHECK_FALSE(complaint({}).empty());
  CHECK_FALSE(complaint({"send"}).empty());
  CHECK_FALSE(complaint({"send", "a"}).empty());
  CHECK_FALSE(complaint({"send", "--serve", "d", "a", "b"}).empty());
  CHECK_FALSE(complaint({"send", "--once", "a", "b"}).empty());
  CHECK_FALSE(complaint({"recv"}).empty());
  CHECK_FALSE(complaint({"recv", "--root"}).empty());
  CHECK_FALSE(complaint({"recv", "--root", "d", "tcp://h:1/x"}).empty());
  CHECK_FALSE(complaint({"recv", "--uri-file", "f", "tcp://h:1/x", "d"}).empty());
  CHECK_FALSE(complaint({"frobnicate"}).empty());
  CHECK_FALSE(complaint({"send", "--nonsense", "a", "b"}).empty());
}

TEST_CASE("cli__sessions__of_a_listening_side_and_in_bounds") {
  const auto receive = parse({"recv", "--root", "/r", "--sessions", "7"});
  REQUIRE(receive);
  CHECK(std::get<ReceiveCommand>(*receive).listen.sessions == 7u);
  const auto serve = parse({"send", "--serve", "/r", "--sessions", "1024"});
  REQUIRE(serve);
  CHECK(std::get<SendCommand>(*serve).listen.sessions == 1024u);
  CHECK(complaint({"recv", "--root", "/r", "--sessions", "0"}).find("--sessions") != std::string::npos);
  CHECK(complaint({"recv", "--root", "/r", "--sessions", "1025"}).find("--sessions") != std::string::npos);
  CHECK(complaint({"send", "--sessions", "7", "a", "tcp://h:1"}).find("--sessions") != std::string::npos);
  CHECK(complaint({"recv", "--sessions", "7", "tcp://h:1", "d"}).find("--sessions") != std::string::npos);
}

TEST_CASE("cli__a_ticket__has_an_age_and_uses") {
  const auto plain = parse({"recv", "--root", "/r", "--ticket"});
  REQUIRE(plain);
  CHECK(std::get<ReceiveCommand>(*plain).listen.ticket);
  CHECK(std::get<ReceiveCommand>(*plain).listen.ticket_expires_in_s == 86400);
  CHECK(std::get<ReceiveCommand>(*plain).listen.ticket_uses == 1);
  const auto told = parse({"send", "--serve", "/r", "--ticket", "--expires", "90m", "--uses", "1000"});
  REQUIRE(told);
  CHECK(std::get<SendCommand>(*told).listen.ticket_expires_in_s == 5400);
  CHECK(std::get<SendCommand>(*told).listen.ticket_uses == 1000);
  for (const char* bad : {"24", "0s", "0.5s", "367d", "h", "-1h", "1w", "1e9d"}) {
    INFO(bad);
    CHECK(complaint({"recv", "--root", "/r", "--ticket", "--expires", bad}).find(std::string("--expires ") + bad) !=
          std::string::npos);
  }
  for (const char* bad : {"0", "1001", "x"})
    CHECK(complaint({"recv", "--root", "/r", "--ticket", "--uses", bad}).find(std::string("--uses ") + bad) != std::string::npos);
}

TEST_CASE("cli__a_ticket_or_an_audit_log_where_they_make_no_sense__refused") {
  CHECK(complaint({"recv", "--root", "/r", "--expires", "1h"}).find("--expires: only with --ticket") != std::string::npos);
  CHECK(complaint({"recv", "--root", "/r", "--uses", "2"}).find("--uses: only with --ticket") != std::string::npos);
  CHECK(complaint({"recv", "--root", "/r", "--ticket", "--insecure"}).find("--ticket with --insecure") != std::string::npos);
  CHECK(complaint({"send", "--ticket", "a", "tcp://h:1"}).find("--ticket: only with --serve") != std::string::npos);
  CHECK(complaint({"recv", "--ticket", "tcp://h:1/x", "d"}).find("--ticket: only with --root") != std::string::npos);
  CHECK(complaint({"send", "--audit-log", "f", "a", "tcp://h:1"}).find("--audit-log: only with --serve") != std::string::npos);
  CHECK(complaint({"send", "--expires", "1h", "a", "tcp://h:1"}).find("--expires") != std::string::npos);
  const auto audited = parse({"recv", "--root", "/r", "--audit-log", "journald"});
  REQUIRE(audited);
  CHECK(std::get<ReceiveCommand>(*audited).listen.audit_log == "journald");
  const auto router = parse({"route", "--audit-log", "/var/log/ccixfer/route"});
  REQUIRE(router);
  CHECK(std::get<RouteCommand>(*router).audit_log == "/var/log/ccixfer/route");
  CHECK_FALSE(std::get<RouteCommand>(*router).workers);
  CHECK(std::get<RouteCommand>(*parse({"route", "--workers", "3"})).workers == 3);
  CHECK(complaint({"route", "--workers", "0"}).find("--workers") != std::string::npos);
}

TEST_CASE("cli__keygen_and_id__options") {
  const auto keygen = parse({"keygen", "--out", "k", "--force"});
  REQUIRE(keygen);
  CHECK(std::get<KeygenCommand>(*keygen).out == "k");
  CHECK(std::get<KeygenCommand>(*keygen).force);
  CHECK_FALSE(std::get<KeygenCommand>(*parse({"keygen"})).out);
  CHECK(std::get<IdCommand>(*parse({"id", "--json"})).common.json);
  CHECK_FALSE(complaint({"keygen", "k"}).empty());
  CHECK_FALSE(complaint({"id", "x"}).empty());
}

TEST_CASE("cli__dry_run_of_a_side_that_does_not_dial__refused") {
  CHECK(complaint({"recv", "-n", "--root", "d"}).find("--root") != std::string::npos);
  CHECK(complaint({"recv", "-a", "--root", "d"}).find("--archive with --root") != std::string::npos);
  CHECK(complaint({"recv", "--checksum", "--root", "d"}).find("--checksum with --root") != std::string::npos);
  CHECK(complaint({"send", "-n", "--serve", "d"}).find("--serve") != std::string::npos);
}

TEST_CASE("cli__patience_and_lists_of_a_side_that_does_not_dial__refused") {
  const std::string to_do = ": give it to the side that dials";
  CHECK(complaint({"recv", "--root", "d", "--timeout", "60"}) == "bad command line: --timeout with --root" + to_do);  // the default
  CHECK(complaint({"recv", "--root", "d", "--retries", "0"}) == "bad command line: --retries with --root" + to_do);
  CHECK(complaint({"recv", "--root", "d", "--from0"}) == "bad command line: --from0 with --root" + to_do);
  CHECK(complaint({"send", "--serve", "d", "--timeout", "60"}) == "bad command line: --timeout with --serve" + to_do);
  CHECK(complaint({"send", "--serve", "d", "--retries", "0"}) == "bad command line: --retries with --serve" + to_do);
  CHECK(complaint({"send", "--serve", "d", "-0"}) == "bad command line: --from0 with --serve" + to_do);
}

TEST_CASE("cli__what_the_destination_decides__become_bits_of_the_session_and_are_the_diallers") {
  const auto command = parse({"send", "-u", "--size-only", "a", "tcp://h:1/x"});
  REQUIRE(command);
  const SyncOptions& sync = std::get<SendCommand>(*command).transfer.sync;
  CHECK(session_options(sync) == (session::option_update | session::option_size_only));
  const auto pull = parse({"recv", "--ignore-existing", "tcp://h:1/x", "d"});
  REQUIRE(pull);
  CHECK(session_options(std::get<ReceiveCommand>(*pull).transfer.sync) == session::option_ignore_existing);
  CHECK(session_options(SyncOptions()) == 0);
  CHECK(complaint({"recv", "--update", "--root", "d"}).find("--update with --root") != std::string::npos);
  CHECK(complaint({"recv", "--size-only", "--root", "d"}).find("--size-only with --root") != std::string::npos);
  CHECK(complaint({"send", "--ignore-existing", "--serve", "d"}).find("--ignore-existing with --serve") != std::string::npos);
}

TEST_CASE("cli__help_of_each_subcommand__is_no_error") {
  for (const char* name : {"send", "recv", "route", "routes", "ping", "devices", "sim", "bench", "keygen", "id"}) {
    const auto command = parse({name, "--help"});
    REQUIRE(command);
    CHECK(std::get<HelpCommand>(*command).text.find(name) != std::string::npos);
  }
  CHECK(std::holds_alternative<HelpCommand>(*parse({"--help"})));
  CHECK(std::holds_alternative<HelpCommand>(*parse({"--version"})));
}

TEST_CASE("cli__bench__one_side_or_the_other") {
  const auto asking = parse({"bench", "--insecure", "--wait", "spin", "--tests", "rma-read", "--depth", "4", "tcp://h:1"});
  REQUIRE(asking);
  const auto& ask = std::get<BenchCommand>(*asking);
  CHECK_FALSE(ask.serve);
  CHECK(ask.uri == "tcp://h:1");
  CHECK(ask.wait == bench::Wait::spin);
  CHECK(ask.plan.tests == std::vector<bench::Test>{bench::Test::rma_read});
  CHECK(ask.plan.depth == 4);
  const auto serving = parse({"bench", "--serve", "--insecure", "--once", "--listen", "h:1"});
  REQUIRE(serving);
  CHECK(std::get<BenchCommand>(*serving).serve);
  CHECK(std::get<BenchCommand>(*serving).listen.once);
  CHECK_FALSE(complaint({"bench"}).empty());
  CHECK_FALSE(complaint({"bench", "--serve", "tcp://h:1"}).empty());
  CHECK(complaint({"bench", "--serve", "--depth", "4"}).find("--depth") != std::string::npos);
  CHECK(complaint({"bench", "--once", "tcp://h:1"}).find("--once") != std::string::npos);
  CHECK(complaint({"bench", "--wait", "sleep", "tcp://h:1"}).find("--wait sleep") != std::string::npos);
  CHECK(complaint({"bench", "--sizes", "x", "tcp://h:1"}).find("--sizes x") != std::string::npos);
}

TEST_CASE("cli__verbosity__counts") {
  CHECK(std::get<DevicesCommand>(*parse({"devices", "-vv", "--json"})).common.verbose == 2);
  CHECK(std::get<DevicesCommand>(*parse({"devices", "-q"})).common.quiet);
}

TEST_CASE("cli__sim__seed_and_seeds_are_whole_numbers") {
  const auto command = parse({"sim", "s.toml", "--seed", "7", "--seeds", "20", "--trace", "--json"});
  REQUIRE(command);
  const auto& sim = std::get<SimCommand>(*command);
  CHECK(sim.scenario == "s.toml");
  CHECK(sim.seed == 7u);
  CHECK(sim.seeds == 20);
  CHECK((sim.trace && sim.common.json));
  CHECK(complaint({"sim"}).find("scenario") != std::string::npos);
  for (const char* bad : {"-1", "x", "99999999999999999999"}) {
    CHECK(complaint({"sim", "s.toml", "--seed", bad}) != "");
    CHECK(complaint({"sim", "s.toml", "--seeds", bad}) != "");
  }
  CHECK(complaint({"sim", "s.toml", "--seeds", "0"}).find("--seeds") != std::string::npos);
}

TEST_CASE("cli__chown__needs_archive_which_keeps_owners") {
  CHECK(complaint({"send", "--chown", "1000", "a", "tcp://h:1/x"}) ==
        "bad command line: --chown: only with --archive, which keeps owners");
  CHECK(parse({"send", "-a", "--chown", "1000", "a", "tcp://h:1/x"}));
}

TEST_CASE("cli__two_readers_of_standard_input__are_refused") {
  const std::string words = ": both read standard input: give one of them a file";
  const auto two = [](std::vector<const char*> options, const char* source = "d") {
    options.insert(options.begin(), "send");
    options.insert(options.end(), {source, "tcp://h:1/x"});
    return complaint(options);
  };
  CHECK(two({"--exclude-from", "-", "--files-from", "-"}) == "bad command line: --exclude-from and --files-from" + words);
  CHECK(two({"--include-from", "-", "--exclude-from", "-"}) == "bad command line: --include-from and --exclude-from" + words);
  for (const char* rule : {". -", "merge -", "merge,w_-"})
    CHECK(two({"-f", rule, "--files-from", "-"}) == "bad command line: --filter and --files-from" + words);
  CHECK(two({"--exclude-from", "-"}, "-") == "bad command line: --exclude-from and -" + words);
  CHECK(complaint({"send", "--files-from", "-", "d", "-"}) == "bad command line: --files-from and -" + words);  // a ticket
  CHECK(complaint({"recv", "--exclude-from", "-", "-", "d"}) == "bad command line: --exclude-from and -" + words);
  CHECK(complaint({"send", "--files-from", "-", "d", "@-"}) == "bad command line: --files-from and @-" + words);
  CHECK(complaint({"recv", "--exclude-from", "-", "@-", "d"}) == "bad command line: --exclude-from and @-" + words);
  CHECK(complaint({"send", "-", "@-"}) == "bad command line: - and @-" + words);
  CHECK(complaint({"send", "-", "@-/sub/"}) == "bad command line: - and @-/sub/" + words);
  CHECK(complaint({"send", "--files-from", "-", "@-", "tcp://h:1/x"}) == "");  // a directory of that name
  CHECK(two({"--exclude-from", "-", "--files-from", "f", "-f", "- -", "-f", ": -", "--exclude", "-"}) == "");
  CHECK(complaint({"recv", "--files-from", "-", "tcp://h:1/x/", "-"}) == "");  // the second one is standard output
}

TEST_CASE("cli__pull_to_standard_output__what_would_write_there_too_or_has_no_meaning_is_refused") {
  const auto pull = [](std::vector<const char*> options) {
    options.insert(options.begin(), "recv");
    options.insert(options.end(), {"tcp://h:1/x", "-"});
    return complaint(options);
  };
  for (const char* option : {"-i", "-n"}) {
    CHECK(pull({option}).ends_with(" with -: standard output carries the file: leave one of them out"));
    CHECK(pull({option, "--json"}) == "");  // then it says nothing there
  }
  for (const char* option : {"--delete", "-u", "-b", "--backup-dir=b", "--link-dest=l"}) {
    CAPTURE(option);
    CHECK(pull({option}).ends_with(" with -: standard output has no older files: leave one of them out"));
  }
  CHECK(pull({"-a", "--checksum"}) == "");
}

TEST_CASE("cli__a_ticket_where_none_is_taken__is_not_said_again") {
  CHECK(complaint({"recv", "--root", "d", "cxt1secret"}) == "bad command line: a ticket: --root takes no SRC_URI");
  CHECK(complaint({"send", "--serve", "d", "cxt1secret"}) == "bad command line: a ticket: --serve takes no SRC and no DEST");
  CHECK(complaint({"bench", "--serve", "cxt1secret"}) == "bad command line: a ticket: --serve takes no URI");
}

TEST_CASE("cli__rules__keep_the_order_in_which_they_were_given") {
  const std::vector<const char*> words = {"ccixfer", "send",        "--include",      "a", "-FF", "--exclude", "b", "-f",
                                          "- c",     "--include=d", "--exclude-from", "e", "x",   "tcp://h:1/"};
  const auto command = parse_command_line(static_cast<int>(words.size()), words.data());
  REQUIRE(command);
  std::string said;
  for (const RuleWord& word : std::get<SendCommand>(*command).transfer.rules)
    said += std::string(name_of(word)) + " " + word.text + "\n";
  CHECK(said == "--include a\n-F true\n-F true\n--exclude b\n--filter - c\n--include d\n--exclude-from e\n");
  CHECK(std::get<SendCommand>(*command).sources == std::vector<std::string>{"x"});
}

}  // namespace ccixfer::program

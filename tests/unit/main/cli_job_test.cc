// The options of a job that a timer starts: --lock, --stop-at.
#include <catch2/catch.hpp>
#include <vector>

#include "app/main/cli.h"

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
  return command.error().message;
}

}  // namespace

TEST_CASE("cli__lock__is_of_the_side_that_dials") {
  CHECK(std::get<SendCommand>(*parse({"send", "--lock", "f", "a", "tcp://h:1"})).transfer.lock_file == "f");
  CHECK(std::get<ReceiveCommand>(*parse({"recv", "--lock", "f", "tcp://h:1", "d"})).transfer.lock_file == "f");
  CHECK(std::get<SendCommand>(*parse({"send", "a", "tcp://h:1"})).transfer.lock_file.empty());
  CHECK(complaint({"send", "--serve", "d", "--lock", "f"}).find("--lock with --serve: give it to the side") != std::string::npos);
  CHECK(complaint({"recv", "--root", "d", "--lock", "f"}).find("--lock with --root: give it to the side") != std::string::npos);
}

TEST_CASE("cli__stop_at__is_of_the_side_that_dials") {
  CHECK(std::get<SendCommand>(*parse({"send", "--stop-at", "06:30", "a", "tcp://h:1"})).transfer.stop_at->text == "06:30");
  CHECK(
      std::get<ReceiveCommand>(*parse({"recv", "--stop-at", "2030-01-01T06:30", "tcp://h:1", "d"})).transfer.stop_at->date->year ==
      2030);
  CHECK_FALSE(std::get<SendCommand>(*parse({"send", "a", "tcp://h:1"})).transfer.stop_at);
  CHECK(complaint({"send", "--stop-at", "6.30", "a", "tcp://h:1"}).find("--stop-at 6.30: give a time of day") != std::string::npos);
  CHECK(complaint({"send", "--serve", "d", "--stop-at", "06:30"}).find("--stop-at with --serve") != std::string::npos);
  CHECK(complaint({"recv", "--root", "d", "--stop-at", "06:30"}).find("--stop-at with --root") != std::string::npos);
}

TEST_CASE("cli__words_of_rsync__are_no_options_and_the_complaint_says_what_to_do") {
  for (const char* word : {"-r", "-rv", "--recursive"})
    CHECK(complaint({"send", word, "a", "tcp://h:1"}).find("directories are sent with all that is in them") != std::string::npos);
  CHECK(complaint({"send", "--partial", "a", "tcp://h:1"}).ends_with("what was interrupted is always resumed"));
  CHECK(complaint({"recv", "--delete-after", "tcp://h:1", "d"}).ends_with("write --delete, which deletes after the transfer"));
  CHECK(complaint({"send", "--nothing-of-that", "a", "tcp://h:1"}).ends_with("see ccixfer send --help"));
  CHECK(complaint({"ping", "-r", "tcp://h:1"}).ends_with("see ccixfer ping --help"));
}

}  // namespace ccixfer::program

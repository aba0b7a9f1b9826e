// The scripts for completion in bash, zsh and fish.
#include "app/main/completion.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "app/main/cli.h"

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

const std::vector<CommandWords> two = {
    {"send",
     "push it's files",
     {{{"-c", "--config"}, "FILE", "a [file]: it's read"}, {{"--serve"}, "DIR", "publish"}, {{"-a"}, "", "all"}}},
    {"route", "route", {{{"--bwlimit"}, "RATE", "cap"}}}};

std::string script(const char* shell) { return completion_script(shell, two).value(); }

Result<Command> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "ccixfer");
  return parse_command_line(static_cast<int>(arguments.size()), arguments.data());
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("completion__bash__options_of_each_command_and_files_where_they_are_values") {
  const std::string bash = script("bash");
  CHECK(has(bash, "compgen -W 'send route --help --version'"));
  CHECK(has(bash, "send) options='-c --config --serve -a' ;;"));
  CHECK(has(bash, "'send -c' | 'send --config')\n      compopt -o filenames\n      mapfile -t COMPREPLY < <(compgen -f "));
  CHECK(has(bash, "'send --serve')\n      compopt -o filenames\n      mapfile -t COMPREPLY < <(compgen -d "));
  CHECK(has(bash, "'route --bwlimit')\n      return\n"));
}

TEST_CASE("completion__zsh__what_is_special_in_help_is_escaped") {
  const std::string zsh = script("zsh");
  CHECK(zsh.starts_with("#compdef ccixfer\n"));
  CHECK(has(zsh, R"('send:push it'\''s files')"));
  CHECK(has(zsh, R"('(-c --config)--config=[a \[file\]\: it'\''s read]:FILE:_files')"));
  CHECK(has(zsh, R"('(-c --config)-c+[)"));
  CHECK(has(zsh, "'--serve=[publish]:DIR:_files -/'"));
  CHECK(has(zsh, "'-a[all]'"));
}

TEST_CASE("completion__fish__a_line_for_each_option") {
  const std::string fish = script("fish");
  CHECK(has(fish, R"(-s c -l config -r -F -d 'a [file]: it\'s read')"));
  CHECK(has(fish, "'__fish_seen_subcommand_from send' -l serve -x -a '(__fish_complete_directories)' -d 'publish'"));
  CHECK(has(fish, "'__fish_seen_subcommand_from route' -l bwlimit -x -d 'cap'"));
  CHECK(has(fish, "'__fish_seen_subcommand_from send' -s a -d 'all'"));
}

TEST_CASE("completion__of_the_parsers_own_table__has_what_it_shows_and_nothing_else") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto command = parse({"completion", shell});
    REQUIRE(command);
    const std::string& text = std::get<HelpCommand>(*command).text;
    for (const char* word : {"send", "recv", "route", "keygen", "lock", "stop-at", "bwlimit", "serve", "audit-log", "help"})
      CHECK(has(text, word));
    CHECK_FALSE(has(text, "completion -"));
  }
  const auto none = parse({"completion", "tcsh"});
  REQUIRE_FALSE(none);
  CHECK(none.error().message == "bad command line: completion tcsh: give bash, zsh or fish");
  CHECK_FALSE(parse({"completion"}));
}

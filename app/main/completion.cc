#include "app/main/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/units.h"

namespace ccixfer::program {
namespace {

enum class Completes : uint8_t { nothing, files, directories };

Completes completes(const OptionWords& option) {
  if (option.value == "FILE" || option.value == "SCENARIO.toml") return Completes::files;
  return option.value == "DIR" ? Completes::directories : Completes::nothing;
}

// In single quotes of a shell: bash and zsh end them for a quote; fish has a backslash for it.
std::string quoted(std::string_view text, std::string_view quote) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string(quote) : std::string(1, c);
  return result + "'";
}

std::string with_backslash(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string bash_values(const CommandWords& command, Completes what) {
  std::vector<std::string> patterns;
  for (const OptionWords& option : command.options) {
    if (option.value.empty() || completes(option) != what) continue;
    for (const std::string& name : option.names) patterns.push_back(quoted(command.name + " " + name, "'\\''"));
  }
  return fmt::format("{}", fmt::join(patterns, " | "));
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandWords& command : commands) names.push_back(command.name);
  std::string text =
      "# bash completion of ccixfer, made by `ccixfer completion bash`\n"
      "_ccixfer() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} options=\n"
      "  COMPREPLY=()\n"
      "  if ((COMP_CWORD == 1)); then\n";
  text += fmt::format("    mapfile -t COMPREPLY < <(compgen -W '{} --help --version' -- \"$current\")\n    return\n  fi\n",
                      fmt::join(names, " "));
  text +=
      "  if [[ $current == = ]]; then\n"
      "    current=\n"
      "  elif [[ $previous == = ]]; then\n"
      "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  case \"$command $previous\" in\n";
  for (const Completes what : {Completes::files, Completes::directories, Completes::nothing}) {
    std::string patterns;
    for (const CommandWords& command : commands) {
      const std::string more = bash_values(command, what);
      if (!more.empty()) patterns += (patterns.empty() ? "" : " | ") + more;
    }
    if (patterns.empty()) continue;
    const char* kind = what == Completes::files ? "-f" : "-d";
    const std::string action =
        what == Completes::nothing
            ? "return"
            : fmt::format("compopt -o filenames\n      mapfile -t COMPREPLY < <(compgen {} -- \"$current\")\n      return", kind);
    text += fmt::format("    {})\n      {}\n      ;;\n", patterns, action);
  }
  text += "  esac\n  case $command in\n";
  for (const CommandWords& command : commands) {
    std::vector<std::string> options;
    for (const OptionWords& option : command.options) options.insert(options.end(), option.names.begin(), option.names.end());
    text += fmt::format("    {}) options='{}' ;;\n", command.name, fmt::join(options, " "));
  }
  text +=
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
      "  else\n"
      "    compopt -o filenames\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "  fi\n"
      "}\n"
      "complete -F _ccixfer ccixfer\n";
  return text;
}

std::string zsh_option(const OptionWords& option) {
  const std::string help = with_backslash(option.help, "[]:\\");
  std::string value;
  if (!option.value.empty()) {
    const Completes what = completes(option);
    const char* action = what == Completes::files ? "_files" : what == Completes::directories ? "_files -/" : " ";
    value = fmt::format(":{}:{}", with_backslash(option.value, ":\\"), action);
  }
  std::string text;
  for (const std::string& name : option.names) {
    const bool is_long = name.starts_with("--");
    const std::string others = option.names.size() > 1 ? fmt::format("({})", fmt::join(option.names, " ")) : "";
    const char* takes = option.value.empty() ? "" : is_long ? "=" : "+";
    text += fmt::format("        {} \\\n", quoted(others + name + takes + "[" + help + "]" + value, "'\\''"));
  }
  return text;
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string text =
      "#compdef ccixfer\n"
      "# zsh completion of ccixfer, made by `ccixfer completion zsh`\n"
      "_ccixfer() {\n"
      "  local context state state_descr line\n"
      "  typeset -A opt_args\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CommandWords& command : commands)
    text += fmt::format("    {}\n", quoted(command.name + ":" + with_backslash(command.help, ":\\"), "'\\''"));
  text +=
      "  )\n"
      "  _arguments -C '1: :->command' '*:: :->arguments'\n"
      "  case $state in\n"
      "    command) _describe -t commands command commands ;;\n"
      "    arguments)\n"
      "      case $words[1] in\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("      {}) _arguments -s \\\n", command.name);
    for (const OptionWords& option : command.options) text += zsh_option(option);
    text += "        '*: :_files' ;;\n";
  }
  return text +
         "      esac ;;\n  esac\n}\nif [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n  _ccixfer \"$@\"\nelse\n  compdef "
         "_ccixfer ccixfer\nfi\n";
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string text = "# fish completion of ccixfer, made by `ccixfer completion fish`\ncomplete -c ccixfer -f\n";
  const auto words = [](std::string_view help) { return quoted(with_backslash(help, "\\"), "\\'"); };
  for (const CommandWords& command : commands) {
    text += fmt::format("complete -c ccixfer -n __fish_use_subcommand -a {} -d {}\n", command.name, words(command.help));
    const std::string where = fmt::format("complete -c ccixfer -n '__fish_seen_subcommand_from {}'", command.name);
    text += where + " -F\n";
    for (const OptionWords& option : command.options) {
      text += where;
      for (const std::string& name : option.names)
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const Completes what = completes(option);
      if (!option.value.empty())
        text += what == Completes::files         ? " -r -F"
                : what == Completes::directories ? " -x -a '(__fish_complete_directories)'"
                                                 : " -x";
      text += fmt::format(" -d {}\n", words(option.help));
    }
  }
  return text;
}

}  // namespace

Result<std::string> completion_script(std::string_view shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  return fail(ErrorKind::usage, fmt::format("bad command line: completion {}: give {}", printable(shell), completion_shells));
}

}  // namespace ccixfer::program

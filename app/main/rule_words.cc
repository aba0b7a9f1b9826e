#include "app/main/rule_words.h"

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "app/main/standard_io.h"
#include "app/send/walk_rules.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

constexpr size_t file_bytes_max = 64u << 20;  // of a file that the command line names

Result<std::string> read_all(const std::string& path) { return read_text(path, file_bytes_max); }

}  // namespace

const char* name_of(const RuleWord& word) {
  switch (word.kind) {
    case RuleWord::Kind::exclude:
      return "--exclude";
    case RuleWord::Kind::include:
      return "--include";
    case RuleWord::Kind::exclude_from:
      return "--exclude-from";
    case RuleWord::Kind::include_from:
      return "--include-from";
    case RuleWord::Kind::filter:
      return "--filter";
    case RuleWord::Kind::filter_files:
      break;
  }
  return "-F";
}

Result<void> check_travel(const filter::Rules& rules) {
  if (filter::encode(rules).size() <= filter::rules_bytes_max) return {};
  return fail(ErrorKind::usage,
              "too many rules: at most 24 KiB of them go to the other side: put them into files of the tree (--filter ': NAME')");
}

Result<filter::Rules> read_rules(const std::vector<RuleWord>& words, const SyncOptions& sync, bool ends_with_zero) {
  filter::RulesBuilder builder(read_all, ends_with_zero, sync.delete_excluded);
  bool looks_for_files = false;
  for (const RuleWord& word : words) {
    Result<void> added;
    switch (word.kind) {
      case RuleWord::Kind::exclude:
      case RuleWord::Kind::include:
        added = builder.add_pattern(word.text, word.kind == RuleWord::Kind::include);
        break;
      case RuleWord::Kind::exclude_from:
      case RuleWord::Kind::include_from:
        added = builder.add_patterns_of(word.text, word.kind == RuleWord::Kind::include_from);
        break;
      case RuleWord::Kind::filter:
        added = builder.add_filter(word.text);
        break;
      case RuleWord::Kind::filter_files:
        added = builder.add_filter(looks_for_files ? "- .rsync-filter" : ": /.rsync-filter");
        looks_for_files = true;
        break;
    }
    if (!added) return tl::unexpected<Error>(added.error());
  }
  if (sync.deletes && !sync.delete_excluded && sync.backup && sync.backup_directory.empty()) {
    if (auto added = builder.add_filter("P *" + sync.backup_suffix()); !added) return tl::unexpected<Error>(added.error());
  }
  return builder.take();
}

namespace {

// What is before `/./` in a source of --relative, and what behind.
std::pair<std::string, std::string> split_at_dot(const std::string& source) {
  const size_t dot = source.find("/./");
  if (dot != std::string::npos) return {dot == 0 ? "/" : source.substr(0, dot), source.substr(dot + 3)};
  if (source.starts_with("/")) return {"/", source.substr(1)};
  return {".", source};
}

bool leads_upwards(std::string_view path) {
  while (!path.empty()) {
    const size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
  }
  return false;
}

}  // namespace

Result<std::optional<Chosen>> chosen_of(const std::vector<std::string>& sources, const SyncOptions& sync, bool ends_with_zero) {
  if (sync.files_from) {
    if (sources.size() != 1) return fail(ErrorKind::usage, "--files-from needs one SRC: a directory");
    auto text = read_all(*sync.files_from);
    if (!text && text.error().kind != ErrorKind::usage) return tl::unexpected<Error>(text.error());
    if (!text) return fail(ErrorKind::usage, "cannot read the list of names: " + text.error().message);
    Chosen chosen{sources.front(), filter::PathList()};
    if (auto added = chosen.list.add_lines(*text, ends_with_zero); !added) return tl::unexpected<Error>(added.error());
    chosen.list.close();
    return std::optional<Chosen>(std::move(chosen));
  }
  if (!sync.relative) return std::optional<Chosen>();
  std::optional<Chosen> chosen;
  for (const std::string& source : sources) {
    const auto [top, below] = split_at_dot(source);
    // What stands before it may be a link, and then the text would name another file than the one that is meant.
    if (leads_upwards(below))
      return fail(ErrorKind::usage, "--relative: " + printable(source) +
                                        ": the name that is sent has a part ..: write /./ behind it, or name SRC without");
    if (chosen && chosen->top != top)
      return fail(ErrorKind::usage, "--relative: all SRC begin in one directory, or have the same one before /./");
    if (!chosen) chosen = Chosen{top, filter::PathList(true)};
    chosen->list.add(below);
  }
  if (chosen) chosen->list.close();
  return chosen;
}

std::string working_directory() {
  std::error_code problem;
  return std::filesystem::current_path(problem).string();
}

Result<void> add_rules_above(ports::FileSystem& files, filter::Rules& rules, const std::string& place) {
  auto above = send::rules_above(files, ports::FileSystem::no_directory, rules, place);
  if (!above) return tl::unexpected<Error>(above.error());
  rules.above = std::move(*above);
  return {};
}

}  // namespace ccixfer::program

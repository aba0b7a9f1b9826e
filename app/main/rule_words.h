// The options that choose what is sent (--exclude, --include, --filter and the like), read into rules.
// Errors: ErrorKind::usage, with the file and the line of a rule that is wrong.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/filter/path_list.h"
#include "app/filter/rules.h"
#include "app/main/sync_options.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::program {

struct RuleWord {
  enum class Kind : uint8_t { exclude, include, exclude_from, include_from, filter, filter_files };
  Kind kind = Kind::exclude;
  std::string text;  // a pattern, a file or a rule
};

[[nodiscard]] const char* name_of(const RuleWord& word);
// Reads the files that are named, relative to the working directory; "-": standard input.
// The rules also say what --delete leaves alone. Without --delete-excluded they protect backups that stand beside the files.
[[nodiscard]] Result<filter::Rules> read_rules(const std::vector<RuleWord>& words, const SyncOptions& sync, bool ends_with_zero);
// usage: they are too many to travel.
[[nodiscard]] Result<void> check_travel(const filter::Rules& rules);
// --files-from and --relative: what of the one directory `top` is sent.
struct Chosen {
  std::string top;
  filter::PathList list;
};
// Of the sources as they were typed; nullopt: they are sent as they are. usage: the list cannot be read, they have no
// one top, or one of --relative leads upwards.
[[nodiscard]] Result<std::optional<Chosen>> chosen_of(const std::vector<std::string>& sources, const SyncOptions& sync,
                                                      bool ends_with_zero);
[[nodiscard]] std::string working_directory();  // absolute; "": it cannot be told
// Of a push: reads the files of rules above `place`, as a confined process cannot look there. Errors as of read_rules of
// app/filter.
[[nodiscard]] Result<void> add_rules_above(ports::FileSystem& files, filter::Rules& rules, const std::string& place);

}  // namespace ccixfer::program

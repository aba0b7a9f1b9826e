#include "app/main/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>

#include "app/main/cli.h"
#include "app/main/standard_streams.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

// Each names a file of this host. --link-dest and --backup-dir are places beside the destination.
constexpr std::array path_options{"--config",       "-c",         "--exclude-from", "--failed-list", "--files-from",
                                  "--include-from", "--log-file", "--receipt"};

tl::unexpected<Error> wrong(const job::JobOption& option, std::string_view what, std::string_view what_to_do) {
  return fail(ErrorKind::usage, fmt::format("{}: {}: {}", option.place, what, what_to_do));
}

// What takes a value takes --help for it; behind any other word it is a request for help.
bool takes_value(const job::JobFile& job, const job::JobOption& option) {
  const std::array argv{"ccixfer", job.is_push ? "send" : "recv", option.name.c_str(), "--help"};
  const auto command = parse_command_line(static_cast<int>(argv.size()), argv.data());
  return !command || !std::holds_alternative<HelpCommand>(*command);
}

// The file of this host that a value names; "": none.
std::string path_in(const job::JobOption& option, const std::string& value) {
  if (option.name == "--filter" || option.name == "-f") {
    const RuleWord rule{RuleWord::Kind::filter, value};
    return std::string(file_of(rule));
  }
  return std::find(path_options.begin(), path_options.end(), option.name) != path_options.end() ? value : "";
}

}  // namespace

Result<void> check_values_given(const job::JobFile& job) {
  for (const job::JobOption& option : job.options) {
    if (option.values.empty() && takes_value(job, option))
      return wrong(option, "has no value", "give it one in place of true, or leave the key out");
  }
  return {};
}

Result<void> check_job_options(const job::JobFile& job) {
  for (const job::JobOption& option : job.options) {
    // How much --verbose says may be given as a number.
    if (!option.values.empty() && option.name != "--verbose" && !takes_value(job, option))
      return wrong(option, "takes no value", "write true, or leave the key out");
    for (const std::string& value : option.values) {
      const std::string path = path_in(option, value);
      if (path.empty() || path.front() == '/') continue;
      if (path == "-") return wrong(option, "a job has no standard input", "name a file");
      return wrong(option, fmt::format("'{}' is relative", printable(path)), "give an absolute path");
    }
  }
  return {};
}

}  // namespace ccixfer::program

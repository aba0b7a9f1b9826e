// The file of a job: what `ccixfer job NAME` moves, from where to where, when it may, and what is done at its end. In: the text.
// Out: a JobFile, and the command line of `ccixfer send` or `ccixfer recv` that does it, so that a job means what its options mean
// by hand. Errors: ErrorKind::usage, one line "FILE:LINE: KEY: what is wrong: what to do". The values of options are checked by
// whoever parses the command line; option_place() names where a bad one stands.
// Source: man/ccixfer-job.1.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"

namespace ccixfer::job {

inline constexpr size_t name_bytes_max = 128;

// Of the day, by local time. The same minute twice: all day.
struct Window {
  unsigned from_minute = 0;
  unsigned until_minute = 0;
  std::string until;  // "06:00"
  [[nodiscard]] bool contains(unsigned minute) const {
    if (from_minute < until_minute) return minute >= from_minute && minute < until_minute;
    return minute >= from_minute || minute < until_minute;
  }
};

struct JobOption {
  std::string name;                      // "--bwlimit"
  std::vector<std::string> values = {};  // empty: of one that is true
  std::vector<std::string> words = {};   // as on a command line: "--bwlimit=800MB/s", or several of them
  std::string place = {};                // "FILE:LINE: options.bwlimit"
};

struct JobFile {
  std::string file;
  std::string name;
  bool is_push = true;               // `send`, else the pull of `recv`
  std::vector<std::string> sources;  // push: absolute paths; pull: addresses
  std::string destination;
  std::string lock;         // "": one that follows from the name
  std::string on_complete;  // "": nothing
  std::optional<Window> window;
  std::string window_place, sources_place, destination_place;  // "FILE:LINE: KEY"
  std::vector<JobOption> options;                              // in the order of their keys
};

// Whether it names a job, and no file: letters, digits, dots, dashes and underscores, and no dot first.
[[nodiscard]] bool is_job_name(std::string_view text);
// "/etc/ccixfer/jobs/nightly.toml" -> "nightly"
[[nodiscard]] std::string name_of_file(const std::string& file);
[[nodiscard]] Result<JobFile> read_job(const std::string& file, const std::string& text);
// Without the name of the program.
[[nodiscard]] std::vector<std::string> command_line(const JobFile& job);
// The same with one option alone, to learn whether it is the one that cannot be.
[[nodiscard]] std::vector<std::string> command_line_with(const JobFile& job, const JobOption& option);

}  // namespace ccixfer::job

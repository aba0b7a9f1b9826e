#include "app/job/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <toml.hpp>

#include "app/config/toml_reader.h"
#include "core/base/units.h"

namespace ccixfer::job {
namespace {

using program::TomlMistake;
using program::TomlReader;
using program::TomlValue;

// What a job has keys of its own for, or is not about.
struct Refused {
  const char* option;
  const char* what_to_do;
};
constexpr std::array refused_options{
    Refused{"lock", "write lock = \"FILE\" above the tables"},
    Refused{"on-complete", "write on_complete = \"COMMAND\" above the tables"},
    Refused{"stop-at", "write [window] with from and until"},
    Refused{"stripe", "a job has a lock: write part = \"1/4\" in the job of the first of four hosts"},
    Refused{"serve", "a job is a transfer that ends"},
    Refused{"root", "a job is a transfer that ends"},
    Refused{"help", "see ccixfer-job(1)"},
    Refused{"h", "see ccixfer-job(1)"},
};
// Their order among each other decides what they mean, and the keys of a table have none.
constexpr std::array rule_options{"exclude", "include", "exclude-from", "include-from", "filter", "f"};

std::optional<unsigned> minute_of_day(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  unsigned part[2] = {0, 0};
  for (const size_t i : {size_t{0}, size_t{1}, size_t{3}, size_t{4}}) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    part[i / 3] = part[i / 3] * 10 + static_cast<unsigned>(text[i] - '0');
  }
  if (part[0] > 23 || part[1] > 59) return std::nullopt;
  return part[0] * 60 + part[1];
}

class JobReader : TomlReader {
 public:
  explicit JobReader(const std::string& file) : TomlReader(file) { job_.file = file; }

  JobFile read(const TomlValue& root) {
    job_.name = name_of_file(job_.file);
    for (const auto& [key, value] : table("the file", root)) read_key(key, value);
    if (job_.sources.empty()) bad(root, "sources", "is missing", "give what is moved, as sources = [\"/data/runs/\"]");
    if (job_.destination.empty())
      bad(root, "destination", "is missing", "give where to, as destination = \"tcp://HOST:PORT/runs/\"");
    check_places(root);
    return std::move(job_);
  }

 private:
  void read_key(const std::string& key, const TomlValue& value) {
    if (key == "command") {
      job_.is_push = one_of(key, value, std::array{"send", "recv"}) == "send";
    } else if (key == "sources") {
      job_.sources_place = place(value, key);
      for (const TomlValue& source : list(key, value)) job_.sources.push_back(word(key, source, "\"/data/runs/\""));
    } else if (key == "destination") {
      job_.destination_place = place(value, key);
      job_.destination = word(key, value, "\"tcp://HOST:PORT/runs/\"");
    } else if (key == "lock") {
      job_.lock = word(key, value, "\"/var/lib/ccixfer/nightly.lock\"");
    } else if (key == "on_complete") {
      job_.on_complete = word(key, value, "\"logger -t nightly\"");
    } else if (key == "window") {
      read_window(value);
    } else if (key == "options") {
      read_options(value);
    } else {
      bad(value, key, "unknown key", "command, sources, destination, lock, on_complete, [window] and [options] are known");
    }
  }

  std::string word(std::string_view key, const TomlValue& value, std::string_view example) const {
    std::string given = text(key, value, example);
    if (given.empty() || given.find('\0') != std::string::npos)
      bad(value, key, "is empty", fmt::format("write {} = {}", key, example));
    return given;
  }

  void read_window(const TomlValue& values) {
    Window window;
    bool from = false;
    for (const auto& [key, value] : table("window", values)) {
      const std::string full = "window." + key;
      if (key != "from" && key != "until") bad(value, full, "unknown key", "from and until are known");
      const std::string given = text(full, value, "\"22:00\"");
      const auto minute = minute_of_day(given);
      if (!minute) bad(value, full, "is no time of day", "write HH:MM, as \"22:00\"");
      (key == "from" ? window.from_minute : window.until_minute) = *minute;
      if (key == "from") from = true;
      if (key == "until") window.until = given;
    }
    if (!from || window.until.empty()) bad(values, "window", "is half a window", "give from and until");
    job_.window_place = place(values, "window");
    job_.window = window;
  }

  void read_options(const TomlValue& values) {
    std::string rules;
    for (const auto& [name, value] : table("options", values)) {
      const std::string& key = name;  // a lambda cannot take the name of a binding
      const std::string full = "options." + key;
      const bool named = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return std::islower(static_cast<unsigned char>(c)) != 0 || std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
      });
      const bool one_letter = key.size() == 1 && std::isalnum(static_cast<unsigned char>(key.front())) != 0;
      if ((!named && !one_letter) || key.front() == '-')
        bad(value, full, "is no option", "write it as on the command line, without the dashes: max-delete = 100");
      const auto* const refused =
          std::find_if(refused_options.begin(), refused_options.end(), [&](const Refused& one) { return key == one.option; });
      if (refused != refused_options.end()) bad(value, full, "is not given here", refused->what_to_do);
      if (std::find(rule_options.begin(), rule_options.end(), key) != rule_options.end()) {
        if (!rules.empty())
          bad(value, full, fmt::format("its order with {} decides what is left out, and keys have none", rules),
              "write all rules as filter = [\"+ *.keep\", \"- *.tmp\"]");
        rules = key;
      }
      JobOption option = read_option(key, full, value);
      if (!option.words.empty()) job_.options.push_back(std::move(option));
    }
  }

  JobOption read_option(const std::string& key, const std::string& full, const TomlValue& value) const {
    JobOption option{(key.size() == 1 ? "-" : "--") + key};
    const std::string& name = option.name;
    option.place = place(value, full);
    const auto add = [&](const TomlValue& one) {
      const std::string given = one.is_integer() ? std::to_string(one.as_integer()) : text(full, one, "\"...\"");
      if (given.find('\0') != std::string::npos) bad(one, full, "has a zero byte", "leave it out");
      if (given.empty() && key != "suffix") bad(one, full, "is empty", "give it a value, or leave the key out");
      option.values.push_back(given);
      if (key.size() == 1) {
        option.words.insert(option.words.end(), {name, given});
      } else {
        option.words.push_back(name + "=" + given);
      }
    };
    if (value.is_boolean()) {
      if (value.as_boolean()) option.words.push_back(name);
    } else if (value.is_array()) {
      for (const TomlValue& one : value.as_array()) add(one);
    } else if (value.is_string() || value.is_integer()) {
      add(value);
    } else {
      bad(value, full, "is no value of an option", "write true, a number, a string, or a list of strings");
    }
    return option;
  }

  // Of a job that a timer starts nobody knows the working directory.
  void check_places(const TomlValue& root) const {
    for (const std::string& source : job_.sources) {
      if (job_.is_push && source.front() != '/')
        bad(root.at("sources"), "sources", fmt::format("'{}' is relative", printable(source)), "give absolute paths");
    }
    if (!job_.is_push && job_.destination.front() != '/')
      bad(root.at("destination"), "destination", fmt::format("'{}' is relative", printable(job_.destination)),
          "give an absolute path");
    if (!job_.lock.empty() && job_.lock.front() != '/') bad(root.at("lock"), "lock", "is relative", "give an absolute path");
  }

  JobFile job_;
};

std::vector<std::string> with_places(const JobFile& job, std::vector<std::string> words) {
  words.insert(words.begin(), job.is_push ? "send" : "recv");
  words.emplace_back("--");
  words.insert(words.end(), job.sources.begin(), job.sources.end());
  words.push_back(job.destination);
  return words;
}

}  // namespace

bool is_job_name(std::string_view text) {
  return !text.empty() && text.size() <= name_bytes_max && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_'; });
}

std::string name_of_file(const std::string& file) {
  std::string name = file.substr(file.rfind('/') + 1);
  constexpr std::string_view end = ".toml";
  if (name.size() > end.size() && name.ends_with(end)) name.resize(name.size() - end.size());
  return name;
}

Result<JobFile> read_job(const std::string& file, const std::string& text) {
  auto root = program::parse_toml(file, text);
  if (!root) return tl::unexpected<Error>(root.error());
  try {
    return JobReader(file).read(*root);
  } catch (const TomlMistake& mistake) {
    return fail(ErrorKind::usage, mistake.line);
  }
}

std::vector<std::string> command_line(const JobFile& job) {
  std::vector<std::string> words;
  for (const JobOption& option : job.options) words.insert(words.end(), option.words.begin(), option.words.end());
  if (job.window && job.window->from_minute != job.window->until_minute) words.push_back("--stop-at=" + job.window->until);
  if (!job.on_complete.empty()) words.push_back("--on-complete=" + job.on_complete);
  return with_places(job, std::move(words));
}

std::vector<std::string> command_line_with(const JobFile& job, const JobOption& option) { return with_places(job, option.words); }

}  // namespace ccixfer::job

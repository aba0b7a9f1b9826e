// What a process of the tests says: its events, and its lines for people, in files that the test reads.
#pragma once
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "app/report/reporter.h"
#include "core/base/log.h"

namespace ccixfer::program::test {

// A file in the place of a descriptor; what was written to it.
class Written {
 public:
  Written() : file_(std::tmpfile()) { REQUIRE(file_ != nullptr); }
  ~Written() { std::fclose(file_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  [[nodiscard]] int fd() const { return fileno(file_); }
  [[nodiscard]] std::string all() const {
    std::string text(static_cast<size_t>(lseek(fd(), 0, SEEK_END)), '\0');
    const ssize_t got = pread(fd(), text.data(), text.size(), 0);
    REQUIRE(got >= 0);
    text.resize(static_cast<size_t>(got));
    return text;
  }
  // The lines that have `part` in them.
  [[nodiscard]] std::vector<std::string> lines(const std::string& part = "") const {
    std::vector<std::string> found;
    std::string line;
    for (const char c : all()) {
      if (c != '\n') {
        line += c;
      } else {
        if (line.find(part) != std::string::npos) found.push_back(line);
        line.clear();
      }
    }
    return found;
  }
  [[nodiscard]] bool has(const std::string& part) const { return all().find(part) != std::string::npos; }

 private:
  std::FILE* file_;
};

struct Desk {
  explicit Desk(Instant start = Instant{}, bool json = true) {
    report::ReporterOptions options;
    options.json = json;
    options.json_fd = events.fd();
    options.text_fd = text.fd();
    options.verbose = json ? 0 : 1;
    reporter = std::move(report::Reporter::create(options, start).value());
    set_log_sink({}, LogLevel::error);  // one for all processes of a test: nobody's
  }
  // Of the events of this name one member each, as it stands in the line: "before", "reason".
  [[nodiscard]] std::vector<std::string> told(const std::string& event, const std::string& member) const {
    std::vector<std::string> values;
    for (const std::string& line : events.lines("{\"event\":\"" + event + "\"")) {
      const std::string key = "\"" + member + "\":";
      const size_t at = line.find(key);
      values.push_back(at == std::string::npos ? "" : value_at(line, at + key.size()));
    }
    return values;
  }
  Written events, text;
  std::unique_ptr<report::Reporter> reporter;

 private:
  static std::string value_at(const std::string& line, size_t at) {
    if (line[at] != '"') return line.substr(at, line.find_first_of(",}", at) - at);
    return line.substr(at + 1, line.find('"', at + 1) - at - 1);
  }
};

}  // namespace ccixfer::program::test

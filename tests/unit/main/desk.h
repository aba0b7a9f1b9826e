// What a process of the tests says: its events, and its lines for people, in files that the test reads.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "app/report/reporter.h"
#include "core/base/log.h"
#include "tests/unit/report/written.h"

namespace ccixfer::program::test {

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

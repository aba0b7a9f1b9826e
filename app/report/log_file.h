// --log-file: one line an entry with wall-clock time, through spdlog. Thread-safe.
// Lines that a full disk does not take are lost, and the transfer goes on; the first loss has words.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/base/log.h"
#include "core/base/result.h"

namespace ccixfer::report {

class LogFile {
 public:
  static Result<std::unique_ptr<LogFile>> open(const std::string& path);  // usage: it cannot be opened. Appends
  ~LogFile();
  // Words to say, once: that lines are lost.
  [[nodiscard]] std::optional<std::string> write(LogLevel level, std::string_view line);

 private:
  LogFile();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::report

#include "core/base/log.h"

#include <utility>

namespace ccixfer {
namespace {

struct Logger {
  LogSink sink;
  LogLevel minimum = LogLevel::info;
};
// Never destroyed: threads and static destructors may still log while the process ends.
Logger& logger() {
  static Logger* const instance = new Logger;
  return *instance;
}

}  // namespace

void set_log_sink(LogSink sink, LogLevel minimum) { logger() = {std::move(sink), minimum}; }

bool log_enabled(LogLevel level) { return logger().sink && level >= logger().minimum; }

void log_line(LogLevel level, std::string_view line) {
  if (log_enabled(level)) logger().sink(level, line);
}

}  // namespace ccixfer

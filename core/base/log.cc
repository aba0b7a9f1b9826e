#include "core/base/log.h"

#include <utility>

#include "core/base/thread_log.h"

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

thread_local LogSink sink_of_thread;

}  // namespace

void redirect_log_of_thread(LogSink sink) { sink_of_thread = std::move(sink); }

void set_log_sink(LogSink sink, LogLevel minimum) { logger() = {std::move(sink), minimum}; }

bool log_enabled(LogLevel level) { return logger().sink && level >= logger().minimum; }

void log_line(LogLevel level, std::string_view line) {
  if (!log_enabled(level)) return;
  sink_of_thread ? sink_of_thread(level, line) : logger().sink(level, line);
}

}  // namespace ccixfer

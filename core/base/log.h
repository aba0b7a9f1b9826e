// One structured line an event. Light: no spdlog in headers. The sink is installed by app/main (spdlog) or by the
// simulator (which stamps virtual time); without one, lines are dropped.
#pragma once
#include <fmt/core.h>

#include <functional>
#include <string>
#include <string_view>

namespace ccixfer {

enum class LogLevel : unsigned char { debug, info, warning, error };
using LogSink = std::function<void(LogLevel, std::string_view)>;

void set_log_sink(LogSink sink, LogLevel minimum);  // not thread-safe: at start-up only
[[nodiscard]] bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view line);

template <typename... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (log_enabled(level)) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

// One stage of the data path was passed (ARCHITECTURE.md 'The way of one byte'): shown by -vv, gathered by the test of the trace.
// Each stage names itself once in the code, as "[stage N] name".
inline void trace_stage(std::string_view stage) {
  if (log_enabled(LogLevel::debug)) log_line(LogLevel::debug, stage);
}

}  // namespace ccixfer

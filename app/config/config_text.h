// The text of a configuration file. A FIFO keeps no start waiting for its writer, and no reload: both stand still meanwhile.
#pragma once
#include <chrono>
#include <string>

#include "core/base/result.h"

namespace ccixfer::program {

inline constexpr std::chrono::milliseconds config_wait_default{10'000};

// usage: it cannot be read, is longer than config_bytes_max, or is a pipe whose writer does not end within `wait`.
[[nodiscard]] Result<std::string> read_config_text(const std::string& file, std::chrono::milliseconds wait = config_wait_default);

}  // namespace ccixfer::program

// Reads the files of [metrics]: certificate, key and token. The key and the token are refused if others may read them. Errors:
// usage and file_io, one line that begins with the file, line and key of the configuration.
#pragma once
#include <optional>
#include <vector>

#include "app/config/metrics.h"
#include "app/metrics/guard.h"
#include "core/sandbox/plan.h"

namespace ccixfer::program {

[[nodiscard]] Result<std::optional<metrics::Guard>> guard_of(const MetricsConfig& config);
// What a confined process needs to read them again, and to remove the socket that it listens at.
void add_guard(sandbox::Plan& plan, const MetricsConfig& config);

}  // namespace ccixfer::program

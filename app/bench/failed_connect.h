// What a connection that was asked for and did not come about means to whoever asked: `ccixfer ping` and `ccixfer bench`.
#pragma once
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/base/status.h"

namespace ccixfer::bench {

// `reason`: the peer's words, or a router's; may be empty. `advice`: of a peer that does not answer, or does not want to.
[[nodiscard]] Error failed_connect(Status status, std::string_view reason, std::string_view uri, std::string_view advice);

}  // namespace ccixfer::bench

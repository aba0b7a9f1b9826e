// What stands before a place that others than this host reach: whoever asks says the token, over TLS.
#pragma once
#include "app/metrics/token.h"
#include "core/trust/web_tls.h"

namespace ccixfer::metrics {

struct Guard {
  trust::WebIdentity tls;
  Token token;
};

}  // namespace ccixfer::metrics

// CHECK: our own broken invariant. Always on, in every build: prints where and aborts. Never used on a peer's bytes
// (those are rejected and counted) nor on the world's failures (those are a Result).
#pragma once
#include "core/base/invariant.h"

#define CHECK(expression) \
  (static_cast<bool>(expression) ? static_cast<void>(0) : ::ccixfer::check_failed(#expression, __FILE__, __LINE__))

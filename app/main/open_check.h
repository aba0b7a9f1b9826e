// Whether what a dialler asks for can be granted to anybody, whoever it is.
#pragma once
#include "app/config/uri.h"
#include "app/session/open.h"
#include "core/base/result.h"

namespace ccixfer::program {

// Its path below the root. Errors: protocol (options or fields that this version does not have), not_authorised (a path that leaves
// the root), with words for the peer.
[[nodiscard]] Result<PeerPath> check_open(const session::Open& open);
// usage: a receiver that shares a root is asked for a whole transfer, or one that owns its root is asked for what only a second
// receiver does.
[[nodiscard]] Result<void> check_second(const session::Open& open, bool shares_root);

}  // namespace ccixfer::program

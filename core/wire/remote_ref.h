// Handles and references to remote memory as bytes: 32 and 80, every field in the order of its struct. Used by the stream's frames,
// by routing messages and by session messages. In: a Reader over a peer's bytes. A decoder fails the Reader on an unknown handle
// kind; everything else is the target's to check.
#pragma once
#include "core/ports/rma_target.h"
#include "core/wire/cursor.h"

namespace ccixfer::wire {

inline constexpr size_t handle_bytes = 32;
inline constexpr size_t remote_ref_bytes = handle_bytes + 8 + 5 * 8;
static_assert(remote_ref_bytes == 80);

void encode(Writer& out, const ports::Handle& handle);
[[nodiscard]] ports::Handle decode_handle(Reader& in);
void encode(Writer& out, const ports::RemoteRef& ref);
[[nodiscard]] ports::RemoteRef decode_remote_ref(Reader& in);

}  // namespace ccixfer::wire

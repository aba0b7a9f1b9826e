// The 32-byte name of remote memory: a registered region or a mailbox. Copyable, sent in messages, never a pointer.
// The target checks everything in it; a stale or forged one gets Status::rma_handle (region) or a mailbox status.
// Source: CCI §IV.D (32 bytes, valid in a peer that got it in a message, never a pointer); RVMA §III.B (mailbox numbers).
#pragma once
#include <cstdint>
#include <type_traits>

namespace ccixfer::ports {

enum class HandleKind : uint8_t { none = 0, region = 1, mailbox = 2 };

struct Handle {
  HandleKind kind = HandleKind::none;
  uint8_t access = 0;  // informative only; the target's own table decides
  uint16_t reserved = 0;
  uint32_t generation = 0;  // region: generation of the table slot; mailbox: its incarnation, 0 until it is rewound
  uint64_t number = 0;      // region: index of the slot; mailbox: its 64-bit number
  uint64_t key = 0;         // random, 64 bits
  uint64_t length = 0;      // region: bytes registered (informative); mailbox: 0
  friend bool operator==(const Handle&, const Handle&) = default;
};
static_assert(sizeof(Handle) == 32 && std::is_trivially_copyable_v<Handle>);

}  // namespace ccixfer::ports

// TLVs (type, length, value): the fields that only some messages or entries have, and the room for
// fields that later versions add.
// On the wire: type u16, length u32, and so many bytes. The low 15 bits of the type are its number,
// from 1; the top bit says that who does not know the type must refuse what carries it. Who does not
// know a type without that bit skips it. In a list the numbers ascend, so each type comes at most
// once; several values of a kind form one value. The list's own length is its container's to tell.
// In: a list as the wire has it, a peer's included. Never aborts for a peer's bytes. No allocation:
// values are views into the list. Bounds: tlvs_max in a list; its bytes are its container's bound.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {

inline constexpr uint16_t tlv_mandatory = 0x8000;  // must be understood
inline constexpr size_t tlv_head_bytes = 6;
inline constexpr uint32_t tlvs_max = 64;

struct Tlv {
  uint16_t type = 0;  // with tlv_mandatory, where it is set
  Bytes value;
};

// Appends to `out`, whose ok() tells whether all of it fitted. CHECKs that the numbers ascend and
// that there are at most tlvs_max.
class TlvWriter {
 public:
  explicit TlvWriter(wire::Writer& out) : out_(out) {}
  void add(uint16_t type, Bytes value) { begin(type, value.size()).bytes(value); }
  // Writes the head only: the caller writes `value_bytes` bytes next.
  wire::Writer& begin(uint16_t type, size_t value_bytes);

 private:
  wire::Writer& out_;
  uint16_t last_number_ = 0;
  uint32_t count_ = 0;
};

// Walks a list: `while (const auto tlv = list.next())`, and skip() for each type that the caller does
// not know.
class TlvReader {
 public:
  explicit TlvReader(Bytes list) : in_(list) {}
  [[nodiscard]] std::optional<Tlv> next();  // nullopt: the list is over, or ok() is false
  void skip(const Tlv& tlv);
  // False: a TLV longer than the list, a number 0, numbers that do not ascend, or too many TLVs.
  [[nodiscard]] bool ok() const { return in_.ok(); }
  // The first skipped type that had to be understood; 0: none.
  [[nodiscard]] uint16_t unknown_mandatory() const { return unknown_mandatory_; }

 private:
  wire::Reader in_;
  uint16_t last_number_ = 0;
  uint32_t count_ = 0;
  uint16_t unknown_mandatory_ = 0;
};

// Why an acceptor refuses a session, in words for both ends: `what` has a field that must be
// understood and that the acceptor does not know.
[[nodiscard]] std::string words_of_unknown(std::string_view what, uint16_t type);

}  // namespace ccixfer::session

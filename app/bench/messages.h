// What the two sides of a measurement tell one another: connect data, and messages of which the first byte is the kind. Echo and
// count carry padding up to the size that is measured. Decoders take a peer's bytes and never abort.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/plan.h"
#include "core/base/bytes.h"
#include "core/ports/handle.h"

namespace ccixfer::bench {

enum class Purpose : uint8_t { session = 0, extra = 1 };  // extra: a connection that only is there (connect, empty-turn)

[[nodiscard]] std::vector<std::byte> encode_hello(Purpose purpose);
[[nodiscard]] std::optional<Purpose> decode_hello(Bytes connect_data);  // none: not a measurement, or another version

enum class Kind : uint8_t {
  open = 1,      // asker: Open
  opened = 2,    // server: Opened
  echo = 3,      // either: answered with the same bytes when it comes from the asker
  count = 4,     // asker: not answered
  want = 5,      // either: where may I write so many bytes? Answered by `address`
  address = 6,   // either: an Address, registered for this one write
  written = 7,   // either: the completion message of a write; the server writes as much back
  exchange = 8,  // either: the same, of a write to an `address`; the server asks for an address and writes as much back
};

struct Open {
  uint64_t slot_bytes = 0;   // the largest operation
  uint32_t slots = 0;        // of that size; operations in flight use them in turn
  uint32_t buffers = 0;      // to post in the mailbox for bandwidth
  uint64_t reply_bytes = 0;  // what the server writes or puts back in `completion`
  ports::Handle landing;     // the asker's region of reply_bytes
  ports::Handle mailbox;     // the asker's mailbox, for puts of reply_bytes
};
struct Opened {
  ports::Handle region;        // slots * slot_bytes
  ports::Handle mailbox;       // puts are taken and not answered
  ports::Handle echo_mailbox;  // puts are answered by a put
  Wait wait = Wait::poll;
};

[[nodiscard]] std::optional<Kind> kind_of(Bytes message);
[[nodiscard]] std::vector<std::byte> encode(const Open& open);
[[nodiscard]] std::vector<std::byte> encode(const Opened& opened);
[[nodiscard]] std::vector<std::byte> encode_address(const ports::Handle& handle);
[[nodiscard]] std::vector<std::byte> encode_want(uint64_t bytes);
[[nodiscard]] std::vector<std::byte> encode_padded(Kind kind, uint32_t size_bytes);  // echo, count, written, exchange; at least 1
[[nodiscard]] std::optional<Open> decode_open(Bytes message);  // none: malformed, or beyond the bounds of plan.h
[[nodiscard]] std::optional<Opened> decode_opened(Bytes message);
[[nodiscard]] std::optional<ports::Handle> decode_address(Bytes message);
[[nodiscard]] std::optional<uint64_t> decode_want(Bytes message);

}  // namespace ccixfer::bench

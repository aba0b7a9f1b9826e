// What a connection with proved ends has beside a plain one: its handshake, and then the keys and numbers of its packets. A pair
// delivers in order and loses nothing, so each direction counts its packets and no number travels.
// Guarantees: a number of one direction seals one packet, ever. A packet opens if it is the next one that the peer sealed,
// unchanged, header included; after one that does not, nothing does. Errors: step(): of connection::HopHandshake. open(): false.
// Bounds: trust::handshake_bytes_max from the peer. Private to this room; single-threaded. Source: README.md 'Trust'.
#pragma once
#include <vector>

#include "core/wire/cursor.h"
#include "transports/connection/hop_handshake.h"

namespace ccixfer::rdma {

class Secured {
 public:
  explicit Secured(trust::HandshakeOptions options);

  // The dialler's first step takes nothing. What there is to say is output, also after an error.
  [[nodiscard]] Result<void> step(Bytes records);
  [[nodiscard]] bool has_keys() const { return hop_.has_keys(); }
  [[nodiscard]] bool is_confirmed() const { return hop_.is_confirmed(); }
  // With keys only.
  [[nodiscard]] const connection::HopKeys& keys() const { return hop_.keys(); }

  // What TLS has to say goes out as it is, before anything sealed.
  [[nodiscard]] bool has_output() const { return !output_.empty(); }
  void write_output(wire::Writer& out, size_t bytes_max);  // frames, as many as these bytes hold; at least one fits

  // Encrypts `text` in its place; `header` is authenticated with it.
  [[nodiscard]] trust::Tag seal(Bytes header, MutableBytes text);
  [[nodiscard]] bool open(Bytes header, MutableBytes text, const trust::Tag& tag);

 private:
  connection::HopHandshake hop_;
  std::vector<std::byte> output_;
  uint64_t seal_number_ = 0;  // of the next packet
  uint64_t open_number_ = 0;
  bool broken_ = false;  // a packet did not open
};

}  // namespace ccixfer::rdma

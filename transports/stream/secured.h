// What a connection with proved ends has beside a plain one: its handshake, and then the keys and numbers of its records.
// In: the bytes that TLS wants carried, and whole records. Out: the same of the other direction.
// Guarantees: a number of one direction seals one record, ever. A record opens if it is the next one that the peer sealed and sent,
// unchanged; after one that does not, nothing does.
// Errors: step(): of connection::HopHandshake; authentication: too many short frames. open(): nullopt. Bounds:
// trust::handshake_bytes_max, handshake_short_frames_max, wire::sealed_text_bytes_max.
// Private to this room; single-threaded. Source: transports/stream/README.md 'Secured connections'.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/wire/sealed_record.h"
#include "transports/connection/hop_handshake.h"

namespace ccixfer::stream {

class Secured {
 public:
  explicit Secured(trust::HandshakeOptions options);

  // Takes what TLS on the other side said, the bytes of one frame (the dialler's first step: nothing). output() has the answer,
  // also after an error.
  [[nodiscard]] Result<void> step(Bytes records);
  // From now on both directions are sealed.
  [[nodiscard]] bool has_keys() const { return hop_.has_keys(); }
  // The peer has sealed something that we opened. Before that it may still answer our proof with a refusal.
  [[nodiscard]] bool is_confirmed() const { return hop_.is_confirmed(); }
  // With keys only.
  [[nodiscard]] const std::string& peer_name() const { return hop_.keys().name; }
  [[nodiscard]] const trust::ProvedPeer& peer() const { return hop_.keys().peer; }
  [[nodiscard]] trust::Cipher cipher() const { return hop_.keys().cipher; }

  // Frames of the handshake that are to go out as they are, before anything sealed.
  [[nodiscard]] std::vector<std::byte>& output() { return output_; }
  [[nodiscard]] bool has_output() const { return !output_.empty(); }

  // Seals the text of a record in its place: `record` is room for the prefix, the text, and room for the tag.
  void seal(MutableBytes record);
  // Begins the next record of each direction, as far as that needs nothing of it: half of what a short one costs. To be called when
  // nobody waits for one. Without it they are begun when they are there.
  void prepare();
  // The last `records` that were sealed will not go out.
  void drop(size_t records);
  // The text of a whole record, decrypted in its place.
  [[nodiscard]] std::optional<MutableBytes> open(MutableBytes record);

 private:
  bool broken_ = false;  // a record did not open
  uint32_t short_frames_ = 0;
  uint64_t seal_number_ = 0;  // of the next record
  uint64_t skipped_ = 0;      // how many numbers the next record skips
  uint64_t skip_at_ = 0;      // the number of the last record that skipped some
  uint64_t skip_count_ = 0;   // how many numbers that record skipped
  uint64_t open_number_ = 0;
  bool seal_begun_ = false;  // prepare() has begun the record of seal_number_, which skips nothing
  bool open_begun_ = false;  // the same of open_number_
  connection::HopHandshake hop_;
  std::vector<std::byte> output_;
};

}  // namespace ccixfer::stream

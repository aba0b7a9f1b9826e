#include "transports/rdma/secured.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "core/wire/connection_frames.h"

namespace ccixfer::rdma {
namespace {

constexpr std::string_view key_label = "ccixfer hop rdma packets";

}  // namespace

Secured::Secured(trust::HandshakeOptions options) : hop_(std::move(options), key_label) {}

Result<void> Secured::step(Bytes records) {
  Result<void> stepped = hop_.step(records);
  const std::vector<std::byte> said = hop_.take_output();
  output_.insert(output_.end(), said.begin(), said.end());
  return stepped;
}

void Secured::write_output(wire::Writer& out, size_t bytes_max) {
  size_t written = 0;
  while (written < output_.size() && bytes_max > wire::handshake_header_bytes_min) {
    const size_t room = std::min(bytes_max - wire::handshake_header_bytes_min, wire::handshake_records_bytes_max);
    const size_t part = std::min(room, output_.size() - written);
    wire::encode_handshake(out, Bytes(output_).subspan(written, part));
    written += part;
    bytes_max -= wire::handshake_header_bytes_min + part;
  }
  CHECK(written > 0);
  output_.erase(output_.begin(), output_.begin() + static_cast<std::ptrdiff_t>(written));
}

trust::Tag Secured::seal(Bytes header, MutableBytes text) {
  CHECK(has_keys());
  return hop_.keys().seal.seal(seal_number_++, header, text);
}

bool Secured::open(Bytes header, MutableBytes text, const trust::Tag& tag) {
  CHECK(has_keys());
  if (broken_ || !hop_.keys().open.open(open_number_, header, text, tag)) {
    broken_ = true;
    return false;
  }
  ++open_number_;
  hop_.confirm();
  return true;
}

}  // namespace ccixfer::rdma

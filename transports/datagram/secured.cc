#include "transports/datagram/secured.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"
#include "transports/datagram/limits.h"
#include "transports/datagram/packets.h"

namespace ccixfer::datagram {
namespace {

constexpr std::string_view key_label = "ccixfer hop packets";
static_assert(packet_tag_bytes == trust::tag_bytes);

}  // namespace

Secured::Secured(trust::HandshakeOptions options) : hop_(std::move(options), key_label), pause_(hello_pause_first) {}

Result<void> Secured::begin() { return step({}); }

Result<void> Secured::arrived(uint32_t offset_bytes, Bytes bytes) {
  if (is_confirmed() || offset_bytes > arrived_bytes_ || arrived_bytes_ - offset_bytes >= bytes.size()) return {};
  const Bytes news = bytes.subspan(arrived_bytes_ - offset_bytes);
  arrived_bytes_ += static_cast<uint32_t>(news.size());
  pause_ = hello_pause_first;
  return step(news);
}

Result<void> Secured::step(Bytes bytes) {
  Result<void> stepped = hop_.step(bytes);
  const std::vector<std::byte> more = hop_.take_output();
  said_.insert(said_.end(), more.begin(), more.end());
  return stepped;
}

bool Secured::told(uint32_t bytes) {
  if (is_confirmed()) return true;
  if (bytes > said_.size()) return false;
  heard_bytes_ = std::max(heard_bytes_, bytes);
  return true;
}

void Secured::sent(Instant now) {
  resend_at_ = after(now, pause_);
  pause_ = std::min(pause_ * 2, hello_pause_max);
}

void Secured::rest() {
  hop_.keys().seal.rest();
  hop_.keys().open.rest();
}

trust::Tag Secured::seal(uint64_t number, Bytes header, MutableBytes text) {
  CHECK(has_keys());
  return hop_.keys().seal.seal(number, header, text);
}

bool Secured::open(uint64_t number, Bytes header, MutableBytes text, const trust::Tag& tag) {
  CHECK(has_keys());
  if (!hop_.keys().open.open(number, header, text, tag)) return false;
  if (!is_confirmed()) {
    hop_.confirm();
    said_ = {};
    heard_bytes_ = 0;
  }
  return true;
}

}  // namespace ccixfer::datagram

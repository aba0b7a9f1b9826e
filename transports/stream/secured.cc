#include "transports/stream/secured.h"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "core/base/invariant.h"
#include "core/wire/connection_frames.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {
namespace {

constexpr std::string_view key_label = "ccixfer hop records";
static_assert(wire::sealed_tag_bytes == trust::tag_bytes);

Bytes associated(Bytes record) { return record.first(wire::sealed_associated_bytes); }

}  // namespace

Secured::Secured(trust::HandshakeOptions options) : hop_(std::move(options), key_label) {}

Result<void> Secured::step(Bytes records) {
  const bool is_short = !records.empty() && records.size() < wire::handshake_records_bytes_max;
  if (is_short && ++short_frames_ > handshake_short_frames_max)
    return fail(ErrorKind::authentication, "the handshake comes in too many small frames");
  Result<void> stepped = hop_.step(records);
  const std::vector<std::byte> said = hop_.take_output();
  wire::Writer out(output_);
  wire::encode_handshake(out, said);
  return stepped;
}

void Secured::seal(MutableBytes record) {
  invariant(record.size() >= wire::sealed_overhead_bytes + wire::sealed_text_bytes_min &&
                record.size() <= wire::sealed_overhead_bytes + wire::sealed_text_bytes_max,
            "a record has a text, and not too long a one");
  const size_t text_bytes = record.size() - wire::sealed_overhead_bytes;
  if (skipped_ > 0) {
    skip_at_ = seal_number_;
    skip_count_ = skipped_;
  }
  const auto skipped = static_cast<uint8_t>(std::exchange(skipped_, 0));
  wire::write_sealed_prefix(record.data(), {skipped, static_cast<uint16_t>(text_bytes)});
  if (!std::exchange(seal_begun_, false) || skipped > 0) hop_.keys().seal.begin(seal_number_, associated(record));
  ++seal_number_;
  hop_.keys().seal.update(record.subspan(wire::sealed_prefix_bytes, text_bytes));
  const trust::Tag tag = hop_.keys().seal.finish();
  std::memcpy(record.last(wire::sealed_tag_bytes).data(), tag.data(), tag.size());
}

void Secured::prepare() {
  std::array<std::byte, wire::sealed_prefix_bytes> prefix;
  wire::write_sealed_prefix(prefix.data(), {.skipped = 0, .text_bytes = 0});
  if (!std::exchange(seal_begun_, true)) hop_.keys().seal.begin(seal_number_, associated(prefix));
  if (!std::exchange(open_begun_, true)) hop_.keys().open.begin(open_number_, associated(prefix));
}

void Secured::drop(size_t records) {
  invariant(records <= seal_number_, "only what was sealed is dropped");
  skipped_ += records;
  if (skip_count_ > 0 && skip_at_ >= seal_number_ - records) skipped_ += std::exchange(skip_count_, 0);
  invariant(skipped_ <= std::numeric_limits<uint8_t>::max(), "few records are dropped at once");
}

std::optional<MutableBytes> Secured::open(MutableBytes record) {
  const std::optional<wire::SealedPrefix> prefix = wire::decode_sealed_prefix(record);
  if (broken_ || !prefix || prefix->record_bytes() != record.size()) return std::nullopt;
  const MutableBytes text = record.subspan(wire::sealed_prefix_bytes, prefix->text_bytes);
  trust::Tag tag;
  std::memcpy(tag.data(), record.last(wire::sealed_tag_bytes).data(), tag.size());
  const uint64_t number = open_number_ + prefix->skipped;
  if (!std::exchange(open_begun_, false) || prefix->skipped > 0) hop_.keys().open.begin(number, associated(record));
  hop_.keys().open.update(text);
  if (!hop_.keys().open.finish(tag)) {
    broken_ = true;
    return std::nullopt;
  }
  open_number_ = number + 1;
  hop_.confirm();
  return text;
}

}  // namespace ccixfer::stream

// The same conversation between proved ends, with somebody on the wire who changes, drops, doubles, swaps, cuts and makes up what
// passes, at every frame: nothing changed is ever taken for good, everything ends, and with a reason.
#include <array>

#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "core/wire/sealed_record.h"
#include "tests/unit/stream/conversation.h"
#include "tests/unit/stream/own_trust.h"

namespace ccixfer::stream::testing {
namespace {

using ccixfer::testing::OwnTrust;

// Making one costs more than the conversation.
std::shared_ptr<OwnTrust> trust_of(int end) {
  static const std::array<trust::Identity, 2> identities = {trust::Identity::generate().value(),
                                                            trust::Identity::generate().value()};
  return std::make_shared<OwnTrust>(identities[static_cast<size_t>(end)]);
}

struct Secure : Conversation {
  explicit Secure(bool short_of_buffers) : Conversation(quick(), short_of_buffers, trust_of(0), trust_of(1)) {}
  // Both ends count, or hear, that something is wrong.
  [[nodiscard]] bool noticed() const {
    const auto count = [&](Counter counter) { return rig.a.counters.get(counter) + rig.b.counters.get(counter); };
    const auto& lost = rig.b.sink.disconnected;
    return count(Counter::frames_rejected) + count(Counter::hello_rejected) > 0 || !rig.a.sink.disconnected.empty() ||
           rig.a.sink.connected.at(0).status != Status::success || (!lost.empty() && lost[0].reason != "the peer disconnected");
  }
  [[nodiscard]] bool has_reasons() const {
    for (const auto* list : {&rig.a.sink.disconnected, &rig.b.sink.disconnected}) {
      for (const Recorder::Ended& ended : *list) {
        if (ended.reason.empty()) return false;
      }
    }
    const Recorder::Ended& dialled = rig.a.sink.connected.at(0);
    return dialled.status == Status::success || !dialled.reason.empty();
  }
};

// What one end sent in one call, cut into what stands or falls together: a handshake frame, or a record and the payload behind it.
// The conversation's own chunks, by the length of their headers, say how much that is.
std::vector<Buffer> units_of(const Buffer& sent) {
  std::vector<Buffer> units;
  Bytes left(sent);
  while (!left.empty()) {
    size_t size = left.size();
    if (const auto record = wire::decode_sealed_prefix(left)) {
      const size_t payload = record->text_bytes == wire::rma_write_header_bytes       ? 150
                             : record->text_bytes == wire::rma_read_data_header_bytes ? 130
                                                                                      : 0;
      size = record->record_bytes() + payload;
    } else if (const auto frame = wire::decode_prefix(left)) {
      size = frame->header_bytes;
    }
    size = std::min(size, left.size());
    units.emplace_back(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(size));
    left = left.subspan(size);
  }
  return units;
}

enum class Attack : uint8_t { none, flip, drop, twice, swap, cut, replay, make_up };

// Attacks unit `at` of one end.
class Wire {
 public:
  Wire(Attack attack, int from, size_t at) : attack_(attack), from_(from), at_(at) {}
  Buffer operator()(int from, const Buffer& bytes) {
    if (from != from_) return bytes;
    Buffer out;
    for (Buffer& unit : units_of(bytes)) {
      put(std::move(unit), out);
      ++seen_;
    }
    return out;
  }
  [[nodiscard]] size_t seen() const { return seen_; }

 private:
  void put(Buffer unit, Buffer& out) {
    const auto add = [&](const Buffer& bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); };
    if (!held_.empty()) {  // swapped
      add(unit);
      add(std::exchange(held_, {}));
      return;
    }
    if (first_.empty()) first_ = unit;
    if (seen_ != at_ || attack_ == Attack::none) return add(unit);
    switch (attack_) {
      case Attack::flip:
        unit[5] ^= std::byte{4};
        return add(unit);
      case Attack::twice:
        add(unit);
        return add(unit);
      case Attack::swap:
        held_ = std::move(unit);
        return;
      case Attack::cut:
        unit.resize(unit.size() / 2);
        return add(unit);
      case Attack::replay:
        add(unit);
        return add(first_);
      case Attack::make_up: {
        Buffer record(wire::sealed_overhead_bytes + wire::message_ack_header_bytes, std::byte{0x5a});
        wire::write_sealed_prefix(record.data(), {0, wire::message_ack_header_bytes});
        add(record);
        return add(unit);
      }
      case Attack::none:
      case Attack::drop:
        return;
    }
  }

  Attack attack_;
  int from_;
  size_t at_;
  size_t seen_ = 0;
  Buffer first_, held_;
};

TEST_CASE("secured_faults__unbroken__all_as_it_should_be") {
  Secure c(GENERATE(true, false));
  c.run();
  CHECK_FALSE(c.noticed());
  CHECK(c.rig.a.status_of(write_token) == Status::success);
  CHECK(c.rig.a.status_of(read_token) == Status::success);
  CHECK(c.rig.b.sink.messages.size() == messages_count + 1);
}

TEST_CASE("secured_faults__every_frame_attacked_in_every_way__noticed_and_everything_ends") {
  const auto attack =
      GENERATE(Attack::flip, Attack::drop, Attack::twice, Attack::swap, Attack::cut, Attack::replay, Attack::make_up);
  const int from = GENERATE(0, 1);
  size_t cases = 0;
  for (size_t at = 0;; ++at) {
    CAPTURE(int{static_cast<uint8_t>(attack)}, from, at);
    Wire wire(attack, from, at);
    Secure c(true);
    c.rig.hub.rewrite = [&](int end, std::vector<std::byte> bytes) { return wire(end, bytes); };
    c.payload_hit = true;  // RMA data may be damaged: the application seals them
    c.run();
    if (wire.seen() <= at) break;  // it did not say so much
    ++cases;
    REQUIRE(c.has_reasons());
    if (c.noticed()) continue;
    // Behind the goodbye nobody listens.
    REQUIRE(from == 0);
    REQUIRE(wire.seen() == at + 1);
    REQUIRE((attack == Attack::twice || attack == Attack::replay));
    REQUIRE(c.rig.b.sink.messages.size() == messages_count + 1);
  }
  CHECK(cases > 8);
}

// Bytes, not frames: every seventh, so that handshakes are not most of the time.
TEST_CASE("secured_faults__one_bit_flipped_at_many_bytes__noticed_but_in_bulk_payload") {
  const int from = GENERATE(0, 1);
  size_t unnoticed = 0, cases = 0;
  for (uint64_t at = static_cast<uint64_t>(from);; at += 7) {
    CAPTURE(from, at);
    Secure c(false);
    c.rig.hub.fault = Fault::flip;
    c.rig.hub.from = from;
    c.rig.hub.at = at;
    c.payload_hit = true;
    c.run();
    if (!c.rig.hub.happened) break;
    ++cases;
    unnoticed += c.noticed() ? 0u : 1u;
  }
  CHECK(cases > 150);
  CHECK(unnoticed <= (from == 0 ? (150 + 150) / 7 + 2 : 130 / 7 + 1));
}

TEST_CASE("secured_faults__the_stream_ends_at_many_bytes__everything_ends") {
  const auto fault = GENERATE(Fault::close, Fault::reset);
  const int from = GENERATE(0, 1);
  for (uint64_t at = static_cast<uint64_t>(from);; at += 23) {
    CAPTURE(from, at);
    Secure c(true);
    c.rig.hub.fault = fault;
    c.rig.hub.from = from;
    c.rig.hub.at = at;
    c.run();
    if (!c.rig.hub.happened) break;
    REQUIRE(c.has_reasons());
  }
}

TEST_CASE("secured_faults__streams_cut_anywhere__the_same_conversation") {
  Secure c(true);
  c.rig.hub.recv_max = GENERATE(as<size_t>{}, 1, 3, 64);
  c.rig.hub.send_max = GENERATE(as<size_t>{}, 1, 5, 1000);
  c.rig.hub.capacity = GENERATE(as<size_t>{}, 1, 50, 100000);
  c.run();
  REQUIRE(c.rig.a.status_of(write_token) == Status::success);
  REQUIRE(c.rig.a.status_of(read_token) == Status::success);
  REQUIRE(c.rig.b.sink.messages.size() == messages_count + 1);
}

}  // namespace
}  // namespace ccixfer::stream::testing

// The two message machines with what they did written down, for scripts: receive old, in order, duplicate, future, then expect.
#pragma once
#include "tests/unit/datagram/rig.h"
#include "transports/datagram/messages.h"

namespace ccixfer::datagram::testing {

using ports::Attribute;
inline const Instant start{1000s};

class CountingEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return state_ += 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_ = 1;
};

struct Receiver {
  explicit Receiver(Attribute attribute, uint32_t window = 8) { machine.open(window, attribute, held); }
  bool arrives(uint64_t sequence, uint32_t flight = 0, bool empty = false) {
    const Buffer bytes(1, static_cast<std::byte>(sequence));
    return came({sequence, flight, empty, empty ? Bytes{} : Bytes(bytes)}) == Arrival::taken;
  }
  Arrival came(const MessageFrame& frame) {
    return machine.arrived(frame, [&](Bytes message) { return takes(message); });
  }
  Arrival part_came(const MessagePartFrame& frame) {
    return machine.part_arrived(frame, [&](Bytes message) { return takes(message); });
  }
  bool takes(Bytes message) {
    if (buffers == 0) return false;
    --buffers;
    delivered.push_back(static_cast<int>(message[0]));
    return true;
  }
  MessageAckFrame told() {
    Buffer bytes;
    wire::Writer out(bytes);
    static_cast<void>(machine.take(out, 0));
    wire::Reader in(bytes);
    return std::get<MessageAckFrame>(decode_frame(in).value());
  }
  size_t held = 0;
  InMessages machine;
  size_t buffers = SIZE_MAX;
  std::vector<int> delivered;
};

struct Sender {
  explicit Sender(Attribute attribute, uint32_t window = 8) { machine.open(window, attribute); }
  void push(uint64_t token, Duration timeout = forever) {
    machine.push({false, token}, Buffer(1, static_cast<std::byte>(token)), timeout);
    machine.stamp(now);
  }
  std::optional<MessageFrame> take() {
    if (!machine.sendable()) return std::nullopt;
    bytes.clear();
    wire::Writer out(bytes);
    static_cast<void>(machine.take(out, 0, ended));
    wire::Reader in(bytes);
    return std::get<MessageFrame>(decode_frame(in).value());
  }
  bool ack(uint64_t next, Status status = Status::success, uint32_t flight = 0, uint64_t bits = 0) {
    MessageAckFrame frame;
    frame.next = next;
    frame.status = status;
    frame.flight = flight;
    frame.words = bits != 0 ? 1 : 0;
    frame.bits[0] = bits;
    return machine.acknowledge(frame, now, ended);
  }
  OutMessages machine;
  Instant now = start;
  Buffer bytes;
  std::vector<std::pair<uint64_t, Status>> ends;
  OutMessages::Ended ended = [this](const MessageOwner& owner, Status status) { ends.emplace_back(owner.token, status); };
};

}  // namespace ccixfer::datagram::testing

#include "transports/datagram/outbox.h"

#include "core/base/check.h"

namespace ccixfer::datagram {

wire::Writer Outbox::begin(const PacketHeader& header) {
  if (is_full()) flush();
  wire::Writer out(place(end_));
  begin_packet(out, header);
  return out;
}

void Outbox::put(const Address& to, const wire::Writer& packet) {
  CHECK(packet.ok());
  const Bytes bytes = Bytes(place(end_)).first(packet.position());
  counters_.add(Counter::bytes_out, bytes.size());
  if (is_full()) return;
  datagrams_[end_++] = {to, bytes};
}

void Outbox::put_empty(const Address& to, const PacketHeader& header) {
  wire::Writer out = begin(header);
  end_packet(out);
  put(to, out);
}

void Outbox::flush() {
  while (!blocked_ && first_ < end_) {
    const Sent sent = net_.send(batch());
    first_ += sent.taken;
    if (sent.stop == Sent::Stop::again) blocked_ = true;
    if (sent.stop == Sent::Stop::failed) ++first_;
    CHECK(first_ <= end_);
  }
  if (first_ == end_) first_ = end_ = 0;
}

void Outbox::flush_last() {
  if (first_ < end_) net_.send_last(batch());
  first_ = end_ = 0;
}

}  // namespace ccixfer::datagram

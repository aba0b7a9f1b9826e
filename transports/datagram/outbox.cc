#include "transports/datagram/outbox.h"

#include "core/base/check.h"

namespace ccixfer::datagram {

wire::Writer Outbox::begin(const PacketHeader& header) {
  if (is_full()) flush();
  std::vector<std::byte>& bytes = bytes_[end_];
  bytes.clear();
  wire::Writer out(bytes);
  begin_packet(out, header);
  return out;
}

void Outbox::put(const Address& to) {
  const Bytes bytes = bytes_[end_];
  counters_.add(Counter::bytes_out, bytes.size());
  if (is_full()) return;
  datagrams_[end_++] = {to, bytes};
}

void Outbox::put_empty(const Address& to, const PacketHeader& header) {
  wire::Writer out = begin(header);
  end_packet(out);
  put(to);
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

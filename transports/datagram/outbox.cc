#include "transports/datagram/outbox.h"

#include <fmt/core.h>

#include <algorithm>
#include <system_error>

#include "core/base/check.h"

namespace ccixfer::datagram {
namespace {

bool goes_to(std::span<const Datagram> batch, const Address& peer) {
  return std::any_of(batch.begin(), batch.end(), [&peer](const Datagram& each) { return each.peer == peer; });
}

}  // namespace

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
    if (refused_error_ != 0 && goes_to(batch().first(sent.taken), refused_)) refused_error_ = 0;
    first_ += sent.taken;
    if (sent.stop == Sent::Stop::again) blocked_ = true;
    if (sent.stop == Sent::Stop::failed) {
      counters_.add(Counter::datagrams_refused);
      refused_ = datagrams_[first_].peer;
      refused_error_ = sent.error;
      ++first_;
    }
    CHECK(first_ <= end_);
  }
  if (first_ == end_) first_ = end_ = 0;
}

std::string Outbox::refusal(const Address& to) const {
  if (refused_error_ == 0 || refused_ != to) return {};
  return fmt::format("this host cannot send there: {}", std::generic_category().message(refused_error_));
}

void Outbox::flush_last() {
  if (first_ < end_) net_.send_last(batch());
  first_ = end_ = 0;
}

}  // namespace ccixfer::datagram

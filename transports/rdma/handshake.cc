#include "transports/rdma/handshake.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/units.h"
#include "transports/rdma/limits.h"

namespace ccixfer::rdma {
namespace {

wire::Writer writer(Connection& c) {
  if (c.greeting == nullptr) c.greeting = std::make_unique<std::vector<std::byte>>();
  return wire::Writer(*c.greeting);
}

}  // namespace

void Handshake::agree(Connection& c, const wire::Offer& theirs) {
  const connection::Agreed agreed = engine_.agree(c, theirs);
  c.messages.open(agreed.sends_in_flight_max, c.is_unreliable());
  c.incoming.open(agreed.sends_in_flight_max, c.is_unreliable());
  c.rma.open(agreed.rmas_in_flight_max);
  c.served.open(agreed.rmas_in_flight_max, c.id.packed());
  c.credits.open(credits_window_);
}

void Handshake::came(Connection& c) {
  silent_.add(c.id.index, engine_.now());
  c.step.set(engine_.options().handshake_timeout);
  engine_.touch(c);
}

void Handshake::greet(Connection& c) {
  engine_.hello_is_out(c);
  wire::Hello hello;
  hello.role = c.role;
  hello.attribute = c.attribute;
  hello.offer = engine_.our_offer();
  if (c.connect_data != nullptr) hello.data = *c.connect_data;
  wire::Writer out = writer(c);
  wire::encode(out, hello);
  c.connect_data.reset();
  c.hello_at = engine_.now();
}

void Handshake::refuse_hello(Connection& c, Status status, std::string_view reason) {
  engine_.counters().add(Counter::hello_rejected);
  wire::HelloReply reply;
  reply.status = status;
  reply.offer = engine_.our_offer();
  reply.reason = reason;
  wire::Writer out = writer(c);
  wire::encode(out, reply);
  engine_.begin_lingering(c);
}

void Handshake::on_hello(Connection& c, Bytes header) {
  const std::optional<wire::Hello> hello = wire::decode_hello(header);
  if (!hello || hello->magic != wire::magic) return engine_.violation(c, "not a hello of this protocol");
  silent_.remove(c.id.index);
  if (hello->version != wire::version) {
    return refuse_hello(c, Status::version, fmt::format("this end speaks version {} of the protocol", wire::version));
  }
  if (!connection::offer_is_usable(hello->offer)) return refuse_hello(c, Status::version, "the hello's limits cannot be used");
  if (hello->attribute == ports::Attribute::multicast_send || hello->attribute == ports::Attribute::multicast_receive) {
    return refuse_hello(c, Status::not_implemented, "multicast is not implemented on this transport");
  }
  switch (wire::scan_options(hello->options)) {
    case wire::OptionScan::fine:
      break;
    case wire::OptionScan::malformed:
      return engine_.violation(c, "malformed options in the hello");
    case wire::OptionScan::unknown_mandatory:
      return refuse_hello(c, Status::version, "the hello demands an option that this end does not know");
  }
  c.role = hello->role;
  c.attribute = hello->attribute;
  agree(c, hello->offer);
  wire::HelloReply reply;
  reply.offer = engine_.our_offer();
  wire::Writer out = writer(c);
  wire::encode(out, reply);
  engine_.requested(c, hello->data);
}

void Handshake::on_hello_reply(Connection& c, Bytes header) {
  const std::optional<wire::HelloReply> reply = wire::decode_hello_reply(header);
  if (!reply || reply->magic != wire::magic) return engine_.violation(c, "not an answer of this protocol");
  if (reply->status != Status::success) return engine_.lose(c, reply->status, printable(reply->reason));
  if (reply->version != wire::version || !connection::offer_is_usable(reply->offer)) {
    return engine_.lose(c, Status::version, "the peer's version or limits cannot be used");
  }
  agree(c, reply->offer);
  c.round_trip = std::max(engine_.now() - c.hello_at, ports::round_trip_min);
  engine_.answered(c);
}

void Handshake::on_connect_accept(Connection& c) {
  wire::Writer out = writer(c);
  wire::encode_empty(out, wire::Kind::connect_ack);
  engine_.accepted_by_peer(c);
}

void Handshake::on_connect_reject(Connection& c, Bytes header) {
  const std::optional<wire::EndNotice> reject = wire::decode_end_notice(header);
  if (!reject || reject->status == Status::success) return engine_.violation(c, "malformed reject");
  engine_.lose(c, reject->status, printable(reject->reason));
}

void Handshake::on_bye(Connection& c, Bytes header) {
  const std::optional<wire::EndNotice> bye = wire::decode_end_notice(header);
  if (!bye || bye->status == Status::success) return engine_.violation(c, "malformed bye");
  engine_.lose(c, bye->status, printable(bye->reason));
}

void Handshake::say_accept(Connection& c) {
  wire::Writer out = writer(c);
  wire::encode_empty(out, wire::Kind::connect_accept);
}

void Handshake::say_reject(Connection& c, Status status, std::string_view reason) {
  wire::Writer out = writer(c);
  wire::encode_reject(out, {status, reason});
}

void Handshake::say_bye(Connection& c, Status status, std::string_view reason) {
  c.greeting.reset();
  wire::Writer out = writer(c);
  wire::encode_bye(out, {status, reason});
}

}  // namespace ccixfer::rdma

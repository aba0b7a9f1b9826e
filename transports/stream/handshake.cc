#include "transports/stream/handshake.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/base/log.h"
#include "core/base/units.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

using ports::Attribute;

namespace {

wire::Writer writer(Connection& c) {
  if (c.handshake_out == nullptr) c.handshake_out = std::make_unique<std::vector<std::byte>>();
  return wire::Writer(*c.handshake_out);
}

}  // namespace

void Handshake::agree(Connection& c, const wire::Offer& theirs, const wire::HostIdentity& machine) {
  const connection::Agreed agreed = engine_.agree(c, theirs);
  c.messages.open(agreed.sends_in_flight_max, c.is_unreliable());
  c.incoming.open(agreed.sends_in_flight_max, c.is_unreliable());
  c.rma.open(agreed.rmas_in_flight_max);
  c.served.open(agreed.rmas_in_flight_max, c.id.packed());
  if (wire::are_apart(machine, net_.machine())) net_.peer_is_elsewhere(c.stream);
  c.lends = net_.lends(c.stream);
}

void Handshake::greet(Connection& c) {
  c.readable = true;
  engine_.hello_is_out(c);
  c.hello_due = trust_ == nullptr;
  if (trust_ == nullptr) return ask_if_due(c);
  c.secured = std::make_unique<Secured>(trust_->handshake(trust::HandshakeSide::dialler));
  if (const Result<void> begun = c.secured->step({}); !begun) handshake_failed(c, begun.error());
}

void Handshake::ask_if_due(Connection& c) {
  if (!c.asks_later && std::exchange(c.hello_due, false)) say_hello(c);
}

void Handshake::say_hello(Connection& c) {
  wire::Hello hello;
  hello.role = c.role;
  hello.attribute = c.attribute;
  hello.offer = engine_.our_offer();
  hello.machine = net_.machine();
  if (c.connect_data != nullptr) hello.data = *c.connect_data;
  wire::Writer out = writer(c);
  wire::encode(out, hello);
  c.connect_data.reset();
  c.hello_at = engine_.now();
}

// ---- Both ends prove who they are.

bool Handshake::has_time_for(const Connection& c) {
  const bool proving = trust_ != nullptr && !c.is_sealed() && (c.state == State::awaiting_hello || c.state == State::hello_sent);
  return !proving || handshakes_++ < connection::handshakes_per_turn_max;
}

void Handshake::on_handshake(Connection& c, Bytes header) {
  const std::optional<wire::HandshakeBytes> frame = wire::decode_handshake(header);
  const bool can_go_on = trust_ != nullptr && frame && frame->version == wire::handshake_version;
  if (!frame || frame->magic != wire::magic || (c.dialler && !can_go_on)) {
    return engine_.violation(c, "not a handshake of this protocol");
  }
  if (!can_go_on) {
    silent_.remove(c.id.index);
    if (trust_ == nullptr) return refuse_hello(c, Status::not_authenticated, connection::acceptor_is_insecure);
    return refuse_hello(c, Status::version, fmt::format("this end speaks version {} of the handshake", wire::handshake_version));
  }
  if (c.secured == nullptr) {
    c.secured = std::make_unique<Secured>(trust_->handshake(trust::HandshakeSide::acceptor));
    silent_.add(c.id.index, engine_.now());  // it is not silent, and what it says next takes a round trip
  }
  const bool had_keys = c.is_sealed();
  const Result<void> stepped = c.secured->step(frame->records);
  if (!stepped) return handshake_failed(c, stepped.error());
  // A peer that was content would have gone on with a sealed record.
  if (had_keys) return handshake_failed(c, {ErrorKind::authentication, "the peer does not take our proof"});
  if (!c.is_sealed() || !c.dialler) return;
  const Result<void> wanted = trust_->admit_acceptor(c.secured->peer(), c.uri);
  if (!wanted) return handshake_failed(c, wanted.error());
  c.hello_due = true;
  ask_if_due(c);
}

void Handshake::handshake_failed(Connection& c, const Error& error) {
  const Status status = connection::status_of(error);
  log(LogLevel::info, "connection={}.{} with={} handshake failed: {}", c.id.index, c.id.generation, printable(c.uri),
      error.message);
  if (c.dialler) return engine_.part(c, connection::Parting::Kind::violation, status, error.message);
  engine_.counters().add(Counter::hello_rejected);
  if (trust_ != nullptr) trust_->sent_away(c.uri, c.is_sealed() ? &c.secured->peer() : nullptr, error);
  silent_.remove(c.id.index);
  engine_.begin_lingering(c);  // the alert of TLS goes out
}

// ---- What each end wants of the connection.

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

// Whoever is refused for what it says is refused here, by the same checks as there: nothing of it is looked at twice.
void Handshake::take_hello(Connection& c, Bytes header) {
  if (placement_ == nullptr) return on_hello(c, header);
  const std::optional<wire::Hello> hello = wire::decode_hello(header);
  const bool is_ours = hello && hello->magic == wire::magic && hello->version == wire::version;
  const bool is_proved = trust_ == nullptr || c.is_sealed();
  if (!is_ours || !is_proved || !placement_->goes_elsewhere(hello->role)) return on_hello(c, header);
  c.keep_hello({header.begin(), header.end()});
}

void Handshake::answer_kept_hello(Connection& c) {
  const std::vector<std::byte> hello = c.take_hello();
  on_hello(c, hello);
}

void Handshake::move_on(Connection& c) {
  const bool has_more_to_say =
      c.handshake_out != nullptr || (c.batch != nullptr && !c.batch->empty()) || (c.secured != nullptr && c.secured->has_output());
  if (has_more_to_say) return;
  MovedConnection moved;
  moved.stream = net_.release(c.stream);
  if (moved.stream == nullptr) return answer_kept_hello(c);
  moved.uri = std::move(c.uri);
  moved.secured = std::move(c.secured);
  moved.hello = c.take_hello();
  engine_.release(c);  // of a stream that the net has no more
  placement_->move(std::move(moved));
}

void Handshake::on_hello(Connection& c, Bytes header) {
  const std::optional<wire::Hello> hello = wire::decode_hello(header);
  if (!hello || hello->magic != wire::magic) return engine_.violation(c, "not a hello of this protocol");
  silent_.remove(c.id.index);
  if (hello->version != wire::version) {
    return refuse_hello(c, Status::version, fmt::format("this end speaks version {} of the stream protocol", wire::version));
  }
  if (trust_ != nullptr && !c.is_sealed()) {
    trust_->sent_away(c.uri, nullptr, {ErrorKind::authentication, "it runs with --insecure"});
    return refuse_hello(c, Status::not_authenticated, connection::dialler_is_insecure);
  }
  if (!connection::offer_is_usable(hello->offer)) return refuse_hello(c, Status::version, "the hello's limits cannot be used");
  if (hello->attribute == Attribute::multicast_send || hello->attribute == Attribute::multicast_receive) {
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
  if (trust_ != nullptr) {
    const Result<void> admitted = trust_->admit_dialler(c.secured->peer(), hello->role);
    if (!admitted) {
      trust_->sent_away(c.uri, &c.secured->peer(), admitted.error());
      return refuse_hello(c, connection::status_of(admitted.error()), admitted.error().message);
    }
  }
  c.role = hello->role;
  c.attribute = hello->attribute;
  agree(c, hello->offer, hello->machine);
  wire::HelloReply reply;
  reply.offer = engine_.our_offer();
  reply.machine = net_.machine();
  wire::Writer out = writer(c);
  wire::encode(out, reply);
  engine_.requested(c, hello->data);
}

void Handshake::on_hello_reply(Connection& c, Bytes header) {
  const std::optional<wire::HelloReply> reply = wire::decode_hello_reply(header);
  if (!reply || reply->magic != wire::magic) return engine_.violation(c, "not an answer of this protocol");
  if (c.asks_later || c.hello_due) return engine_.violation(c, "an answer before it was asked");
  // Before its proof the peer has one thing to say, and whoever says it may be anybody: no word of it is repeated.
  if (c.secured != nullptr && !c.secured->is_confirmed()) {
    const bool other_version = reply->status == Status::version;
    return engine_.lose(c, other_version ? Status::version : Status::not_authenticated,
                        other_version ? "the peer speaks another version of the handshake" : connection::acceptor_is_insecure);
  }
  if (reply->status != Status::success) return engine_.lose(c, reply->status, printable(reply->reason));
  if (reply->version != wire::version || !connection::offer_is_usable(reply->offer)) {
    return engine_.lose(c, Status::version, "the peer's version or limits cannot be used");
  }
  agree(c, reply->offer, reply->machine);
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
  c.handshake_out.reset();
  wire::Writer out = writer(c);
  wire::encode_bye(out, {status, reason});
}

}  // namespace ccixfer::stream

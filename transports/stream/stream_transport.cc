#include "transports/stream/stream_transport.h"

#include <algorithm>

#include "transports/stream/engine.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

StreamTransport::StreamTransport(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters)
    : engine_(std::make_unique<Engine>(options, std::move(net), counters)) {}
StreamTransport::~StreamTransport() = default;

void StreamTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) { engine_->bind(sink, target); }
std::string StreamTransport::uri() const { return engine_->net().uri(); }
uint32_t StreamTransport::max_send_bytes() const { return max_send_offered_bytes; }
Result<ports::ConnectionId> StreamTransport::dial(const ports::DialRequest& request) { return engine_->dial(request); }
Status StreamTransport::accept(ports::ConnectionId request) { return engine_->accept(request); }
Status StreamTransport::reject(ports::ConnectionId request, std::string_view reason) { return engine_->reject(request, reason); }
void StreamTransport::disconnect(ports::ConnectionId connection) { engine_->disconnect(connection); }
Status StreamTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  return engine_->send(connection, parts, token);
}
Status StreamTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  return engine_->rma(connection, request, token);
}
std::unique_ptr<ports::Conduit> StreamTransport::make_conduit() { return engine_->net().make_conduit(); }
bool StreamTransport::takes(const ports::Conduit& conduit) const { return engine_->net().takes(conduit); }
void StreamTransport::resume(ports::ConnectionId connection) { engine_->resume(connection); }
void StreamTransport::hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
  engine_->hint(connection, mailbox, epoch);
}
void StreamTransport::set_send_timeout(ports::ConnectionId connection, Duration timeout) {
  engine_->set_send_timeout(connection, timeout);
}
void StreamTransport::set_keepalive(ports::ConnectionId connection, Duration timeout) {
  engine_->set_keepalive(connection, timeout);
}
void StreamTransport::abort(ports::ConnectionId connection) { engine_->abort(connection); }
std::optional<uint64_t> StreamTransport::delivered_bytes(ports::ConnectionId connection) const {
  return engine_->delivered_bytes(connection);
}
std::optional<uint64_t> StreamTransport::received_bytes(ports::ConnectionId connection) const {
  return engine_->received_bytes(connection);
}
std::vector<ports::HopInfo> StreamTransport::hops(ports::ConnectionId connection) const { return engine_->hops(connection); }
void StreamTransport::turn(Instant now) { engine_->turn(now); }
Instant StreamTransport::next_deadline() const { return engine_->next_deadline(); }
void StreamTransport::arm(Instant when) { engine_->net().set_deadline(std::min(when, engine_->next_deadline())); }
bool StreamTransport::adopt(int descriptor) { return engine_->net().adopt(descriptor); }
bool StreamTransport::wait(Instant now, Instant until) { return engine_->net().wait(now, until); }
int StreamTransport::os_handle() const { return engine_->net().os_handle(); }

}  // namespace ccixfer::stream

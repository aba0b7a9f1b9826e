#include "transports/datagram/datagram_transport.h"

#include "transports/datagram/engine.h"

namespace ccixfer::datagram {

DatagramTransport::DatagramTransport(const ports::TransportOptions& options, std::unique_ptr<DatagramNet> net,
                                     ports::Entropy& entropy, Counters& counters)
    : engine_(std::make_unique<Engine>(options, std::move(net), entropy, counters)) {}
DatagramTransport::~DatagramTransport() = default;

void DatagramTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) { engine_->bind(sink, target); }
std::string DatagramTransport::uri() const { return engine_->net().uri(); }
uint32_t DatagramTransport::max_send_bytes() const { return engine_->max_send_bytes(); }
Result<ports::ConnectionId> DatagramTransport::dial(const ports::DialRequest& request) { return engine_->dial(request); }
Status DatagramTransport::accept(ports::ConnectionId request) { return engine_->accept(request); }
Status DatagramTransport::reject(ports::ConnectionId request, std::string_view reason) { return engine_->reject(request, reason); }
void DatagramTransport::disconnect(ports::ConnectionId connection) { engine_->disconnect(connection); }
Status DatagramTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  return engine_->send(connection, parts, token);
}
void DatagramTransport::hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
  engine_->hint(connection, mailbox, epoch);
}
Status DatagramTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  return engine_->rma(connection, request, token);
}
void DatagramTransport::set_send_timeout(ports::ConnectionId connection, Duration timeout) {
  engine_->set_send_timeout(connection, timeout);
}
void DatagramTransport::set_keepalive(ports::ConnectionId connection, Duration timeout) {
  engine_->set_keepalive(connection, timeout);
}
std::vector<ports::HopInfo> DatagramTransport::hops(ports::ConnectionId connection) const { return engine_->hops(connection); }
void DatagramTransport::turn(Instant now) { engine_->turn(now); }
Instant DatagramTransport::next_deadline() const { return engine_->next_deadline(); }
int DatagramTransport::os_handle() const { return engine_->net().os_handle(); }
void DatagramTransport::arm(Instant when) { engine_->arm(when); }
size_t DatagramTransport::held_bytes() const { return engine_->held_bytes(); }

}  // namespace ccixfer::datagram

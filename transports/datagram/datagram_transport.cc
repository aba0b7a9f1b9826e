#include "transports/datagram/datagram_transport.h"

#include <algorithm>

#include "transports/datagram/driver.h"

namespace ccixfer::datagram {

DatagramTransport::DatagramTransport(const DatagramOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy,
                                     Counters& counters, std::shared_ptr<connection::HopTrust> trust)
    : driver_(std::make_unique<Driver>(options, std::move(net), entropy, counters, std::move(trust))) {}
DatagramTransport::~DatagramTransport() = default;

void DatagramTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) { driver_->engine().bind(sink, target); }
std::string DatagramTransport::uri() const { return driver_->net().uri(); }
uint32_t DatagramTransport::max_send_bytes() const { return driver_->engine().our_offer().max_send_bytes; }
Result<ports::ConnectionId> DatagramTransport::dial(const ports::DialRequest& request) {
  return Groups::serves(request.attribute) ? driver_->groups().dial(request) : driver_->engine().dial(request);
}
Status DatagramTransport::accept(ports::ConnectionId request) { return driver_->engine().accept(request); }
Status DatagramTransport::reject(ports::ConnectionId request, std::string_view reason) {
  return driver_->engine().reject(request, reason);
}
void DatagramTransport::disconnect(ports::ConnectionId connection) {
  if (Groups::owns(connection)) return driver_->groups().disconnect(connection);
  driver_->engine().disconnect(connection);
}
void DatagramTransport::abort(ports::ConnectionId connection) {
  if (Groups::owns(connection)) return driver_->groups().disconnect(connection);
  driver_->engine().abort(connection);
}
Status DatagramTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  if (Groups::owns(connection)) return driver_->groups().send(connection, parts, token);
  return driver_->engine().send(connection, parts, token);
}
void DatagramTransport::hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
  driver_->hint(connection, mailbox, epoch);
}
Status DatagramTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  if (Groups::owns(connection)) return driver_->groups().rma(connection);
  return driver_->engine().rma(connection, request, token);
}
void DatagramTransport::set_send_timeout(ports::ConnectionId connection, Duration timeout) {
  driver_->engine().set_send_timeout(connection, timeout);
}
void DatagramTransport::set_keepalive(ports::ConnectionId connection, Duration timeout) {
  driver_->engine().set_keepalive(connection, timeout);
}
std::vector<ports::HopInfo> DatagramTransport::hops(ports::ConnectionId connection) const {
  return Groups::owns(connection) ? driver_->groups().hops(connection) : driver_->engine().hops(connection);
}
ports::PeerIdentity DatagramTransport::peer(ports::ConnectionId connection) const {
  return Groups::owns(connection) ? driver_->groups().peer(connection) : driver_->engine().peer(connection);
}
void DatagramTransport::turn(Instant now) { driver_->engine().turn(now); }
Instant DatagramTransport::next_deadline() const { return driver_->engine().next_deadline(); }
int DatagramTransport::os_handle() const { return driver_->net().os_handle(); }
void DatagramTransport::arm(Instant when) { driver_->net().set_deadline(std::min(when, driver_->engine().next_deadline())); }
size_t DatagramTransport::held_bytes() const { return driver_->held_bytes(); }
uint64_t DatagramTransport::visits() const { return driver_->engine().visits(); }

}  // namespace ccixfer::datagram

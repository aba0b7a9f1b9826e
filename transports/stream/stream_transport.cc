#include "transports/stream/stream_transport.h"

#include <algorithm>
#include <utility>

#include "transports/stream/driver.h"
#include "transports/stream/limits.h"

namespace ccixfer::stream {

StreamTransport::StreamTransport(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters,
                                 std::shared_ptr<connection::HopTrust> trust)
    : driver_(std::make_unique<Driver>(options, std::move(net), counters, std::move(trust))) {}
StreamTransport::~StreamTransport() = default;

void StreamTransport::set_placement(std::shared_ptr<Placement> placement) { driver_->set_placement(std::move(placement)); }
void StreamTransport::adopt(MovedConnection moved) { driver_->adopt(std::move(moved)); }

void StreamTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) { driver_->bind(sink, target); }
std::string StreamTransport::uri() const { return driver_->net().uri(); }
uint32_t StreamTransport::max_send_bytes() const { return max_send_offered_bytes; }
Result<ports::ConnectionId> StreamTransport::dial(const ports::DialRequest& request) { return driver_->engine().dial(request); }
Status StreamTransport::ask(ports::ConnectionId dialled, Bytes data) { return driver_->engine().ask(dialled, data); }
Status StreamTransport::accept(ports::ConnectionId request) { return driver_->engine().accept(request); }
Status StreamTransport::reject(ports::ConnectionId request, std::string_view reason) {
  return driver_->engine().reject(request, reason);
}
void StreamTransport::disconnect(ports::ConnectionId connection) { driver_->engine().disconnect(connection); }
Status StreamTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  return driver_->engine().send(connection, parts, token);
}
Status StreamTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  return driver_->engine().rma(connection, request, token);
}
std::unique_ptr<ports::SplicePipe> StreamTransport::make_splice_pipe() { return driver_->net().make_splice_pipe(); }
bool StreamTransport::takes(const ports::SplicePipe& splice_pipe) const { return driver_->net().takes(splice_pipe); }
void StreamTransport::resume(ports::ConnectionId connection) { driver_->resume(connection); }
void StreamTransport::hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
  driver_->hint(connection, mailbox, epoch);
}
void StreamTransport::set_send_timeout(ports::ConnectionId connection, Duration timeout) {
  driver_->engine().set_send_timeout(connection, timeout);
}
void StreamTransport::set_keepalive(ports::ConnectionId connection, Duration timeout) {
  driver_->engine().set_keepalive(connection, timeout);
}
void StreamTransport::abort(ports::ConnectionId connection) { driver_->engine().abort(connection); }
std::optional<uint64_t> StreamTransport::delivered_bytes(ports::ConnectionId connection) const {
  return driver_->delivered_bytes(connection);
}
std::optional<uint64_t> StreamTransport::received_bytes(ports::ConnectionId connection) const {
  return driver_->received_bytes(connection);
}
std::optional<ports::PathFigures> StreamTransport::path_figures(ports::ConnectionId connection) const {
  return driver_->path_figures(connection);
}
std::vector<ports::HopInfo> StreamTransport::hops(ports::ConnectionId connection) const {
  return driver_->engine().hops(connection);
}
ports::PeerIdentity StreamTransport::peer(ports::ConnectionId connection) const { return driver_->engine().peer(connection); }
void StreamTransport::turn(Instant now) { driver_->engine().turn(now); }
Instant StreamTransport::next_deadline() const { return driver_->engine().next_deadline(); }
void StreamTransport::arm(Instant when) { driver_->net().set_deadline(std::min(when, driver_->engine().next_deadline())); }
int StreamTransport::os_handle() const { return driver_->net().os_handle(); }

}  // namespace ccixfer::stream

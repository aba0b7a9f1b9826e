#include "transports/rdma/rdma_transport.h"

#include <algorithm>

#include "transports/rdma/driver.h"
#include "transports/rdma/limits.h"

namespace ccixfer::rdma {

RdmaTransport::RdmaTransport(const ports::TransportOptions& options, std::unique_ptr<RdmaNet> net, Counters& counters,
                             std::shared_ptr<connection::HopTrust> trust)
    : driver_(std::make_unique<Driver>(options, std::move(net), counters, std::move(trust))) {}
RdmaTransport::~RdmaTransport() = default;

void RdmaTransport::bind(ports::TransportSink& sink, ports::RmaTarget& target) { driver_->bind(sink, target); }
std::string RdmaTransport::uri() const { return driver_->net().uri(); }
uint32_t RdmaTransport::max_send_bytes() const { return driver_->engine().our_offer().max_send_bytes; }
Result<ports::ConnectionId> RdmaTransport::dial(const ports::DialRequest& request) { return driver_->engine().dial(request); }
Status RdmaTransport::accept(ports::ConnectionId request) { return driver_->engine().accept(request); }
Status RdmaTransport::reject(ports::ConnectionId request, std::string_view reason) {
  return driver_->engine().reject(request, reason);
}
void RdmaTransport::disconnect(ports::ConnectionId connection) { driver_->engine().disconnect(connection); }
Status RdmaTransport::send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) {
  return driver_->engine().send(connection, parts, token);
}
Status RdmaTransport::rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
  const Bytes memory = request.write ? request.source : Bytes(request.destination);
  const bool for_cards = memory.size() > inline_bytes_max;
  if (for_cards && !driver_->memory().of(request.local.key, memory)) return Status::invalid;
  return driver_->engine().rma(connection, request, token);
}
Status RdmaTransport::register_memory(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) {
  return driver_->memory().add(memory, access, key);
}
void RdmaTransport::deregister_memory(ports::MemoryKey key) { driver_->memory().remove(key); }
void RdmaTransport::resume(ports::ConnectionId connection) { driver_->resume(connection); }
void RdmaTransport::hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) {
  driver_->hint(connection, mailbox, epoch);
}
void RdmaTransport::set_send_timeout(ports::ConnectionId connection, Duration timeout) {
  driver_->engine().set_send_timeout(connection, timeout);
}
void RdmaTransport::set_keepalive(ports::ConnectionId connection, Duration timeout) {
  driver_->engine().set_keepalive(connection, timeout);
}
void RdmaTransport::abort(ports::ConnectionId connection) { driver_->engine().abort(connection); }
std::optional<uint64_t> RdmaTransport::delivered_bytes(ports::ConnectionId connection) const {
  return driver_->delivered_bytes(connection);
}
std::optional<uint64_t> RdmaTransport::received_bytes(ports::ConnectionId connection) const {
  return driver_->received_bytes(connection);
}
std::vector<ports::HopInfo> RdmaTransport::hops(ports::ConnectionId connection) const { return driver_->engine().hops(connection); }
ports::PeerIdentity RdmaTransport::peer(ports::ConnectionId connection) const { return driver_->engine().peer(connection); }
void RdmaTransport::turn(Instant now) { driver_->engine().turn(now); }
Instant RdmaTransport::next_deadline() const { return driver_->engine().next_deadline(); }
void RdmaTransport::arm(Instant when) { driver_->net().set_deadline(std::min(when, driver_->engine().next_deadline())); }
int RdmaTransport::os_handle() const { return driver_->net().os_handle(); }

}  // namespace ccixfer::rdma

// A Transport over any network of RDMA cards: messages and small RMA through a shared receive queue, large RMA moved by the cards,
// straight from and into registered memory, keepalive, orderly end. verbs and the simulator differ in the RdmaNet only. Guarantees:
// those of ports/transport.h; a peer's bytes never abort: they are counted and end their connection with a reason. No CPU touches
// the bytes of a large operation whose memory is registered at both ends. Attributes and keepalive: as of transports/stream.
// rma: invalid: the local memory is not registered by the key that the request names.
// What cards move is not sealed (README.md, 'Trust'), and the keys that an operation gives to its peer let it use the whole
// registration, as long as that lasts.
// Single-threaded. Source: CCI §III, §IV; transports/rdma/README.md.
#pragma once
#include <memory>

#include "core/base/counters.h"
#include "core/ports/transport.h"
#include "transports/connection/hop_trust.h"
#include "transports/rdma/rdma_net.h"

namespace ccixfer::rdma {

class Driver;

class RdmaTransport final : public ports::Transport {
 public:
  // `trust`: both ends of each connection prove who they are and all packets are sealed; nullptr: connections are plain.
  RdmaTransport(const ports::TransportOptions& options, std::unique_ptr<RdmaNet> net, Counters& counters,
                std::shared_ptr<connection::HopTrust> trust = nullptr);
  ~RdmaTransport() override;

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override;
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t max_send_bytes() const override;
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request) override;
  [[nodiscard]] Status accept(ports::ConnectionId request) override;
  [[nodiscard]] Status reject(ports::ConnectionId request, std::string_view reason) override;
  void disconnect(ports::ConnectionId connection) override;
  [[nodiscard]] Status send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override;
  [[nodiscard]] Status rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override;
  [[nodiscard]] Status register_memory(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) override;
  void deregister_memory(ports::MemoryKey key) override;
  void resume(ports::ConnectionId connection) override;
  void hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) override;
  void set_send_timeout(ports::ConnectionId connection, Duration timeout) override;
  void set_keepalive(ports::ConnectionId connection, Duration timeout) override;
  void abort(ports::ConnectionId connection) override;
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId connection) const override;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId connection) const override;
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId connection) const override;
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId connection) const override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  [[nodiscard]] int os_handle() const override;
  void arm(Instant when) override;

 private:
  std::unique_ptr<Driver> driver_;
};

}  // namespace ccixfer::rdma

// A Transport over any network of datagrams that may lose, double, damage, delay and reorder them: handshake with a cookie,
// messages (reliable ordered and unordered, unreliable), RMA in chunks straight from and into registered memory, keepalive,
// orderly end; a peer's address may change. udp and the simulator differ in the DatagramNet only. Guarantees: those of
// ports/transport.h; a peer's bytes never abort: they are counted (datagrams_rejected, datagrams_duplicate, acks_rejected,
// hello_rejected, frames_rejected) and a broken protocol ends its connection with a reason. A stranger holds no memory here before
// its cookie came back, and then one of pending_requests_max. Bounds: transports/datagram/limits.h, core/reliability.
// max_send_bytes() is what one datagram of DatagramNet::message_datagram_bytes carries, less 52 or, sealed, 64. Attributes and
// keepalive: as of transports/stream; unreliable messages are what they are called; multicast where the network has groups and no
// `trust` was given. dial: nobody answers within handshake_timeout: unreachable. Single-threaded. Source: CCI §IV, §IV.E;
// transports/datagram/README.md.
#pragma once
#include <memory>

#include "core/base/counters.h"
#include "core/ports/entropy.h"
#include "core/ports/transport.h"
#include "core/reliability/congestion.h"
#include "transports/connection/hop_trust.h"
#include "transports/datagram/datagram_net.h"

namespace ccixfer::datagram {

class Driver;

struct DatagramOptions {
  ports::TransportOptions transport;
  reliability::Congestion congestion = reliability::Congestion::new_reno;  // of what this end sends
  std::shared_ptr<reliability::PathMemory> paths{};                        // what earlier connections found; none: nothing is kept
};

class DatagramTransport final : public ports::Transport {
 public:
  // `entropy` and `counters` outlive the transport. With `trust` every connection is secured, and without it none: README.md,
  // 'Secured connections'.
  DatagramTransport(const DatagramOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy, Counters& counters,
                    std::shared_ptr<connection::HopTrust> trust = nullptr);
  ~DatagramTransport() override;

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override;
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t max_send_bytes() const override;
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request) override;
  [[nodiscard]] Status accept(ports::ConnectionId request) override;
  [[nodiscard]] Status reject(ports::ConnectionId request, std::string_view reason) override;
  void disconnect(ports::ConnectionId connection) override;
  void abort(ports::ConnectionId connection) override;
  [[nodiscard]] Status send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override;
  void hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) override;
  [[nodiscard]] Status rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override;
  void set_send_timeout(ports::ConnectionId connection, Duration timeout) override;
  void set_keepalive(ports::ConnectionId connection, Duration timeout) override;
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId connection) const override;
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId connection) const override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  [[nodiscard]] int os_handle() const override;
  void arm(Instant when) override;

  [[nodiscard]] size_t held_bytes() const;  // messages that came before their turn, of all connections: at most held_bytes_max
  [[nodiscard]] uint64_t visits() const;    // of connections that turns looked at, so far: idle ones cost none

 private:
  std::unique_ptr<Driver> driver_;
};

}  // namespace ccixfer::datagram

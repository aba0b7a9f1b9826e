// A Transport over any network of byte streams: handshake, messages with acknowledgements and windows, RMA in chunks straight from
// and into registered memory, keepalive, orderly end. tcp and the simulator differ in the StreamNet only. Guarantees: those of
// ports/transport.h; a peer's bytes never abort: they are counted and end their connection with a reason. Work is bounded per
// connection and turn; idle connections cost nothing per turn; it never spins. Attributes: reliable_ordered, reliable_unordered
// (delivered in order, which is one of the orders), unreliable (a reliable stream with local completion and no retries at the
// receiver). Multicast: dial fails. set_keepalive: without it (TransportOptions.keepalive) a dead peer means
// on_disconnected(timed_out); with it, CCI's behaviour holds: one on_keepalive_timeout, the timeout returns to 0, the connection
// stays. Single-threaded. Source: CCI §IV; transports/stream/README.md.
#pragma once
#include <memory>

#include "core/base/counters.h"
#include "core/ports/transport.h"
#include "transports/connection/hop_trust.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::stream {

class Driver;

class StreamTransport final : public ports::Transport {
 public:
  // With `trust` every connection is secured, and without it none: README.md, 'Secured connections'.
  StreamTransport(const ports::TransportOptions& options, std::unique_ptr<StreamNet> net, Counters& counters,
                  std::shared_ptr<connection::HopTrust> trust = nullptr);
  ~StreamTransport() override;

  // From now on connections that are accepted may leave: `placement` decides. Without one all of them stay.
  void set_placement(std::shared_ptr<Placement> placement);
  // One that left another transport of this process goes on here. Not within a turn, and of a transport without a placement.
  void adopt(MovedConnection moved);

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override;
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] uint32_t max_send_bytes() const override;
  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request) override;
  [[nodiscard]] bool dials_ahead() const override { return true; }
  [[nodiscard]] Status ask(ports::ConnectionId dialled, Bytes data) override;
  [[nodiscard]] Status accept(ports::ConnectionId request) override;
  [[nodiscard]] Status reject(ports::ConnectionId request, std::string_view reason) override;
  void disconnect(ports::ConnectionId connection) override;
  [[nodiscard]] Status send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override;
  [[nodiscard]] Status rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override;
  [[nodiscard]] bool supports_cut_through() const override { return true; }
  [[nodiscard]] std::unique_ptr<ports::SplicePipe> make_splice_pipe() override;
  [[nodiscard]] bool takes(const ports::SplicePipe& splice_pipe) const override;
  void resume(ports::ConnectionId connection) override;
  void hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) override;
  void set_send_timeout(ports::ConnectionId connection, Duration timeout) override;
  void set_keepalive(ports::ConnectionId connection, Duration timeout) override;
  void abort(ports::ConnectionId connection) override;
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ports::ConnectionId connection) const override;
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId connection) const override;
  [[nodiscard]] std::optional<ports::PathFigures> path_figures(ports::ConnectionId connection) const override;
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId connection) const override;
  [[nodiscard]] ports::PeerIdentity peer(ports::ConnectionId connection) const override;
  void turn(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  [[nodiscard]] int os_handle() const override;
  void arm(Instant when) override;

 private:
  std::unique_ptr<Driver> driver_;
};

}  // namespace ccixfer::stream

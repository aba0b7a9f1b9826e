// Datagrams in Ethernet frames of an ethertype of our own: the DatagramNet of eth, over a packet socket with a receive ring that is
// mapped into memory. Names are eth://MAC:ID. One frame carries one datagram of up to the interface's MTU less 8 bytes. Two
// endpoints of one interface do not reach one another, because Ethernet brings no frame back to where it came from: resolve says
// so. Needs CAP_NET_RAW when it is made. Bounds: what one poll reads (frames_per_poll_max). Errors of create: usage: no right, no
// such interface, an MTU below 1,480; network: the id is taken, the interface is down, no descriptors or memory. What the kernel
// refuses to send counts as lost. Counts frames that are refused (datagrams_rejected) and those that found no room
// (datagrams_dropped). Single-threaded. Source: transports/eth/README.md; CCI §IV.E.
#pragma once
#include <memory>
#include <string>

#include "core/base/counters.h"
#include "core/host/waker.h"
#include "transports/datagram/datagram_net.h"
#include "transports/eth/name.h"

namespace ccixfer::eth {

inline constexpr size_t frames_per_poll_max = 256;  // then the connections have their turn
inline constexpr size_t ring_bytes_default = 4u << 20;
inline constexpr Duration last_words_wait = std::chrono::milliseconds(20);

struct EthNetOptions {
  std::string interface_name;  // "": the one that has `mac`; without that, the only Ethernet interface that is up
  std::optional<Mac> mac;      // that the interface must have
  uint16_t id = 0;             // 0: any free one, from 32768 on
  bool listen = true;          // else it takes no strangers
  size_t ring_bytes = ring_bytes_default;
  std::shared_ptr<host::Waker> waker = nullptr;  // nullptr: one of its own, for the OS handle
};

class EthNet final : public datagram::DatagramNet {
 public:
  // `counters` outlive it.
  [[nodiscard]] static Result<std::unique_ptr<EthNet>> create(const EthNetOptions& options, Counters& counters);
  ~EthNet() override;
  EthNet(const EthNet&) = delete;
  EthNet& operator=(const EthNet&) = delete;

  [[nodiscard]] const Name& name() const;  // of this end, whether it listens or not

  [[nodiscard]] std::string_view scheme() const override { return "eth"; }
  [[nodiscard]] std::string host_of(const datagram::Address& address) const override;  // the MAC
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] bool takes_strangers() const override;
  [[nodiscard]] uint32_t datagram_bytes_max() const override;
  [[nodiscard]] Result<uint64_t> resolve(std::string_view uri) override;
  [[nodiscard]] datagram::Sent send(std::span<const datagram::Datagram> batch) override;
  void send_last(std::span<const datagram::Datagram> batch) override;
  void poll(Instant now, datagram::DatagramEvents& events) override;
  void set_deadline(Instant at) override;
  [[nodiscard]] int os_handle() const override;

 private:
  struct Impl;
  explicit EthNet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::eth

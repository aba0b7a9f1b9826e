// Datagrams over one UDP socket: the DatagramNet of udp. Names are udp://HOST:PORT, with IPv6 addresses in brackets; a socket of
// the wildcard "::" speaks to IPv4 peers too. Nonblocking and edge-triggered, in a waker that several networks may share.
// Neighbours of a batch that have one address and one length leave as one piece (GSO) and come as one (GRO), where the kernel can;
// else each by itself. Datagrams are never fragmented on their way (don't-fragment): what an interface or the path does not carry
// is lost, and each connection finds out how long its packets may be. On the loopback that is known. Groups are
// those of IP multicast: a member has a socket of its own (multicast.h). Bounds: what one poll reads (reads_per_poll_max). Errors:
// create: network (address in use, no descriptors), usage (a host that cannot be). What the kernel refuses to send counts as lost.
// Nothing that comes over ICMP is believed. Single-threaded but for the resolver inside. Source: transports/udp/README.md; CCI §IV
// ("sock").
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/host/waker.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/limits.h"

namespace ccixfer::udp {

inline constexpr size_t pieces_per_read = 8;         // that one recvmmsg takes, each up to piece_bytes_max
inline constexpr size_t piece_bytes_max = 65536;     // GRO joins that much
inline constexpr int reads_per_poll_max = 4;         // then the connections have their turn
inline constexpr int socket_buffer_bytes = 8 << 20;  // wanted; the system may grant less (net.core.rmem_max, wmem_max)
inline constexpr int group_hops_default = 1;         // what is sent to a group crosses no router
inline constexpr Duration last_words_wait = std::chrono::milliseconds(20);

struct UdpNetOptions {
  std::string listen_host = "0.0.0.0";           // an address; "*": all of both families; a name is resolved once, blocking
  uint16_t port = 0;                             // 0: any free one
  std::string interface_name;                    // "": any
  bool listen = true;                            // else it takes no strangers, and its socket has any free port
  bool joins = true;                             // GSO and GRO, where the kernel has them
  int group_hops = group_hops_default;           // TTL of what is sent to groups: 1 to 255
  std::shared_ptr<host::Waker> waker = nullptr;  // nullptr: one of its own, for the OS handle
};

// What the system grants a socket of what is wanted (socket_buffer_bytes). nullopt: it gives no socket at all.
struct GrantedBuffers {
  uint64_t receive_bytes = 0;
  uint64_t send_bytes = 0;
};
[[nodiscard]] std::optional<GrantedBuffers> granted_buffers();

class UdpNet final : public datagram::DatagramNet {
 public:
  [[nodiscard]] static Result<std::unique_ptr<UdpNet>> create(const UdpNetOptions& options);
  ~UdpNet() override;
  UdpNet(const UdpNet&) = delete;
  UdpNet& operator=(const UdpNet&) = delete;

  // Every address under which it can be dialled; loopback only if there is no other.
  [[nodiscard]] std::vector<std::string> uris() const;

  [[nodiscard]] std::string_view scheme() const override { return "udp"; }
  [[nodiscard]] std::string host_of(const datagram::Address& address) const override;
  [[nodiscard]] std::string uri_of(const datagram::Address& address) const override;
  [[nodiscard]] std::string uri() const override;
  [[nodiscard]] bool takes_strangers() const override;
  [[nodiscard]] uint32_t datagram_bytes_max() const override { return datagram::datagram_bytes_max; }
  [[nodiscard]] bool knows_path(const datagram::Address& peer) const override;
  [[nodiscard]] uint32_t message_datagram_bytes() const override;
  [[nodiscard]] Result<uint64_t> resolve(std::string_view uri) override;
  void forget(uint64_t query) override;
  [[nodiscard]] datagram::Sent send(std::span<const datagram::Datagram> batch) override;
  void send_last(std::span<const datagram::Datagram> batch) override;
  [[nodiscard]] bool has_groups() const override { return true; }
  [[nodiscard]] Result<datagram::Group> group(std::string_view uri) override;
  [[nodiscard]] Result<datagram::Group> join_group(std::string_view uri, uint32_t member) override;
  void leave_group(uint32_t member) override;
  void poll(Instant now, datagram::DatagramEvents& events) override;
  void set_deadline(Instant at) override;
  [[nodiscard]] int os_handle() const override;

 private:
  struct Impl;
  explicit UdpNet(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::udp

// The router's devices, each with its endpoint: what the configuration says of them, what was
// measured on them, and which of them this host has lost. A device is named by its index, which
// stays the same for the life of the router. What is known of a lost device comes from outside
// (Router::set_works). A break counts when it has lasted for device_lost_after, a return when it
// has lasted for device_back_after.
// Single-threaded. Bounds: devices_max, which the configuration's checks keep.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "routing/map/record.h"
#include "routing/router/device_settings.h"
#include "routing/router/message_sender.h"
#include "routing/router/router.h"

namespace ccixfer::routing {

// A device as the router's own record has it, and which of the devices it is.
// What a connection may have in flight on a device when half of all that may be is: so little that as
// many connections as a router has cannot fill the other half.
inline constexpr uint32_t leg_send_share = 2;

struct ToldDevice {
  uint32_t device = 0;
  DeviceRecord record;
};

class Devices final : public MessageSender {
 public:
  explicit Devices(std::vector<RouterDevice> devices);
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(devices_.size()); }
  [[nodiscard]] const RouterDevice& operator[](uint32_t device) const { return devices_[device]; }
  [[nodiscard]] cci::Endpoint& endpoint(uint32_t device) const { return *devices_[device].endpoint; }
  [[nodiscard]] const std::vector<RouterDevice>& all() const { return devices_; }
  [[nodiscard]] Status send(uint32_t device, cci::Connection connection, Bytes message, uint64_t context) override {
    return endpoint(device).send(connection, message, context, true);
  }

  [[nodiscard]] std::string uri(uint32_t device) const { return uri_of(devices_[device]); }
  [[nodiscard]] std::vector<ToldDevice> told() const;  // of those that are not lost
  [[nodiscard]] bool is_own(const Address& address) const;
  // The address of a peer without its port, which it chooses anew each time; "": not known.
  [[nodiscard]] std::string node_of(uint32_t device, cci::Connection connection) const;
  // The one name of a peer, for what is counted, cut off or logged about it: what the transport has
  // proved, on whatever device. Where nothing is proved it is the device on which the peer came and
  // its address there. What a peer calls itself does not count.
  [[nodiscard]] std::string peer_of(uint32_t device, cci::Connection connection) const;
  [[nodiscard]] std::string name_of(uint32_t device, const ports::PeerIdentity& peer) const;

  bool set_works(std::string_view name, bool works);  // true: that was not known
  // true: another set of them is told() from now on.
  [[nodiscard]] bool follow(Instant now);
  [[nodiscard]] Instant next_deadline() const;  // of follow() and of the endpoints

  void set_latency(uint32_t device, uint64_t latency_ns) { devices_[device].latency_ns = latency_ns; }
  void forget_latencies();
  // A changed configuration: all but the endpoint, the name, the subnet and the scheme.
  void change(uint32_t device, RouterDevice settings);
  void add(RouterDevice device);
  // Every endpoint ends, so that nothing reads or writes the router's memory any more.
  void close() { devices_.clear(); }

 private:
  [[nodiscard]] static Instant settles_at(const RouterDevice& device);
  std::vector<RouterDevice> devices_;
};

}  // namespace ccixfer::routing

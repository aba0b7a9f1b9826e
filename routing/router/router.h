// The router daemon's engine: accepts hops, looks the next one up, pulls fragments into its pool, forwards, reclaims; and exchanges
// records with other routers, from which it builds its map. Everything in a router runs on one thread, without locks.
// Bounds: drain_timeout, pool, RouterOptions::connections_max, records_max, hops_max.
// Source: routing §VI-§VII; routing/router/README.md.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"
#include "routing/map/router_map.h"
#include "routing/router/admission.h"
#include "routing/router/peer_grants.h"
#include "routing/router/router_view.h"
#include "routing/router/traffic.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

inline constexpr Duration drain_timeout = std::chrono::seconds(10);       // connections have so long to end or move,
inline constexpr Duration drain_flush_timeout = std::chrono::seconds(2);  // and then their ends to hear why they are closed
// What the host says of a device counts when it has lasted: a short break is not told to anybody, and one that flaps stays away.
inline constexpr Duration device_lost_after = std::chrono::seconds(2);
inline constexpr Duration device_back_after = std::chrono::seconds(5);

class MapSnapshot;

struct RouterDevice {
  std::string name;  // of the configuration
  SubnetId subnet;
  std::string scheme;                       // "tcp"
  std::unique_ptr<cci::Endpoint> endpoint;  // shares the router's MemoryTable
  std::vector<std::string> peers;           // native URIs of routers to dial on this subnet
  uint64_t rate_bits_per_s = 0;
  uint8_t capabilities = 0;  // bit 0 zero-copy, bit 1 os-bypass
  bool transit = true;
  bool wan = false;
  std::vector<uint32_t> wan_to;
  uint64_t latency_ns = 0;  // measured by the router; 0: unknown
  bool works = true;        // as the host last said (Router::set_works)
  bool told = true;         // our record has it
  Instant differs_since = never;
  std::string uri = {};  // under which others dial it, where its endpoint does not listen; "": that of the endpoint
};

// What keeps a router's buffers from deadlock and its connections from starving one another, one by one. All of it is on in every
// product, and no configuration sets it: it is here so that tests can show what happens without each.
struct RouterMechanisms {
  uint8_t classes = classes_max;  // of buffers, by routers crossed; the last one takes all that are beyond. 1: as good as none
  bool reserved = true;           // a buffer of each class is kept for it
  bool transit_first = true;      // what has crossed more routers is given a buffer before what has crossed fewer
  bool turns = true;              // connections that wait for a buffer of a class are served in turns; off: in order of arrival
  bool messages_apart = true;     // messages need no buffer of the fragments
  bool cut_through = true;        // a fragment may leave while it arrives; off: only when it is here whole
  bool absorbs = true;            // the buffer before is free when the fragment is here; off: when it has left here
  bool windows = true;            // a connection holds the buffers that its networks keep busy; off: what the pool gives it
  bool paced = true;              // it leaves when the slower way in will not hold it up; off: with its first byte
  bool progress = true;           // buffers are for who moves (StandstillWatch); off: whoever has one keeps it
  bool empty_is_refused = true;   // a put that the mailbox has no buffer for ends; off: it waits, in a buffer of the last router
  bool poison_returned = false;   // a buffer that comes back to the pool is written over: who still refers to it shows
};

struct RouterOptions {
  uint32_t fragment_bytes = (4u << 20) + (4u << 10);  // shorter where memory_bytes holds fewer than there are classes
  uint64_t memory_bytes = 256u << 20;
  uint64_t rate_bytes_per_s = 0;  // --bwlimit
  std::vector<std::string> metric = {"bandwidth", "hops"};
  Duration record_refresh = std::chrono::seconds(30);
  Duration record_lifetime = std::chrono::seconds(120);
  std::vector<StaticRoute> static_routes;  // [[router.static]]
  uint32_t connections_max = 16384;        // relayed ones; of one peer, see connection_places.h
  uint64_t copied_bytes_max = 64u << 20;   // messages that wait for a peer and hold no receive buffer, over all connections
  RouterMechanisms mechanisms;
  std::shared_ptr<const PeerGrants> peer_grants;  // none (--insecure): who a peer is does not matter
  std::shared_ptr<Traffic> traffic = {};          // counted into for as long as the router lives; none: nobody wants to know
  bool follows = false;                           // it is a further worker of a router: README.md 'Workers'
  AdmissionObserver observer;                     // for as long as the router lives: reconfigure() leaves it as it is
};

// A fragment that a router knows of, as tests and people see it.
struct FragmentView {
  uint8_t crossed = 0;  // routers, before this one
  uint8_t buffer_class = 0;
  bool holds_buffer = false;  // else it waits for one
  std::string next;           // native URI of the next hop, where that was dialled from here; "" else
};

class Router {
 public:
  // usage: fewer than two devices, memory below fragment_bytes_floor a class, two devices that clash, a device whose card
  // takes no more memory.
  static Result<std::unique_ptr<Router>> create(const RouterOptions& options, std::vector<RouterDevice> devices,
                                                std::shared_ptr<cci::MemoryTable> memory, ports::Entropy& entropy,
                                                Counters& counters);
  ~Router();
  // One turn answers what its own answers bring, several times over. `clock`, when it is given, is read once for each of these
  // rounds, so that what has come meanwhile has taken the time that it took; a simulated world, where no time goes by within a
  // turn, has none.
  void turn(Instant now, const std::function<Instant()>& clock = {});
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] std::vector<int> os_handles() const;
  [[nodiscard]] bool ready() const;                     // its forwarding table stands, and configured peers were tried once
  [[nodiscard]] std::vector<std::string> uris() const;  // cci:// addresses, one a device
  [[nodiscard]] bool has_device(std::string_view name) const;
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> devices() const;  // name, native URI
  // SIGHUP: metric, static routes, rate cap and grants of `options`, and of each device, found by its name, all but its endpoint,
  // name, subnet and scheme; a device that is new comes with its endpoint; connections stay. usage, and nothing is changed: a bad
  // metric, a device that is missing or on another subnet, a new one that clashes.
  [[nodiscard]] Result<void> reconfigure(const RouterOptions& options, std::vector<RouterDevice> devices);
  // Grants may be others by now, without a reconfigure(): links of routers that may be none any more end.
  void review_links(Instant now);
  void set_rate(uint64_t bytes_per_s);  // the cap of what is forwarded, from now on; 0: none
  // Whether this host can use a device at all: its address is on an interface that is up. Never: whether somebody answers there. A
  // subnet that is lost leaves our record after device_lost_after, and comes back device_back_after its return. No such device:
  // nothing.
  void set_works(std::string_view device, bool works);
  // The map as it is now, for the workers that follow; another object whenever it has changed. Any thread may read it.
  [[nodiscard]] std::shared_ptr<const MapSnapshot> map();
  void follow(const std::shared_ptr<const MapSnapshot>& map);  // of a worker that follows: the map from now on
  // SIGTERM. Our records are withdrawn and nothing new is taken: what is being set up is answered no_route, so that those before us
  // try another way. Both ends of each open connection are told (cci::EventType::draining), so that they end or move it; what is
  // left after drain_timeout is closed with the reason.
  void drain();
  [[nodiscard]] bool drained() const;  // the process may end; at the latest drain_timeout + drain_flush_timeout after drain()
  [[nodiscard]] size_t connections_open() const;
  [[nodiscard]] uint32_t fragments_in_use() const;  // buffers of the pool that are not free
  [[nodiscard]] std::vector<FragmentView> fragments() const;
  [[nodiscard]] uint32_t fragments_leaving_early() const;             // that arrive and leave at the same time
  [[nodiscard]] size_t links_open() const;                            // to other routers
  [[nodiscard]] size_t links_out_bytes() const;                       // that wait for them
  [[nodiscard]] RouterView view() const;                              // of now: as large as the router has connections
  [[nodiscard]] ConnectionNames names_of(uint64_t connection) const;  // ConnectionView::id; one that is gone: nothing
  [[nodiscard]] size_t routers_known() const;  // itself, those of its AS, and those of other AS that it hears itself

 private:
  Router();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::routing

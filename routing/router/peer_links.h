// Links to neighbouring routers: dialled as configured or accepted, greeted, one kept of two,
// dialled again when lost. Records go in and out on them, and the latency to the neighbours is
// measured on them.
// In: events whose context is a link's Ref, and what changes at the devices. Out: records to the
// RecordStore, and the latencies to the Devices.
// Errors: a peer that breaks the rules is counted and its link is ended; one that tells too many
// bad records is cut off.
// Single-threaded. Bounds: links_max, links_of_peer_max, external_links_max, link_out_max, links_out_bytes_max, bad_peers_max.
// Source: routing §IV.C.3, §VI; routing/router/README.md 'Records and links'.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/counters.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "routing/router/admission.h"
#include "routing/router/bad_peers.h"
#include "routing/router/devices.h"
#include "routing/router/dial_plan.h"
#include "routing/router/peer_rights.h"
#include "routing/router/record_store.h"
#include "routing/router/ref.h"
#include "routing/router/router_view.h"
#include "routing/router/traffic.h"

namespace ccixfer::routing {

inline constexpr size_t links_max = 1024;
// Of those, so that whoever dials again and again leaves room for others: from one peer, and over all WAN devices.
inline constexpr size_t links_of_peer_max = 64;
inline constexpr size_t external_links_max = links_max / 2;
inline constexpr size_t link_out_max = 2 * records_max;          // messages that wait for one peer,
inline constexpr size_t links_out_bytes_max = size_t{64} << 20;  // and for all of them
// Three unanswered probes: it is lost after 12 s of silence.
inline constexpr Duration link_keepalive = std::chrono::seconds(3);
inline constexpr Duration link_dial_timeout = std::chrono::seconds(5);
inline constexpr Duration link_hello_timeout = std::chrono::seconds(10);

class PeerLinks {
 public:
  PeerLinks(Devices& devices, RecordStore& records, const PeerRights& rights, const AdmissionObserver& observer, Counters& counters,
            Traffic* traffic = nullptr);
  void turn(Instant now);   // dials who is due, and ends links whose hello is late
  void probe(Instant now);  // measures latencies, when that is wanted and due
  void push();              // what found no room before
  [[nodiscard]] Instant next_deadline() const;

  void on_request(uint32_t device, cci::Event& event);
  void on_event(const Ref& ref, cci::Event& event, Instant now);
  void flood(const RouterRecord& record, Bytes raw, uint64_t except_link, const RouterRecord& before);

  // The configured peers of a device. One that is no longer named is no longer dialled; one that
  // dials us stays. `tried`: the new ones need not be dialled for ready().
  void set_peers(uint32_t device, std::vector<std::string> uris, bool tried, Instant now);
  void measure_latencies(bool wanted, Instant now);
  void end_unserved(Instant now);  // those whose AS the devices no longer serve, or that may not be routers any more
  void drain() { draining_ = true; }

  [[nodiscard]] bool ready() const { return plan_.all_tried(); }
  [[nodiscard]] size_t open() const;
  [[nodiscard]] size_t out_bytes() const { return out_bytes_; }
  [[nodiscard]] bool all_told() const;  // nothing waits to be sent
  void show(RouterView& view) const;    // links, and those that are missing

 private:
  enum class Phase : uint8_t { dialling, accepting, greeting, open };
  struct Link : NamedEntry<Tag::link> {
    Phase phase = Phase::dialling;
    uint32_t device = 0;
    cci::Connection connection;
    bool dialled = false;  // by us
    uint64_t router = 0;
    std::string peer_uri;       // dialled, or as it says
    std::string peer;           // who it is (Devices::peer_of); "": dialled, and not connected yet
    std::string node;           // its address alone; "": not known yet
    uint32_t as = 0;            // the peer's
    bool external = false;      // which is not ours
    Instant probed_at = never;  // a latency probe is under way
    uint64_t latency_ns = 0;    // one way, smoothed; 0: not measured
    Instant deadline = never;   // of its hello
    RingBuffer<std::vector<std::byte>> out;
    size_t out_bytes = 0;
  };
  void dial(Instant now);
  [[nodiscard]] bool adopt(size_t peer);
  [[nodiscard]] std::string why_no_room(uint32_t device, const std::string& peer) const;
  void greet(Link& link, Instant now);
  void on_message(Link& link, Bytes message, Instant now);
  void on_hello(Link& link, Bytes message, Instant now);
  void on_record(Link& link, Bytes bytes, Instant now);
  [[nodiscard]] Link* other_to_same_device(const Link& link) const;
  [[nodiscard]] Link* lose_one(Link& link, const std::string& uri);
  [[nodiscard]] std::string refusal_of(const Link& link, SubnetId peer, Instant now) const;
  [[nodiscard]] std::string why_no_link(const Link& link, uint32_t as) const;
  [[nodiscard]] static std::string words_of(const Link& link);
  void tell_observer(const Link& link, std::string_view refusal) const;
  void end(Link& link, bool tell, std::string_view why, Instant now);
  void send_record(Link& link, const RouterRecord& record, Bytes raw, const RouterRecord& before);
  void send_records(Link& link);
  void post(Link& link, std::vector<std::byte> message);
  void flush(Link& link);
  void drop_first(Link& link);
  void keep_within_bounds();
  void on_probe_answer(Link& link, Instant now);

  Devices& devices_;
  RecordStore& records_;
  const PeerRights& rights_;
  const AdmissionObserver& observer_;
  Counters& counters_;
  Traffic* const traffic_;  // nullptr: nobody wants to know
  SlotTable<Link> links_{Ref::generation_max};
  size_t out_bytes_ = 0;  // of all links
  DialPlan plan_;
  BadPeers bad_peers_;
  PeersLogged refused_logged_;  // who dials again and again is told each time, and the log hears of it once
  Instant next_probe_ = never;
  bool draining_ = false;
};

// Of a link that we dialled: the address that the configuration gives, or, where that is a name,
// what is there says. "": neither.
[[nodiscard]] std::string node_behind(std::string_view dialled, std::string_view said);

}  // namespace ccixfer::routing

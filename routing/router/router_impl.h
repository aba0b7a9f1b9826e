// The router's inside. Split in files: router.cc (creation, turn, events), peers.cc (links to other routers), records.cc (the
// flooded records and the map), latency.cc (a metric), lost_devices.cc (subnets that went), drain.cc (a planned stop),
// connections.cc (a routed connection's setup and end), forward_messages.cc, forward_fragments.cc, admin_requests.cc.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/deadline_heap.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "routing/map/forwarding.h"
#include "routing/map/source_policy.h"
#include "routing/router/fragment_pool.h"
#include "routing/router/router.h"
#include "routing/session/messages.h"

namespace ccixfer::routing {

inline constexpr uint32_t pairs_max = 16384;  // routed connections
inline constexpr uint32_t pairs_setting_up_max = 1024;
inline constexpr size_t records_max = 4096;
inline constexpr size_t links_max = 1024;
inline constexpr size_t admins_max = 64;
inline constexpr size_t candidates_tried_max = 4;
inline constexpr uint32_t window_fragments_min = 4;  // of each side of a connection
inline constexpr size_t conduits_max = 32;           // fragments that pass without coming into memory, at one time
inline constexpr size_t held_events_max = 256;       // receive buffers held for messages that cannot go on yet, over all pairs
inline constexpr size_t out_messages_max = 2048;     // waiting on one side of a pair; an honest peer's windows stay below
inline constexpr size_t link_out_max = 2 * records_max;
inline constexpr Duration hop_dial_timeout = std::chrono::seconds(5);
inline constexpr Duration hop_patience = std::chrono::seconds(1);  // then the initiator is told which hop has not answered
inline constexpr Duration hop_request_timeout = std::chrono::seconds(10);
inline constexpr Duration close_flush_timeout = std::chrono::seconds(10);
inline constexpr Duration redial_first = std::chrono::milliseconds(250);
inline constexpr Duration redial_max = std::chrono::seconds(5);
inline constexpr Duration rate_burst = std::chrono::milliseconds(20);

// Of records. An honest router speaks every 30 s, now and then a few times in a row.
inline constexpr Duration link_keepalive =
    std::chrono::seconds(3);                                      // three unanswered probes: a link is lost after 12 s of silence
inline constexpr uint64_t instance_max = uint64_t{1} << 62;       // beyond is the future, and leaves the router no way past it
inline constexpr uint64_t instance_jump_max = uint64_t{1} << 32;  // from one heard record to the next: over a century of them
inline constexpr uint32_t link_offences_max = 32;                 // bad records in a window
inline constexpr Duration link_offences_window = std::chrono::seconds(30);
inline constexpr Duration cut_off_time = std::chrono::seconds(60);
inline constexpr size_t cut_off_max = 1024;
inline constexpr size_t liars_logged_max = 256;

// Of peers that stand still (progress.cc).
inline constexpr Duration look_interval = std::chrono::milliseconds(100);
inline constexpr Duration stalled_after = std::chrono::milliseconds(250);  // it gets no further buffer
inline constexpr Duration cut_when_pressed = std::chrono::seconds(2);      // others wait for what it holds
inline constexpr Duration cut_new_when_pressed = std::chrono::seconds(1);  // who has never moved anything
inline constexpr Duration press_interval = std::chrono::seconds(1);        // a router beyond is told so often that others wait
inline constexpr Duration cut_anyway = std::chrono::seconds(30);
inline constexpr Duration penalty_time = std::chrono::seconds(60);
inline constexpr Duration hop_watch = std::chrono::seconds(5);
inline constexpr size_t stood_still_max = 1024;
inline constexpr uint64_t progress_bytes_min = 4096;  // a byte now and then is no progress
struct Standstill {                                   // of an end: who has moved since has its full share again
  Instant since{}, until{};
  bool moved = false;  // something has, over any connection of it, since it was cut off
};
enum class Share : uint8_t { full, trial, penalty };  // of the shared buffers

// How often one router may say something new.
struct RecordBucket {
  static constexpr uint32_t burst = 16;
  static constexpr Duration gap = std::chrono::seconds(1);
  uint32_t left = burst;
  Instant next{};  // when another one is earned
  bool take(Instant now);
};

// What an event's context names: a kind, a side, and an entry of a table.
enum class Tag : uint8_t { none = 0, pair = 1, fragment = 2, link = 4, admin = 5 };
struct Ref {
  Tag tag = Tag::none;
  uint8_t side = 0;
  uint32_t generation = 0;  // 27 bits
  uint32_t index = 0;
  static constexpr uint32_t generation_max = (1u << 27) - 1;
  [[nodiscard]] uint64_t packed() const {
    return uint64_t{static_cast<uint8_t>(tag)} << 60 | uint64_t{side} << 59 | uint64_t{generation} << 32 | index;
  }
  static Ref of(uint64_t packed) {
    return {static_cast<Tag>(packed >> 60), static_cast<uint8_t>((packed >> 59) & 1),
            static_cast<uint32_t>(packed >> 32) & generation_max, static_cast<uint32_t>(packed)};
  }
};

// An entry of one of the router's tables knows its own name, from which its ref() is made.
template <typename T>
T& add_to(SlotTable<T>& table) {
  const auto name = table.add();
  T& entry = *table.find(name);
  entry.index = name.index;
  entry.generation = name.generation;
  return entry;
}

// Whether a device may stand beside others of the same router. usage.
[[nodiscard]] Result<void> check_device(const RouterDevice& device, std::span<const RouterDevice> others);

// As our record has it.
[[nodiscard]] DeviceRecord described(const RouterDevice& device, const std::string& uri);
// Whether a record of these is short enough to be told, whatever the latencies turn out to be. What it reaches may be left out, so
// it does not count.
[[nodiscard]] bool record_fits(std::vector<DeviceRecord> devices);

// One message on its way out: its bytes, or the event that still holds them in its receive buffer.
struct Outgoing {
  std::vector<std::byte> copy;
  cci::Event event;
  bool is_event = false;
  bool counted = false;  // in held_events or copied_bytes
  [[nodiscard]] Bytes bytes() const { return is_event ? event.data() : Bytes(copy); }
};

// Bytes that a side has moved, and how long it was waited for in vain.
struct Clock {
  uint64_t moved = 0;
  Duration stands{0};
  void note(uint64_t at, Duration passed, uint64_t least_bytes = progress_bytes_min);
};

// What a network brings from, or takes to, all sides on it: those that wait their turn on a slow one do not stand still.
struct NetworkFlow {
  uint64_t moved_bytes = 0;
  uint32_t waited_for = 0;  // sides, at this look
  Clock clock;
};
// Of one side in that: its own bytes at the last look, and the network's when it moved itself.
struct ShareOfFlow {
  uint64_t seen_bytes = 0, network_bytes = 0;
};

struct Side {
  uint32_t device = 0;
  cci::Connection connection;
  bool live = false;
  Duration wait = forever;  // the shortest from our asking for a fragment to its first byte, or from offering one to its end
  bool is_end = false;      // the routed connection ends there: no router beyond
  bool unwatched = false;   // the ends watch one another, and no keepalive of ours is on it
  Clock gave, took;         // of what we wait for from it, and of what it is to take
  ShareOfFlow gave_share, took_share;
  uint64_t pulled_bytes = 0, taken_bytes = 0;  // of fragments that are over
  uint64_t arriving_bytes = 0;                 // this and the next: at a look
  bool sends = false, takes = false, skips = false;
  RingBuffer<Outgoing> out;
};

inline constexpr int nobody = -1;  // instead of a side: neither of the two

enum class PairPhase : uint8_t { accepting, awaiting_request, dialling, requesting, open, closing };

struct Pair {
  uint32_t index = 0, generation = 0;
  PairPhase phase = PairPhase::accepting;
  std::array<Side, 2> side;  // 0: towards the initiator, 1: towards the destination
  ConnectRequest request;
  Address to;
  std::vector<NextHop> candidates;  // not tried yet, the best one last
  NextHop hop;                      // being tried, or in use
  std::string hop_uri;
  Status answer = Status::no_route;
  std::string answer_reason;
  Instant requested_at{};
  Instant hop_late_at = never;  // when the initiator is told that the hop has not answered
  Instant deadline = never;     // of the whole connect, or of closing
  bool active = false;

  std::array<std::string, 2> ends;  // whose standstill is remembered under these names
  Instant proven_at = never;        // when a fragment went through last: both ends move
  uint64_t look = 0;                // the last one at which it held a buffer
  Duration stands{0};               // at that
  uint8_t stands_side = 0;
  bool stands_taking = false;
  Instant pressed_until{};  // a router before or behind us has others waiting
  Instant press_again{};
  uint8_t beyond = 0;                                     // routers between here and the destination
  size_t copied_bytes = 0;                                // of messages that wait, and hold no receive buffer
  uint32_t fragments = 0;                                 // known here
  std::array<uint32_t, 2> buffers{};                      // held, by the side that their fragments come from
  std::array<RingBuffer<uint64_t>, classes_max> waiting;  // fragments without a buffer
  std::array<bool, classes_max> queued{};                 // in the router's turn order of that class
  RingBuffer<uint64_t> stalled;                           // fragments whose lower RMA found no room; side 1: the push
  std::map<std::array<uint64_t, 2>, uint64_t> exposed;    // (side and kind, cookie) -> fragment
  [[nodiscard]] Ref ref(uint8_t which) const { return {Tag::pair, which, generation, index}; }
};

// Where a fragment's data are, and what is done with them further on. Cut-through is `arriving` with something begun.
enum class Here : uint8_t { waiting, arriving, whole };
enum class Onward : uint8_t { not_yet, exposed, pushed, over };

// A buffer that the network still refers to, as a peer has not acknowledged bytes that were read from it: of no fragment any more,
// and not in the pool yet.
struct LentBuffer {
  ports::Handle region;  // deregistered
  uint8_t data_class = 0;
  memory::Loan buffer;
};

struct Fragment {
  uint32_t index = 0, generation = 0;
  uint64_t pair = 0;  // Ref, side 0
  Here here = Here::waiting;
  Onward onward = Onward::not_yet;
  bool pulling = false, pushing = false;  // a lower RMA of ours is in flight: the buffer stays
  bool of_read = false;
  bool from_end = false;  // the first pull of a read: from the application's own memory, nothing to answer `taken`
  uint8_t from = 0;       // the side where the data is; it goes to the other one
  uint8_t data_class = 0;
  uint32_t length_bytes = 0;
  uint64_t cookie = 0;
  ports::RemoteRef source;  // what to pull
  ports::RemoteRef remote;  // write: where the last router puts it
  memory::Loan buffer;
  std::unique_ptr<ports::Conduit> conduit;  // its bytes may pass through; else, and besides, the buffer has them
  ports::Handle handle;                     // exposed to the next router
  ports::Handle lent;                       // it was, and the network still refers to bytes of the buffer
  ports::Arrival arrival;
  Instant asked_at{}, offered_at{};
  uint64_t told_bytes = 0;                // how much of it the way out knows of
  Share share = Share::full;              // from which its buffer is
  uint64_t seen_bytes = 0;                // at the last look
  uint64_t offered_moved = 0;             // what the way out had taken when it was first seen there, and 1
  ports::Ending pulled{Status::success};  // why it will not become whole
  [[nodiscard]] Ref ref(bool of_push = false) const {
    return {Tag::fragment, of_push ? uint8_t{1} : uint8_t{0}, generation, index};
  }
};

enum class LinkPhase : uint8_t { dialling, accepting, greeting, open };

struct Link {  // a connection with another router
  uint32_t index = 0, generation = 0;
  LinkPhase phase = LinkPhase::dialling;
  uint32_t device = 0;
  cci::Connection connection;
  bool dialled = false;  // by us
  uint64_t router = 0;
  std::string peer_uri;   // dialled, or as it says
  std::string peer;       // who it is by what we know: the URI that we dialled, or the address that dialled us
  std::string node;       // its address alone; "": not known yet
  uint32_t as = 0;        // the peer's
  bool external = false;  // which is not ours
  uint32_t offences = 0;  // bad records in this window
  Instant offences_until{};
  bool offence_logged = false;
  Instant probed_at = never;  // a latency probe is under way
  uint64_t latency_ns = 0;    // one way, smoothed; 0: not measured
  Instant deadline = never;   // of its hello
  RingBuffer<std::vector<std::byte>> out;
  [[nodiscard]] Ref ref() const { return {Tag::link, 0, generation, index}; }
};

struct Target {  // a configured peer
  uint32_t device = 0;
  std::string uri;
  std::string node;     // Link::node of the last one
  uint64_t link = 0;    // Ref of the link that serves it; 0: none
  uint64_t router = 0;  // as it last said
  bool tried = false;
  bool self = false;          // it is this very router
  Instant opened_at = never;  // its link
  Instant next_dial{};
  Duration backoff = redial_first;
};

struct KnownRecord {
  RouterRecord record;
  std::vector<std::byte> raw;
  Instant heard{};
  bool foreign = false;    // of another AS: reachability only, never passed on
  bool suspected = false;  // foreign: withdrawn by us, as its last link broke; it does not know, and need not say anything new
  uint32_t as = 0;
  RecordBucket bucket;
};

struct Admin {
  uint32_t index = 0, generation = 0;
  uint32_t device = 0;
  cci::Connection connection;
  RingBuffer<std::vector<std::byte>> out;
};

struct Router::Impl {
  Impl(const RouterOptions& o, std::vector<RouterDevice> d, std::shared_ptr<cci::MemoryTable> m, ports::Entropy& e, Counters& c,
       std::vector<Metric> metric);
  ~Impl();

  // router.cc
  void turn(Instant at, const std::function<Instant()>& clock);
  bool take_events(uint32_t device);
  void on_event(uint32_t device, cci::Event event);
  void push_active();
  void run_timers();
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] cci::Endpoint& endpoint(uint32_t device) { return *devices[device].endpoint; }
  [[nodiscard]] const std::string& scheme(uint32_t device) const { return devices[device].scheme; }

  // peers.cc
  void dial_targets();
  void on_link_request(uint32_t device, cci::Event& event);
  void on_link_event(Link& link, cci::Event& event);
  void greet(Link& link);
  void on_hello(Link& link, Bytes message);
  void end_link(Link& link, bool tell, std::string_view why);
  void post(Link& link, std::vector<std::byte> message);
  bool flush(Link& link);
  void on_link_timers();
  [[nodiscard]] std::string refusal_of(const Link& link, SubnetId peer) const;
  [[nodiscard]] static std::string node_behind(std::string_view dialled, std::string_view said);

  // records.cc
  [[nodiscard]] std::vector<uint32_t> reaches(const DeviceRecord& device) const;
  void make_own_record(bool withdrawn);
  void tell_anew();
  void send_record(Link& link, const RouterRecord& record, Bytes raw);
  void flood(const RouterRecord& record, Bytes raw, const Link* except);
  void send_records(Link& link);
  void offend(Link& link, std::string_view what);
  void cut(const Link& link);
  [[nodiscard]] std::string_view fault_of(const Link& link, const RouterRecord& record, const KnownRecord* known) const;
  void reduce(RouterRecord& record, std::vector<std::byte>& raw);
  void on_record(Link& link, Bytes bytes);
  void on_own_record(const RouterRecord& record);
  void on_records_changed();
  void suspect(uint64_t router);
  void refresh_and_age();
  Forwarding& forwarding();

  // drain.cc
  void drain_turn();
  void begin_drain();
  [[nodiscard]] bool drained() const;
  [[nodiscard]] std::string draining_reason(uint32_t device);

  // reconfigure.cc
  Result<void> reconfigure(const RouterOptions& anew, std::vector<RouterDevice> settings);
  void take_peers(uint32_t device, std::vector<std::string> peers);

  // lost_devices.cc
  void follow_devices();
  [[nodiscard]] static Instant settles_at(const RouterDevice& device);

  // latency.cc
  [[nodiscard]] bool measures_latency() const;
  void probe_latency();
  void on_latency_answer(Link& link);

  // connections.cc
  Pair* find_pair(const Ref& ref) { return pairs.find(ref.index, ref.generation); }
  void on_hop_request(uint32_t device, cci::Event& event);
  void on_pair_event(Pair& pair, uint8_t which, cci::Event event);
  void on_connect_request(Pair& pair, Bytes message);
  [[nodiscard]] ClaimFault claim_fault(const Pair& pair);
  void note_liar(const Side& side, std::string_view what);
  [[nodiscard]] std::string peer_of(uint32_t device, cci::Connection connection);
  [[nodiscard]] std::string node_of(uint32_t device, cci::Connection connection);  // "": not known
  void dial_next(Pair& pair);
  void note_answer(Pair& pair, Status status, std::string reason);
  void on_downstream_connected(Pair& pair, const cci::Event& event);
  void on_connect_reply(Pair& pair, Bytes message);
  void refuse(Pair& pair, Status status, std::string_view reason);
  void close_pair(Pair& pair, Status status, std::string_view reason, int told_by);
  void reject_peer(Pair& pair, std::string_view why);
  void try_finish(Pair& pair);
  void drop_downstream(Pair& pair);
  [[nodiscard]] std::string side_name(const Pair& pair, uint8_t which) const;
  void await_hop(Pair& pair);
  void set_timer(const Pair& pair, Instant when) { timers.set(pair.index, when); }
  void on_timer(Pair& pair);
  void activate(Pair& pair);

  // forward_messages.cc
  void on_routing_message(Pair& pair, uint8_t which, cci::Event event);
  void forward_message(Pair& pair, uint8_t from, cci::Event event);
  void pass_on(Pair& pair, uint8_t from, Bytes message);
  void post(Pair& pair, uint8_t to, Outgoing outgoing);
  void post(Pair& pair, uint8_t to, std::vector<std::byte> message);
  void flush(Pair& pair, uint8_t which);
  void forget(Pair& pair, Outgoing& outgoing);
  void close_largest();

  // forward_fragments.cc
  void on_fragment_message(Pair& pair, uint8_t which, Bytes message);
  void on_taken(Pair& pair, uint8_t which, Bytes message);
  void on_fragment_ack(Pair& pair, uint8_t which, Bytes message);
  void admit(Pair& pair, uint8_t from, const FragmentMessage& request, bool from_end);
  void grant_buffers();
  bool grant_one(uint8_t data_class);
  bool grant_in_turn(uint8_t data_class);
  [[nodiscard]] uint32_t window(const Pair& pair) const;
  void note_wait(Pair& pair, uint8_t side, Instant since) const;
  void pull(Fragment& fragment);
  void lend_conduit(const Pair& pair, Fragment& fragment);
  void return_conduit(Fragment& fragment);
  bool cut_through();
  [[nodiscard]] bool may_leave(const Pair& pair, const Fragment& fragment) const;
  void go_on(Pair& pair, Fragment& fragment);
  void resume(const Pair& pair, const Fragment& fragment);
  void on_fragment_event(Fragment& fragment, bool of_push, ports::Ending ending);
  void on_pulled(Pair& pair, Fragment& fragment);
  void on_pull_failed(Pair& pair, Fragment& fragment, ports::Ending ending);
  void on_pushed(Pair& pair, Fragment& fragment, ports::Ending ending);
  void tell_taken(Pair& pair, const Fragment& fragment);
  void withdraw(Pair& pair, Fragment& fragment);
  void let_go(Pair& pair, Fragment& fragment);
  void push(Fragment& fragment);
  void expose(Pair& pair, Fragment& fragment);
  void answer_failure(Pair& pair, const Fragment& fragment, ports::Ending ending);
  void acknowledge(Pair& pair, uint8_t to, uint64_t cookie, ports::Ending ending);
  void stall(Fragment& fragment, bool of_push);
  void retry_stalled(Pair& pair);
  void unexpose(Fragment& fragment);
  bool return_lent_buffers();
  void end_fragment(Fragment& fragment);
  void drop_fragments(Pair& pair);
  Pair* pair_of(const Fragment& fragment) { return find_pair(Ref::of(fragment.pair)); }

  // progress.cc
  void name_ends(Pair& pair);
  [[nodiscard]] Share share_of(const Pair& pair) const;
  [[nodiscard]] bool has_share(Share share) const;
  [[nodiscard]] bool must_move_first(const Pair& pair, uint8_t from, Share share) const;
  void prove(Pair& pair);
  void look_at_progress();
  void note_waiting();
  [[nodiscard]] uint64_t bytes_of(const Side& side, bool taking);
  void note_networks(Duration passed);
  [[nodiscard]] Duration stands_for(Side& side, bool taking, Duration passed);
  void judge(Pair& pair, Duration passed);
  void stop_waiting(Pair& pair, bool others_wait);
  void drop_if_in_vain(Pair& pair);
  void cut_off_end(Pair& pair, uint8_t which, const std::string& what);
  void remember_standstill(const std::string& end, Duration for_how_long);

  // admin_requests.cc
  void on_admin_request(uint32_t device, cci::Event& event);
  void on_admin_event(Admin& admin, cci::Event& event);
  void flush(Admin& admin);

  RouterOptions options;
  std::vector<RouterDevice> devices;
  std::shared_ptr<cci::MemoryTable> memory;
  ports::Entropy& entropy;
  Counters& counters;
  std::vector<Metric> metric;
  FragmentPool pool;
  std::vector<LentBuffer> lent_buffers;
  std::vector<std::unique_ptr<ports::Conduit>> conduits;  // not lent
  size_t conduits_out = 0;
  ports::Handle pool_handle;  // the whole pool, for our own lower RMAs: no peer may touch it

  Instant now{};
  bool work = false;  // asked for from outside since the last turn, or that turn had more to do than it may
  bool draining = false;
  Instant drain_until = never;  // stamped in the first turn of it
  bool drain_cut = false;       // what neither ended nor moved was closed
  uint64_t id = 0;
  uint64_t instance = 1;
  std::vector<std::byte> own_raw;
  RouterRecord own;
  std::vector<uint32_t> own_devices;  // of a device in `own`: which one of ours
  std::map<uint64_t, KnownRecord> records;
  std::optional<Forwarding> forwarding_;
  bool map_is_old = true;
  bool own_due = false;  // our own record is to be told anew as soon as its bucket allows
  RecordBucket own_bucket;
  std::map<std::string, Instant> cut_off;  // Link::peer, and until when
  Instant next_probe = never;
  Instant next_refresh = never;
  Instant next_aging = never;
  bool started = false;

  SlotTable<Pair> pairs{Ref::generation_max};
  SlotTable<Fragment> fragments{Ref::generation_max};
  SlotTable<Link> links{Ref::generation_max};
  SlotTable<Admin> admins{Ref::generation_max};
  std::vector<Target> targets;
  DeadlineHeap timers;           // of pairs
  std::vector<uint64_t> active;  // pairs with something to push
  uint32_t setting_up = 0;
  std::set<std::string> liars_logged;  // peer_of
  std::optional<uint64_t> next_equal;  // whose turn it is among equally good hops
  size_t held_events = 0;
  size_t copied_bytes = 0;
  std::array<RingBuffer<uint64_t>, classes_max> turns;  // pairs with fragments waiting, by class
  std::vector<uint64_t> cutting;                        // fragments that arrive
  std::array<uint32_t, 3> shares{};                     // buffers lent, by Share
  std::map<std::string, Standstill> stood_still;        // by Pair::ends
  Instant next_look = never, last_look{};
  uint64_t look = 0;
  std::vector<uint64_t> looked_at;
  std::map<uint32_t, std::array<NetworkFlow, 2>> network_flows;  // by device: what comes from its network, what goes to it
  std::vector<uint64_t> passed_over;                             // pairs, within grant_one()
  bool pressed_for_buffers = false, pressed_for_trial = false;   // since the last look somebody who moves had to wait for one
  Instant rate_next{};                                           // when the rate's budget is used up
};

}  // namespace ccixfer::routing

// The router's inside: the objects that it is made of, and what forwards. Split in files: router.cc (creation, turn, events),
// connections.cc (a routed connection's setup and end), forward_messages.cc, forward_fragments.cc, progress.cc (peers that stand
// still).
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
#include "routing/map/source_policy.h"
#include "routing/router/admin_desk.h"
#include "routing/router/devices.h"
#include "routing/router/fragment_pool.h"
#include "routing/router/peer_links.h"
#include "routing/router/planned_stop.h"
#include "routing/router/record_store.h"
#include "routing/router/router.h"
#include "routing/session/messages.h"

namespace ccixfer::routing {

inline constexpr uint32_t pairs_max = 16384;  // routed connections
inline constexpr uint32_t pairs_setting_up_max = 1024;
inline constexpr size_t candidates_tried_max = 4;
inline constexpr uint32_t window_fragments_min = 4;  // of each side of a connection
inline constexpr size_t conduits_max = 32;           // fragments that pass without coming into memory, at one time
inline constexpr size_t held_events_max = 256;       // receive buffers held for messages that cannot go on yet, over all pairs
inline constexpr size_t out_messages_max = 2048;     // waiting on one side of a pair; an honest peer's windows stay below
inline constexpr Duration hop_dial_timeout = std::chrono::seconds(5);
inline constexpr Duration hop_patience = std::chrono::seconds(1);  // then the initiator is told which hop has not answered
inline constexpr Duration hop_request_timeout = std::chrono::seconds(10);
inline constexpr Duration close_flush_timeout = std::chrono::seconds(10);
inline constexpr Duration rate_burst = std::chrono::milliseconds(20);

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
  void push();
  void drain();
  [[nodiscard]] bool drained() const;
  [[nodiscard]] std::string draining_reason(uint32_t device) const;
  Result<void> reconfigure(const RouterOptions& anew, std::vector<RouterDevice> settings);
  [[nodiscard]] cci::Endpoint& endpoint(uint32_t device) const { return devices.endpoint(device); }
  [[nodiscard]] const std::string& scheme(uint32_t device) const { return devices[device].scheme; }

  // connections.cc
  Pair* find_pair(const Ref& ref) { return pairs.find(ref.index, ref.generation); }
  void on_hop_request(uint32_t device, cci::Event& event);
  void on_pair_event(Pair& pair, uint8_t which, cci::Event event);
  void on_connect_request(Pair& pair, Bytes message);
  [[nodiscard]] ClaimFault claim_fault(const Pair& pair);
  void note_liar(const Side& side, std::string_view what);
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

  RouterOptions options;
  Counters& counters;
  Devices devices;
  RecordStore records;
  PeerLinks links;
  AdminDesk admins;
  PlannedStop stop;
  std::shared_ptr<cci::MemoryTable> memory;
  ports::Entropy& entropy;
  bool measures = false;  // latencies
  FragmentPool pool;
  std::vector<LentBuffer> lent_buffers;
  std::vector<std::unique_ptr<ports::Conduit>> conduits;  // not lent
  size_t conduits_out = 0;
  ports::Handle pool_handle;  // the whole pool, for our own lower RMAs: no peer may touch it

  Instant now{};
  bool work = false;  // asked for from outside since the last turn, or that turn had more to do than it may
  bool started = false;

  SlotTable<Pair> pairs{Ref::generation_max};
  SlotTable<Fragment> fragments{Ref::generation_max};
  DeadlineHeap timers;           // of pairs
  std::vector<uint64_t> active;  // pairs with something to push
  uint32_t setting_up = 0;
  std::set<std::string> liars_logged;  // Devices::peer_of
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

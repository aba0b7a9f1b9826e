// What routers tell: the router's own record, the records that it hears, and the map that is made
// of them. A new record is passed on once, a record is refreshed and forgotten when it was not, and
// what a peer may not tell is refused.
// In: records as bytes, and from what kind of peer they came. Out: calls of `flood`, from within
// the methods that take `now`.
// Errors: hear() says what is wrong with a record; the caller knows the peer, counts and drops.
// Single-threaded. Bounds: records_max, foreign_records_max, foreign_records_of_as_max; what is beyond
// is counted and dropped, and nobody is at fault.
// Source: routing §VI; routing/router/README.md 'Records and links'.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/base/counters.h"
#include "routing/map/forwarding.h"
#include "routing/router/map_snapshot.h"
#include "routing/router/own_record.h"

namespace ccixfer::routing {

inline constexpr size_t records_max = 4096;  // of our own AS
// Of the others, in all and of each: what an AS says of itself costs us little, however much it says.
inline constexpr size_t foreign_records_max = 256;
inline constexpr size_t foreign_records_of_as_max = 64;

struct RecordTimes {
  Duration refresh = std::chrono::seconds(30);
  Duration lifetime = std::chrono::seconds(120);
};

// The rules by which the map is made from the records.
struct MapRules {
  std::vector<Metric> metric;
  std::vector<StaticRoute> static_routes;
};

// A link over which a record came.
struct RecordPeer {
  uint64_t link = 0;
  uint32_t as = 0;
  bool external = false;  // of another AS than ours
  uint64_t router = 0;    // that is at its other end
};

class RecordStore {
 public:
  using Told = std::function<std::vector<ToldDevice>()>;
  // Sends the record over every open link but `except_link`, from which it came (0: over all of them).
  // `before` is the record that it replaces. That has no device where none was known.
  using Flood = std::function<void(const RouterRecord& record, Bytes raw, uint64_t except_link, const RouterRecord& before)>;
  RecordStore(uint64_t router, uint32_t as, const RecordTimes& times, MapRules rules, Told told, Flood flood, Counters& counters);

  void turn(Instant now);  // refreshes, forgets, and tells what had to wait
  [[nodiscard]] Instant next_deadline() const;

  // What is wrong with the record that came; "": nothing.
  [[nodiscard]] std::string_view hear(const RecordPeer& from, Bytes bytes, Instant now);
  // The last link to a router of that AS broke, and it did not say goodbye. Its record is withdrawn in
  // its name, so that nobody waits for the record to age. The router answers with a newer record if it
  // lives.
  void suspect(uint32_t as, uint64_t router, Instant now);
  // Our own record is told with what it says now. At once, unless there were many just before: what
  // happens around us must not make us a router that floods.
  void tell_anew(Instant now);
  void withdraw() { withdrawn_ = true; }  // from the next one on our own record says that we go
  void tell_now();                        // the same, however much was told just before

  [[nodiscard]] const OwnRecord& own() const { return own_; }
  [[nodiscard]] size_t known() const;  // routers, ourselves among them, that have not withdrawn
  template <typename Each>
  // Each(record, raw, foreign), withdrawn ones as well.
  void for_each_heard(const Each& each) const {
    for (const auto& [who, heard] : heard_) each(heard.record, Bytes(heard.raw), heard.foreign);
  }

  void set_rules(MapRules rules);
  [[nodiscard]] const RouterMap& map() { return forwarding().map(); }
  // The map as it is now; the same object until the records or the rules change.
  [[nodiscard]] std::shared_ptr<const MapSnapshot> snapshot();
  // A store that follows hears no records. It takes the map of the worker that does, and from then
  // on only those methods are called that ask for the map.
  void follow(const std::shared_ptr<const MapSnapshot>& snapshot);
  // The routers to try next, best first, each with the device that leads there.
  [[nodiscard]] std::vector<NextHop> next_hops(SubnetId source, SubnetId in, SubnetId to);

 private:
  struct Heard {
    RouterRecord record;
    std::vector<std::byte> raw;
    Instant at{};
    bool foreign = false;  // of another AS: it says what can be reached, and is never passed on
    // It is foreign, and we have withdrawn it ourselves. Its router does not know of that, so the
    // record counts again when it comes again unchanged.
    bool suspected = false;
    RecordBucket bucket;
  };
  // An AS is believed of its own routers only. What it says of a number is nothing to the others, which may say of the same number
  // what they like.
  struct Who {
    uint32_t as = 0;
    uint64_t router = 0;
    friend auto operator<=>(const Who&, const Who&) = default;
  };
  [[nodiscard]] std::vector<uint32_t> reaches(const DeviceRecord& device) const;
  [[nodiscard]] std::string_view fault_of(const RecordPeer& from, const RouterRecord& record, const Heard* known) const;
  [[nodiscard]] static bool is_news(const RecordPeer& from, const RouterRecord& record, const Heard& known);
  [[nodiscard]] bool has_room(const RecordPeer& from) const;
  std::string_view note_full(const RecordPeer& from);
  [[nodiscard]] bool is_from_nowhere(const RecordPeer& from, const RouterRecord& record, const Heard* known) const;
  void reduce(RouterRecord& record, std::vector<std::byte>& raw) const;
  [[nodiscard]] std::string_view take(const RecordPeer& from, RouterRecord record, Bytes bytes, Instant now);
  void make_own();
  void on_change(Instant now);
  void age(Instant now);
  Forwarding& forwarding();

  uint32_t as_;
  RecordTimes times_;
  MapRules rules_;
  Told told_;
  Flood flood_;
  Counters& counters_;
  OwnRecord own_;
  bool withdrawn_ = false;
  bool due_ = false;  // our own record is to be told anew as soon as its bucket allows
  RecordBucket bucket_;
  std::map<Who, Heard> heard_;
  std::optional<Forwarding> forwarding_;         // none: the records or the rules have changed
  std::shared_ptr<const MapSnapshot> snapshot_;  // of forwarding_, if somebody asked for it
  Instant next_refresh_ = never;
  Instant next_aging_ = never;
  bool started_ = false;
  bool full_logged_ = false, foreign_full_logged_ = false;
};

}  // namespace ccixfer::routing

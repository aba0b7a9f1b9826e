#include "routing/router/record_store.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::routing {
namespace {

bool is_too_high(uint64_t instance, uint64_t last) { return instance > last && instance - last > instance_jump_max; }

}  // namespace

RecordStore::RecordStore(uint64_t router, uint32_t as, const RecordTimes& times, MapRules rules, Told told, Flood flood,
                         Counters& counters)
    : as_(as),
      times_(times),
      rules_(std::move(rules)),
      told_(std::move(told)),
      flood_(std::move(flood)),
      counters_(counters),
      own_(router) {
  make_own();
}

// Only these are told to the routers of our own AS about the other AS that have been heard over a
// WAN device of ours.
std::vector<uint32_t> RecordStore::reaches(const DeviceRecord& device) const {
  std::set<uint32_t> found;
  for (const auto& [who, heard] : heard_) {
    if (!heard.foreign || heard.record.withdrawn || !device.wan) continue;
    for (const DeviceRecord& other : heard.record.devices) {
      if (wans_join(device, other)) found.insert(other.subnet.as);
    }
  }
  std::vector<uint32_t> list(found.begin(), found.end());
  if (list.size() > reaches_max) {
    log(LogLevel::warning, "routing: {} other AS over one device: {} of them are told", list.size(), reaches_max);
    list.resize(reaches_max);
  }
  return list;
}

void RecordStore::make_own() {
  own_.make(told_(), withdrawn_, [this](const DeviceRecord& device) { return reaches(device); });
  forwarding_.reset();
}

void RecordStore::tell_now() {
  const RouterRecord before = own_.record();
  own_.next_instance();
  make_own();
  flood_(own_.record(), own_.raw(), 0, before);
}

void RecordStore::tell_anew(Instant now) {
  due_ = true;
  if (!bucket_.take(now)) return;
  due_ = false;
  tell_now();
}

std::string_view RecordStore::fault_of(const RecordPeer& from, const RouterRecord& record, const Heard* known) const {
  const bool brings_others = std::any_of(record.devices.begin(), record.devices.end(),
                                         [&](const DeviceRecord& device) { return device.subnet.as != from.as; });
  if (brings_others) return "a record of an AS that it may not bring";
  if (record.instance > instance_max) return "a record from the future";
  if (known != nullptr && is_too_high(record.instance, known->record.instance)) return "a record from the future";
  return {};
}

// Whoever said so first is not known, and need not be the peer that brings it: of our own number, what another AS or the future
// says; of a router that we hear of for the first time, a number that it can hardly have.
bool RecordStore::is_from_nowhere(const RecordPeer& from, const RouterRecord& record, const Heard* known) const {
  if (record.router == own_.router()) return from.external || is_too_high(record.instance, own_.instance());
  return known == nullptr && is_too_high(record.instance, 0);
}

// Of another AS we keep only how it can be reached: its WAN devices. What is inside of it is not
// for us.
void RecordStore::reduce(RouterRecord& record, std::vector<std::byte>& raw) const {
  record = as_seen_by(as_, record);
  record.withdrawn = record.devices.empty();
  raw.clear();
  CHECK(encode_record(record, raw));  // a part of what was decoded
}

std::string_view RecordStore::hear(const RecordPeer& from, Bytes bytes, Instant now) {
  auto record = decode_record(bytes);
  if (!record) return "a malformed record";
  counters_.add(Counter::records_received);
  return take(from, std::move(*record), bytes, now);
}

// A neighbour that lost a router withdraws it in its name, with the instance that it knows; a
// living one answers with the next. Only one of another AS hears nothing of its earlier life from
// us: when it is gone, and begins to count anew, its own words cannot be an old copy.
bool RecordStore::is_news(const RecordPeer& from, const RouterRecord& record, const Heard& known) {
  const bool says_gone = record.withdrawn && !known.record.withdrawn;
  const bool is_back = known.suspected && !record.withdrawn;
  const bool begins_anew = from.external && from.router == record.router && known.record.withdrawn && !record.withdrawn;
  const bool is_same = record.instance == known.record.instance;
  return record.instance > known.record.instance || (is_same && (says_gone || is_back)) || begins_anew;
}

// What other AS say leaves the room for our own, and what one of them says that for the others.
bool RecordStore::has_room(const RecordPeer& from) const {
  size_t ours = 0, foreign = 0, of_its_as = 0;
  for (const auto& [who, heard] : heard_) {
    ++(heard.foreign ? foreign : ours);
    of_its_as += heard.foreign && who.as == from.as ? 1 : 0;
  }
  return from.external ? foreign < foreign_records_max && of_its_as < foreign_records_of_as_max : ours < records_max;
}

// No fault of the peer that brought the record: its neighbours may have invented it.
std::string_view RecordStore::note_full(const RecordPeer& from) {
  counters_.add(Counter::records_rejected);
  bool& is_logged = from.external ? foreign_full_logged_ : full_logged_;
  if (!std::exchange(is_logged, true))
    log(LogLevel::warning, "routing: more routers of {} than there may be: the rest is not known",
        from.external ? "another AS" : "our AS");
  return {};
}

// A record that is not newer than the known one ends here, or records would circle for ever.
std::string_view RecordStore::take(const RecordPeer& from, RouterRecord record, Bytes bytes, Instant now) {
  const Who who{from.as, record.router};
  const auto at = heard_.find(who);
  const Heard* known = at == heard_.end() ? nullptr : &at->second;
  if (const std::string_view fault = fault_of(from, record, known); !fault.empty()) return fault;
  if (is_from_nowhere(from, record, known)) {
    counters_.add(Counter::records_rejected);
    return {};
  }
  if (record.router == own_.router()) {
    if (!own_.is_contradicted_by(record)) return {};
    own_.go_past(record);
    tell_anew(now);
    return {};
  }
  std::vector<std::byte> raw(bytes.begin(), bytes.end());
  if (from.external) reduce(record, raw);
  if (known == nullptr && from.external && record.withdrawn) return {};
  if (known != nullptr && !is_news(from, record, *known)) return {};
  if (known == nullptr && !has_room(from)) return note_full(from);
  Heard& entry = heard_[who];
  if (!entry.bucket.take(now)) return "a router that floods";
  const RouterRecord before = std::exchange(entry.record, std::move(record));
  entry.raw = std::move(raw);
  entry.at = now;
  entry.foreign = from.external;
  entry.suspected = false;
  if (!from.external) flood_(entry.record, Bytes(entry.raw), from.link, before);
  if (entry.record.devices != before.devices) on_change(now);
  return {};
}

// The map is another one now. Our own record changes too when it reaches other AS over a WAN
// device.
void RecordStore::on_change(Instant now) {
  forwarding_.reset();
  const auto& devices = own_.record().devices;
  const bool differs = std::any_of(devices.begin(), devices.end(),
                                   [&](const DeviceRecord& device) { return device.wan && device.reaches != reaches(device); });
  if (differs) tell_anew(now);
}

void RecordStore::suspect(uint32_t as, uint64_t router, Instant now) {
  const auto at = heard_.find({as, router});
  if (withdrawn_ || at == heard_.end() || at->second.record.withdrawn) return;
  Heard& known = at->second;
  log(LogLevel::info, "routing: router {:016x} is lost", router);
  const RouterRecord before = std::exchange(known.record, RouterRecord{router, known.record.instance, true, {}});
  known.raw.clear();
  CHECK(encode_record(known.record, known.raw));
  known.at = now;
  known.suspected = known.foreign;
  if (!known.foreign) flood_(known.record, Bytes(known.raw), 0, before);
  on_change(now);
}

void RecordStore::turn(Instant now) {
  if (!std::exchange(started_, true)) {
    next_refresh_ = after(now, times_.refresh);
    next_aging_ = after(now, times_.lifetime / 8);
  }
  if (now >= next_refresh_) {
    next_refresh_ = after(now, times_.refresh);
    tell_now();
  } else if (due_ && now >= bucket_.next) {
    tell_anew(now);
  }
  if (now < next_aging_) return;
  next_aging_ = after(now, times_.lifetime / 8);
  age(now);
}

void RecordStore::age(Instant now) {
  const size_t forgotten = std::erase_if(heard_, [&](const auto& entry) {
    const Heard& heard = entry.second;
    if (now - heard.at < times_.lifetime) return false;
    if (!heard.record.withdrawn) log(LogLevel::info, "routing: router {:016x} not heard of any more", entry.first.router);
    return true;
  });
  if (forgotten > 0) on_change(now);
}

Instant RecordStore::next_deadline() const {
  const Instant when = std::min(next_refresh_, next_aging_);
  return due_ ? std::min(when, bucket_.next) : when;
}

size_t RecordStore::known() const {
  return 1 + static_cast<size_t>(
                 std::count_if(heard_.begin(), heard_.end(), [](const auto& entry) { return !entry.second.record.withdrawn; }));
}

void RecordStore::set_rules(MapRules rules) {
  rules_ = std::move(rules);
  forwarding_.reset();
}

std::shared_ptr<const MapSnapshot> RecordStore::snapshot() {
  const std::shared_ptr<const RouterMap>& map = forwarding().shared_map();
  if (snapshot_ == nullptr || snapshot_->map() != map) snapshot_ = std::make_shared<const MapSnapshot>(map, own_);
  return snapshot_;
}

void RecordStore::follow(const std::shared_ptr<const MapSnapshot>& snapshot) {
  own_ = snapshot->own();
  forwarding_.emplace(snapshot->map(), own_.router());
}

std::vector<NextHop> RecordStore::next_hops(SubnetId source, SubnetId in, SubnetId to) {
  std::vector<NextHop> hops = forwarding().next_hops(source, in, to);
  for (NextHop& hop : hops) hop.device = own_.device_of(hop.device);
  return hops;
}

Forwarding& RecordStore::forwarding() {
  if (!forwarding_) {
    std::vector<RouterRecord> all{own_.record()};
    for (const auto& [who, heard] : heard_) {
      if (!heard.record.withdrawn) all.push_back(heard.record);
    }
    forwarding_.emplace(std::make_shared<const RouterMap>(std::move(all), rules_.metric, rules_.static_routes), own_.router());
  }
  return *forwarding_;
}

}  // namespace ccixfer::routing

// Router records: our own, those heard, and the map made of them.
#include <algorithm>

#include "core/base/check.h"
#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {

bool RecordBucket::take(Instant now) {
  if (left < burst && now >= next) {
    const int64_t earned = (now - next) / gap + 1;
    left = static_cast<uint32_t>(std::min<int64_t>(burst, left + earned));
    next += earned * gap;
  }
  if (left == 0) return false;
  if (left == burst) next = after(now, gap);
  --left;
  return true;
}

DeviceRecord described(const RouterDevice& device, const std::string& uri) {
  const uint64_t rate = device.rate_bits_per_s == 0 ? rate_unknown_bits_per_s : device.rate_bits_per_s;
  return {device.subnet, rate, device.capabilities, device.transit, device.wan, device.wan_to, uri, device.latency_ns};
}

bool record_fits(std::vector<DeviceRecord> devices) {
  for (DeviceRecord& device : devices) device.latency_ns = 1;
  std::vector<std::byte> bytes;
  return encode_record({1, 1, false, std::move(devices)}, bytes);
}

// The other AS that have been heard over a WAN device of ours: all that the routers of our own AS are told of them.
std::vector<uint32_t> Router::Impl::reaches(const DeviceRecord& device) const {
  std::set<uint32_t> found;
  for (const auto& [router, known] : records) {
    if (!known.foreign || known.record.withdrawn || !device.wan) continue;
    for (const DeviceRecord& other : known.record.devices) {
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

void Router::Impl::make_own_record(bool withdrawn) {
  own = {id, instance, withdrawn, {}};
  own_devices.clear();
  if (!withdrawn) {
    for (uint32_t i = 0; i < devices.size(); ++i) {
      const RouterDevice& device = devices[i];
      if (!device.told) continue;
      own_devices.push_back(i);
      own.devices.push_back(described(device, device.endpoint->uri()));
      own.devices.back().reaches = reaches(own.devices.back());
    }
    own.withdrawn = own.devices.empty();  // a record without a device is no record
  }
  own_raw.clear();
  while (!encode_record(own, own_raw)) {
    own_raw.clear();
    // Too long: rather fewer AS than no record at all.
    const auto longest = std::max_element(own.devices.begin(), own.devices.end(),
                                          [](const auto& a, const auto& b) { return a.reaches.size() < b.reaches.size(); });
    CHECK(longest != own.devices.end() && !longest->reaches.empty());  // record_fits() said so
    longest->reaches.pop_back();
  }
  map_is_old = true;
}

// At once, unless there were many just before: what happens around us must not make us a router that floods.
void Router::Impl::tell_anew() {
  own_due = true;
  if (!own_bucket.take(now)) return;
  own_due = false;
  ++instance;
  make_own_record(draining);
  flood(own, own_raw, nullptr);
}

// Inside our AS as it is, to another AS what it may know; records of other AS go nowhere.
void Router::Impl::send_record(Link& link, const RouterRecord& record, Bytes raw) {
  std::vector<std::byte> message;
  if (!link.external) {
    encode_record_message(MessageKind::record, raw, message);
    return post(link, std::move(message));
  }
  const RouterRecord seen = as_seen_by(link.as, record);
  std::vector<std::byte> reduced;
  if ((seen.devices.empty() && !seen.withdrawn) || !encode_record(seen, reduced)) return;
  encode_record_message(MessageKind::record, reduced, message);
  post(link, std::move(message));
}

void Router::Impl::flood(const RouterRecord& record, Bytes raw, const Link* except) {
  links.for_each([&](Link& link) {
    if (&link != except && link.phase == LinkPhase::open) send_record(link, record, raw);
  });
}

// Our own first: the peer takes it as the sign that we have been heard.
void Router::Impl::send_records(Link& link) {
  send_record(link, own, own_raw);
  for (const auto& [router, known] : records) {
    if (!known.foreign) send_record(link, known.record, known.raw);
  }
}

// Counted, dropped, logged once a link; who goes on is cut off and not let in again for a while.
void Router::Impl::offend(Link& link, std::string_view what) {
  counters.add(Counter::records_rejected);
  if (now >= link.offences_until) {
    link.offences = 0;
    link.offences_until = after(now, link_offences_window);
  }
  if (!link.offence_logged) {
    link.offence_logged = true;
    log(LogLevel::warning, "routing: peer {} of AS {}: {}: dropped", link.peer_uri, link.as, what);
  }
  if (++link.offences <= link_offences_max) return;
  log(LogLevel::warning, "routing: peer {} of AS {} is cut off: {}", link.peer_uri, link.as, what);
  cut(link);
  end_link(link, true, "too many bad records");
}

// By what we know of it: what a peer calls itself it may change, or take from another. Of many the first to be let in again is
// forgotten, never all.
void Router::Impl::cut(const Link& link) {
  std::erase_if(cut_off, [&](const auto& entry) { return entry.second <= now; });
  if (cut_off.size() >= cut_off_max) {
    cut_off.erase(
        std::min_element(cut_off.begin(), cut_off.end(), [](const auto& a, const auto& b) { return a.second < b.second; }));
  }
  cut_off[link.peer] = after(now, cut_off_time);
}

// What is wrong with a record that came over this link; "" when nothing is.
std::string_view Router::Impl::fault_of(const Link& link, const RouterRecord& record, const KnownRecord* known) const {
  const bool brings_others = std::any_of(record.devices.begin(), record.devices.end(),
                                         [&](const DeviceRecord& device) { return device.subnet.as != link.as; });
  if (brings_others) return "a record of an AS that it may not bring";
  if (record.instance > instance_max) return "a record from the future";
  const uint64_t last = record.router == id ? instance : known != nullptr ? known->record.instance : instance_max;
  if (record.instance > last && record.instance - last > instance_jump_max) return "a record from the future";
  if (!link.external) return {};
  if (record.router == id) return "our own record from another AS";
  if (known != nullptr && (!known->foreign || known->as != link.as)) return "a record of a router that is not of its AS";
  return {};
}

// Of another AS only that it can be reached: its WAN devices. What is inside is not for us.
void Router::Impl::reduce(RouterRecord& record, std::vector<std::byte>& raw) {
  record = as_seen_by(devices.front().subnet.as, record);
  record.withdrawn = record.devices.empty();
  raw.clear();
  CHECK(encode_record(record, raw));  // a part of what was decoded
}

// Each new record is passed on once; one that is not newer ends here, or records would circle for ever.
void Router::Impl::on_record(Link& link, Bytes bytes) {
  auto record = decode_record(bytes);
  if (!record) return offend(link, "a malformed record");
  counters.add(Counter::records_received);
  const auto at = records.find(record->router);
  // What our own AS says of a router beats what another AS said of that number.
  const KnownRecord* known = at == records.end() ? nullptr : &at->second;
  const bool usurped = known != nullptr && known->foreign && !link.external;
  if (usurped) known = nullptr;
  if (const std::string_view fault = fault_of(link, *record, known); !fault.empty()) return offend(link, fault);
  if (record->router == id) return on_own_record(*record);
  std::vector<std::byte> raw(bytes.begin(), bytes.end());
  if (link.external) reduce(*record, raw);
  if (known == nullptr && link.external && record->withdrawn) return;
  if (known != nullptr) {
    // A neighbour that lost a router withdraws it in its name, with the instance that it knows; a living one answers with the next.
    const bool says_gone = record->withdrawn && !known->record.withdrawn;
    const bool is_back = known->suspected && !record->withdrawn;
    if (record->instance < known->record.instance || (record->instance == known->record.instance && !says_gone && !is_back)) return;
  } else if (!usurped && records.size() >= records_max) {
    return offend(link, "more routers than there may be");
  }
  if (usurped) records.erase(record->router);
  KnownRecord& entry = records[record->router];
  if (!entry.bucket.take(now)) return offend(link, "a router that floods");
  const bool changed = entry.record.devices != record->devices;
  entry.record = std::move(*record);
  entry.raw = std::move(raw);
  entry.heard = now;
  entry.foreign = link.external;
  entry.suspected = false;
  entry.as = link.as;
  if (!link.external) flood(entry.record, entry.raw, &link);
  if (changed) on_records_changed();
}

// Ours, of an earlier life, or in the name of a dead one: go past it, so that the others take us for newer. No clock is needed.
void Router::Impl::on_own_record(const RouterRecord& record) {
  const bool differs = record.withdrawn != own.withdrawn || record.devices != own.devices;
  if (record.instance < instance || (record.instance == instance && !differs)) return;
  instance = record.instance;
  tell_anew();
}

void Router::Impl::on_records_changed() {
  map_is_old = true;
  const bool differs = std::any_of(own.devices.begin(), own.devices.end(),
                                   [&](const DeviceRecord& device) { return device.wan && device.reaches != reaches(device); });
  if (differs) tell_anew();
}

// The last link to a router broke, without its goodbye: nobody waits for its record to age. It answers if it lives.
void Router::Impl::suspect(uint64_t router) {
  bool linked = false;
  links.for_each([&](const Link& link) { linked = linked || (link.phase == LinkPhase::open && link.router == router); });
  const auto at = records.find(router);
  if (linked || draining || at == records.end() || at->second.record.withdrawn) return;
  KnownRecord& known = at->second;
  log(LogLevel::info, "routing: router {:016x} is lost", router);
  known.record = {router, known.record.instance, true, {}};
  known.raw.clear();
  CHECK(encode_record(known.record, known.raw));
  known.heard = now;
  known.suspected = known.foreign;
  if (!known.foreign) flood(known.record, known.raw, nullptr);
  on_records_changed();
}

void Router::Impl::refresh_and_age() {
  if (now >= next_refresh) {
    next_refresh = after(now, options.record_refresh);
    ++instance;
    make_own_record(draining);
    flood(own, own_raw, nullptr);
  } else if (own_due && now >= own_bucket.next) {
    tell_anew();
  }
  if (now >= next_aging) {
    next_aging = after(now, options.record_lifetime / 8);
    bool changed = false;
    for (auto at = records.begin(); at != records.end();) {
      if (now - at->second.heard < options.record_lifetime) {
        ++at;
        continue;
      }
      if (!at->second.record.withdrawn) log(LogLevel::info, "routing: router {:016x} not heard of any more", at->first);
      changed = true;
      at = records.erase(at);
    }
    if (changed) on_records_changed();
  }
}

Forwarding& Router::Impl::forwarding() {
  if (map_is_old || !forwarding_) {
    std::vector<RouterRecord> all{own};
    for (const auto& [router, known] : records) {
      if (!known.record.withdrawn) all.push_back(known.record);
    }
    forwarding_.emplace(std::make_shared<const RouterMap>(std::move(all), metric, options.static_routes), id);
    map_is_old = false;
  }
  return *forwarding_;
}

}  // namespace ccixfer::routing

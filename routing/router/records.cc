// Router records: our own, those heard, and the map made of them.
#include <algorithm>

#include "core/base/log.h"
#include "routing/router/router_impl.h"

namespace ccixfer::routing {

void Router::Impl::make_own_record(bool withdrawn) {
  own = {id, instance, withdrawn, {}};
  if (!withdrawn) {
    for (const RouterDevice& device : devices) {
      own.devices.push_back({device.subnet, device.rate_bits_per_s, device.capabilities, device.transit, device.wan, device.wan_to,
                             device.endpoint->uri(), 0});
    }
  }
  own_raw.clear();
  if (!encode_record(own, own_raw)) own_raw.clear();
  map_is_old = true;
}

void Router::Impl::flood(const std::vector<std::byte>& raw, const Link* except) {
  links.each([&](Link& link) {
    if (&link == except || link.phase != LinkPhase::open) return;
    std::vector<std::byte> message;
    encode_record_message(MessageKind::record, raw, message);
    post(link, std::move(message));
  });
}

// Our own first: the peer takes it as the sign that we have been heard.
void Router::Impl::send_records(Link& link) {
  std::vector<std::byte> message;
  encode_record_message(MessageKind::record, own_raw, message);
  post(link, std::move(message));
  for (const auto& [router, known] : records) {
    message.clear();
    encode_record_message(MessageKind::record, known.raw, message);
    post(link, message);
  }
}

// Each new record is passed on once; one that is not newer ends here, or records would circle for ever.
void Router::Impl::on_record(Link& link, Bytes raw) {
  auto record = decode_record(raw);
  if (!record) return counters.add(Counter::records_rejected);
  counters.add(Counter::records_received);
  if (record->router == id) {
    // Ours, of an earlier life: go past it, so that the others take us for newer. No clock is needed.
    const bool differs = record->instance == instance && (record->withdrawn != own.withdrawn || record->devices != own.devices);
    if (record->instance < instance || (record->instance == instance && !differs)) return;
    if (record->instance == UINT64_MAX) return counters.add(Counter::records_rejected);
    instance = record->instance + 1;
    make_own_record(draining);
    return flood(own_raw, nullptr);
  }
  const auto known = records.find(record->router);
  if (known != records.end() && record->instance <= known->second.record.instance) return;
  if (known == records.end() && records.size() >= records_max) return counters.add(Counter::records_rejected);
  KnownRecord& entry = records[record->router];
  if (entry.record.devices != record->devices) map_is_old = true;
  entry.record = std::move(*record);
  entry.raw.assign(raw.begin(), raw.end());
  entry.heard = now;
  flood(entry.raw, &link);
}

void Router::Impl::refresh_and_age() {
  if (now >= next_refresh) {
    next_refresh = after(now, options.record_refresh);
    ++instance;
    make_own_record(draining);
    flood(own_raw, nullptr);
  }
  if (now >= next_aging) {
    next_aging = after(now, options.record_lifetime / 8);
    for (auto at = records.begin(); at != records.end();) {
      if (now - at->second.heard < options.record_lifetime) {
        ++at;
        continue;
      }
      log(LogLevel::info, "routing: router {:016x} not heard of any more", at->first);
      map_is_old = true;
      at = records.erase(at);
    }
  }
}

const RouterMap& Router::Impl::current_map() {
  if (map_is_old || map == nullptr) {
    std::vector<RouterRecord> all{own};
    for (const auto& [router, known] : records) {
      if (!known.record.withdrawn) all.push_back(known.record);
    }
    map = std::make_unique<RouterMap>(std::move(all), metric, options.static_routes);
    map_is_old = false;
  }
  return *map;
}

}  // namespace ccixfer::routing

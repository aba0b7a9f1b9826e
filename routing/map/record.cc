#include "routing/map/record.h"

#include <algorithm>

#include "core/wire/cursor.h"

namespace ccixfer::routing {
namespace {

constexpr uint8_t record_version = 1;
constexpr uint8_t flag_withdrawn = 1;
constexpr uint8_t flag_transit = 1;
constexpr uint8_t flag_wan = 2;
constexpr uint16_t option_mandatory = 0x8000;  // a type with this bit that is not known: the record is unusable
constexpr uint16_t option_latency_ns = 1;
constexpr uint16_t option_reaches = 2;  // AS numbers
constexpr size_t options_bytes_max = 256;

bool is_native_uri(const DeviceRecord& device) { return address_of(device.subnet, device.uri).has_value(); }

bool contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

void encode_device(const DeviceRecord& device, wire::Writer& out) {
  out.u32(device.subnet.as);
  out.u32(device.subnet.subnet);
  out.u64(device.rate_bits_per_s);
  out.u8(device.capabilities);
  out.u8(static_cast<uint8_t>((device.transit ? flag_transit : 0) | (device.wan ? flag_wan : 0)));
  out.u8(static_cast<uint8_t>(device.uri.size()));
  out.u8(static_cast<uint8_t>(device.wan_to.size()));
  out.text(device.uri);
  for (const uint32_t as : device.wan_to) out.u32(as);
  const bool latency = device.latency_ns != 0;
  const size_t reaches_bytes = device.reaches.empty() ? 0 : 4 + 4 * device.reaches.size();
  out.u16(static_cast<uint16_t>((latency ? 12 : 0) + reaches_bytes));
  if (latency) {
    out.u16(option_latency_ns);
    out.u16(8);
    out.u64(device.latency_ns);
  }
  if (reaches_bytes == 0) return;
  out.u16(option_reaches);
  out.u16(static_cast<uint16_t>(reaches_bytes - 4));
  for (const uint32_t as : device.reaches) out.u32(as);
}

void decode_options(Bytes bytes, DeviceRecord& device, wire::Reader& whole) {
  wire::Reader in(bytes);
  while (in.ok() && in.remaining() > 0) {
    const uint16_t type = in.u16();
    const Bytes value = in.bytes16(options_bytes_max);
    if (type == option_latency_ns && value.size() == 8) {
      device.latency_ns = wire::Reader(value).u64();
    } else if (type == option_reaches && value.size() % 4 == 0 && value.size() <= 4 * reaches_max && device.reaches.empty()) {
      wire::Reader list(value);
      while (list.remaining() > 0) device.reaches.push_back(list.u32());
    } else if ((type & option_mandatory) != 0) {
      in.fail();
    }
  }
  whole.require(in.ok());
}

DeviceRecord decode_device(wire::Reader& in) {
  DeviceRecord device;
  device.subnet.as = in.u32();
  device.subnet.subnet = in.u32();
  device.rate_bits_per_s = in.u64();
  in.require(device.rate_bits_per_s > 0);
  device.capabilities = in.u8();
  const uint8_t flags = in.u8();
  device.transit = (flags & flag_transit) != 0;
  device.wan = (flags & flag_wan) != 0;
  const uint8_t uri_bytes = in.u8();
  const uint8_t wan_count = in.u8();
  in.require(wan_count <= wan_to_max);
  device.uri = in.text(uri_bytes);
  in.require(in.ok() && is_native_uri(device));
  for (uint8_t i = 0; i < wan_count && in.ok(); ++i) device.wan_to.push_back(in.u32());
  decode_options(in.bytes16(options_bytes_max), device, in);
  return device;
}

}  // namespace

std::string_view scheme_of(const DeviceRecord& device) { return std::string_view(device.uri).substr(0, device.uri.find("://")); }

bool wans_join(const DeviceRecord& a, const DeviceRecord& b) {
  if (!a.wan || !b.wan || a.subnet.as == b.subnet.as || scheme_of(a) != scheme_of(b)) return false;
  if (a.wan_to.empty() && b.wan_to.empty()) return true;
  return contains(a.wan_to, b.subnet.as) && contains(b.wan_to, a.subnet.as);
}

RouterRecord as_seen_by(uint32_t as, const RouterRecord& record) {
  RouterRecord seen{record.router, record.instance, record.withdrawn, {}};
  for (const DeviceRecord& device : record.devices) {
    if (!device.wan || (!device.wan_to.empty() && !contains(device.wan_to, as))) continue;
    seen.devices.push_back(device);
    seen.devices.back().reaches.clear();
  }
  return seen;
}

bool encode_record(const RouterRecord& record, std::vector<std::byte>& out) {
  if (record.devices.size() > devices_max) return false;
  for (const DeviceRecord& device : record.devices) {
    if (device.uri.size() > uri_bytes_max || device.wan_to.size() > wan_to_max || device.reaches.size() > reaches_max ||
        device.rate_bits_per_s == 0 || !is_native_uri(device)) {
      return false;
    }
  }
  const size_t start = out.size();
  wire::Writer writer(out);
  writer.u8(record_version);
  writer.u8(record.withdrawn ? flag_withdrawn : 0);
  writer.u8(static_cast<uint8_t>(record.devices.size()));
  writer.u8(0);
  writer.u64(record.router);
  writer.u64(record.instance);
  for (const DeviceRecord& device : record.devices) encode_device(device, writer);
  return writer.ok() && out.size() - start <= record_bytes_max;
}

std::optional<RouterRecord> decode_record(Bytes bytes) {
  wire::Reader in(bytes);
  in.require(bytes.size() <= record_bytes_max);
  in.require(in.u8() == record_version);
  RouterRecord record;
  record.withdrawn = (in.u8() & flag_withdrawn) != 0;
  const uint8_t count = in.u8();
  in.skip(1);
  record.router = in.u64();
  record.instance = in.u64();
  in.require(count <= devices_max && record.withdrawn == (count == 0));
  for (uint8_t i = 0; i < count && in.ok(); ++i) record.devices.push_back(decode_device(in));
  if (!in.done()) return std::nullopt;
  for (size_t i = 0; i < record.devices.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (record.devices[i].subnet == record.devices[k].subnet) return std::nullopt;
    }
  }
  return record;
}

}  // namespace ccixfer::routing

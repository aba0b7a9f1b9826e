// What one router says about itself, and the bytes of it that are flooded. A record with no devices and `withdrawn` set takes the
// router out of every map. Decoding distrusts every byte; unknown optional options are kept in the raw bytes that are flooded on,
// unknown mandatory ones make the record unusable.
// A record that is decoded has a rate above 0, an address on every device, and no two devices on one subnet.
// Bounds: record_bytes_max, devices_max, wan_to_max, uri_bytes_max, reaches_max.
// Source: routing §VI, Table III. Deviation: rate in bit/s as 64 bits; a router id and an instance for the whole
// record instead of one per subnet.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/bytes.h"
#include "routing/map/address.h"

namespace ccixfer::routing {

inline constexpr size_t record_bytes_max = 1344;  // with the header of its message within the smallest max_send_bytes
inline constexpr size_t devices_max = 16;
inline constexpr size_t wan_to_max = 32;
inline constexpr size_t uri_bytes_max = 255;
inline constexpr size_t reaches_max = 48;
inline constexpr uint64_t rate_unknown_bits_per_s = 1'000'000'000;  // what a device counts for that cannot tell its rate

inline constexpr uint8_t capability_zero_copy = 1;
inline constexpr uint8_t capability_os_bypass = 2;

struct DeviceRecord {
  SubnetId subnet;
  uint64_t rate_bits_per_s = 0;
  uint8_t capabilities = 0;
  bool transit = true;                 // false: only the first or the last subnet of a route
  bool wan = false;                    // leads out of its AS
  std::vector<uint32_t> wan_to;        // the only AS it serves; empty: all
  std::string uri;                     // native, on that subnet
  uint64_t latency_ns = 0;             // 0: unknown
  std::vector<uint32_t> reaches = {};  // other AS that have been heard over it, ascending: all that is told of them in this AS
  friend bool operator==(const DeviceRecord&, const DeviceRecord&) = default;
};

struct RouterRecord {
  uint64_t router = 0;
  uint64_t instance = 0;  // a higher one replaces a lower one
  bool withdrawn = false;
  std::vector<DeviceRecord> devices;
  friend bool operator==(const RouterRecord&, const RouterRecord&) = default;
};

[[nodiscard]] std::string_view scheme_of(const DeviceRecord& device);
// Two WAN devices of different AS that reach one another: same scheme, and both public (no wan_to) or each naming the other.
[[nodiscard]] bool wans_join(const DeviceRecord& a, const DeviceRecord& b);
// What another AS may know of a record of ours: the WAN devices that serve it, without what they reach. No device is left: nothing.
[[nodiscard]] RouterRecord as_seen_by(uint32_t as, const RouterRecord& record);

// Appends. False: larger than the bounds above (a configuration error; nothing usable was appended).
[[nodiscard]] bool encode_record(const RouterRecord& record, std::vector<std::byte>& out);
[[nodiscard]] std::optional<RouterRecord> decode_record(Bytes bytes);  // nullopt: malformed

}  // namespace ccixfer::routing

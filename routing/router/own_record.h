// The record that a router tells of itself: which devices it has, and which other AS are heard over
// them. Each one that is told has a higher instance than the one before.
// Bounds: record_bytes_max; where the AS that are heard would make it longer, some of them are left
// out.
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/bytes.h"
#include "routing/map/record.h"
#include "routing/router/devices.h"
#include "routing/router/record_bucket.h"

namespace ccixfer::routing {

// A record with a higher instance is refused as one from the future: a router that had to go past it would run out of numbers.
inline constexpr uint64_t instance_max = uint64_t{1} << 62;
// A record whose instance is higher than the last one's by more than this is refused too. At one record a second that is a
// century's worth.
inline constexpr uint64_t instance_jump_max = uint64_t{1} << 32;

class OwnRecord {
 public:
  // The other AS that are heard over a device, ascending.
  using Reaches = std::function<std::vector<uint32_t>(const DeviceRecord&)>;
  explicit OwnRecord(uint64_t router) : record_{router, 1, false, {}} {}
  [[nodiscard]] uint64_t router() const { return record_.router; }
  [[nodiscard]] uint64_t instance() const { return instance_; }
  [[nodiscard]] const RouterRecord& record() const { return record_; }
  [[nodiscard]] Bytes raw() const { return Bytes(raw_); }
  // The device of the router that is device number `told` in the record.
  [[nodiscard]] uint32_t device_of(uint32_t told) const { return devices_[told]; }
  // From now on the record tells of these devices. No device, or `withdrawn`: the router leaves every map.
  void make(std::vector<ToldDevice> devices, bool withdrawn, const Reaches& reaches);
  void next_instance() { ++instance_; }
  // A record in our name is newer than ours, or says something else with the same instance. It is
  // of an earlier life, or of a neighbour that took us for dead. We go past it, so that the others
  // take ours for newer; no clock is needed.
  [[nodiscard]] bool is_contradicted_by(const RouterRecord& heard) const;
  void go_past(const RouterRecord& heard) { instance_ = heard.instance; }

 private:
  uint64_t instance_ = 1;
  RouterRecord record_;
  std::vector<std::byte> raw_;
  std::vector<uint32_t> devices_;  // of each device in record_: which of the router's devices it is
};

}  // namespace ccixfer::routing

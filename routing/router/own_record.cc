#include "routing/router/own_record.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::routing {

void OwnRecord::make(std::vector<ToldDevice> devices, bool withdrawn, const Reaches& reaches) {
  record_.instance = instance_;
  record_.withdrawn = withdrawn || devices.empty();  // a record without a device is no record
  record_.devices.clear();
  devices_.clear();
  if (!withdrawn) {
    for (ToldDevice& told : devices) {
      devices_.push_back(told.device);
      record_.devices.push_back(std::move(told.record));
      record_.devices.back().reaches = reaches(record_.devices.back());
    }
  }
  raw_.clear();
  while (!encode_record(record_, raw_)) {
    raw_.clear();
    // It is too long. Fewer AS are better than no record at all.
    const auto longest = std::max_element(record_.devices.begin(), record_.devices.end(),
                                          [](const auto& a, const auto& b) { return a.reaches.size() < b.reaches.size(); });
    CHECK(longest != record_.devices.end() && !longest->reaches.empty());  // record_fits() said so
    longest->reaches.pop_back();
  }
}

bool OwnRecord::is_contradicted_by(const RouterRecord& heard) const {
  const bool differs = heard.withdrawn != record_.withdrawn || heard.devices != record_.devices;
  return heard.instance > instance_ || (heard.instance == instance_ && differs);
}

}  // namespace ccixfer::routing

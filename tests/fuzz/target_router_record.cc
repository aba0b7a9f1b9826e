// Router records as they are flooded. What decodes can be encoded and is the same again.
#include "routing/map/record.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto record = routing::decode_record(fuzz::bytes_of(data, size));
  if (!record) return 0;
  fuzz::must(record->devices.size() <= routing::devices_max);
  for (const routing::DeviceRecord& device : record->devices) {
    fuzz::must(device.wan_to.size() <= routing::wan_to_max && device.uri.size() <= routing::uri_bytes_max);
  }
  std::vector<std::byte> again;
  fuzz::must(routing::encode_record(*record, again));
  const auto second = routing::decode_record(again);
  fuzz::must(second && *second == *record);
  return 0;
}

// Entries segments: count u16, then the data. No path that leaves the root is ever let through; what decodes can be encoded.
#include "app/session/entry.h"
#include "app/session/limits.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

namespace {

// Written anew, not the rule of the code under test.
bool leaves_root(const std::string& path) {
  if (path.empty()) return false;
  const std::string framed = "/" + path + "/";
  for (const char* bad : {"//", "/./", "/../"}) {
    if (framed.find(bad) != std::string::npos) return true;
  }
  return path.find('\0') != std::string::npos;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint32_t count = data[0] | uint32_t{data[1]} << 8;
  const Result<std::vector<session::Entry>> entries = session::decode_entries(fuzz::bytes_of(data + 2, size - 2), count);
  if (!entries) return 0;
  fuzz::must(entries->size() == count && count <= session::entries_per_segment_max);
  std::vector<std::byte> buffer(size + size_t{count} * (session::path_bytes_max + 128));
  session::EntryEncoder encoder(buffer);
  size_t encoded = 0;
  for (const session::Entry& entry : *entries) {
    fuzz::must(!leaves_root(entry.path) && entry.path.size() <= session::path_bytes_max && entry.mode <= 07777);
    // A link whose target stands in a TLV that we do not know is told as such, and goes no further.
    const bool has_no_target = entry.type == session::EntryType::symlink && entry.target.empty();
    fuzz::must(!has_no_target || entry.unknown_mandatory != 0);
    if (has_no_target) continue;
    fuzz::must(encoder.add(entry));
    ++encoded;
  }
  const auto again = session::decode_entries(Bytes(buffer).first(encoder.size_bytes()), encoder.count());
  fuzz::must(again && again->size() == encoded);
  if (encoded < entries->size()) return 0;
  for (size_t i = 0; i < again->size(); ++i) fuzz::must((*again)[i].path == (*entries)[i].path);
  return 0;
}

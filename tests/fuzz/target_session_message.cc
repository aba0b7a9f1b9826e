// Session messages, and OpenParts joined. What decodes must encode to the same bytes: the encoder CHECKs every bound.
#include "app/session/messages.h"
#include "app/session/open.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

namespace {

// What is known of an Open comes back as it went.
void judge(const session::Open& open) {
  fuzz::must(open.path.size() <= session::path_bytes_max);
  session::OpenJoiner joiner;
  std::optional<session::Open> again;
  for (const session::Message& part : session::cut(open)) again = joiner.add(std::get<session::OpenPart>(part));
  fuzz::must(again && again->path == open.path && again->options == open.options && again->unknown_mandatory == 0);
  fuzz::must(again->first.count == open.first.count && again->first.bytes == open.first.bytes);
}

void try_decode(Bytes bytes) {
  const Result<session::Decoded> decoded = session::decode(bytes);
  if (!decoded) {
    fuzz::must(decoded.error().kind == ErrorKind::protocol);
    return;
  }
  const std::vector<std::byte> again = session::encode(decoded->message, decoded->sequence);
  fuzz::must(again == std::vector<std::byte>(bytes.begin(), bytes.end()));
  if (const auto* part = std::get_if<session::OpenPart>(&decoded->message)) {
    session::OpenJoiner joiner;
    for (int i = 0; i < 3; ++i) {
      if (const auto whole = joiner.add(*part)) judge(*whole);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  try_decode(input);
  if (size < 4) return 0;
  std::vector<std::byte> forged(input.begin(), input.end());
  fuzz::make_check_good(forged, size - 4, 4);
  try_decode(forged);
  return 0;
}

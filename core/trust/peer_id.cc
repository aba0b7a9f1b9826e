#include "core/trust/peer_id.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <vector>

#include "core/base/units.h"
#include "core/trust/base32.h"

namespace ccixfer::trust {
namespace {

constexpr std::string_view id_prefix = "cx1";
constexpr size_t id_letters = 52;
constexpr size_t group_letters = 4;
constexpr size_t id_text_bytes_max = 128;  // more is not even looked at

tl::unexpected<Error> no_id(std::string_view text, std::string_view why) {
  const std::string shown = printable(text.substr(0, id_text_bytes_max));
  return fail(ErrorKind::usage, fmt::format("not an id: {}: {}; `ccixfer id` there shows it", shown, why));
}

bool starts_as_id(std::string_view text) {
  return text.size() >= id_prefix.size() && (text[0] == 'c' || text[0] == 'C') && (text[1] == 'x' || text[1] == 'X') &&
         text[2] == '1';
}

}  // namespace

PeerId peer_id_of(Bytes public_key_der) {
  PeerId id;
  SHA256(reinterpret_cast<const uint8_t*>(public_key_der.data()), public_key_der.size(), id.sha256.data());
  return id;
}

std::string to_string(const PeerId& id) {
  const std::string letters = base32(id.sha256);
  std::string text(id_prefix);
  for (size_t at = 0; at < letters.size(); at += group_letters) {
    text += '-';
    text += letters.substr(at, group_letters);
  }
  return text;
}

Result<PeerId> parse_peer_id(std::string_view text) {
  if (text.size() > id_text_bytes_max) return no_id(text, "it is too long");
  if (!starts_as_id(text)) return no_id(text, "an id begins with cx1-");
  std::string letters;
  for (const char letter : text.substr(id_prefix.size())) {
    if (letter == '-') continue;
    if (!base32_value(letter)) return no_id(text, "its letters are a to z and 2 to 7");
    letters += letter;
  }
  if (letters.size() != id_letters) return no_id(text, fmt::format("it has {} letters and not {}", letters.size(), id_letters));
  const auto bytes = from_base32(letters);
  if (!bytes) return no_id(text, "its last letter is wrong");
  PeerId id;
  std::copy(bytes->begin(), bytes->end(), id.sha256.begin());
  return id;
}

}  // namespace ccixfer::trust

#include "core/trust/ticket.h"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <limits>

#include "core/base/check.h"
#include "core/trust/base32.h"
#include "core/trust/hmac.h"
#include "core/wire/cursor.h"

namespace ccixfer::trust {
namespace {

constexpr size_t check_bytes = 4;
constexpr std::string_view proof_label = "ccixfer ticket 1";
constexpr std::string_view white_space = " \t\r\n";

std::array<uint8_t, SHA256_DIGEST_LENGTH> sha256_of(Bytes bytes) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), hash.data());
  return hash;
}

bool good_address(std::string_view address) {
  return !address.empty() && address.size() <= ticket_address_bytes_max &&
         std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// Never with the text: it is a secret.
tl::unexpected<Error> no_ticket(std::string_view why) {
  return fail(ErrorKind::usage, fmt::format("not a ticket: {}: copy the whole line again", why));
}

template <size_t count>
void read_into(wire::Reader& in, std::array<uint8_t, count>& into) {
  const Bytes bytes = in.bytes(count);
  std::transform(bytes.begin(), bytes.end(), into.begin(), [](std::byte byte) { return static_cast<uint8_t>(byte); });
}

// Fields and their bounds; the check behind them was right.
std::optional<Ticket> decode(Bytes bytes) {
  wire::Reader in(bytes);
  Ticket ticket;
  read_into(in, ticket.number);
  read_into(in, ticket.secret);
  read_into(in, ticket.listener.sha256);
  ticket.expires_s = in.i64();
  const uint8_t count = in.u8();
  in.require(ticket.expires_s >= 0 && count >= 1 && count <= ticket_addresses_max);
  for (uint8_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view address = in.text(in.u8());
    in.require(good_address(address));
    ticket.addresses.emplace_back(address);
  }
  if (!in.done()) return std::nullopt;
  return ticket;
}

}  // namespace

std::string to_text(const Ticket& ticket) {
  CHECK(!ticket.addresses.empty() && ticket.addresses.size() <= ticket_addresses_max && ticket.expires_s >= 0);
  std::vector<std::byte> fields;
  fields.reserve(ticket_text_bytes_max);  // one place in memory, which is wiped
  wire::Writer out(fields);
  out.bytes(std::as_bytes(std::span(ticket.number)));
  out.bytes(std::as_bytes(std::span(ticket.secret)));
  out.bytes(std::as_bytes(std::span(ticket.listener.sha256)));
  out.i64(ticket.expires_s);
  out.u8(static_cast<uint8_t>(ticket.addresses.size()));
  for (const std::string& address : ticket.addresses) {
    CHECK(good_address(address));
    out.u8(static_cast<uint8_t>(address.size()));
    out.text(address);
  }
  const auto hash = sha256_of(fields);
  out.bytes(std::as_bytes(std::span(hash)).first(check_bytes));
  std::string letters = base32({reinterpret_cast<const uint8_t*>(fields.data()), fields.size()});
  std::string text;
  text.reserve(ticket_prefix.size() + letters.size());
  text.append(ticket_prefix).append(letters);
  wipe({reinterpret_cast<uint8_t*>(letters.data()), letters.size()});
  wipe({reinterpret_cast<uint8_t*>(fields.data()), fields.size()});
  CHECK(text.size() <= ticket_text_bytes_max);
  return text;
}

Result<Ticket> parse_ticket(std::string_view text) {
  const size_t begin = text.find_first_not_of(white_space);
  if (begin == std::string_view::npos) return no_ticket("it is empty");
  text = text.substr(begin, text.find_last_not_of(white_space) + 1 - begin);
  if (!looks_like_ticket(text)) return no_ticket(fmt::format("a ticket begins with {}", ticket_prefix));
  if (text.size() > ticket_text_bytes_max) return no_ticket("it is too long");
  std::optional<std::vector<uint8_t>> decoded = from_base32(text.substr(ticket_prefix.size()));
  if (!decoded) return no_ticket("a character is missing or mistyped");
  const Bytes bytes = std::as_bytes(std::span(*decoded));
  std::optional<Ticket> ticket;
  bool whole = false;
  if (bytes.size() > check_bytes) {
    const Bytes fields = bytes.first(bytes.size() - check_bytes);
    const auto hash = sha256_of(fields);
    const Bytes check = bytes.last(check_bytes);
    whole = std::equal(check.begin(), check.end(), std::as_bytes(std::span(hash)).begin());
    if (whole) ticket = decode(fields);
  }
  wipe(*decoded);
  if (!whole) return no_ticket("a character is missing or mistyped");
  if (!ticket) return no_ticket("a newer ccixfer may have made it");
  return *std::move(ticket);
}

Mac prove(const TicketSecret& secret, const TicketNumber& number, const Secret& exported) {
  std::array<std::byte, proof_label.size() + std::tuple_size_v<TicketNumber> + secret_bytes> data{};
  wire::Writer out{MutableBytes(data)};
  out.text(proof_label);
  out.bytes(std::as_bytes(std::span(number)));
  out.bytes(std::as_bytes(exported.bytes()));
  CHECK(out.ok());
  const Mac proof = hmac_sha256(secret, data);
  wipe({reinterpret_cast<uint8_t*>(data.data()), data.size()});
  return proof;
}

}  // namespace ccixfer::trust

// Texts and files about trust: ids, tickets, known_peers, and PEM files of keys, certificates and revocation lists.
#include <algorithm>
#include <array>
#include <string>

#include "core/trust/base32.h"
#include "core/trust/identity.h"
#include "core/trust/known_peers.h"
#include "core/trust/ticket.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;

namespace {

void must_be_one_line(const Error& error) {
  fuzz::must(error.kind == ErrorKind::usage && !error.message.empty());
  for (const char c : error.message) fuzz::must(static_cast<unsigned char>(c) >= 0x20);
}

void try_ticket(std::string_view text) {
  const Result<trust::Ticket> ticket = trust::parse_ticket(text);
  if (!ticket) return must_be_one_line(ticket.error());
  fuzz::must(!ticket->addresses.empty() && ticket->addresses.size() <= trust::ticket_addresses_max);
  const Result<trust::Ticket> again = trust::parse_ticket(trust::to_text(*ticket));
  fuzz::must(again && again->secret == ticket->secret && again->number == ticket->number && again->listener == ticket->listener &&
             again->expires_s == ticket->expires_s && again->addresses == ticket->addresses);
}

// As the fields of a ticket, with the check that they need.
void try_ticket_fields(Bytes fields) {
  const trust::PeerId hash = trust::peer_id_of(fields);  // SHA-256
  std::vector<uint8_t> all(fields.size());
  std::transform(fields.begin(), fields.end(), all.begin(), [](std::byte byte) { return static_cast<uint8_t>(byte); });
  all.insert(all.end(), hash.sha256.begin(), hash.sha256.begin() + 4);
  try_ticket(std::string(trust::ticket_prefix) + trust::base32(all));
}

void try_id(std::string_view text) {
  const Result<trust::PeerId> id = trust::parse_peer_id(text);
  if (!id) return must_be_one_line(id.error());
  const Result<trust::PeerId> again = trust::parse_peer_id(trust::to_string(*id));
  fuzz::must(again && *again == *id);
}

void try_known_peers(std::string_view text) {
  const Result<trust::KnownPeers> known = trust::KnownPeers::parse(text, "known_peers");
  if (!known) return must_be_one_line(known.error());
  const size_t space = std::min(text.find(' '), text.size());
  static_cast<void>(known->find(text.substr(0, space)));
}

void try_pem(std::string_view text) {
  if (const auto key = trust::Identity::from_key(text, "key"); !key) must_be_one_line(key.error());
  if (const auto both = trust::Identity::from_certificate(text, "certificate", text, "key"); !both) must_be_one_line(both.error());
  if (const auto authority = trust::Authority::from_pem(text, "ca", text, "crl"); !authority) must_be_one_line(authority.error());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes input = fuzz::bytes_of(data, size);
  const std::string_view text = as_text(input);
  try_ticket(text);
  try_ticket_fields(input);
  try_id(text);
  try_known_peers(text);
  try_pem(text);
  return 0;
}

// The text of a ticket: its fields, its check, and what is refused.
#include "core/trust/ticket.h"

#include <openssl/sha.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <set>

#include "core/trust/base32.h"
#include "tests/unit/trust/hex.h"

namespace ccixfer::trust {
namespace {

// Made by Python's hashlib and base64 of the fields below.
const std::string written =
    "cxt1aaaqeayeaudaoearcijrifiwc4mbsgq3dqor4h2aifbegrcfizduqskkjnge2tspkbiveu2ukvlfowczljnvyxk6l4anesllaaaaaaaccn2gg4b2f4xtcmboga"
    "x"
    "dalrrhi3tcmbqc5rwg2j2f4xtcorshiytalrqfyyc4mj2g4ytamgj2ar42";

Ticket example() {
  Ticket ticket;
  std::iota(ticket.number.begin(), ticket.number.end(), uint8_t{0});
  std::iota(ticket.secret.begin(), ticket.secret.end(), uint8_t{16});
  std::iota(ticket.listener.sha256.begin(), ticket.listener.sha256.end(), uint8_t{64});
  ticket.expires_s = 1'800'000'000;
  ticket.addresses = {"tcp://10.0.0.1:7100", "cci://1:2:10.0.0.1:7100"};
  return ticket;
}

bool same(const Ticket& a, const Ticket& b) {
  return a.number == b.number && a.secret == b.secret && a.listener == b.listener && a.expires_s == b.expires_s &&
         a.addresses == b.addresses;
}

std::string complaint(const std::string& text) {
  const auto ticket = parse_ticket(text);
  if (ticket) return "";
  CHECK(ticket.error().kind == ErrorKind::usage);
  CHECK(ticket.error().message.find('\n') == std::string::npos);
  if (text.size() > 8) CHECK(ticket.error().message.find(text.substr(4, 12)) == std::string::npos);
  return ticket.error().message;
}

// Any fields with a good check.
std::string text_of(const std::vector<uint8_t>& fields) {
  std::vector<uint8_t> all = fields;
  std::array<uint8_t, 32> hash{};
  SHA256(fields.data(), fields.size(), hash.data());
  all.insert(all.end(), hash.begin(), hash.begin() + 4);
  return std::string(ticket_prefix) + base32(all);
}
std::vector<uint8_t> fields_of(const std::string& text) {
  auto all = *from_base32(std::string_view(text).substr(ticket_prefix.size()));
  all.resize(all.size() - 4);
  return all;
}

TEST_CASE("ticket__every_field__the_text_that_python_computes") {
  CHECK(to_text(example()) == written);
  const auto parsed = parse_ticket(written);
  REQUIRE(parsed);
  CHECK(same(*parsed, example()));
  CHECK(looks_like_ticket(written));
  CHECK_FALSE(looks_like_ticket("cx1-abcd"));
  CHECK_FALSE(looks_like_ticket("tcp://cxt1"));
}

TEST_CASE("ticket__white_space_around_and_upper_case__the_same") {
  std::string upper = written;
  for (size_t at = ticket_prefix.size(); at < upper.size(); ++at) upper[at] = static_cast<char>(std::toupper(upper[at]));
  for (const std::string& text : {"\n \t" + written + "\r\n", upper}) {
    const auto parsed = parse_ticket(text);
    REQUIRE(parsed);
    CHECK(same(*parsed, example()));
  }
}

TEST_CASE("ticket__mistyped_at_any_character__refused_without_showing_it") {
  for (size_t at = 0; at < written.size(); ++at) {
    for (const char c : {'a', 'b', '7', '1', ' ', '\n', '\0', '\xff', '-'}) {
      std::string text = written;
      if (text[at] == c) continue;
      text[at] = c;
      const std::string said = complaint(text);
      INFO(at);
      CHECK(said.rfind("not a ticket: ", 0) == 0);
    }
    CHECK_FALSE(complaint(written.substr(0, at)).empty());
    CHECK_FALSE(complaint(written.substr(0, at) + written.substr(at + 1)).empty());
    CHECK_FALSE(complaint(written.substr(0, at) + "a" + written.substr(at)).empty());
    if (at + 1 < written.size() && written[at] != written[at + 1]) {
      std::string swapped = written;
      std::swap(swapped[at], swapped[at + 1]);
      CHECK_FALSE(complaint(swapped).empty());
    }
  }
}

TEST_CASE("ticket__what_it_is_not__said_in_words") {
  CHECK(complaint("").find("it is empty") != std::string::npos);
  CHECK(complaint(" \n").find("it is empty") != std::string::npos);
  CHECK(complaint("tcp://10.0.0.1:7100").find("a ticket begins with cxt1") != std::string::npos);
  CHECK(complaint(written + " " + written).find("missing or mistyped") != std::string::npos);
  CHECK(complaint("cxt1" + std::string(3000, 'a')).find("too long") != std::string::npos);
  CHECK(complaint("cxt1").find("missing or mistyped") != std::string::npos);
}

TEST_CASE("ticket__fields_outside_their_bounds_under_a_good_check__refused") {
  const std::vector<uint8_t> good = fields_of(written);
  REQUIRE(complaint(text_of(good)).empty());
  const auto changed = [&](size_t at, uint8_t value) {
    std::vector<uint8_t> fields = good;
    fields.at(at) = value;
    return complaint(text_of(fields));
  };
  const std::string newer = "newer ccixfer";
  CHECK(changed(63, 0x80).find(newer) != std::string::npos);  // expires before 1970
  CHECK(changed(64, 0).find(newer) != std::string::npos);     // no address
  CHECK(changed(64, 1).find(newer) != std::string::npos);     // something left over
  CHECK(changed(64, 3).find(newer) != std::string::npos);     // something missing
  CHECK(changed(64, 255).find(newer) != std::string::npos);
  CHECK(changed(65, 0).find(newer) != std::string::npos);    // an empty address
  CHECK(changed(65, 255).find(newer) != std::string::npos);  // beyond the end
  CHECK(changed(66, ' ').find(newer) != std::string::npos);
  CHECK(changed(66, 0x1b).find(newer) != std::string::npos);
  CHECK(changed(66, 0xc3).find(newer) != std::string::npos);
  std::vector<uint8_t> none(good.begin(), good.begin() + 64);
  none.push_back(0);
  CHECK(complaint(text_of(none)).find(newer) != std::string::npos);
  std::vector<uint8_t> nine(good.begin(), good.begin() + 64);
  nine.push_back(9);
  for (int i = 0; i < 9; ++i) nine.insert(nine.end(), {1, 'a'});
  CHECK(complaint(text_of(nine)).find(newer) != std::string::npos);
  for (size_t length = 0; length < good.size(); ++length) {
    CHECK_FALSE(complaint(text_of({good.begin(), good.begin() + static_cast<long>(length)})).empty());
  }
}

TEST_CASE("ticket__the_most_that_it_holds__survives") {
  Ticket ticket = example();
  ticket.expires_s = INT64_MAX;
  ticket.addresses.assign(ticket_addresses_max, std::string(150, 'a'));
  REQUIRE(parse_ticket(to_text(ticket)));
  CHECK(same(*parse_ticket(to_text(ticket)), ticket));
  ticket.addresses = {std::string(ticket_address_bytes_max, 'a')};
  CHECK(same(*parse_ticket(to_text(ticket)), ticket));
}

TEST_CASE("ticket__its_proof__as_python_computes_it_and_for_one_handshake_only") {
  TicketSecret secret{};
  std::iota(secret.begin(), secret.end(), uint8_t{0});
  TicketNumber number{};
  std::iota(number.begin(), number.end(), uint8_t{100});
  Secret exported;
  std::iota(exported.writable().begin(), exported.writable().end(), uint8_t{200});
  const Mac proof = prove(secret, number, exported);
  CHECK(hex(proof) == "4e328b9b7711dbff85f9037da0c690bc0959781bacd10ce26b972030aba98b4d");
  Secret other_handshake = exported;
  other_handshake.writable()[0] ^= 1;
  CHECK(prove(secret, number, other_handshake) != proof);
  ++number[0];
  CHECK(prove(secret, number, exported) != proof);
  --number[0];
  ++secret[15];
  CHECK(prove(secret, number, exported) != proof);
}

}  // namespace
}  // namespace ccixfer::trust

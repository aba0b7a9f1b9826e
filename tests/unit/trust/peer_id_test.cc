// The text of a peer's id, and base32.
#include "core/trust/peer_id.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/trust/base32.h"
#include "tests/unit/trust/hex.h"

namespace ccixfer::trust {
namespace {

// Python: base64.b32encode(hashlib.sha256(b'abc').digest())
const std::string id_of_abc = "cx1-xj4b-np4p-ahh6-uqkb-idpf-3lrc-eoya-gynd-sylx-vhfu-cd7w-d4qa-cwwq";

std::span<const uint8_t> octets(std::string_view text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

std::string without(std::string text, char gone) {
  std::erase(text, gone);
  return text;
}

TEST_CASE("base32__the_values_of_rfc_4648__both_ways") {
  for (const auto& [plain, text] : {std::pair("", ""),
                                    {"f", "my"},
                                    {"fo", "mzxq"},
                                    {"foo", "mzxw6"},
                                    {"foob", "mzxw6yq"},
                                    {"fooba", "mzxw6ytb"},
                                    {"foobar", "mzxw6ytboi"}}) {
    CHECK(base32(octets(plain)) == text);
    const auto back = from_base32(text);
    REQUIRE(back);
    CHECK(std::string(back->begin(), back->end()) == plain);
  }
  CHECK(from_base32("MZXW6YTBOI") == from_base32("mzxw6ytboi"));
}

TEST_CASE("base32__what_is_none__nothing") {
  for (const char* text : {"m", "a", "aaa", "aaaaaa", "mzx", "mzxw6y", "mz", "mzxw6ytbo", "mzxw6ytbox", "0", "1y", "8y", "m=", "m ",
                           "my==", "\xc3\xa9"}) {
    INFO(text);
    CHECK_FALSE(from_base32(text));
  }
}

TEST_CASE("peer_id__a_known_key__the_text_that_python_computes") { CHECK(to_string(peer_id_of(as_bytes("abc"))) == id_of_abc); }

TEST_CASE("peer_id__other_cases_and_groups__the_same_id") {
  const PeerId id = peer_id_of(as_bytes("abc"));
  std::string upper = id_of_abc;
  for (char& c : upper) c = static_cast<char>(std::toupper(c));
  for (const std::string& text :
       {id_of_abc, upper, without(id_of_abc, '-'), "cx1" + id_of_abc.substr(4), "cx1-" + without(id_of_abc, '-').substr(3)}) {
    INFO(text);
    const auto parsed = parse_peer_id(text);
    REQUIRE(parsed);
    CHECK(*parsed == id);
  }
}

TEST_CASE("peer_id__a_wrong_text__one_line_that_says_what_is_wrong") {
  const std::string shorter = id_of_abc.substr(0, id_of_abc.size() - 1);
  for (const auto& [text, part] : {std::pair<std::string, std::string>("", "begins with cx1"),
                                   {"cx2" + id_of_abc.substr(3), "begins with cx1"},
                                   {"cxt1abc", "begins with cx1"},
                                   {" " + id_of_abc, "begins with cx1"},
                                   {"cx1", "0 letters and not 52"},
                                   {shorter, "51 letters and not 52"},
                                   {id_of_abc + "a", "53 letters and not 52"},
                                   {shorter + "r", "last letter"},
                                   {shorter + "1", "a to z and 2 to 7"},
                                   {id_of_abc + "\n", "a to z and 2 to 7"},
                                   {id_of_abc + std::string("\0", 1), "a to z and 2 to 7"},
                                   {"cx1" + std::string(1'000'000, 'a'), "too long"}}) {
    const auto parsed = parse_peer_id(text);
    REQUIRE_FALSE(parsed);
    INFO(parsed.error().message);
    CHECK(parsed.error().kind == ErrorKind::usage);
    CHECK(parsed.error().message.find(part) != std::string::npos);
    CHECK(parsed.error().message.size() < 300);
    CHECK(std::all_of(parsed.error().message.begin(), parsed.error().message.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
}

TEST_CASE("peer_id__every_letter_changed__another_id_or_none") {
  const PeerId id = peer_id_of(as_bytes("abc"));
  for (size_t at = 0; at < id_of_abc.size(); ++at) {
    std::string text = id_of_abc;
    text[at] = text[at] == 'a' ? 'b' : 'a';
    const auto parsed = parse_peer_id(text);
    CHECK((!parsed || *parsed != id));
  }
}

}  // namespace
}  // namespace ccixfer::trust

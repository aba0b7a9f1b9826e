// Names and frames of eth: bytes written down by hand, and what is refused.
#include "transports/eth/frame.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

namespace ccixfer::eth {
namespace {

using Frame = std::vector<std::byte>;

const Name here{{0x02, 0, 0, 0, 0, 0x01}, 7};
const Name there{{0x02, 0, 0, 0, 0, 0x02}, 0x8123};

Frame frame_of(const Name& to, const Name& from, size_t datagram_bytes, size_t padding = 0) {
  const Header header = encode_header(to, from, datagram_bytes);
  Frame frame(header.begin(), header.end());
  for (size_t i = 0; i < datagram_bytes; ++i) frame.push_back(static_cast<std::byte>(i + 1));
  frame.resize(frame.size() + padding, std::byte{0xEE});
  return frame;
}

}  // namespace

TEST_CASE("eth_frame__header__as_written_down_by_hand") {
  const std::vector<unsigned> bytes{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xB5, 1, 0, 7, 0, 0x23, 0x81, 0xD4, 5};
  const Header header = encode_header(here, there, 1492);
  REQUIRE(header.size() == bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) {
    CAPTURE(i);
    CHECK(std::to_integer<unsigned>(header[i]) == bytes[i]);
  }
}

TEST_CASE("eth_frame__what_is_encoded__decodes_with_and_without_padding") {
  for (const size_t size : {1u, 37u, 38u, 39u, 1200u, 1492u}) {
    CAPTURE(size);
    const size_t padding = size < 38 ? 38 - size : 0;
    for (const size_t pad : {size_t{0}, padding}) {
      const Frame frame = frame_of(here, there, size, pad);
      const auto decoded = decode_frame(frame, here);
      REQUIRE(decoded);
      CHECK(decoded->from == there);
      REQUIRE(decoded->datagram.size() == size);
      CHECK(decoded->datagram.data() == frame.data() + header_bytes);
    }
  }
}

TEST_CASE("eth_frame__bad_frames__are_refused") {
  const Frame good = frame_of(here, there, 100);
  REQUIRE(decode_frame(good, here));
  const std::vector<std::pair<std::string, std::function<void(Frame&)>>> bad{
      {"of another ethertype", [](Frame& f) { f[13] = std::byte{0xB6}; }},
      {"of another ethertype's family", [](Frame& f) { f[12] = std::byte{0x08}; }},
      {"of another version", [](Frame& f) { f[14] = std::byte{2}; }},
      {"not zero where it must be", [](Frame& f) { f[15] = std::byte{1}; }},
      {"to another MAC", [](Frame& f) { f[5] = std::byte{9}; }},
      {"to another id", [](Frame& f) { f[16] = std::byte{8}; }},
      {"to another id's high byte", [](Frame& f) { f[17] = std::byte{1}; }},
      {"from a group", [](Frame& f) { f[6] = std::byte{3}; }},
      {"from nobody", [](Frame& f) { std::fill_n(f.begin() + 6, 6, std::byte{0}); }},
      {"from ourselves", [](Frame& f) { std::copy_n(f.begin(), 6, f.begin() + 6); }},
      {"from no id", [](Frame& f) { f[18] = f[19] = std::byte{0}; }},
      {"empty", [](Frame& f) { f[20] = std::byte{0}; }},
      {"longer than it is", [](Frame& f) { f[20] = std::byte{101}; }},
      {"much longer than it is", [](Frame& f) { f[21] = std::byte{0xFF}; }},
      {"shorter than it is, beyond what padding explains", [](Frame& f) { f[20] = std::byte{99}; }},
      {"cut in its header", [](Frame& f) { f.resize(header_bytes - 1); }},
      {"without a datagram", [](Frame& f) { f.resize(header_bytes); }},
      {"nothing", [](Frame& f) { f.clear(); }},
  };
  for (const auto& [what, spoil] : bad) {
    CAPTURE(what);
    Frame frame = good;
    spoil(frame);
    CHECK_FALSE(decode_frame(frame, here));
  }
  // Padding reaches to 60 bytes, and 4 more where a tag was taken off on the way.
  CHECK(decode_frame(frame_of(here, there, 10, 32), here));
  CHECK_FALSE(decode_frame(frame_of(here, there, 10, 33), here));
}

TEST_CASE("eth_name__uris__each_is_itself_again_and_malformed_ones_say_why") {
  const auto name = parse_uri("eth://02:00:00:00:aB:0f:65535");
  REQUIRE(name);
  CHECK(format_uri(*name) == "eth://02:00:00:00:ab:0f:65535");
  CHECK(parse_uri("eth://02:00:00:00:aB:0f:65535/").value() == *name);
  CHECK(name_of(address_of(*name)) == *name);
  const std::vector<std::pair<const char*, const char*>> bad{
      {"", "of another network"},
      {"udp://02:00:00:00:00:01:7", "of another network"},
      {"eth://", "no MAC address of six octets"},
      {"eth://2:0:0:0:0:1:7", "no MAC address of six octets"},
      {"eth://02:00:00:00:00:0g:7", "no MAC address of six octets"},
      {"eth://02:00:00:00:00:+1:7", "no MAC address of six octets"},
      {"eth://02-00-00-00-00-01:7", "no MAC address of six octets"},
      {"eth://00:00:00:00:00:00:7", "no interface has this MAC address"},
      {"eth://ff:ff:ff:ff:ff:ff:7", "no interface has this MAC address"},
      {"eth://01:00:5e:00:00:01:7", "no interface has this MAC address"},
      {"eth://02:00:00:00:00:01", "no id"},
      {"eth://02:00:00:00:00:01:", "no id from 1 to 65535"},
      {"eth://02:00:00:00:00:01:0", "no id from 1 to 65535"},
      {"eth://02:00:00:00:00:01:65536", "no id from 1 to 65535"},
      {"eth://02:00:00:00:00:01:7x", "no id from 1 to 65535"},
      {"eth://02:00:00:00:00:01:-7", "no id from 1 to 65535"},
  };
  for (const auto& [uri, why] : bad) {
    CAPTURE(uri);
    const auto parsed = parse_uri(uri);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().kind == ErrorKind::usage);
    CHECK(parsed.error().message == "'" + std::string(uri) + "': " + why + "; expected eth://MAC:ID, as eth://02:00:00:00:00:01:7");
  }
}

TEST_CASE("eth_name__addresses__tell_macs_and_ids_apart") {
  const auto address = [](const char* uri) { return address_of(parse_uri(uri).value()); };
  CHECK(address("eth://02:00:00:00:00:01:7") == address("eth://02:00:00:00:00:01:7"));
  CHECK_FALSE(address("eth://02:00:00:00:00:01:7") == address("eth://02:00:00:00:00:01:8"));
  CHECK_FALSE(address("eth://02:00:00:00:00:01:7") == address("eth://02:00:00:00:00:02:7"));
  CHECK_FALSE(address("eth://02:00:00:00:00:01:7") == address("eth://04:00:00:00:00:01:7"));
}

}  // namespace ccixfer::eth

// Which datagrams leave as one piece, and what a piece that came consists of.
#include "transports/udp/pieces.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

namespace ccixfer::udp {
namespace {

using datagram::Address;
using datagram::Datagram;

struct Batch {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<Datagram> datagrams;
  void add(uint32_t port, size_t size) {
    bytes.emplace_back(size, static_cast<std::byte>(bytes.size() + 1));
    datagrams.push_back({Address{0, uint64_t{0xffff} << 32 | 0x7f000001, port, 0}, {}});
    for (size_t i = 0; i < bytes.size(); ++i) datagrams[i].bytes = bytes[i];
  }
};

std::vector<size_t> pieces(const Batch& batch, bool joins = true) {
  OutPieces out;
  out.fill(batch.datagrams, AF_INET, Joins{joins, true});
  std::vector<size_t> sizes;
  for (size_t i = 0; i < out.messages().size(); ++i) sizes.push_back(out.datagrams_in(i));
  return sizes;
}

using Sizes = std::vector<size_t>;

// What a piece says of its length: as the kernel writes it.
struct Came {
  explicit Came(const std::string& host = "127.0.0.1") {
    inet::Address address;
    REQUIRE(inet::numeric_address(host, 77, address));
    from = address.storage;
    message.msg_name = &from;
    message.msg_namelen = address.size;
    message.msg_control = control.data();
    message.msg_controllen = 0;
  }
  void joined_of(int length) {
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_UDP;
    header->cmsg_type = UDP_GRO;
    header->cmsg_len = CMSG_LEN(sizeof length);
    std::memcpy(CMSG_DATA(header), &length, sizeof length);
  }
  Sizes cut(size_t size) {
    std::vector<std::byte> piece(size);
    std::vector<Datagram> out;
    cut_piece(message, piece, out);
    Sizes sizes;
    size_t total = 0;
    for (const Datagram& datagram : out) {
      CHECK(datagram.peer.port == 77);
      CHECK(datagram.bytes.data() == piece.data() + total);
      total += datagram.bytes.size();
      sizes.push_back(datagram.bytes.size());
    }
    if (!out.empty()) CHECK(total == size);
    return sizes;
  }
  sockaddr_storage from{};
  msghdr message{};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(int))> control{};
};

TEST_CASE("pieces__neighbours_of_one_address_and_length__leave_together") {
  Batch batch;
  for (int i = 0; i < 3; ++i) batch.add(1, 100);
  batch.add(2, 100);
  batch.add(1, 100);
  batch.add(1, 100);
  CHECK(pieces(batch) == Sizes{3, 1, 2});
  CHECK(pieces(batch, false) == Sizes{1, 1, 1, 1, 1, 1});
}

TEST_CASE("pieces__a_shorter_one_ends_a_piece_and_a_longer_one_begins_another") {
  Batch batch;
  for (const size_t size : {100u, 100u, 60u, 60u, 100u, 1u}) batch.add(1, size);
  CHECK(pieces(batch) == Sizes{3, 1, 2});
}

TEST_CASE("pieces__none_is_longer_than_an_ip_packet_or_has_more_than_the_kernel_cuts") {
  Batch long_ones;
  for (int i = 0; i < 16; ++i) long_ones.add(1, 8972);
  CHECK(pieces(long_ones) == Sizes{7, 7, 2});
  Batch short_ones;
  for (int i = 0; i < 64; ++i) short_ones.add(1, 10);
  CHECK(pieces(short_ones) == Sizes{64});
  Batch empty;
  empty.add(1, 0);
  empty.add(1, 0);
  CHECK(pieces(empty) == Sizes{1, 1});
}

TEST_CASE("pieces__the_message_names_the_length_only_where_there_is_something_to_cut") {
  Batch batch;
  batch.add(1, 100);
  batch.add(1, 100);
  batch.add(2, 50);
  OutPieces out;
  out.fill(batch.datagrams, AF_INET, {});
  REQUIRE(out.messages().size() == 2);
  msghdr& first = out.messages()[0].msg_hdr;
  CHECK(first.msg_iovlen == 2);
  const cmsghdr* control = CMSG_FIRSTHDR(&first);
  REQUIRE(control != nullptr);
  CHECK(control->cmsg_type == UDP_SEGMENT);
  uint16_t length = 0;
  std::memcpy(&length, CMSG_DATA(control), sizeof length);
  CHECK(length == 100);
  CHECK(out.messages()[1].msg_hdr.msg_controllen == 0);
  CHECK(out.messages()[1].msg_hdr.msg_iov[0].iov_base == batch.bytes[2].data());
}

// The answer to what came to one of our addresses leaves from there; what has no such address leaves from where the kernel likes.
TEST_CASE("pieces__answers_name_the_address_that_was_asked__and_only_equal_ones_leave_together") {
  Batch batch;
  for (int i = 0; i < 4; ++i) batch.add(1, 100);
  const uint64_t ours = uint64_t{0xffff} << 32 | 0x0a000001;
  batch.datagrams[1].peer.our_low = batch.datagrams[2].peer.our_low = ours;
  CHECK(batch.datagrams[0].peer == batch.datagrams[1].peer);  // one peer all the same
  CHECK(pieces(batch) == Sizes{1, 2, 1});
  for (const int family : {AF_INET, AF_INET6}) {
    OutPieces out;
    out.fill(batch.datagrams, family, {});
    CHECK(out.messages()[0].msg_hdr.msg_controllen == 0);
    msghdr& answer = out.messages()[1].msg_hdr;
    int found = 0;
    for (cmsghdr* control = CMSG_FIRSTHDR(&answer); control != nullptr; control = CMSG_NXTHDR(&answer, control)) {
      if (control->cmsg_type == UDP_SEGMENT && control->cmsg_level == SOL_UDP) ++found;
      if (family == AF_INET && control->cmsg_level == IPPROTO_IP && control->cmsg_type == IP_PKTINFO) {
        in_pktinfo from{};
        std::memcpy(&from, CMSG_DATA(control), sizeof from);
        CHECK(ntohl(from.ipi_spec_dst.s_addr) == 0x0a000001);
        ++found;
      }
      if (family == AF_INET6 && control->cmsg_level == IPPROTO_IPV6 && control->cmsg_type == IPV6_PKTINFO) {
        in6_pktinfo from{};
        std::memcpy(&from, CMSG_DATA(control), sizeof from);
        CHECK(IN6_IS_ADDR_V4MAPPED(&from.ipi6_addr));
        CHECK(from.ipi6_addr.s6_addr[12] == 10);
        ++found;
      }
    }
    CHECK(found == 2);
  }
}

TEST_CASE("pieces__an_address_that_the_socket_cannot_reach__ends_the_batch_before_it") {
  Batch batch;
  batch.add(1, 10);
  batch.add(1, 10);
  batch.datagrams[1].peer.high = 0x20010db8ull << 32;
  CHECK(pieces(batch) == Sizes{1});
  batch.datagrams[0].peer = batch.datagrams[1].peer;
  CHECK(pieces(batch).empty());
}

TEST_CASE("pieces__what_came__is_cut_as_the_kernel_says") {
  Came came;
  CHECK(came.cut(100) == Sizes{100});
  CHECK(came.cut(0).empty());
  came.joined_of(40);
  CHECK(came.cut(100) == Sizes{40, 40, 20});
  CHECK(came.cut(80) == Sizes{40, 40});
  came.joined_of(0);  // nonsense: not cut, and no endless loop
  CHECK(came.cut(100) == Sizes{100});
  came.joined_of(-5);
  CHECK(came.cut(100) == Sizes{100});
}

TEST_CASE("pieces__what_came_shortened_or_from_no_ip_address__is_nothing") {
  Came came;
  came.message.msg_flags = MSG_TRUNC;
  CHECK(came.cut(100).empty());
  Came other;
  other.from.ss_family = AF_UNIX;
  CHECK(other.cut(100).empty());
}

TEST_CASE("address__to_and_from_the_kernels__is_the_same_one") {
  for (const char* host : {"127.0.0.1", "203.0.113.254", "2001:db8::1:2:3", "::1", "fe80::1%1"}) {
    CAPTURE(host);
    inet::Address address;
    REQUIRE(inet::numeric_address(host, 4791, address));
    const Address named = address_of(address.storage);
    CHECK(named.port == 4791);
    inet::Address back;
    REQUIRE(to_socket_address(named, address.storage.ss_family, back));
    CHECK(inet::host_of(back) == inet::host_of(address));
    CHECK(inet::port_of(back) == 4791);
    CHECK(address_of(back.storage) == named);
  }
  // One peer, by a socket of either family.
  inet::Address v4, mapped;
  REQUIRE(inet::numeric_address("192.0.2.7", 5, v4));
  REQUIRE(inet::numeric_address("::ffff:192.0.2.7", 5, mapped));
  CHECK(address_of(v4.storage) == address_of(mapped.storage));
  CHECK_FALSE(to_socket_address(Address{1, 2, 3, 0}, AF_INET, v4));
}

}  // namespace
}  // namespace ccixfer::udp

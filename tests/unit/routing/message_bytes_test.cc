// The routing messages byte by byte, what is reserved included (it is 0, so that it can mean something later), and their bounds.
#include <catch2/catch.hpp>

#include "routing/transport/messages.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}
template <typename Message>
std::vector<std::byte> encoded(const Message& message) {
  std::vector<std::byte> bytes;
  encode(message, bytes);
  return bytes;
}
// As far as what is of a size of its own: handles have their own tests.
std::vector<std::byte> first(std::vector<std::byte> bytes, size_t count) {
  bytes.resize(count);
  return bytes;
}

}  // namespace

TEST_CASE("routing_messages__each_kind__bytes_by_hand") {
  ConnectRequest request;
  request.role = ports::Role::admin;
  request.attribute = ports::Attribute::unreliable;
  request.crossed = 5;
  request.source = {0x0201, 0x0403};
  request.max_send_bytes = 0x0605;
  request.fragment_bytes = 0x0807'0000;
  request.timeout = Duration(0x0a09);
  request.destination = "ab";
  request.data = raw({0x77});
  CHECK(encoded(request) == raw({1, 0, 0, 0, 3, 2,  5, 0, 1, 2, 0, 0, 3, 4, 0,   0,   5, 6, 0,   0,
                                 0, 0, 7, 8, 9, 10, 0, 0, 0, 0, 0, 0, 2, 0, 'a', 'b', 1, 0, 0x77}));
  ConnectReply reply{Status::refused, "no", 0x0201, 0x0403'0000, {}, 5'000'000};
  reply.hops.push_back({"t", "n", 6, 7, Duration(8), 9'000'000});
  CHECK(encoded(reply) == raw({2, 0, 0, 0, 21, 1, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 5, 0, 0, 0, 2, 0,   'n', 'o', 6,
                               0, 0, 0, 7, 0,  0, 0, 9, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0, 't', 1,   0,   'n'}));
  FragmentMessage fragment;
  fragment.cookie = 0x0605;
  fragment.length_bytes = 0x0403;
  fragment.data_class = 3;
  for (const MessageKind kind : {MessageKind::write_request, MessageKind::read_request, MessageKind::read_reply}) {
    fragment.kind = kind;
    CHECK(first(encoded(fragment), 24) ==
          raw({static_cast<int>(kind), 0, 0, 0, 0, 3, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0}));
  }
  fragment.ending = ports::OperationResult(Status::mailbox_too_long, 0x0807);
  CHECK(first(encoded(fragment), 32) ==
        raw({10, 0, 0, 0, 68, 3, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0, 7, 8, 0, 0, 0, 0, 0, 0}));
  CHECK(encoded(FragmentReleased{0x0201, false}) == raw({8, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0}));
  CHECK(encoded(FragmentReleased{0x0201, true}) == raw({8, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0}));
  CHECK(encoded(Bye{Status::timed_out, "ab"}) == raw({11, 0, 0, 0, 10, 2, 0, 'a', 'b'}));
  CHECK(encoded(ConnectPending{"ab", true}) == raw({16, 0, 0, 0, 2, 0, 'a', 'b', 1}));
  CHECK(encoded(ConnectPending{"ab", false}) == raw({16, 0, 0, 0, 2, 0, 'a', 'b', 0}));
  CHECK(encoded(RouterHello{0x0201, {3, 4}, "ab"}) ==
        raw({32, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 2, 0, 'a', 'b'}));
  std::vector<std::byte> plain, record;
  encode_plain(MessageKind::end_to_end_keepalive, plain);
  CHECK(plain == raw({14, 0, 0, 0}));
  encode_record_message(MessageKind::map_record, raw({7, 8}), record);
  CHECK(record == raw({49, 0, 0, 0, 7, 8}));
  CHECK(record_of(record).size() == 2);
  CHECK(record_of(Bytes(record).first(4)).empty());
  CHECK(record_of(Bytes(record).first(3)).empty());
}

TEST_CASE("routing_messages__kinds__those_that_there_are_and_no_others") {
  for (int value = 0; value < 256; ++value) {
    const bool known = (value >= 1 && value <= 18) || value == 32 || value == 33 || (value >= 48 && value <= 50);
    CHECK(kind_of(raw({value})).has_value() == known);
  }
  CHECK_FALSE(kind_of({}));
}

TEST_CASE("routing_messages__times_and_rates__as_they_are_or_what_stands_for_them") {
  ConnectRequest request;
  request.destination = "x";
  request.max_send_bytes = 1;
  request.fragment_bytes = fragment_bytes_floor;
  const auto timeout = [&](Duration said) {
    request.timeout = said;
    return decode_connect_request(encoded(request)).value().timeout;
  };
  CHECK(timeout(forever) == forever);
  CHECK(timeout(Duration(1)) == Duration(1));
  CHECK(timeout(Duration(0)) == Duration(1));  // 0 would be for ever
  CHECK(timeout(Duration(-5)) == Duration(1));
  CHECK(timeout(forever - Duration(1)) == forever - Duration(1));
  ConnectReply reply{Status::success, {}, 1, fragment_bytes_floor, {}, 0};
  const auto rate = [&](uint64_t said) {
    reply.rate_bits_per_s = said;
    return decode_connect_reply(encoded(reply)).value().rate_bits_per_s;
  };
  CHECK(rate(0) == 0);
  CHECK(rate(1) == 1'000'000);
  CHECK(rate(1'000'000) == 1'000'000);
  CHECK(rate(1'000'001) == 2'000'000);
  CHECK(rate(UINT64_MAX) == uint64_t{UINT32_MAX} * 1'000'000);
}

TEST_CASE("routing_messages__of_a_request_and_a_reply__all_within_bounds_is_taken") {
  ConnectRequest request;
  request.destination = std::string(destination_bytes_max, 'x');
  request.data.resize(ports::connect_data_bytes_max);
  request.max_send_bytes = 1;
  request.fragment_bytes = fragment_bytes_floor;
  request.attribute = ports::Attribute::multicast_receive;
  request.role = ports::Role::admin;
  CHECK(decode_connect_request(encoded(request)));
  const auto with = [&](size_t at, int value) {
    std::vector<std::byte> bytes = encoded(request);
    bytes[at] = static_cast<std::byte>(value);
    return decode_connect_request(bytes).has_value();
  };
  CHECK_FALSE(with(4, 4));  // no such role
  CHECK_FALSE(with(5, 5));  // no such attribute
  CHECK(with(7, 1));        // reserved: of a later version
  for (int change = 0; change < 4; ++change) {
    ConnectRequest bad = request;
    if (change == 0) bad.max_send_bytes = 0;
    if (change == 1) bad.fragment_bytes = fragment_bytes_floor - 1;
    if (change == 2) bad.destination += 'x';
    if (change == 3) bad.data.emplace_back();
    CAPTURE(change);
    CHECK_FALSE(decode_connect_request(encoded(bad)));
  }
  ConnectReply reply{Status::success, {}, 1, fragment_bytes_floor, {}, 0};
  CHECK(decode_connect_reply(encoded(reply)));
  reply.max_send_bytes = 0;
  CHECK_FALSE(decode_connect_reply(encoded(reply)));
  reply.max_send_bytes = 1, reply.fragment_bytes = fragment_bytes_floor - 1;
  CHECK_FALSE(decode_connect_reply(encoded(reply)));
  reply.status = Status::no_route, reply.max_send_bytes = 0, reply.fragment_bytes = 0;
  CHECK(decode_connect_reply(encoded(reply)));  // nothing is agreed then
  reply.reason = std::string(reason_bytes_max + 10, 'r');
  for (int i = 0; i < 12; ++i)
    reply.hops.push_back(
        {std::string(hop_transport_bytes_max + 1, 't'), std::string(hop_node_bytes_max + 1, 'n'), 1, 2, Duration(-1), 0});
  const auto cut = decode_connect_reply(encoded(reply));
  REQUIRE(cut);
  CHECK(cut->reason.size() == reason_bytes_max);
  REQUIRE(cut->hops.size() == hops_max + 1);
  CHECK(cut->hops[0].transport.size() == hop_transport_bytes_max);
  CHECK(cut->hops[0].node.size() == hop_node_bytes_max);
  CHECK(cut->hops[0].round_trip == Duration(0));
  std::vector<std::byte> many = encoded(reply);
  many[5] = static_cast<std::byte>(hops_max + 2);
  CHECK_FALSE(decode_connect_reply(many));
  CHECK(decode_bye(encoded(Bye{Status::error, std::string(reason_bytes_max + 1, 'r')}))->reason.size() == reason_bytes_max);
  CHECK(decode_connect_pending(encoded(ConnectPending{std::string(hop_node_bytes_max + 1, 'n'), true}))->node.size() ==
        hop_node_bytes_max);
  CHECK(decode_router_hello(encoded(RouterHello{1, {}, std::string(destination_bytes_max + 1, 'u')}))->uri.size() ==
        destination_bytes_max);
}

TEST_CASE("routing_messages__of_a_fragment__classes_and_statuses_that_there_are") {
  FragmentMessage fragment;
  fragment.length_bytes = 1;
  fragment.exposed.kind = ports::HandleKind::region;
  fragment.remote.handle.kind = ports::HandleKind::region;
  for (const uint8_t data_class : {uint8_t{0}, classes_max, static_cast<uint8_t>(classes_max + 1)}) {
    fragment.data_class = data_class;
    CHECK(decode_fragment(encoded(fragment)).has_value() == (data_class <= classes_max));
  }
  std::vector<std::byte> bytes = encoded(FragmentAck{1, Status::success});
  bytes[4] = std::byte{63};
  CHECK_FALSE(decode_fragment_ack(bytes));
  CHECK(words_of({"n", true}) == "n does not answer: it has the request");
  CHECK(words_of({"n", false}) == "n does not answer: no connection to it comes about");
}

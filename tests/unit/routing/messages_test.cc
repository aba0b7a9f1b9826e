// The routing messages as bytes: symmetric, bounded, safe against anything.
#include "routing/transport/messages.h"

#include <catch2/catch.hpp>

#include "transports/sim/random.h"

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

void decode_all(Bytes bytes) {
  static_cast<void>(kind_of(bytes));
  static_cast<void>(decode_connect_request(bytes));
  static_cast<void>(decode_connect_reply(bytes));
  static_cast<void>(decode_message(bytes));
  static_cast<void>(decode_message_ack(bytes));
  static_cast<void>(decode_fragment_ack(bytes));
  static_cast<void>(decode_mailbox_hint(bytes));
  static_cast<void>(decode_fragment(bytes));
  static_cast<void>(decode_fragment_released(bytes));
  static_cast<void>(decode_bye(bytes));
  static_cast<void>(decode_router_hello(bytes));
}

ConnectRequest request() {
  ConnectRequest r;
  r.destination = "cci://1:2:10.0.0.2:7000";
  r.source = {3, 4};
  r.role = ports::Role::admin;
  r.attribute = ports::Attribute::reliable_unordered;
  r.crossed = 5;
  r.max_send_bytes = 1392;
  r.fragment_bytes = 65536;
  r.timeout = std::chrono::seconds(7);
  r.data.assign(ports::connect_data_bytes_max, std::byte{1});
  return r;
}

std::vector<std::vector<std::byte>> one_of_each() {
  std::vector<std::vector<std::byte>> all(13);
  encode(request(), all[0]);
  encode(ConnectReply{Status::success,
                      "why",
                      1392,
                      65536,
                      {{"tcp", "tcp://a:1", 1, 2, std::chrono::milliseconds(3), 10'000'000'000}},
                      1'000'000'000},
         all[1]);
  encode_message_header(9, all[2]);
  encode(FragmentAck{7, Status::mailbox_empty}, all[3]);
  FragmentMessage fragment;
  fragment.cookie = 5;
  fragment.length_bytes = 6;
  fragment.exposed.kind = ports::HandleKind::region;
  encode(fragment, all[4]);
  fragment.kind = MessageKind::read_reply;
  encode(fragment, all[5]);
  encode(FragmentReleased{8, true}, all[6]);
  encode(Bye{Status::timed_out, "gone"}, all[7]);
  encode_plain(MessageKind::end_to_end_keepalive, all[8]);
  encode(RouterHello{1, {2, 3}, "tcp://r:1"}, all[9]);
  encode(ConnectPending{"tcp://r:1", true}, all[10]);
  encode(MessageAck{7, Status::success}, all[11]);
  encode(MailboxHint{7, 8}, all[12]);
  return all;
}

}  // namespace

TEST_CASE("routing_messages__encode_decode__symmetric") {
  std::vector<std::byte> bytes;
  encode(request(), bytes);
  CHECK(bytes.size() <= ports::max_send_bytes_floor);
  CHECK(bytes.size() - ports::connect_data_bytes_max <= 256);
  const auto r = decode_connect_request(bytes);
  REQUIRE(r);
  CHECK(r->destination == request().destination);
  CHECK(r->source == SubnetId{3, 4});
  CHECK(r->role == ports::Role::admin);
  CHECK(r->attribute == ports::Attribute::reliable_unordered);
  CHECK(r->crossed == 5);
  CHECK(r->timeout == std::chrono::seconds(7));
  CHECK(r->data == request().data);

  bytes.clear();
  ConnectReply reply{Status::success, std::string(900, 'r'), 1392, 65536, {}};
  for (uint32_t i = 0; i < 9; ++i)
    reply.hops.push_back({"transport", std::string(300, 'n'), i, i + 1, std::chrono::milliseconds(i)});
  encode(reply, bytes);
  CHECK(bytes.size() <= ports::max_send_bytes_floor);
  const auto decoded = decode_connect_reply(bytes);
  REQUIRE(decoded);
  CHECK(decoded->hops.size() == 9);
  CHECK(decoded->hops[8].subnet == 9);
  CHECK(decoded->hops[8].round_trip == std::chrono::milliseconds(8));
  CHECK(decoded->reason.size() == reason_bytes_max);
  CHECK(decoded->hops[8].peer.empty());

  // Who answers at each hop, if anybody has proved it: the beginning of an id. Nothing of it else.
  const size_t without = bytes.size();
  for (ports::HopInfo& hop : reply.hops) {
    hop.peer = "cx1-abcd-efgh-ijkl-mnop-qrst";
    hop.protection = "aes-256-gcm";
  }
  reply.hops[1].protection = "something newer";
  reply.hops[2].peer.clear();
  reply.hops[2].protection = {};
  bytes.clear();
  encode(reply, bytes);
  CHECK(bytes.size() > without);
  CHECK(bytes.size() <= ports::max_send_bytes_floor);
  const auto named = decode_connect_reply(bytes);
  REQUIRE(named);
  CHECK(named->hops[0].peer == "cx1-abcd-efgh-ijkl");
  CHECK(named->hops[0].protection == "aes-256-gcm");
  CHECK(named->hops[1].protection == "sealed");
  CHECK(named->hops[2].peer.empty());
  CHECK(named->hops[2].protection.empty());
  bytes.pop_back();
  CHECK_FALSE(decode_connect_reply(bytes));

  bytes.clear();
  FragmentMessage fragment;
  fragment.kind = MessageKind::write_request;
  fragment.cookie = 77;
  fragment.length_bytes = 65536;
  fragment.data_class = 3;
  fragment.exposed = {ports::HandleKind::region, 1, 0, 2, 3, 4, 5};
  fragment.remote.handle = {ports::HandleKind::mailbox, 0, 0, 0, 11, 12, 0};
  fragment.remote.offset_bytes = 13;
  fragment.remote.put = {14, 15, 16, 17, 18};
  encode(fragment, bytes);
  const auto f = decode_fragment(bytes);
  REQUIRE(f);
  CHECK(f->cookie == 77);
  CHECK(f->data_class == 3);
  CHECK(f->exposed == fragment.exposed);
  CHECK(f->remote.handle == fragment.remote.handle);
  CHECK(f->remote.put.total_bytes == 18);

  bytes.clear();
  fragment.kind = MessageKind::read_reply;
  fragment.ending = {Status::mailbox_too_long, 19};
  encode(fragment, bytes);
  const auto reply_back = decode_fragment(bytes);
  REQUIRE(reply_back);
  CHECK(reply_back->ending.buffer_bytes() == 19u);
  CHECK(reply_back->exposed == fragment.exposed);
}

TEST_CASE("routing_messages__acks__bytes_by_hand_and_not_taken_for_one_another") {
  const auto raw = [](std::initializer_list<uint8_t> values) {
    std::vector<std::byte> bytes;
    for (const uint8_t value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
  };
  std::vector<std::byte> fragment, message;
  encode(FragmentAck{7, {Status::mailbox_too_long, 0x0201}}, fragment);
  CHECK(fragment == raw({7, 0, 0, 0, 68, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0}));
  encode(MessageAck{7, Status::receiver_not_ready}, message);
  CHECK(message == raw({5, 0, 0, 0, 3, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}));
  const auto back = decode_fragment_ack(fragment);
  REQUIRE(back);
  CHECK(back->cookie == 7);
  CHECK(back->ending.status == Status::mailbox_too_long);
  CHECK(back->ending.buffer_bytes() == 0x0201u);
  CHECK_FALSE(back->ending.epoch());
  std::vector<std::byte> hint;
  encode(MailboxHint{0x0403, 5}, hint);
  CHECK(hint == raw({17, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(decode_mailbox_hint(hint)->mailbox == 0x0403);
  CHECK(decode_mailbox_hint(hint)->epoch == 5);
  CHECK_FALSE(decode_message_ack(fragment));
  CHECK_FALSE(decode_fragment_ack(message));
}

TEST_CASE("routing_messages__header_bytes__payload_is_aligned") {
  std::vector<std::byte> bytes;
  encode_message_header(0x0102030405060708, bytes);
  REQUIRE(bytes.size() == message_header_bytes);
  const uint8_t expected[] = {4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1};
  for (size_t i = 0; i < bytes.size(); ++i) CHECK(std::to_integer<uint8_t>(bytes[i]) == expected[i]);
}

TEST_CASE("routing_messages__every_prefix__is_refused") {
  for (const auto& bytes : one_of_each()) {
    for (size_t size = 0; size < bytes.size(); ++size) {
      const Bytes prefix = Bytes(bytes).first(size);
      CHECK_FALSE(decode_connect_request(prefix));
      CHECK_FALSE(decode_connect_reply(prefix));
      CHECK_FALSE(decode_message(prefix));
      CHECK_FALSE(decode_message_ack(prefix));
      CHECK_FALSE(decode_fragment_ack(prefix));
      CHECK_FALSE(decode_mailbox_hint(prefix));
      CHECK_FALSE(decode_fragment(prefix));
      CHECK_FALSE(decode_fragment_released(prefix));
      CHECK_FALSE(decode_bye(prefix));
      CHECK_FALSE(decode_router_hello(prefix));
    }
  }
}

TEST_CASE("routing_messages__changed_bytes__never_crash") {
  sim::Random random(1);
  for (int round = 0; round < 20000; ++round) {
    auto all = one_of_each();
    auto& bytes = all[random.below(all.size())];
    for (uint64_t changes = 1 + random.below(6); changes > 0; --changes)
      bytes[random.below(bytes.size())] = static_cast<std::byte>(random.next());
    decode_all(bytes);
  }
}

TEST_CASE("routing_fragment__of_no_bytes__only_as_the_answer_that_there_are_none") {
  FragmentMessage fragment;
  fragment.exposed.kind = ports::HandleKind::region;
  for (const MessageKind kind : {MessageKind::write_request, MessageKind::read_request, MessageKind::read_reply}) {
    for (const Status status : {Status::success, Status::mailbox_empty}) {
      if (kind != MessageKind::read_reply && status != Status::success) continue;
      for (const uint32_t length_bytes : {0u, 1u}) {
        CAPTURE(static_cast<int>(kind), static_cast<int>(status), length_bytes);
        fragment.kind = kind;
        fragment.ending = ports::OperationResult(status);
        fragment.length_bytes = length_bytes;
        std::vector<std::byte> message;
        encode(fragment, message);
        CHECK(decode_fragment(message).has_value() == (length_bytes > 0 || status != Status::success));
      }
    }
  }
}

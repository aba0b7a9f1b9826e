// The frames of the stream protocol: their bytes, and what is refused.
#include "core/wire/frame.h"

#include <catch2/catch.hpp>
#include <functional>
#include <set>
#include <string>

#include "core/base/hash.h"
#include "core/wire/connection_frames.h"
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"

namespace ccixfer::wire {
namespace {

using Buffer = std::vector<std::byte>;

Buffer raw(std::initializer_list<int> values) {
  Buffer bytes;
  for (const int v : values) bytes.push_back(static_cast<std::byte>(v));
  return bytes;
}
Buffer operator+(Buffer a, const Buffer& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Header bytes by hand, but for the check, which is computed here as the format's page says.
Buffer checked(Buffer header) {
  const uint64_t hash = xxh3_64(header);
  header = header + raw({0, 0, 0, 0});
  for (size_t i = 0; i < 4; ++i) header[header.size() - 4 + i] = static_cast<std::byte>(hash >> (8 * i));
  return header;
}
template <typename Encode>
Buffer written(Encode encode_to) {
  Buffer out;
  Writer writer(out);
  encode_to(writer);
  REQUIRE(writer.ok());
  return out;
}

ports::RemoteRef some_ref() {
  ports::RemoteRef ref;
  ref.handle = {ports::HandleKind::mailbox, 2, 0, 0x01020304, 0x11, 0x22, 0x33};
  ref.offset_bytes = 0x44;
  ref.put = {0x55, 0x66, 0x77, 0x88, 0x99};
  return ref;
}
Buffer u64(int low) { return raw({low, 0, 0, 0, 0, 0, 0, 0}); }
Buffer some_ref_bytes() {
  return raw({2, 2, 0, 0, 4, 3, 2, 1}) + u64(0x11) + u64(0x22) + u64(0x33) + u64(0x44) + u64(0x55) + u64(0x66) + u64(0x77) +
         u64(0x88) + u64(0x99);
}

// One of every kind: the bytes, and whether a decoder takes them.
struct Sample {
  Kind kind;
  Buffer bytes;
  std::function<bool(Bytes, const FramePrefix&)> decodes;
};
std::vector<Sample> samples() {
  const Buffer data = raw({1, 2, 3});
  const Buffer options = raw({1, 0, 1, 0, 9});
  Hello hello;
  hello.role = ports::Role::hop;
  hello.offer = {8192, 256, 128};
  hello.data = data;
  hello.options = options;
  HelloReply reply;
  reply.offer = hello.offer;
  reply.reason = "hi";
  const auto fine = [](Bytes, const FramePrefix&) { return true; };
  const auto notice = [](Bytes h, const FramePrefix&) { return decode_end_notice(h).has_value(); };
  const auto end = [](Bytes h, const FramePrefix&) { return decode_rma_end(h).has_value(); };
  return {
      {Kind::hello, written([&](Writer& w) { encode(w, hello); }),
       [](Bytes h, const FramePrefix&) { return decode_hello(h).has_value(); }},
      {Kind::hello_reply, written([&](Writer& w) { encode(w, reply); }),
       [](Bytes h, const FramePrefix&) { return decode_hello_reply(h).has_value(); }},
      {Kind::connect_accept, written([](Writer& w) { encode_empty(w, Kind::connect_accept); }), fine},
      {Kind::connect_reject, written([](Writer& w) {
         encode_reject(w, {Status::refused, "no"});
       }),
       notice},
      {Kind::connect_ack, written([](Writer& w) { encode_empty(w, Kind::connect_ack); }), fine},
      {Kind::message, written([](Writer& w) {
         encode(w, Message{7, 6, 8}, 100);
       }),
       [](Bytes h, const FramePrefix&) { return decode_message(h).has_value(); }},
      {Kind::message_ack, written([](Writer& w) {
         encode(w, MessageAck{14, Status::receiver_not_ready});
       }),
       [](Bytes h, const FramePrefix&) { return decode_message_ack(h).has_value(); }},
      {Kind::rma_write, written([](Writer& w) {
         encode(w, RmaWrite{0x00010002, 1000, 500, some_ref(), false}, 500);
       }),
       [](Bytes h, const FramePrefix& p) { return decode_rma_write(h, p).has_value(); }},
      {Kind::rma_write_ack, written([](Writer& w) {
         encode_write_ack(w, {0x00010002, Status::rma_op, true});
       }),
       end},
      {Kind::rma_read, written([](Writer& w) {
         encode(w, RmaRead{0x00010002, 1000, some_ref()});
       }),
       [](Bytes h, const FramePrefix&) { return decode_rma_read(h).has_value(); }},
      {Kind::rma_read_data, written([](Writer& w) {
         encode(w, RmaReadData{0x00010002, 1000, 0}, 1000);
       }),
       [](Bytes h, const FramePrefix& p) { return decode_rma_read_data(h, p).has_value(); }},
      {Kind::rma_read_end, written([](Writer& w) {
         encode_read_end(w, {0x00010002, Status::success, false});
       }),
       end},
      {Kind::keepalive, written([](Writer& w) { encode_empty(w, Kind::keepalive); }), fine},
      {Kind::keepalive_ack, written([](Writer& w) { encode_empty(w, Kind::keepalive_ack); }), fine},
      {Kind::bye, written([](Writer& w) {
         encode_bye(w, {Status::disconnected, "bye"});
       }),
       notice},
      {Kind::mailbox_hint, written([](Writer& w) {
         encode(w, MailboxHint{7, 8});
       }),
       [](Bytes h, const FramePrefix&) { return decode_mailbox_hint(h).has_value(); }},
      {Kind::handshake, written([](Writer& w) {
         encode_handshake(w, raw({22, 3, 3}));
       }),
       [](Bytes h, const FramePrefix&) { return decode_handshake(h).has_value(); }},
  };
}

TEST_CASE("frames__bytes_by_hand") {
  // Whole, with its check, as once seen on a wire.
  REQUIRE(written([](Writer& w) {
            encode(w, MessageAck{14, Status::receiver_not_ready});
          }) == raw({7, 0, 24, 0, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0x16, 0xd7, 0xe2, 0x37}));

  Hello hello;
  hello.role = ports::Role::router;
  hello.attribute = ports::Attribute::unreliable;
  hello.offer = {0x2000, 0x100, 0x80};
  hello.machine = {0x0807060504030201, 9};
  const Buffer data = raw({0xaa, 0xbb});
  const Buffer options = raw({1, 0, 0, 0});
  hello.data = data;
  hello.options = options;
  REQUIRE(written([&](Writer& w) { encode(w, hello); }) ==
          checked(raw({1, 0, 62, 0, 0, 0, 0, 0}) + raw({'.', 'C', 'C', 'I', 'X', 'F', 'R', '1'}) +
                  raw({2, 0, 2, 2, 0, 0x20, 0, 0, 0, 1, 0, 0, 0x80, 0, 0, 0}) + raw({1, 2, 3, 4, 5, 6, 7, 8}) + u64(9) +
                  raw({2, 0, 0xaa, 0xbb, 4, 0, 1, 0, 0, 0})));
  HelloReply reply;
  reply.status = Status::version;
  reply.offer = {0x2000, 0x100, 0x80};
  reply.machine = {7, 8};
  reply.reason = "no";
  REQUIRE(written([&](Writer& w) { encode(w, reply); }) ==
          checked(raw({2, 0, 56, 0, 0, 0, 0, 0}) + raw({'.', 'C', 'C', 'I', 'X', 'F', 'R', '1'}) +
                  raw({2, 0, 34, 0, 0, 0x20, 0, 0, 0, 1, 0, 0, 0x80, 0, 0, 0}) + u64(7) + u64(8) + raw({2, 0, 'n', 'o'})));
  REQUIRE(written([](Writer& w) { encode_empty(w, Kind::connect_accept); }) == checked(raw({3, 0, 12, 0, 0, 0, 0, 0})));
  REQUIRE(written([](Writer& w) {
            encode_reject(w, {Status::refused, "x"});
          }) == checked(raw({4, 0, 17, 0, 0, 0, 0, 0, 21, 0, 1, 0, 'x'})));
  REQUIRE(written([](Writer& w) {
            encode(w, Message{5, 6, 0x01020304}, 0x30201);
          }) == checked(raw({6, 0, 32, 0, 1, 2, 3, 0}) + u64(5) + u64(6) + raw({4, 3, 2, 1})));
  REQUIRE(written([](Writer& w) {
            encode(w, RmaWrite{0x00030002, 0x10, 8, some_ref(), false}, 8);
          }) == checked(raw({8, 0, 116, 0, 8, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0}) + u64(0x10) + u64(8) + some_ref_bytes()));
  REQUIRE(written([](Writer& w) {
            encode_write_ack(w, {0x00030002, {Status::mailbox_too_long, 77}, true});
          }) == checked(raw({9, 0, 28, 0, 0, 0, 0, 0, 2, 0, 3, 0, 68, 1, 0, 0}) + u64(77)));
  REQUIRE(written([](Writer& w) {
            encode(w, RmaRead{0x00030002, 0x10, some_ref()});
          }) == checked(raw({10, 0, 108, 0, 0, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0}) + u64(0x10) + some_ref_bytes()));
  REQUIRE(written([](Writer& w) {
            encode(w, RmaReadData{0x00030002, 0x10, 8}, 8);
          }) == checked(raw({11, 0, 36, 0, 8, 0, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0}) + u64(0x10) + u64(8)));
  REQUIRE(written([](Writer& w) {
            encode_bye(w, {Status::disconnected, ""});
          }) == checked(raw({15, 0, 16, 0, 0, 0, 0, 0, 2, 0, 0, 0})));
  REQUIRE(written([](Writer& w) { encode(w, MailboxHint{7, 8}); }) == checked(raw({16, 0, 28, 0, 0, 0, 0, 0}) + u64(7) + u64(8)));
  REQUIRE(written([](Writer& w) {
            encode_handshake(w, raw({22, 3, 3}));
          }) ==
          checked(raw({17, 0, 27, 0, 0, 0, 0, 0}) + raw({'.', 'C', 'C', 'I', 'X', 'F', 'R', '1'}) + raw({1, 0, 3, 0, 22, 3, 3})));
}

TEST_CASE("frames__every_kind__comes_back_as_it_went") {
  const auto all = samples();
  REQUIRE(all.size() == kind_last);
  for (const Sample& sample : all) {
    CAPTURE(to_string(sample.kind));
    const auto prefix = decode_prefix(sample.bytes);
    REQUIRE(prefix);
    REQUIRE(prefix->kind == sample.kind);
    REQUIRE(prefix->header_bytes == sample.bytes.size());
    REQUIRE(check_holds(sample.bytes));
    REQUIRE(sample.decodes(sample.bytes, *prefix));
  }
  const auto hello = decode_hello(all[0].bytes);
  REQUIRE(hello->role == ports::Role::hop);
  REQUIRE(hello->offer.rmas_in_flight_max == 128);
  REQUIRE(Buffer(hello->data.begin(), hello->data.end()) == raw({1, 2, 3}));
  REQUIRE(scan_options(hello->options) == OptionScan::fine);
  const auto write = decode_rma_write(all[7].bytes, *decode_prefix(all[7].bytes));
  REQUIRE(write->operation == 0x00010002);
  REQUIRE(write->offset_bytes == 500);
  REQUIRE(write->remote.handle == some_ref().handle);
  REQUIRE(write->remote.put.total_bytes == 0x99);
}

TEST_CASE("frames__any_bit_flipped_in_any_header__noticed") {
  for (const Sample& sample : samples()) {
    CAPTURE(to_string(sample.kind));
    for (size_t bit = 0; bit < sample.bytes.size() * 8; ++bit) {
      Buffer bytes = sample.bytes;
      bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
      const auto prefix = decode_prefix(bytes);
      if (!prefix) continue;
      bytes.resize(prefix->header_bytes);  // longer: what would follow
      CAPTURE(bit);
      REQUIRE_FALSE(check_holds(bytes));
    }
  }
}

TEST_CASE("frames__cut_short_with_a_good_check__no_decoder_reads_beyond") {
  for (const Sample& sample : samples()) {
    const auto prefix = decode_prefix(sample.bytes);
    for (size_t size = 0; size < sample.bytes.size(); ++size) {
      const Buffer bytes(sample.bytes.begin(), sample.bytes.begin() + static_cast<long>(size));
      if (size < prefix_bytes) REQUIRE_FALSE(decode_prefix(bytes));
      REQUIRE_FALSE(check_holds(bytes));
      if (sample.bytes.size() > frame_overhead_bytes) REQUIRE_FALSE(sample.decodes(bytes, *prefix));
    }
  }
}

TEST_CASE("frames__lengths_and_values_out_of_bounds__refused") {
  const auto prefix = [](std::initializer_list<int> bytes) { return decode_prefix(raw(bytes)).has_value(); };
  REQUIRE(prefix({13, 0, 12, 0, 0, 0, 0, 0}));
  REQUIRE_FALSE(prefix({0, 0, 12, 0, 0, 0, 0, 0}));
  REQUIRE_FALSE(prefix({17, 0, 12, 0, 0, 0, 0, 0}));
  REQUIRE_FALSE(prefix({13, 1, 12, 0, 0, 0, 0, 0}));
  REQUIRE_FALSE(prefix({13, 0, 13, 0, 0, 0, 0, 0}));
  REQUIRE_FALSE(prefix({13, 0, 11, 0, 0, 0, 0, 0}));
  REQUIRE_FALSE(prefix({13, 0, 12, 0, 1, 0, 0, 0}));
  REQUIRE(prefix({8, 0, 116, 0, 0, 0x10, 0x20, 0}));
  REQUIRE_FALSE(prefix({8, 0, 116, 0, 1, 0x10, 0x20, 0}));
  REQUIRE_FALSE(prefix({1, 0, 0xff, 0xff, 0, 0, 0, 0}));

  const auto write = [](RmaWrite frame, uint32_t payload) {
    const Buffer bytes = written([&](Writer& w) { encode(w, frame, payload); });
    const auto p = decode_prefix(bytes);
    return p && decode_rma_write(bytes, *p).has_value();
  };
  REQUIRE(write({1, 10, 4, {}, false}, 6));
  REQUIRE_FALSE(write({1, 10, 5, {}, false}, 6));
  REQUIRE_FALSE(write({1, 10, 11, {}, false}, 1));
  REQUIRE_FALSE(write({1, UINT64_MAX, UINT64_MAX, {}, false}, 1));
  REQUIRE_FALSE(write({1, 0, 0, {}, true}, 0));
  REQUIRE_FALSE(write({1, 10, 4, {}, false}, 0));
  REQUIRE(write({1, 10, 4, {}, true}, 0));
  REQUIRE_FALSE(write({1, 10, 4, {}, true}, 1));
  REQUIRE(write({1, 10, 10, {}, true}, 0));  // given up when all was sent
  REQUIRE_FALSE(write({1, 10, 11, {}, true}, 0));
  const auto read = [](uint64_t total) {
    return decode_rma_read(written([&](Writer& w) { encode(w, RmaRead{1, total, {}}); })).has_value();
  };
  REQUIRE(read(1));
  REQUIRE_FALSE(read(0));
}

TEST_CASE("frames__reasons__cut_when_written_and_bounded_when_read") {
  const std::string longest(reason_bytes_max + 100, 'x');
  const Buffer bytes = written([&](Writer& w) { encode_bye(w, {Status::error, longest}); });
  REQUIRE(decode_prefix(bytes));
  REQUIRE(decode_end_notice(bytes)->reason.size() == reason_bytes_max);
}

TEST_CASE("frames__hello_options__unknown_mandatory_refused_unknown_optional_skipped") {
  REQUIRE(scan_options({}) == OptionScan::fine);
  REQUIRE(scan_options(raw({5, 0, 2, 0, 1, 2, 6, 0, 0, 0})) == OptionScan::fine);
  REQUIRE(scan_options(raw({5, 0x80, 0, 0})) == OptionScan::unknown_mandatory);
  REQUIRE(scan_options(raw({5, 0, 3, 0, 1, 2})) == OptionScan::malformed);
  REQUIRE(scan_options(raw({5})) == OptionScan::malformed);
  REQUIRE(scan_options(raw({5, 0x80, 3, 0, 1, 2})) == OptionScan::malformed);
}

TEST_CASE("frames__hello_of_another_version_or_magic__decodes_so_that_it_can_be_answered") {
  for (const bool another_magic : {false, true}) {
    Hello hello;
    if (another_magic) hello.magic = 77;
    hello.version = another_magic ? version : 9;
    Buffer bytes = written([&](Writer& w) { encode(w, hello); });
    bytes[prefix_bytes + 10] = std::byte{0xff};  // a role that this version does not know: a later one may mean something by it
    const auto decoded = decode_hello(bytes);
    REQUIRE(decoded);
    REQUIRE(decoded->magic == hello.magic);
    REQUIRE(decoded->version == hello.version);
  }
}

TEST_CASE("frames__hello__every_role_and_attribute_comes_back_and_none_beyond") {
  const auto come_back = [](int role, int attribute) {
    Hello hello;
    hello.role = static_cast<ports::Role>(role);
    hello.attribute = static_cast<ports::Attribute>(attribute);
    const auto decoded = decode_hello(written([&](Writer& w) { encode(w, hello); }));
    if (decoded) REQUIRE((decoded->role == hello.role && decoded->attribute == hello.attribute));
    return decoded.has_value();
  };
  const int roles = static_cast<int>(ports::Role::admin);
  const int attributes = static_cast<int>(ports::Attribute::multicast_receive);
  for (int role = 0; role <= roles; ++role) REQUIRE(come_back(role, 0));
  for (int attribute = 0; attribute <= attributes; ++attribute) REQUIRE(come_back(0, attribute));
  REQUIRE_FALSE(come_back(roles + 1, 0));
  REQUIRE_FALSE(come_back(0, attributes + 1));
}

TEST_CASE("frames__status_or_kind_of_handle_that_nobody_knows__refused") {
  const auto notice = [](int status) {
    Buffer bytes = written([](Writer& w) { encode_bye(w, {Status::disconnected, "bye"}); });
    bytes[prefix_bytes] = static_cast<std::byte>(status);
    return decode_end_notice(bytes).has_value();
  };
  REQUIRE(notice(static_cast<int>(Status::refused)));
  REQUIRE_FALSE(notice(255));
  const auto ack = [](int status) {
    Buffer bytes = written([](Writer& w) { encode(w, MessageAck{14, Status::success}); });
    bytes[prefix_bytes + 8] = static_cast<std::byte>(status);
    return decode_message_ack(bytes).has_value();
  };
  for (const Status status : {Status::success, Status::receiver_not_ready, Status::disconnected})
    REQUIRE(ack(static_cast<int>(status)));
  REQUIRE_FALSE(ack(static_cast<int>(Status::refused)));
  REQUIRE_FALSE(ack(255));
  const auto read = [](int kind) {
    ports::RemoteRef ref = some_ref();
    ref.handle.kind = static_cast<ports::HandleKind>(kind);
    return decode_rma_read(written([&](Writer& w) { encode(w, RmaRead{1, 10, ref}); })).has_value();
  };
  const int mailbox = static_cast<int>(ports::HandleKind::mailbox);
  REQUIRE(read(mailbox));
  REQUIRE_FALSE(read(mailbox + 1));
}

TEST_CASE("frames__kinds__have_names_of_their_own_and_others_none") {
  std::set<std::string> names;
  for (int kind = 0; kind <= 255; ++kind) names.insert(to_string(static_cast<Kind>(kind)));
  REQUIRE(names.size() == kind_last + 1u);
  REQUIRE(std::string(to_string(static_cast<Kind>(kind_last + 1))) == "unknown");
  REQUIRE(std::string(to_string(static_cast<Kind>(0))) == "unknown");
  REQUIRE(std::string(to_string(Kind::hello)) == "hello");
}

TEST_CASE("frames__no_room_to_write_them__said_and_nothing_beyond_is_written") {
  const Buffer whole = written([](Writer& w) { encode(w, MessageAck{14, Status::receiver_not_ready}); });
  for (size_t room = 0; room <= whole.size(); ++room) {
    Buffer memory(whole.size() + 8, std::byte{0xee});
    Writer out(MutableBytes(memory).first(room));
    encode(out, MessageAck{14, Status::receiver_not_ready});
    REQUIRE(out.ok() == (room == whole.size()));
    for (size_t at = room; at < memory.size(); ++at) REQUIRE(memory[at] == std::byte{0xee});
  }
}

TEST_CASE("machines__apart__only_if_both_are_known_differ_and_began_far_from_one_another") {
  const HostIdentity one{1, 1'000'000};
  REQUIRE(are_apart(one, {2, 1'010'000}));
  REQUIRE(are_apart({2, 1'010'000}, one));
  REQUIRE_FALSE(are_apart(one, {2, 1'009'999}));
  REQUIRE_FALSE(are_apart({2, 1'009'999}, one));
  REQUIRE_FALSE(are_apart(one, {1, 2'000'000}));
  REQUIRE_FALSE(are_apart(one, {0, 2'000'000}));
  REQUIRE_FALSE(are_apart({0, 2'000'000}, one));
}

TEST_CASE("frames__rma_ends_and_read_chunks__values_out_of_bounds_refused") {
  const auto end_with = [](int status, int early) {
    Buffer bytes = written([](Writer& w) { encode_write_ack(w, {1, Status::rma_op, false}); });
    bytes[prefix_bytes + 4] = static_cast<std::byte>(status);
    bytes[prefix_bytes + 5] = static_cast<std::byte>(early);
    return decode_rma_end(bytes).has_value();
  };
  const int fails = static_cast<int>(Status::rma_op);
  REQUIRE(end_with(fails, 0));
  REQUIRE(end_with(fails, 1));
  REQUIRE_FALSE(end_with(fails, 2));
  REQUIRE(end_with(0, 0));
  REQUIRE_FALSE(end_with(0, 1));    // good, and yet before its bytes were there
  REQUIRE_FALSE(end_with(255, 0));  // no such status
  const auto data = [](const RmaReadData& frame, uint32_t payload) {
    const Buffer bytes = written([&](Writer& w) { encode(w, frame, payload); });
    return decode_rma_read_data(bytes, *decode_prefix(bytes)).has_value();
  };
  REQUIRE(data({1, 10, 4}, 6));
  REQUIRE_FALSE(data({1, 10, 5}, 6));
  REQUIRE_FALSE(data({1, 10, 4}, 0));
  for (const int at : {4, 5, 6, 7}) {  // what is not used must be 0
    for (const auto& sample : samples()) {
      if (sample.kind != Kind::rma_write && sample.kind != Kind::rma_read && sample.kind != Kind::rma_read_data) continue;
      Buffer bytes = sample.bytes;
      bytes[prefix_bytes + static_cast<size_t>(at)] = std::byte{1};
      REQUIRE_FALSE(sample.decodes(bytes, *decode_prefix(bytes)));
    }
  }
}

}  // namespace
}  // namespace ccixfer::wire

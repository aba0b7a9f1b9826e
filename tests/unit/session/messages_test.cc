// Session messages and the hello: bytes by hand, round trips, every flipped bit refused, truncations, bounds, cutting and joining.
#include "app/session/messages.h"

#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "app/session/message_wire.h"
#include "app/session/tlv.h"

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

constexpr uint64_t top = std::numeric_limits<uint64_t>::max();

std::vector<std::byte> hex(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<Message> one_of_each() {
  Answer answer;
  answer.first_index = 77;
  answer.runs = {
      {1, session::Verdict::done}, {2, session::Verdict::pieces}, {entries_outstanding_max - 3, session::Verdict::failed}};
  Want want;
  want.index = 5;
  want.ranges = {{0, 1}, {3, pieces_per_file_max - 3}};
  FileResults results;
  results.results = {{1, ErrorKind::ok, 0}, {top, ErrorKind::no_space, 28}, {3, ErrorKind::bug, -1}};
  FileEnd with_digest{9, SourceOutcome::ok, 12, true, {1, 2}};
  return {OpenPart{10, 4, "abcdef"},
          Opened{1, 16},
          Opened{1, 16, true},
          LaneOpen{1, 2, 3, stripes},
          Credit{top},
          answer,
          want,
          Resend{4, 2, 0, 0},
          Resend{Resend::by_segment, Resend::whole, 8, 9},
          FileEnd{1, SourceOutcome::vanished, top, false, {}},
          with_digest,
          results,
          Durable{1, 2},
          Unlisted{true, "a/b", "vanished"},
          End{3, 1, top},
          Summary{1, 2, 3, 4},
          Summary{1, 2, 3, 4, 3},
          Bye{},
          Abort{ErrorKind::interrupted, "stopped"},
          Alive{7, 60'000},
          Ask{top},
          Queued{3},
          HandshakePart{"records"},
          Itemized{9, {{1, 0}, {3, 0x1fff}}},
          Compare{3, 9, 2, {{1, 2}, {3, top}}},
          Compare{3, 0, pieces_per_file_max, {}},
          Same{3, {{0, 1}, {3, pieces_per_file_max - 3}}},
          Holes{9, {{1, 2}, {5, 1}}},
          TeamSeat{true},
          ToRead{{{7, 100, 9, -5, 999'999'999, false, "a/b"}, {8, top - 1, 0, 0, 0, true, ""}}},
          Give{{{0, 1}, {top - 5, 5}}},
          Elsewhere{9, {{1, 2}}},
          TeamEnded{ErrorKind::partial, 1, 2, 3, top},
          AskPlace{top},
          SharedPlace{7, top, {1, 2, 3}, "0123-45.part"},
          PlaceState{7, false, "no locks"},
          PlaceState{8, true, ""},
          Placed{7, pieces_per_file_max - 2, {{1, 2}, {3, top}}},
          PlaceEnded{9},
          Deletions{3, 2, top, {{true, false, "a/b"}, {false, true, "c"}}}};
}

uint64_t sequence_of(const Message& message) { return is_lane_message(message) ? 0 : 42; }

// With its check made good again: what a peer that knows the format would send.
std::vector<std::byte> forged(std::vector<std::byte> bytes) {
  const uint64_t check = xxh3_64(Bytes(bytes).first(bytes.size() - 4));
  for (size_t i = 0; i < 4; ++i) bytes[bytes.size() - 4 + i] = static_cast<std::byte>(check >> (8 * i));
  return bytes;
}

Hello some_hello() {
  Hello hello;
  hello.direction = Direction::pull;
  for (uint8_t i = 0; i < 16; ++i) hello.transfer[i] = static_cast<uint8_t>(0xa0 + i);
  hello.session = 0x1122334455667788;
  hello.lane = 3;
  hello.sealed = true;
  return hello;
}

}  // namespace

TEST_CASE("message__credit_and_answer__are_the_bytes_written_by_hand") {
  std::vector<std::byte> expected =
      hex({4, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 1, 0, 0, 0, 0});
  CHECK(encode(Credit{0x1122334455667788, true}, 0) == forged(expected));
  Answer answer;
  answer.first_index = 0x0102;
  answer.runs = {{5, session::Verdict::send}, {0x10, session::Verdict::failed}};
  expected = hex({5, 0, 20, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 2, 0, 5, 0, 0, 0, 2, 0x10, 0, 0, 0, 4, 0, 0, 0, 0});
  CHECK(encode(answer, 9) == forged(expected));
}

TEST_CASE("message__itemized__is_the_bytes_written_by_hand_and_has_bounds") {
  const Itemized itemized{0x0102, {{5, 0x0409}, {1, 0}}};
  const std::vector<std::byte> bytes = encode(itemized, 9);
  CHECK(bytes == forged(hex({20, 0, 22, 0, 9, 0, 0, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0,
                             0,  2, 0,  5, 0, 0, 0, 9, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0})));
  std::vector<std::byte> wrong = bytes;
  wrong[27] = std::byte{0x20};  // a bit that nobody knows
  CHECK_FALSE(decode(forged(wrong)));
  wrong = bytes;
  wrong[22] = std::byte{0};  // an empty run
  CHECK_FALSE(decode(forged(wrong)));
  wrong = bytes;
  wrong[24] = std::byte{1};  // more entries than may be outstanding
  CHECK_FALSE(decode(forged(wrong)));
  Itemized many;
  for (size_t i = 0; i < 2 * itemized_runs_max + 1; ++i) many.runs.push_back({2, static_cast<uint16_t>(i % 2)});
  const std::vector<Message> parts = cut(many);
  REQUIRE(parts.size() == 3);
  CHECK(std::get<Itemized>(parts[1]).first_index == 2 * itemized_runs_max);
  CHECK(std::get<Itemized>(parts[2]).runs.size() == 1);
  CHECK(cut(Itemized{}).empty());
}

TEST_CASE("message__deletions__are_the_bytes_written_by_hand_and_long_names_go_on") {
  const Deletions deletions{1, 2, 3, {{true, false, "a"}}};
  const std::vector<std::byte> bytes = encode(deletions, 9);
  CHECK(bytes == forged(hex({24, 0, 30, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0,   0, 2, 0, 0,
                             0,  0, 0,  0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 'a', 0, 0, 0, 0})));
  std::vector<std::byte> wrong = bytes;
  wrong[38] = std::byte{4};  // a bit that nobody knows
  CHECK_FALSE(decode(forged(wrong)));
  wrong = bytes;
  wrong[36] = std::byte{2};  // more names than there are
  CHECK_FALSE(decode(forged(wrong)));
  const Deletions many{0, 0, 0, {{false, false, std::string(2500, 'x')}, {true, false, "y"}}};
  std::string names;
  for (const Message& part : cut(many)) {
    CHECK(decode(encode(part, 1)).has_value());
    for (const Deletions::Name& name : std::get<Deletions>(part).names) {
      names += name.part + (name.goes_on ? "" : name.is_directory ? "/" : ",");
    }
  }
  CHECK(names == std::string(2500, 'x') + ",y/");
  CHECK(cut(Deletions{}).size() == 1);
}

TEST_CASE("message__to_read__has_bounds_and_long_lists_are_cut") {
  const auto of = [](std::string path) { return ToRead{{{1, 2, 3, 4, 5, false, std::move(path)}}}; };
  for (const char* path : {"../a", "/a", "a//b", "a/"}) CHECK_FALSE(decode(encode(of(path), 1)));
  CHECK(decode(encode(of(std::string(to_read_path_bytes_max, 'x')), 1)));
  ToRead wrong = of("a");
  wrong.files.front().mtime_ns = 1'000'000'000;
  CHECK_FALSE(decode(encode(wrong, 1)));
  wrong = of("a");
  wrong.files.front().index = top;  // as a Resend has it for a put
  CHECK_FALSE(decode(encode(wrong, 1)));
  ToRead many;
  for (uint64_t i = 0; i < 100; ++i) many.files.push_back({i, 1, 1, 1, 1, i % 2 == 0, std::string(1 + i * 7 % 300, 'n')});
  std::vector<uint64_t> seen;
  for (const Message& part : cut(many)) {
    const auto back = decode(encode(part, 1));
    REQUIRE(back);
    for (const ToRead::File& file : std::get<ToRead>(back->message).files) {
      CHECK(file.path == many.files[file.index].path);
      CHECK(file.is_shared == many.files[file.index].is_shared);
      seen.push_back(file.index);
    }
  }
  CHECK(seen.size() == 100);
  CHECK(std::is_sorted(seen.begin(), seen.end()));
  CHECK(cut(ToRead{}).empty());
}

TEST_CASE("message__give__has_bounds_and_long_lists_are_cut") {
  const std::vector<std::byte> bytes = encode(Give{{{0x0102, 3}}}, 9);
  CHECK(bytes == forged(hex({27, 0, 14, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 1, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0})));
  std::vector<std::byte> wrong = bytes;
  wrong[22] = std::byte{0};  // an empty run
  CHECK_FALSE(decode(forged(wrong)));
  wrong = bytes;
  wrong[24] = std::byte{1};  // more entries than may be outstanding
  CHECK_FALSE(decode(forged(wrong)));
  Give many;
  for (uint64_t i = 0; i < 2 * give_runs_max + 1; ++i) many.runs.push_back({2 * i, 1});
  REQUIRE(cut(many).size() == 3);
  CHECK(std::get<Give>(cut(many)[2]).runs.size() == 1);
}

TEST_CASE("message__shared_place__has_a_name_without_a_directory") {
  for (const std::string name : {"a/b", "..", ".", "", "/a"}) {
    CAPTURE(name);
    CHECK_FALSE(decode(encode(SharedPlace{7, 1, {}, name}, 9)));
  }
  CHECK(decode(encode(SharedPlace{7, 1, {}, "a"}, 9)));
}

TEST_CASE("message__placed__names_pieces_that_a_file_can_have") {
  const std::vector<std::byte> bytes = encode(Placed{7, 5, {{1, 2}}}, 9);
  std::vector<std::byte> wrong = bytes;
  for (size_t i = 0; i < 8; ++i) wrong[20 + i] = std::byte{0xff};  // the first piece
  CHECK_FALSE(decode(forged(wrong)));
  Placed full{7, 0, std::vector<Hash128>(placed_hashes_max)};
  CHECK(encode(full, 9).size() <= session_message_bytes_max);
}

TEST_CASE("message__summary__a_count_of_lost_set_id_bits_is_one_of_failures_and_not_0") {
  const auto with_count = [](uint64_t count) {
    std::vector<std::byte> bytes = encode(Summary{1, 2, 3, 4, 3}, 9);
    bytes[bytes.size() - 12] = static_cast<std::byte>(count);
    return forged(bytes);
  };
  CHECK(with_count(3) == encode(Summary{1, 2, 3, 4, 3}, 9));
  for (const uint64_t count : {0u, 1u, 3u, 4u}) {
    const auto decoded = decode(with_count(count));
    CHECK(decoded.has_value() == (count == 1 || count == 3));
    if (decoded) CHECK(std::get<Summary>(decoded->message).setid_refused == count);
  }
}

TEST_CASE("message__one_of_each__comes_back_as_it_went") {
  std::vector<bool> seen(std::variant_size_v<Message>);
  for (const Message& message : one_of_each()) {
    seen[message.index()] = true;
    const std::vector<std::byte> bytes = encode(message, sequence_of(message));
    const Result<Decoded> decoded = decode(bytes);
    REQUIRE(decoded);
    CHECK(decoded->sequence == sequence_of(message));
    CHECK(decoded->message.index() == message.index());
    CHECK(encode(decoded->message, decoded->sequence) == bytes);
  }
  CHECK(seen == std::vector<bool>(seen.size(), true));
  const Result<Decoded> end = decode(encode(FileEnd{9, SourceOutcome::changed, 12, true, {1, 2}}, 1));
  REQUIRE(end);
  const auto& file_end = std::get<FileEnd>(end->message);
  CHECK(file_end.index == 9);
  CHECK(file_end.outcome == SourceOutcome::changed);
  CHECK(file_end.size_bytes == 12);
  CHECK(file_end.digest == Hash128{1, 2});
}

TEST_CASE("message__any_flipped_bit_or_truncation__is_refused") {
  for (const Message& message : one_of_each()) {
    std::vector<std::byte> bytes = encode(message, sequence_of(message));
    INFO("kind " << message.index() + 1);
    for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
      const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
      bytes[bit / 8] ^= mask;
      REQUIRE(!decode(bytes));
      bytes[bit / 8] ^= mask;
    }
    for (size_t length = 0; length < bytes.size(); ++length) REQUIRE(!decode(Bytes(bytes).first(length)));
    bytes.push_back(std::byte{0});
    REQUIRE(!decode(bytes));
  }
}

TEST_CASE("message__flipped_bit_with_a_good_check__never_decodes_to_out_of_bounds_values") {
  for (const Message& message : one_of_each()) {
    const std::vector<std::byte> good = encode(message, sequence_of(message));
    for (size_t bit = 0; bit < (good.size() - 4) * 8; ++bit) {
      std::vector<std::byte> bytes = good;
      bytes[bit / 8] ^= std::byte{static_cast<unsigned char>(1u << (bit % 8))};
      const std::vector<std::byte> bad = forged(bytes);
      const Result<Decoded> decoded = decode(bad);
      // What is accepted must be encodable: encode CHECKs every bound.
      if (decoded) REQUIRE(encode(decoded->message, decoded->sequence) == bad);
    }
  }
}

TEST_CASE("message__lists_with_impossible_counts__are_refused") {
  const auto patched = [](const Message& message, size_t at, std::initializer_list<unsigned> values) {
    std::vector<std::byte> bytes = encode(message, 1);
    for (const unsigned value : values) bytes[at++] = static_cast<std::byte>(value);
    return decode(forged(bytes));
  };
  Answer answer;
  answer.runs = {{1, session::Verdict::done}};
  CHECK(patched(answer, 22, {1}));
  CHECK(!patched(answer, 22, {0}));        // a run of nothing
  CHECK(!patched(answer, 22, {1, 0x80}));  // more than may be outstanding
  CHECK(!patched(answer, 22, {0xff, 0xff, 0xff, 0xff}));
  CHECK(patched(answer, 26, {static_cast<unsigned>(session::Verdict::link)}));
  CHECK(!patched(answer, 26, {static_cast<unsigned>(session::Verdict::kept) + 1}));
  CHECK(!patched(answer, 20, {2}));                                               // one run more than there is
  CHECK(!patched(answer, 12, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));  // index + count wraps
  Want want;
  want.ranges = {{0, 1}};
  CHECK(patched(want, 22, {1}));
  CHECK(!patched(want, 30, {0}));
  CHECK(!patched(want, 22, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  CHECK(!patched(want, 30, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  const Compare compare{1, 0, 2, {{1, 2}, {3, 4}}};
  CHECK(patched(compare, 12, {9}));
  CHECK(!patched(compare, 28, {3}));  // hashes of some of them only
  CHECK(!patched(compare, 28, {0}));  // none of them
  CHECK(!patched(compare, 36, {1}));
  CHECK(!patched(compare, 20, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}));
  CHECK(!patched(Compare{1, 0, 100, {}}, 36, {100}));  // more than fit
  CHECK(!patched(Same{1, {{0, 1}}}, 30, {0}));
  CHECK(!patched(Opened{1, 1}, 12, {0}));  // session 0
  CHECK(patched(Opened{1, 1, true}, 24, {1}));
  CHECK(!patched(Opened{1, 1, true}, 24, {2}));  // it says neither yes nor no
  CHECK(!patched(FileResults{{{1, ErrorKind::ok, 0}}}, 22, {static_cast<unsigned>(ErrorKind::bug) + 1}));
  CHECK(!patched(OpenPart{3, 0, "abc"}, 12, {2}));  // longer than its total
  CHECK(!patched(OpenPart{3, 0, "abc"}, 16, {1}));  // beyond its total
  CHECK(patched(OpenPart{3, 0, "abc"}, 12, {0, 0, 1, 0}));
  CHECK(!patched(OpenPart{3, 0, "abc"}, 12, {1, 0, 1, 0}));  // longer than an Open may be
  CHECK(!patched(Bye{}, 0, {0}));
  CHECK(!patched(Bye{}, 0, {std::variant_size_v<Message> + 1}));
  CHECK(!patched(Bye{}, 1, {1}));
  CHECK(!patched(Bye{}, 2, {1}));
  CHECK(!patched(Bye{}, 4, {0}));  // a session message without a number
}

TEST_CASE("message__an_answer_of_more_runs_than_there_may_be__is_refused") {
  Answer answer;
  answer.runs.assign(answer_runs_max, {1, session::Verdict::done});
  std::vector<std::byte> bytes = encode(answer, 1);
  REQUIRE(decode(bytes));
  const size_t count = answer_runs_max + 1;
  bytes[20] = static_cast<std::byte>(count & 0xff);
  bytes[21] = static_cast<std::byte>(count >> 8);
  bytes.insert(bytes.end() - 4, 5, std::byte{0});
  bytes[bytes.size() - 9] = std::byte{1};  // a run of one more, done
  const size_t payload = bytes.size() - encode(Bye{}, 1).size();
  bytes[2] = static_cast<std::byte>(payload & 0xff);
  bytes[3] = static_cast<std::byte>(payload >> 8);
  CHECK(!decode(forged(bytes)));
}

TEST_CASE("message__abort_with_a_long_text__is_cut_to_512_bytes") {
  const Result<Decoded> decoded = decode(encode(Abort{ErrorKind::network, std::string(5000, 'x')}, 1));
  REQUIRE(decoded);
  CHECK(std::get<Abort>(decoded->message).message == std::string(512, 'x'));
}

TEST_CASE("hello__is_the_bytes_written_by_hand_and_comes_back") {
  const std::vector<std::byte> bytes = encode(some_hello());
  const std::vector<std::byte> expected = forged(
      hex({'C',  'X',  'F',  'H',  3,    0,    1,    1,    0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab,
           0xac, 0xad, 0xae, 0xaf, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 3,    0,    0,    0,    0,    0,    0,    0}));
  CHECK(bytes == expected);
  const Result<Hello> hello = decode_hello(bytes);
  REQUIRE(hello);
  CHECK(hello->direction == Direction::pull);
  CHECK(hello->transfer == some_hello().transfer);
  CHECK(hello->session == some_hello().session);
  CHECK(hello->lane == 3);
  CHECK(hello->sealed);
  CHECK_FALSE(hello->moves);
  Hello moving = some_hello();
  moving.sealed = false;
  moving.moves = true;
  REQUIRE(decode_hello(encode(moving)));
  CHECK(decode_hello(encode(moving))->moves);
  CHECK_FALSE(decode_hello(encode(moving))->sealed);
}

TEST_CASE("hello__first_words_of_a_new_session__come_back_and_make_no_sense_elsewhere") {
  Hello first = some_hello();
  first.session = 0;
  first.lane = 0;
  const std::vector<std::byte> without = encode(first);
  first.early = {{std::byte{7}, std::byte{8}}, {std::byte{9}}};
  const std::vector<std::byte> bytes = encode(first);
  REQUIRE(bytes.size() == without.size() + 6 + 7);
  const std::vector<std::byte> tail(bytes.end() - 4 - 15, bytes.end() - 4);
  CHECK(tail == hex({13, 0, 2, 0, 7, 0, 0, 0, 2, 0, 7, 8, 1, 0, 9}));
  REQUIRE(decode_hello(bytes));
  CHECK(decode_hello(bytes)->early == first.early);
  for (const size_t at : {bytes.size() - 4 - 3, bytes.size() - 4 - 7}) {  // either is longer than the room, or empty
    for (const unsigned length : {0u, 200u}) {
      std::vector<std::byte> bad = bytes;
      bad[at] = static_cast<std::byte>(length);
      CHECK_FALSE(decode_hello(forged(bad)));
    }
  }
  std::vector<std::byte> later = bytes;
  later[24] = std::byte{1};  // a session that has its number
  CHECK_FALSE(decode_hello(forged(later)));
}

TEST_CASE("hello__a_flag_that_is_not_known__is_refused") {
  std::vector<std::byte> bytes = encode(some_hello());
  for (unsigned bit = 0; bit < 8; ++bit) {
    bytes[7] = static_cast<std::byte>(1u << bit);
    CHECK(static_cast<bool>(decode_hello(forged(bytes))) == (bit < 2));
  }
}

TEST_CASE("hello__any_flipped_bit_or_truncation__is_refused") {
  std::vector<std::byte> bytes = encode(some_hello());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
    bytes[bit / 8] ^= mask;
    REQUIRE(!decode_hello(bytes));
    bytes[bit / 8] ^= mask;
  }
  for (size_t length = 0; length < bytes.size(); ++length) REQUIRE(!decode_hello(Bytes(bytes).first(length)));
  bytes.push_back(std::byte{0});
  CHECK(!decode_hello(bytes));
}

TEST_CASE("hello__optional_tlv_is_skipped__mandatory_one_and_impossible_lane_refused") {
  for (const unsigned mandatory : {0u, 0x80u}) {
    std::vector<std::byte> bytes = encode(some_hello());
    bytes.erase(bytes.end() - 6, bytes.end());
    for (const unsigned byte : {7u, 0u, 5u, mandatory, 1u, 0u, 0u, 0u, 0xeeu, 0u, 0u, 0u, 0u}) {
      bytes.push_back(static_cast<std::byte>(byte));
    }
    const Result<Hello> hello = decode_hello(forged(bytes));
    REQUIRE(hello.has_value() == (mandatory == 0));
    if (!hello) CHECK(hello.error().kind == ErrorKind::protocol);
    if (!hello) CHECK(hello.error().message == words_of_unknown("hello", 5));
    bytes[bytes.size() - 9] = std::byte{2};  // the TLV is longer than the room for TLVs
    REQUIRE(!decode_hello(forged(bytes)));
    CHECK(decode_hello(forged(bytes)).error().message == "malformed session hello");
  }
  std::vector<std::byte> lane = encode(some_hello());
  lane[33] = std::byte{4};  // lane 1027
  CHECK(!decode_hello(forged(lane)));
  std::vector<std::byte> new_session = encode(some_hello());
  for (size_t i = 24; i < 32; ++i) new_session[i] = std::byte{0};  // a new session on lane 3
  CHECK(!decode_hello(forged(new_session)));
}

TEST_CASE("cut__long_lists__fit_and_add_up") {
  Want want;
  want.index = 3;
  for (uint64_t i = 0; i < 1000; ++i) want.ranges.push_back({2 * i, 1});
  uint64_t next = 0;
  for (const Message& part : cut(want)) {
    const Result<Decoded> decoded = decode(encode(part, 1));
    REQUIRE(decoded);
    CHECK(std::get<Want>(decoded->message).index == 3);
    for (const Want::Range& range : std::get<Want>(decoded->message).ranges) CHECK(range.first == 2 * next++);
  }
  CHECK(next == 1000);

  FileResults results;
  for (uint64_t i = 0; i < 500; ++i) results.results.push_back({i, ErrorKind::ok, 0});
  next = 0;
  for (const Message& part : cut(results)) {
    const Result<Decoded> decoded = decode(encode(part, 1));
    REQUIRE(decoded);
    for (const FileResult& result : std::get<FileResults>(decoded->message).results) CHECK(result.index == next++);
  }
  CHECK(next == 500);
  CHECK(cut(FileResults{}).empty());
  CHECK(cut(Want{}).empty());
  CHECK(cut(Answer{}).empty());
}

TEST_CASE("cut__answer_of_more_runs_than_a_message_holds__each_part_decodes") {
  Answer answer;
  answer.first_index = 5;
  for (size_t i = 0; i < 2 * answer_runs_max + 1; ++i) answer.runs.push_back({1, i % 2 == 0 ? Verdict::done : Verdict::send});
  uint64_t next = 5;
  for (const Message& part : cut(answer)) {
    const Result<Decoded> decoded = decode(encode(part, 1));
    REQUIRE(decoded);
    const auto& back = std::get<Answer>(decoded->message);
    CHECK(back.first_index == next);
    CHECK(back.runs.size() <= answer_runs_max);
    for (const Answer::Run& run : back.runs) {
      CHECK(run.count == 1);
      CHECK(run.verdict == ((next++ - 5) % 2 == 0 ? Verdict::done : Verdict::send));
    }
  }
  CHECK(next == 5 + 2 * answer_runs_max + 1);
}

TEST_CASE("cut__answer_of_many_and_huge_runs__covers_each_index_once") {
  Answer answer;
  answer.first_index = 10;
  uint64_t total = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    answer.runs.push_back({i % 7 == 0 ? entries_outstanding_max + 5 : 1, session::Verdict(i % 5)});
    total += answer.runs.back().count;
  }
  uint64_t next = 10;
  for (const Message& part : cut(answer)) {
    const Result<Decoded> decoded = decode(encode(part, 1));
    REQUIRE(decoded);
    const auto& run_list = std::get<Answer>(decoded->message);
    CHECK(run_list.first_index == next);
    for (const Answer::Run& run : run_list.runs) next += run.count;
  }
  CHECK(next == 10 + total);
}

TEST_CASE("message__lane_open__stripes_and_mailboxes_within_their_bounds") {
  const auto decodes = [](uint32_t stripe_count, uint64_t mailbox_base) {
    std::vector<std::byte> bytes = encode(LaneOpen{1, mailbox_base, 2, 1}, 0);
    for (size_t i = 0; i < 4; ++i) bytes[bytes.size() - 8 + i] = static_cast<std::byte>(stripe_count >> (8 * i));
    return decode(forged(bytes)).has_value();
  };
  CHECK_FALSE(decodes(0, 0));
  CHECK(decodes(1, 0));
  CHECK(decodes(stripes, 0));
  CHECK_FALSE(decodes(stripes + 1, 0));
  constexpr uint64_t last = ~uint64_t{0};
  CHECK(decodes(1, last - 1));
  CHECK_FALSE(decodes(1, last));
  CHECK(decodes(stripes, last - stripes));
  CHECK_FALSE(decodes(stripes, last - stripes + 1));
}

// What counts tell at the end of a session is no reason to end one in the middle.
TEST_CASE("abort__of_each_kind__its_own_words_or_a_protocol_error") {
  const std::set<ErrorKind> of_the_end{ErrorKind::ok, ErrorKind::partial, ErrorKind::vanished, ErrorKind::max_delete};
  for (uint8_t i = 0; i <= static_cast<uint8_t>(ErrorKind::bug); ++i) {
    const auto kind = static_cast<ErrorKind>(i);
    const Error error = error_of(Abort{kind, "words"}, "the peer");
    CHECK(ends_a_session(kind) == (of_the_end.count(kind) == 0));
    CHECK(error.kind == (ends_a_session(kind) ? kind : ErrorKind::protocol));
    CHECK((error.message == "words") == ends_a_session(kind));
    if (!ends_a_session(kind)) CHECK(error.message.find("the peer ended the session in the middle") == 0);
  }
}

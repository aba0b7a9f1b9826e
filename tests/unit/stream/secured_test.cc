// The records of a secured connection by themselves: what opens, and that nothing else does.
#include "transports/stream/secured.h"

#include <catch2/catch.hpp>

#include "core/wire/connection_frames.h"
#include "tests/unit/stream/own_trust.h"

namespace ccixfer::stream::testing {
namespace {

using ccixfer::testing::OwnTrust;
using Buffer = std::vector<std::byte>;

// What TLS said, out of its frames.
Buffer records_in(const Buffer& frames) {
  Buffer all;
  Bytes left(frames);
  while (!left.empty()) {
    const auto prefix = wire::decode_prefix(left);
    REQUIRE(prefix);
    REQUIRE(prefix->kind == wire::Kind::handshake);
    const auto frame = wire::decode_handshake(left.first(prefix->header_bytes));
    REQUIRE(frame);
    all.insert(all.end(), frame->records.begin(), frame->records.end());
    left = left.subspan(prefix->header_bytes);
  }
  return all;
}

struct TwoEnds {
  TwoEnds() {
    REQUIRE(dialler.step({}));
    for (int round = 0; round < 4; ++round) {
      if (dialler.has_output()) REQUIRE(acceptor.step(records_in(std::exchange(dialler.output(), {}))));
      if (acceptor.has_output()) REQUIRE(dialler.step(records_in(std::exchange(acceptor.output(), {}))));
    }
    REQUIRE(dialler.has_keys());
    REQUIRE(acceptor.has_keys());
  }
  static Buffer sealed(Secured& by, std::string_view text) {
    Buffer record(wire::sealed_overhead_bytes + text.size());
    std::memcpy(record.data() + wire::sealed_prefix_bytes, text.data(), text.size());
    by.seal(record);
    return record;
  }
  static std::string opened(Secured& by, Buffer record) {
    const auto text = by.open(record);
    return text ? std::string(as_text(*text)) : "nothing";
  }

  void prepare() {
    for (Secured* end : {&dialler, &acceptor}) end->prepare();
  }

  OwnTrust one, other;
  Secured dialler{one.handshake(trust::HandshakeSide::dialler)};
  Secured acceptor{other.handshake(trust::HandshakeSide::acceptor)};
};

TEST_CASE("secured__a_handshake__both_know_each_other_and_read_what_the_other_sealed") {
  const bool prepared = GENERATE(false, true);
  TwoEnds ends;
  CHECK(ends.dialler.peer_name() == ends.other.name());
  CHECK(ends.acceptor.peer_name() == ends.one.name());
  CHECK(ends.dialler.cipher() == ends.acceptor.cipher());
  CHECK_FALSE(ends.dialler.is_confirmed());
  for (int i = 0; i < 3; ++i) {
    if (prepared) ends.prepare();
    const Buffer there = TwoEnds::sealed(ends.dialler, "a question, sealed");
    CHECK(as_text(there).find("question") == std::string_view::npos);
    CHECK(TwoEnds::opened(ends.acceptor, there) == "a question, sealed");
    CHECK(TwoEnds::opened(ends.dialler, TwoEnds::sealed(ends.acceptor, "an answer, sealed")) == "an answer, sealed");
  }
  CHECK(ends.dialler.is_confirmed());
}

TEST_CASE("secured__a_bit_changed_anywhere_in_a_record__it_does_not_open_and_nothing_after_it") {
  const bool prepared = GENERATE(false, true);
  for (size_t at = 0; at < wire::sealed_overhead_bytes + 14; ++at) {
    CAPTURE(at, prepared);
    TwoEnds ends;
    if (prepared) ends.prepare();
    Buffer record = TwoEnds::sealed(ends.dialler, "fourteen bytes");
    const Buffer whole = record;
    record[at] ^= std::byte{1};
    CHECK(TwoEnds::opened(ends.acceptor, record) == "nothing");
    if (at >= wire::sealed_prefix_bytes) CHECK(TwoEnds::opened(ends.acceptor, whole) == "nothing");
  }
}

TEST_CASE("secured__a_record_cut_and_its_length_changed_with_it__does_not_open") {
  const std::string_view text = "all of it, or nothing of it";
  for (size_t left_bytes = wire::sealed_text_bytes_min; left_bytes < text.size(); ++left_bytes) {
    CAPTURE(left_bytes);
    TwoEnds ends;
    Buffer record = TwoEnds::sealed(ends.dialler, text);
    const Buffer tag(record.end() - wire::sealed_tag_bytes, record.end());
    wire::write_sealed_prefix(record.data(), {.skipped = 0, .text_bytes = static_cast<uint16_t>(left_bytes)});
    record.resize(wire::sealed_prefix_bytes + left_bytes);
    record.insert(record.end(), tag.begin(), tag.end());
    CHECK(TwoEnds::opened(ends.acceptor, record) == "nothing");
  }
}

TEST_CASE("secured__records_doubled_left_out_swapped_or_sent_back__do_not_open") {
  TwoEnds ends;
  const Buffer first = TwoEnds::sealed(ends.dialler, "the first one");
  const Buffer second = TwoEnds::sealed(ends.dialler, "the second one");
  SECTION("sent back") { CHECK(TwoEnds::opened(ends.dialler, first) == "nothing"); }
  SECTION("left out or swapped") { CHECK(TwoEnds::opened(ends.acceptor, second) == "nothing"); }
  SECTION("doubled") {
    CHECK(TwoEnds::opened(ends.acceptor, first) == "the first one");
    CHECK(TwoEnds::opened(ends.acceptor, first) == "nothing");
  }
  SECTION("of another connection") {
    TwoEnds others;
    CHECK(TwoEnds::opened(others.acceptor, first) == "nothing");
  }
}

TEST_CASE("secured__records_that_never_went_out__the_next_one_opens_and_a_lie_about_them_does_not") {
  const bool prepared = GENERATE(false, true);
  TwoEnds ends;
  REQUIRE(TwoEnds::opened(ends.acceptor, TwoEnds::sealed(ends.dialler, "the first one")) == "the first one");
  static_cast<void>(TwoEnds::sealed(ends.dialler, "never sent: 1"));
  static_cast<void>(TwoEnds::sealed(ends.dialler, "never sent: 2"));
  ends.dialler.drop(2);
  if (prepared) ends.prepare();
  // One that skips is dropped itself: all that it skipped counts again.
  static_cast<void>(TwoEnds::sealed(ends.dialler, "never sent: 3"));
  ends.dialler.drop(1);
  if (prepared) ends.prepare();
  const Buffer next = TwoEnds::sealed(ends.dialler, "the next one");
  SECTION("honest") { CHECK(TwoEnds::opened(ends.acceptor, next) == "the next one"); }
  SECTION("and the one after it") {
    REQUIRE(TwoEnds::opened(ends.acceptor, next) == "the next one");
    CHECK(TwoEnds::opened(ends.acceptor, TwoEnds::sealed(ends.dialler, "the last one")) == "the last one");
  }
  SECTION("a lie") {
    Buffer changed = next;
    changed[1] = std::byte{2};
    CHECK(TwoEnds::opened(ends.acceptor, changed) == "nothing");
  }
}

}  // namespace
}  // namespace ccixfer::stream::testing

// The plan of a measurement: options, bounds, and the messages that carry it.
#include "app/bench/plan.h"

#include <catch2/catch.hpp>

#include "app/bench/messages.h"

using namespace ccixfer;
using namespace ccixfer::bench;

namespace {

std::string complaint(const PlanText& text) {
  const auto plan = make_plan(text);
  if (plan) return "";
  CHECK(plan.error().kind == ErrorKind::usage);
  CHECK(plan.error().message.find('\n') == std::string::npos);
  return plan.error().message;
}

Open sane_open() {
  Open open;
  open.slot_bytes = 4096;
  open.slots = 16;
  open.buffers = 64;
  open.reply_bytes = 64;
  open.landing.kind = ports::HandleKind::region;
  open.mailbox.kind = ports::HandleKind::mailbox;
  return open;
}

}  // namespace

TEST_CASE("plan__empty_text__defaults_within_their_bounds") {
  const auto plan = make_plan({});
  REQUIRE(plan);
  CHECK(plan->tests.size() == 7);
  CHECK(plan->message_bytes == 64);
  CHECK(plan->depth == 16);
}

TEST_CASE("plan__every_option__becomes_what_it_says") {
  PlanText text;
  text.tests = "rma-read,empty-turn";
  text.message_size = "1KiB";
  text.sizes = "1,64MiB";
  text.depth = "256";
  text.count = "7";
  text.seconds = "0.25";
  text.timeout = "3";
  text.connections = "15000";
  const auto plan = make_plan(text);
  REQUIRE(plan);
  CHECK(plan->tests == std::vector<Test>{Test::rma_read, Test::empty_turn});
  CHECK(plan->message_bytes == 1024);
  CHECK(plan->sizes_bytes == std::vector<uint64_t>{1, 64u << 20});
  CHECK(plan->depth == 256);
  CHECK(plan->count == 7);
  CHECK(plan->row_time == std::chrono::milliseconds(250));
  CHECK(plan->timeout == std::chrono::seconds(3));
  CHECK(plan->connections == 15000);
}

TEST_CASE("plan__bad_values__one_line_that_names_the_option") {
  CHECK(complaint({.tests = "latency"}).find("--tests latency") != std::string::npos);
  CHECK(complaint({.tests = "connect,"}).find("--tests") != std::string::npos);
  CHECK(complaint({.message_size = "0"}).find("--message-size 0") != std::string::npos);
  CHECK(complaint({.sizes = "64KiB,"}).find("--sizes") != std::string::npos);
  CHECK(complaint({.sizes = "65MiB"}).find("--sizes 65MiB") != std::string::npos);
  CHECK(complaint({.sizes = "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"}).find("at most") !=
        std::string::npos);
  CHECK(complaint({.depth = "0"}).find("--depth 0") != std::string::npos);
  CHECK(complaint({.depth = "257"}).find("1 to 256") != std::string::npos);
  CHECK(complaint({.depth = "1x"}).find("--depth") != std::string::npos);
  CHECK(complaint({.depth = "99999999999"}).find("--depth") != std::string::npos);  // what does not fit leaves no default either
  CHECK(complaint({.count = "-1"}).find("--count") != std::string::npos);
  CHECK(complaint({.count = "99999999999"}).find("--count") != std::string::npos);
  CHECK(complaint({.seconds = "0"}).find("--seconds 0") != std::string::npos);
  CHECK(complaint({.seconds = "nan"}).find("--seconds nan") != std::string::npos);
  CHECK(complaint({.seconds = "inf"}).find("--seconds inf") != std::string::npos);
  CHECK(complaint({.timeout = "1e300"}).find("--timeout") != std::string::npos);
  CHECK(complaint({.connections = "15001"}).find("--connections") != std::string::npos);
  CHECK(complaint({.tests = "a\nb"}).find("--tests") != std::string::npos);
  CHECK_FALSE(parse_wait("sleep"));
  CHECK(*parse_wait("spin") == Wait::spin);
  CHECK(*parse_wait("") == Wait::poll);
}

TEST_CASE("plan__bounds__the_last_that_is_taken_and_the_first_that_is_not") {
  const auto taken = [](const PlanText& text) { return complaint(text).empty(); };
  CHECK(taken({.message_size = "1"}));
  CHECK(taken({.message_size = "64MiB"}));
  CHECK_FALSE(taken({.message_size = "67108865"}));
  CHECK_FALSE(taken({.sizes = "67108865"}));
  CHECK_FALSE(taken({.sizes = "0"}));
  CHECK(taken({.sizes = "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"}));
  CHECK(taken({.depth = "1"}));
  CHECK(taken({.count = "1"}));
  CHECK(taken({.count = "2097152"}));
  CHECK(complaint({.count = "2097153"}) == "bad value: --count 2097153: give a whole number from 1 to 2097152");
  CHECK_FALSE(taken({.count = "0"}));
  CHECK(taken({.connections = "1"}));
  CHECK_FALSE(taken({.connections = "0"}));
  CHECK(taken({.seconds = "0.001"}));
  CHECK(taken({.seconds = "3600"}));
  CHECK(complaint({.seconds = "0.0009"}) == "bad value: --seconds 0.0009: give seconds from 0.001 to 3600");
  CHECK_FALSE(taken({.seconds = "3600.1"}));
  CHECK_FALSE(taken({.seconds = "1s"}));
  CHECK(taken({.timeout = "86400"}));
  CHECK_FALSE(taken({.timeout = "86401"}));
  CHECK(complaint({.message_size = "x"}) == "bad value: --message-size x: give a size from 1 to 67108864 bytes, such as 64KiB");
  CHECK(complaint({.tests = "x"}) ==
        "bad value: --tests x: name some of "
        "message-latency,message-rate,rma-write,rma-read,rvma-put,completion,connect,empty-turn");
  CHECK(parse_wait("").value() == Wait::poll);
  CHECK(parse_wait("poll").value() == Wait::poll);
  CHECK(parse_wait("sleep").error().message == "bad value: --wait sleep: give spin or poll");
  CHECK(to_string(Wait::spin) == "spin");
  CHECK(to_string(Wait::poll) == "poll");
  CHECK(to_string(Test::completion) == "completion");
}

TEST_CASE("bench_messages__round_trip_and_any_prefix__whole_or_refused") {
  const std::vector<std::byte> open = encode(sane_open());
  REQUIRE(decode_open(open));
  CHECK(decode_open(open)->buffers == 64);
  CHECK(decode_open(open)->mailbox == sane_open().mailbox);
  Opened there;
  there.region.number = 5;
  there.wait = Wait::spin;
  const std::vector<std::byte> opened = encode(there);
  REQUIRE(decode_opened(opened));
  CHECK(decode_opened(opened)->region.number == 5);
  CHECK(decode_opened(opened)->wait == Wait::spin);
  for (size_t size = 0; size < open.size(); ++size) CHECK_FALSE(decode_open(Bytes(open).first(size)));
  for (size_t size = 0; size < opened.size(); ++size) CHECK_FALSE(decode_opened(Bytes(opened).first(size)));
  std::vector<std::byte> more = open;
  more.push_back({});
  CHECK_FALSE(decode_open(more));
  CHECK_FALSE(decode_open(opened));
  CHECK(decode_want(encode_want(77)) == 77);
  CHECK_FALSE(decode_want(encode_padded(Kind::want, 8)));
  CHECK_FALSE(decode_want(encode_padded(Kind::echo, 9)));
  std::vector<std::byte> other = encode_address(there.region);
  other[0] = std::byte{static_cast<uint8_t>(Kind::want)};
  CHECK_FALSE(decode_address(other));
  std::vector<std::byte> as_opened = open, as_open = opened;
  as_opened[0] = opened[0], as_open[0] = open[0];
  CHECK_FALSE(decode_opened(as_opened));
  CHECK_FALSE(decode_open(as_open));
  std::vector<std::byte> sleeping = opened;
  sleeping.back() = std::byte{2};
  CHECK_FALSE(decode_opened(sleeping));
  CHECK(decode_address(encode_address(there.region)) == there.region);
  CHECK_FALSE(decode_address(encode_want(1)));
  CHECK_FALSE(kind_of({}));
  CHECK_FALSE(kind_of(std::vector<std::byte>{std::byte{0}}));
  CHECK_FALSE(kind_of(std::vector<std::byte>{std::byte{9}}));
  CHECK(encode_padded(Kind::echo, 0).size() == 1);
}

TEST_CASE("bench_messages__open_beyond_the_bounds__refused") {
  const auto refused = [](auto change) {
    Open open = sane_open();
    change(open);
    return !decode_open(encode(open));
  };
  CHECK_FALSE(refused([](Open&) {}));
  CHECK_FALSE(refused([](Open& o) { o.slot_bytes = size_bytes_max, o.slots = 4; }));
  CHECK(refused([](Open& o) { o.slot_bytes = size_bytes_max, o.slots = 5; }));
  CHECK_FALSE(refused([](Open& o) { o.slots = depth_max; }));
  CHECK_FALSE(refused([](Open& o) { o.slots = 1; }));
  CHECK_FALSE(refused([](Open& o) { o.buffers = 4 * depth_max; }));
  CHECK_FALSE(refused([](Open& o) { o.buffers = 1; }));
  CHECK_FALSE(refused([](Open& o) { o.reply_bytes = o.slot_bytes; }));
  CHECK_FALSE(refused([](Open& o) { o.slot_bytes = o.reply_bytes = 1; }));
  CHECK(refused([](Open& o) { o.slot_bytes = 0; }));
  CHECK(refused([](Open& o) { o.slot_bytes = size_bytes_max + 1; }));
  CHECK(refused([](Open& o) { o.slot_bytes = UINT64_MAX; }));
  CHECK(refused([](Open& o) { o.slots = 0; }));
  CHECK(refused([](Open& o) { o.slots = depth_max + 1; }));
  CHECK(refused([](Open& o) { o.slot_bytes = 2u << 20, o.slots = 129; }));
  CHECK(refused([](Open& o) { o.buffers = 0; }));
  CHECK(refused([](Open& o) { o.buffers = 4 * depth_max + 1; }));
  CHECK(refused([](Open& o) { o.reply_bytes = 0; }));
  CHECK(refused([](Open& o) { o.reply_bytes = o.slot_bytes + 1; }));
}

TEST_CASE("bench_hello__other_version_or_service__none") {
  const std::vector<std::byte> hello = encode_hello(Purpose::extra);
  CHECK(decode_hello(hello) == Purpose::extra);
  for (size_t i = 0; i < hello.size(); ++i) {
    std::vector<std::byte> changed = hello;
    changed[i] ^= std::byte{0x40};
    CHECK_FALSE(decode_hello(changed));
    CHECK_FALSE(decode_hello(Bytes(hello).first(i)));
  }
}

TEST_CASE("plan__plot__what_is_drawn_by_powers_of_two_unless_told_otherwise") {
  const auto plan = make_plan({.plots = true});
  REQUIRE(plan);
  CHECK(plan->tests == std::vector<Test>{Test::message_latency, Test::rma_write, Test::rma_read, Test::rvma_put});
  CHECK(plan->sweeps_messages);
  REQUIRE(plan->sizes_bytes.size() == 11);
  for (size_t i = 0; i < 11; ++i) CHECK(plan->sizes_bytes[i] == uint64_t{4096} << i);
  CHECK_FALSE(make_plan({})->sweeps_messages);
  const auto told = make_plan({.tests = "rma-read,connect", .sizes = "1,5MiB", .plots = true});
  REQUIRE(told);
  CHECK(told->tests == std::vector<Test>{Test::rma_read, Test::connect});
  CHECK(told->sizes_bytes == std::vector<uint64_t>{1, 5u << 20});
  CHECK(complaint({.tests = "connect,completion", .plots = true}).find("--tests") != std::string::npos);
  CHECK(complaint({.tests = "connect,completion"}).empty());
}

// Filled segments to lanes.
#include "app/send/segment_sender.h"

#include <catch2/catch.hpp>

#include "tests/unit/send/fake_receiver.h"
#include "tests/unit/session/whole_segment.h"

namespace ccixfer::send_test {
namespace {

using send::SegmentSender;
using session::SegmentKind;

struct TakenPut {
  LaneIndex lane = 0;
  uint64_t context = 0;
  uint64_t n = 0;
  uint64_t index = 0;
};

class HeardLink final : public LinkEnd {
 public:
  std::function<Status(LaneIndex)> accept = [](LaneIndex) { return Status::success; };
  std::vector<TakenPut> puts;
  MutableBytes memory;
  Status on_put(LaneIndex lane, uint64_t offset, uint64_t length, uint64_t /*mailbox*/, uint64_t /*key*/, uint64_t /*epoch*/,
                uint64_t context) override {
    if (const Status status = accept(lane); status != Status::success) return status;
    const Result<session::SegmentHeader> header = session_test::open(memory.subspan(offset, length));
    REQUIRE(header);
    puts.push_back({lane, context, header->n, header->index});
    return Status::success;
  }
};

struct SenderBench {
  explicit SenderBench(uint64_t rate_bytes_per_s = 0)
      : pool(session::segment_bytes_max, 8),
        share(pool, nullptr),
        sender(link.link(), ports::Handle{}, std::make_shared<send::RateCap>(rate_bytes_per_s)) {
    link.memory = pool.memory();
  }
  void lane(LaneIndex index, uint64_t limit, bool asks = false) {
    sender.lane_up(index);
    REQUIRE(sender.lane_opened(index, session::LaneOpen{100u + index, 1000, 5, 16}));
    REQUIRE(sender.credit(index, session::Credit{limit, asks}));
  }
  void add(SegmentKind kind, uint64_t index) {
    send::FilledSegment segment;
    segment.buffer = share.lend();
    REQUIRE(segment.buffer);
    segment.header.kind = kind;
    segment.header.index = index;
    segment.header.data_bytes = 8;
    segment.header.hash = xxh3_128(segment.buffer.bytes().first(8));
    segment.payload_bytes = kind == SegmentKind::piece ? 8 : 0;
    if (kind == SegmentKind::pack) segment.files = {index, index + 1};
    sender.add(std::move(segment));
  }
  std::optional<session::SegmentHeader> end(size_t put, Status status = Status::success) {
    return sender.put_ended(link.puts.at(put).lane, link.puts.at(put).context, status);
  }

  HeardLink link;
  memory::Pool pool;
  send::BufferShare share;
  SegmentSender sender;
  Instant now{std::chrono::hours(5)};
};

TEST_CASE("sender__entries_and_data_are_ready__entries_go_first_and_numbers_are_dense") {
  SenderBench bench;
  bench.add(SegmentKind::piece, 1);
  bench.add(SegmentKind::entries, 2);
  bench.sender.send_ready_segments(bench.now);
  CHECK(bench.link.puts.empty());
  CHECK(bench.sender.data_ready() == 1);
  bench.lane(0, 2);
  bench.sender.send_ready_segments(bench.now);
  REQUIRE(bench.link.puts.size() == 2);
  CHECK(bench.link.puts[0].index == 2);
  CHECK(bench.link.puts[1].n == 1);
  CHECK(bench.sender.bytes_sent() == 8);
  CHECK(bench.sender.entries_segments() == 1);
  CHECK(bench.end(0)->kind == SegmentKind::entries);
  CHECK(bench.sender.entries_segments() == 0);
  CHECK(bench.end(1)->index == 1);
  CHECK(bench.share.held() == 0);
}

TEST_CASE("sender__put_fails_for_a_moment__goes_again_after_a_pause_with_its_number") {
  SenderBench bench;
  bench.lane(0, 1);
  bench.add(SegmentKind::piece, 1);
  bench.sender.send_ready_segments(bench.now);
  CHECK_FALSE(bench.end(0, Status::mailbox_busy));
  bench.sender.retry_puts(bench.now);
  CHECK(bench.link.puts.size() == 1);
  const Instant due = bench.now + send::put_retry_pause;
  CHECK(bench.sender.next_deadline(bench.now) == due);
  bench.sender.retry_puts(due);
  REQUIRE(bench.link.puts.size() == 2);
  CHECK(bench.link.puts[1].n == 0);
  CHECK(bench.sender.segments_resent() == 1);
  CHECK(bench.end(1));
}

TEST_CASE("sender__put_fails_otherwise__its_lane_is_closed_and_the_segment_goes_on_another") {
  SenderBench bench;
  bench.lane(0, 4);
  bench.add(SegmentKind::piece, 1);
  bench.sender.send_ready_segments(bench.now);
  bench.lane(1, 4);
  CHECK_FALSE(bench.end(0, Status::rma_handle));
  CHECK(bench.sender.has_lanes_to_close());
  bench.sender.close_lost_lanes();
  CHECK(bench.link.closed == std::vector<LaneIndex>{0});
  CHECK_FALSE(bench.sender.has_lanes_to_close());
  bench.sender.send_ready_segments(bench.now);
  REQUIRE(bench.link.puts.size() == 2);
  CHECK(bench.link.puts[1].lane == 1);
}

TEST_CASE("sender__lane_goes_while_a_put_waits_for_another_try__the_segment_goes_on_another") {
  SenderBench bench;
  bench.lane(0, 4);
  bench.add(SegmentKind::piece, 1);
  bench.sender.send_ready_segments(bench.now);
  CHECK_FALSE(bench.end(0, Status::mailbox_empty));
  bench.sender.lane_gone(0);
  CHECK(bench.sender.next_deadline(bench.now) == never);
  bench.lane(1, 4);
  bench.sender.send_ready_segments(bench.now);
  REQUIRE(bench.link.puts.size() == 2);
  CHECK(bench.link.puts[1].lane == 1);
  CHECK(bench.link.puts[1].n == 0);
  bench.lane(0, 4);  // a new lane session, in which nothing is to be tried again
  for (int i = 1; i < 4; ++i) bench.sender.retry_puts(bench.now + i * send::put_retry_pause);
  CHECK(bench.link.puts.size() == 2);
}

TEST_CASE("sender__link_takes_no_more__the_lane_rests_until_the_next_turn") {
  SenderBench bench;
  bench.lane(0, 4);
  bench.link.accept = [](LaneIndex) { return Status::no_buffers; };
  bench.add(SegmentKind::piece, 1);
  bench.sender.send_ready_segments(bench.now);
  CHECK(bench.link.puts.empty());
  CHECK_FALSE(bench.sender.has_lanes_to_close());
  bench.link.accept = [](LaneIndex) { return Status::success; };
  bench.sender.send_ready_segments(bench.now);
  CHECK(bench.link.puts.empty());
  bench.sender.retry_puts(bench.now);
  bench.sender.send_ready_segments(bench.now);
  CHECK(bench.link.puts.size() == 1);
}

TEST_CASE("sender__destination_wants_to_be_asked__one_question_for_each_ready_segment") {
  SenderBench bench;
  for (LaneIndex lane = 0; lane < 3; ++lane) bench.lane(lane, 0, true);
  bench.add(SegmentKind::piece, 1);
  bench.add(SegmentKind::piece, 2);
  bench.sender.send_ready_segments(bench.now);
  REQUIRE(bench.link.asks.size() == 2);
  CHECK(bench.link.asks[1].first == 1);
  bench.sender.send_ready_segments(bench.now);  // the answers are on their way
  CHECK(bench.link.asks.size() == 2);
  bench.add(SegmentKind::piece, 3);
  bench.sender.send_ready_segments(bench.now);
  CHECK(bench.link.asks.size() == 3);
}

TEST_CASE("sender__rate__a_segment_waits_until_the_debt_is_paid") {
  SenderBench bench(1000);
  bench.lane(0, 4);
  bench.add(SegmentKind::piece, 1);
  bench.add(SegmentKind::piece, 2);
  bench.sender.send_ready_segments(bench.now);
  CHECK(bench.link.puts.size() == 1);
  CHECK(bench.sender.waits_for_rate(bench.now));
  const Instant due = bench.sender.next_deadline(bench.now);
  CHECK((due > bench.now && due < never));
  bench.sender.send_ready_segments(due);
  CHECK(bench.link.puts.size() == 2);
}

TEST_CASE("sender__put_of_long_ago__its_content_is_found_while_it_is_one_of_the_last") {
  SenderBench bench;
  bench.lane(0, 2000);
  for (uint64_t i = 0; i <= send::sent_puts_max; ++i) {
    bench.add(SegmentKind::pack, 10 * i);
    bench.sender.send_ready_segments(bench.now);
    CHECK(bench.end(i));
  }
  CHECK(bench.sender.find_sent(100, 0) == nullptr);
  REQUIRE(bench.sender.find_sent(100, 1) != nullptr);
  CHECK(bench.sender.find_sent(100, 1)->files == std::vector<uint64_t>{10, 11});
  CHECK(bench.sender.find_sent(101, 1) == nullptr);
}

}  // namespace
}  // namespace ccixfer::send_test

// The fragments of RMA operations at the initiator, against a way that notes what is asked of it.
#include "routing/transport/fragmented_rma.h"

#include <catch2/catch.hpp>

#include "tests/unit/cci/fake_transport.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using Verdict = FragmentedRma::Verdict;

namespace {

constexpr uint32_t fragment = 1u << 16;

struct Noted final : FragmentedRma::Way {
  void post(std::vector<std::byte> message) override { posted.push_back(std::move(message)); }
  Status read(const FragmentedRma::Read& read) override {
    if (answer == Status::success) reads.push_back(read);
    return answer;
  }
  void source_is_free(uint64_t token) override { free.push_back(token); }
  void lends() override { ++lent; }
  void has_work() override { ++woken; }
  void ended(const FragmentedRma::Ended& ended) override { ends.push_back(ended); }
  // What was asked of the next router since the last call.
  std::vector<FragmentMessage> asked() {
    std::vector<FragmentMessage> found;
    for (const auto& message : std::exchange(posted, {})) {
      if (const auto one = decode_fragment(message)) found.push_back(*one);
    }
    return found;
  }

  std::vector<std::vector<std::byte>> posted;
  std::vector<FragmentedRma::Read> reads;
  std::vector<FragmentedRma::Ended> ends;
  std::vector<uint64_t> free;
  int lent = 0, woken = 0;
  Status answer = Status::success;
};

struct Initiator {
  uint64_t start(size_t bytes, uint64_t token, bool write = true, bool mailbox = false) {
    ports::RmaRequest request;
    request.write = write;
    if (write) {
      request.source = Bytes(local).first(bytes);
    } else {
      request.destination = MutableBytes(local).first(bytes);
    }
    request.local.region = whole;
    request.remote.handle.kind = mailbox ? ports::HandleKind::mailbox : ports::HandleKind::region;
    request.local_completion = write;
    request.has_completion_message = !announcement.empty();
    request.completion_message = as_bytes(announcement);
    const uint64_t number = rma->add(request, token, fragment);
    REQUIRE(number != 0);
    rma->start(number);
    return number;
  }
  std::vector<FragmentMessage> issue(uint32_t at_once = 64) {
    rma->issue(at_once, way);
    return way.asked();
  }
  FragmentMessage reply_to(const FragmentMessage& asked) {
    FragmentMessage reply;
    reply.kind = MessageKind::read_reply;
    reply.cookie = asked.cookie;
    reply.length_bytes = asked.length_bytes;
    reply.exposed.kind = ports::HandleKind::region;
    return reply;
  }

  cci::CountingEntropy entropy;
  Counters counters;
  std::shared_ptr<cci::MemoryTable> memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  std::vector<std::byte> local = std::vector<std::byte>(8 * fragment);
  ports::Handle whole = memory->register_region(local, 0);
  std::string announcement;
  Noted way;
  std::unique_ptr<FragmentedRma> rma = std::make_unique<FragmentedRma>(*memory);
};

}  // namespace

TEST_CASE("fragmented_rma__several_writes__take_turns_within_the_bound") {
  Initiator at;
  at.start(3 * fragment, 1);
  at.start(2 * fragment, 2);
  const auto asked = at.issue(3);
  REQUIRE(asked.size() == 3);
  CHECK(asked[0].remote.offset_bytes == 0);
  CHECK(asked[1].remote.offset_bytes == 0);
  CHECK(asked[2].remote.offset_bytes == fragment);
  CHECK(at.issue(3).empty());
  CHECK(at.rma->acknowledged({asked[1].cookie, Status::success}, at.way) == Verdict::fine);
  CHECK(at.way.woken == 1);
  const auto next = at.issue(3);
  REQUIRE(next.size() == 1);
  CHECK(next[0].remote.offset_bytes == fragment);
  CHECK(at.rma->acknowledged({next[0].cookie, Status::success}, at.way) == Verdict::fine);
  REQUIRE(at.way.ends.size() == 1);
  CHECK(at.way.ends[0].token == 2);
  CHECK(at.rma->size() == 1);
}

TEST_CASE("fragmented_rma__a_write__source_free_when_released_and_ended_when_acknowledged") {
  Initiator at;
  at.announcement = "there";
  at.start(2 * fragment, 1);
  const auto asked = at.issue();
  REQUIRE(asked.size() == 2);
  CHECK(at.rma->released(asked[0].cookie, at.way) == Verdict::fine);
  CHECK(at.way.free.empty());
  CHECK(at.memory->deregister_region(asked[0].exposed) != Status::success);  // it is withdrawn
  CHECK(at.rma->released(asked[1].cookie, at.way) == Verdict::fine);
  CHECK(at.way.free == std::vector<uint64_t>{1});
  CHECK(at.rma->acknowledged({asked[0].cookie, Status::success}, at.way) == Verdict::fine);
  CHECK(at.way.ends.empty());
  CHECK(at.rma->acknowledged({asked[1].cookie, Status::success}, at.way) == Verdict::fine);
  REQUIRE(at.way.ends.size() == 1);
  CHECK(at.way.ends[0].ending.good());
  CHECK(at.way.ends[0].has_completion_message);
  CHECK(as_text(at.way.ends[0].completion_message) == "there");
  CHECK(at.way.free.size() == 1);
}

TEST_CASE("fragmented_rma__a_fragment_fails__no_more_begin_and_no_message_follows") {
  Initiator at;
  at.announcement = "there";
  at.start(5 * fragment, 1);
  const auto asked = at.issue(2);
  REQUIRE(asked.size() == 2);
  CHECK(at.rma->acknowledged({asked[0].cookie, Status::rma_op}, at.way) == Verdict::fine);
  CHECK(at.issue().empty());
  CHECK(at.way.ends.empty());
  CHECK(at.rma->acknowledged({asked[1].cookie, Status::success}, at.way) == Verdict::fine);
  REQUIRE(at.way.ends.size() == 1);
  CHECK(at.way.ends[0].ending.status == Status::rma_op);
  CHECK_FALSE(at.way.ends[0].has_completion_message);
}

TEST_CASE("fragmented_rma__a_put_of_several__the_first_goes_alone_until_admitted") {
  Initiator at;
  at.start(3 * fragment, 1, true, true);
  const auto first = at.issue();
  REQUIRE(first.size() == 1);
  CHECK(first[0].remote.put.total_bytes == 3 * fragment);
  CHECK(at.issue().empty());
  CHECK(at.rma->acknowledged({first[0].cookie, ports::OperationResult(Status::success, 4)}, at.way) == Verdict::fine);
  CHECK(at.issue().size() == 2);
}

TEST_CASE("fragmented_rma__a_read__is_pulled_when_it_is_there_and_the_router_told") {
  Initiator at;
  at.start(2 * fragment, 1, false);
  const auto asked = at.issue();
  REQUIRE(asked.size() == 2);
  at.way.answer = Status::no_buffers;
  CHECK(at.rma->replied(at.reply_to(asked[1]), at.way) == Verdict::fine);
  CHECK(at.rma->has_ready_reads());
  CHECK(at.way.woken == 1);
  at.way.answer = Status::success;
  at.rma->begin_reads(at.way);
  REQUIRE(at.way.reads.size() == 1);
  CHECK_FALSE(at.rma->has_ready_reads());
  CHECK(at.way.reads[0].local_offset_bytes == fragment);
  CHECK(at.way.reads[0].length_bytes == fragment);
  at.rma->read_ended(asked[1].cookie, Status::success, at.way);
  REQUIRE(at.way.posted.size() == 1);
  CHECK(decode_fragment_released(at.way.posted[0])->cookie == asked[1].cookie);
  CHECK(at.rma->replied(at.reply_to(asked[0]), at.way) == Verdict::fine);
  at.rma->read_ended(asked[0].cookie, Status::success, at.way);
  REQUIRE(at.way.ends.size() == 1);
  CHECK(at.way.ends[0].ending.good());
}

TEST_CASE("fragmented_rma__what_no_router_may_say__is_told_and_changes_nothing") {
  Initiator at;
  at.start(fragment, 1);
  at.start(fragment, 2, false);
  const auto asked = at.issue();
  REQUIRE(asked.size() == 2);
  const FragmentMessage& write = asked[0];
  const FragmentMessage& read = asked[1];
  CHECK(at.rma->released(99, at.way) == Verdict::unknown);
  CHECK(at.rma->acknowledged({99, Status::success}, at.way) == Verdict::unknown);
  CHECK(at.rma->acknowledged({read.cookie, Status::success}, at.way) == Verdict::unknown);
  CHECK(at.rma->replied(at.reply_to(write), at.way) == Verdict::unknown);
  FragmentMessage shorter = at.reply_to(read);
  --shorter.length_bytes;
  CHECK(at.rma->replied(shorter, at.way) == Verdict::violation);
  CHECK(at.rma->replied(at.reply_to(read), at.way) == Verdict::fine);
  CHECK(at.rma->replied(at.reply_to(read), at.way) == Verdict::unknown);  // it came already
  CHECK(at.way.reads.size() == 1);
  at.rma->read_ended(write.cookie, Status::success, at.way);  // of no read
  CHECK(at.way.ends.empty());
  CHECK(at.rma->size() == 2);
}

TEST_CASE("fragmented_rma__the_connection_is_over__what_reads_below_use_stays") {
  Initiator at;
  at.start(fragment, 1);
  at.start(fragment, 2, false);
  at.start(fragment, 3, false);
  const auto asked = at.issue();
  REQUIRE(asked.size() == 3);
  CHECK(at.rma->replied(at.reply_to(asked[1]), at.way) == Verdict::fine);
  at.way.answer = Status::no_buffers;
  CHECK(at.rma->replied(at.reply_to(asked[2]), at.way) == Verdict::fine);
  at.rma->withdraw_all(at.way);
  CHECK(at.memory->deregister_region(asked[0].exposed) != Status::success);
  CHECK_FALSE(at.rma->has_ready_reads());
  at.rma->end_unused(at.way);
  REQUIRE(at.way.ends.size() == 2);
  for (const auto& end : at.way.ends) {
    CHECK(end.token != 2);
    CHECK(end.ending.status == Status::disconnected);
  }
  CHECK(at.rma->size() == 1);
  at.way.posted.clear();
  at.rma->read_ended(asked[1].cookie, Status::success, at.way);
  CHECK(at.way.posted.empty());
  at.rma->end_unused(at.way);
  CHECK(at.rma->size() == 0);
  at.start(fragment, 4);
  CHECK(at.issue().empty());
}

TEST_CASE("fragmented_rma__gone_with_operations_in_flight__memory_is_withdrawn") {
  Initiator at;
  at.start(fragment, 1);
  const auto asked = at.issue();
  REQUIRE(asked.size() == 1);
  at.rma.reset();
  CHECK(at.memory->deregister_region(asked[0].exposed) != Status::success);
}

// The initiator's side of RMA as a pure machine: what may start, whom an answer means, how each ends.
#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using Phase = RmaInitiator::Phase;

struct Scene {
  RmaInitiator machine;
  MessageSender messages;
  Buffer memory = filled(1000, 1);
  struct End {
    uint64_t token;
    Status status;
    uint64_t detail;
    friend bool operator==(const End&, const End&) = default;
  };
  std::vector<End> ends;
  RmaInitiator::Ended record = [this](uint64_t token, ports::OperationResult ending) {
    ends.push_back({token, ending.status, ending.detail});
  };

  Scene() {
    machine.open(4);
    messages.open(4, false);
  }
  struct Kind {
    bool write = true;
    bool fence = false;
    uint64_t messages_before = 0;
  };
  void push(uint64_t token, const Kind& kind, std::optional<std::string_view> announcement = {}) {
    ports::RmaRequest request;
    request.write = kind.write;
    request.fence = kind.fence;
    if (kind.write) request.source = memory;
    if (!kind.write) request.destination = MutableBytes(memory).first(500);
    request.has_completion_message = announcement.has_value();
    if (announcement) request.completion_message = as_bytes(*announcement);
    machine.push(request, token, kind.messages_before);
  }
  // The tokens of those that start now.
  std::vector<uint64_t> start(uint64_t messages_ended = 0) {
    std::vector<uint64_t> tokens;
    machine.start(messages_ended);
    std::vector<uint32_t> slots;
    while (machine.write_due()) slots.push_back(machine.next_write());
    while (machine.request_due()) slots.push_back(machine.next_request());
    std::sort(slots.begin(), slots.end(), [this](uint32_t a, uint32_t b) { return machine.at(a).issue < machine.at(b).issue; });
    for (const uint32_t slot : slots) tokens.push_back(machine.at(slot).token);
    return tokens;
  }
  uint32_t slot_of(uint64_t token) {
    for (uint32_t slot = 0; slot < 4; ++slot) {
      if (machine.id(slot) != slot && machine.at(slot).token == token) return slot;
    }
    FAIL("no such operation");
    return 0;
  }
  void finish(uint64_t token, ports::OperationResult ending = Status::success) {
    machine.finish(slot_of(token), ending, messages, forever, record);
  }
  std::vector<std::string> sent() {
    std::vector<std::string> texts;
    while (messages.sendable()) {
      auto out = messages.take([](const MessageOwner&, Status) {});
      messages.sent(out.flight);
      texts.emplace_back(as_text(out.bytes.bytes()));
    }
    return texts;
  }
};

using Tokens = std::vector<uint64_t>;
using Ends = std::vector<Scene::End>;
constexpr uint64_t none = ports::OperationResult::none;

TEST_CASE("initiator__without_fences__all_start_at_once_and_the_slots_bound_them") {
  Scene s;
  CHECK(s.machine.empty());
  for (uint64_t token = 10; token < 14; ++token) {
    CHECK_FALSE(s.machine.full());
    s.push(token, {.write = token % 2 == 0});
    CHECK_FALSE(s.machine.empty());
  }
  CHECK(s.machine.full());
  CHECK(s.machine.issued() == 4);
  CHECK_FALSE(s.machine.fence_before(4));
  CHECK(s.start() == Tokens{10, 11, 12, 13});
  CHECK(s.start().empty());
  CHECK_FALSE(s.machine.empty());
  for (uint64_t token = 10; token < 14; ++token) {
    const bool write = token % 2 == 0;
    const RmaInitiator::Operation& operation = s.machine.at(s.slot_of(token));
    CHECK(operation.write == write);
    CHECK(operation.phase == (write ? Phase::sending : Phase::asked));
    CHECK(operation.total_bytes == (write ? 1000 : 500));
    CHECK(operation.source.size() == (write ? 1000 : 0));
    CHECK(operation.destination.size() == (write ? 0 : 500));
    s.finish(token, {Status::success, token});
    CHECK_FALSE(s.machine.full());
  }
  CHECK(s.ends == Ends{{10, Status::success, 10}, {11, Status::success, 11}, {12, Status::success, 12}, {13, Status::success, 13}});
  CHECK(s.machine.empty());
}

TEST_CASE("initiator__a_slot_used_again__has_another_name_and_nothing_of_the_one_before") {
  Scene s;
  s.push(1, {.write = true, .fence = true}, "announced");
  REQUIRE(s.start() == Tokens{1});
  const uint32_t slot = s.slot_of(1);
  const uint32_t first = s.machine.id(slot);
  CHECK(RmaInitiator::slot_of(first) == slot);
  s.machine.at(slot).done_bytes = 7;
  s.machine.at(slot).refused = true;
  s.machine.at(slot).lent_until = 7;
  s.finish(1, Status::rma_op);
  CHECK(s.machine.find(first, true) == nullptr);
  s.push(2, {.write = true});
  REQUIRE(s.start() == Tokens{2});
  REQUIRE(s.slot_of(2) == slot);
  const RmaInitiator::Operation& operation = s.machine.at(slot);
  CHECK(s.machine.id(slot) == first + 0x10000);
  CHECK(operation.done_bytes == 0);
  CHECK(operation.lent_until == 0);
  CHECK_FALSE(operation.refused);
  CHECK_FALSE(operation.fence);
  CHECK_FALSE(operation.announces);
  CHECK(s.machine.find(first, true) == nullptr);
  CHECK(s.machine.find(first + 0x10000, true) == &operation);
  s.push(3, {});
  CHECK(s.slot_of(3) != slot);  // one slot, one operation
}

TEST_CASE("initiator__an_answer__means_an_operation_in_flight_of_its_kind_and_no_other") {
  Scene s;
  s.push(1, {.write = true}, "told");
  s.push(2, {.write = false});
  const auto id = [&](uint64_t token) { return s.machine.id(s.slot_of(token)); };
  const uint32_t write = id(1), read = id(2);
  const auto found = [&](uint32_t name, bool is_write) { return s.machine.find(name, is_write) != nullptr; };
  CHECK_FALSE(found(write, true));  // it has not started
  CHECK_FALSE(found(read, false));
  REQUIRE(s.start() == Tokens{1, 2});
  CHECK(found(write, true));
  CHECK(found(read, false));
  CHECK_FALSE(found(write, false));
  CHECK_FALSE(found(read, true));
  CHECK_FALSE(found(write + 0x10000, true));
  CHECK_FALSE(found(write + 0x20000, true));
  CHECK_FALSE(found((write & 0xffff0000u) | 2, true));  // a slot beyond those that were used
  CHECK_FALSE(found((write & 0xffff0000u) | 0xffff, true));
  s.machine.all_sent(s.slot_of(1));
  CHECK(s.machine.at(s.slot_of(1)).phase == Phase::awaiting_end);
  CHECK(found(write, true));
  s.finish(1);
  CHECK(s.machine.at(s.slot_of(1)).phase == Phase::announcing);
  CHECK_FALSE(found(write, true));  // it was answered
  s.finish(2);
  CHECK_FALSE(found(read, false));
}

TEST_CASE("initiator__a_fence__waits_for_what_is_before_it_and_holds_what_is_behind_it") {
  Scene s;
  s.push(1, {});
  s.push(2, {.write = true, .fence = true, .messages_before = 3});
  s.push(3, {});
  CHECK_FALSE(s.machine.fence_before(0));
  CHECK_FALSE(s.machine.fence_before(1));  // the second operation is not among the first one
  CHECK(s.machine.fence_before(2));
  CHECK(s.machine.fence_before(3));
  CHECK(s.start(3) == Tokens{1});
  CHECK_FALSE(s.machine.fence_before(1));
  CHECK(s.machine.fence_before(2));
  s.finish(1);
  CHECK(s.start(2).empty());  // a message before it has not ended
  CHECK_FALSE(s.machine.empty());
  CHECK(s.start(3) == Tokens{2, 3});
  CHECK_FALSE(s.machine.fence_before(3));
  s.push(4, {.write = true, .fence = true});
  s.finish(2);
  CHECK(s.start().empty());  // the third is still in flight
  s.finish(3);
  CHECK(s.start() == Tokens{4});
}

TEST_CASE("initiator__a_completion_message__follows_success_only_and_ends_the_operation") {
  Scene s;
  s.push(1, {}, "one");
  s.push(2, {.write = false}, "two");
  s.push(3, {}, "three");
  s.push(4, {});
  REQUIRE(s.start().size() == 4);
  s.finish(1, {Status::success, 8});
  s.finish(2, Status::rma_handle);
  s.finish(3, {Status::success, 9});
  s.finish(4);
  CHECK(s.ends == Ends{{2, Status::rma_handle, none}, {4, Status::success, none}});
  CHECK(s.sent() == std::vector<std::string>{"one", "three"});
  CHECK_FALSE(s.machine.empty());
  CHECK(s.messages.issued() == 0);  // they are none of the application's
  s.ends.clear();
  const uint32_t first = s.slot_of(1), third = s.slot_of(3);
  s.machine.announced(first, Status::success, s.record);
  s.machine.announced(third, Status::receiver_not_ready, s.record);
  CHECK(s.ends == Ends{{1, Status::success, 8}, {3, Status::receiver_not_ready, none}});
  CHECK(s.machine.empty());
}

TEST_CASE("initiator__a_completion_message_that_ends__is_told_from_the_applications") {
  Scene s;
  s.push(1, {}, "one");
  REQUIRE(s.start() == Tokens{1});
  s.finish(1);
  REQUIRE(s.sent().size() == 1);
  std::vector<std::pair<bool, uint64_t>> owners;
  REQUIRE(s.messages.acknowledge(1, Status::success, Instant{},
                                 [&](const MessageOwner& owner, Status) { owners.emplace_back(owner.rma, owner.token); }));
  CHECK(owners == std::vector<std::pair<bool, uint64_t>>{{true, s.slot_of(1)}});
}

TEST_CASE("initiator__cancelled_before_a_byte_went_out__ends_so_and_frees_its_slot") {
  Scene s;
  s.push(1, {});
  REQUIRE(s.start() == Tokens{1});
  const uint32_t slot = s.slot_of(1);
  s.machine.cancel(slot, s.record);
  CHECK(s.ends == Ends{{1, Status::cancelled, none}});
  CHECK(s.machine.empty());
  s.push(2, {});
  CHECK(s.slot_of(2) == slot);
}

TEST_CASE("initiator__everything_fails__in_the_order_of_issue_whatever_slots_and_phases") {
  Scene s;
  s.push(1, {});
  s.push(2, {});
  s.push(3, {}, "three");
  REQUIRE(s.start() == Tokens{1, 2, 3});
  s.finish(1);
  s.finish(2);
  s.finish(3);
  s.push(4, {.write = false});
  s.push(5, {});
  REQUIRE(s.start() == Tokens{4, 5});
  REQUIRE(s.slot_of(4) > s.slot_of(5));  // the slots' order is another one
  s.push(6, {.write = true, .fence = true});
  CHECK(s.start().empty());
  s.ends.clear();
  s.machine.fail_all(Status::disconnected, s.record);
  CHECK(s.ends == Ends{{3, Status::disconnected, none},
                       {4, Status::disconnected, none},
                       {5, Status::disconnected, none},
                       {6, Status::disconnected, none}});
  CHECK(s.machine.empty());
  CHECK(s.start().empty());
  s.machine.fail_all(Status::disconnected, s.record);  // nothing is left
  CHECK(s.ends.size() == 4);
}

}  // namespace
}  // namespace ccixfer::stream::testing

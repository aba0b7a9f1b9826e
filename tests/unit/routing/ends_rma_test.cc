// RMA of a routing endpoint, as its next router sees it: how it is cut, how much goes at once, in what order, and which answers end
// it.
#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "routing/transport/routed_operations.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using cci::EventType;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t fragment = 16u << 10;
constexpr uint64_t page = 4096;

struct Met {
  Met() : peer(world, fabric, "lan", "10.0.0.66"), app(world, fabric, "lan", "10.0.0.2", {1, 1}, {"sim://10.0.0.66:7000"}) {
    peer.accepts = true;
    const auto made = app.endpoint->connect("cci://1:2:10.0.0.9:7000", {});
    REQUIRE(made);
    connection = *made;
    app.wake();
    REQUIRE(run([&] { return peer.last(MessageKind::connect_request).has_value(); }));
    peer.say(ConnectReply{Status::success, {}, 1392, fragment, {}, 0});
    REQUIRE(run([&] { return app.count(EventType::connect) > 0 && peer.last(MessageKind::connect_ack).has_value(); }));
    app.events.clear();
    peer.received.clear();
    memory.resize(1u << 20);
    std::iota(reinterpret_cast<unsigned char*>(memory.data()), reinterpret_cast<unsigned char*>(memory.data() + memory.size()),
              static_cast<unsigned char>(1));
    local = app.memory->register_region(MutableBytes(memory), cci::access_write);
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) { return peer.run(done, at_most); }
  void rest() { world.run_for(milliseconds(50)); }
  // The slot that the next registration of memory takes.
  uint64_t next_slot() {
    const ports::Handle handle = app.memory->register_region(MutableBytes(memory), cci::access_write);
    CHECK(app.memory->deregister_region(handle) == Status::success);
    return handle.number;
  }
  Status start(uint64_t bytes, cci::RmaOptions options = {}) {
    options.local = local;
    if (options.remote.handle.kind == ports::HandleKind::none) options.remote.handle = {ports::HandleKind::region, 1, 2, 3};
    options.length_bytes = bytes;
    const Status status = app.endpoint->rma(connection, options);
    app.wake();
    return status;
  }
  static cci::RmaOptions with(uint64_t context) {
    cci::RmaOptions options;
    options.context = context;
    return options;
  }
  static cci::RmaOptions reading(uint64_t context = 0) {
    cci::RmaOptions options = with(context);
    options.write = false;
    return options;
  }
  // What the router has been asked for since the last time.
  std::vector<FragmentMessage> asked() {
    rest();
    std::vector<FragmentMessage> found;
    for (const auto& each : peer.received) {
      const auto kind = kind_of(Bytes(each));
      if (kind == MessageKind::write_request || kind == MessageKind::read_request)
        found.push_back(decode_fragment(Bytes(each)).value());
    }
    peer.received.clear();
    return found;
  }
  void ack(uint64_t cookie, ports::OperationResult ending = Status::success) {
    peer.say(FragmentAck{cookie, ending});
    rest();
  }
  std::vector<cci::Event> ended() {
    std::vector<cci::Event> found;
    while (auto event = app.take(EventType::send)) found.push_back(std::move(*event));
    return found;
  }
  [[nodiscard]] uint64_t rejected() const { return app.counters.get(Counter::routed_rejected); }

  sim::World world{7};
  sim::Fabric fabric{world, {}};
  RawPeer peer;
  App app;
  cci::Connection connection;
  std::vector<std::byte> memory;
  cci::Handle local;
};

}  // namespace

TEST_CASE("routed_end_rma__is_cut_into_equal_pieces_of_whole_pages__as_the_path_takes") {
  Met met;
  for (const uint64_t bytes :
       {uint64_t{1}, page - 1, page, page + 1, uint64_t{fragment}, uint64_t{fragment} + 1, 2 * uint64_t{fragment},
        2 * uint64_t{fragment} + 1, 3 * uint64_t{fragment} - 1, 5 * uint64_t{fragment} + 3 * page}) {
    for (const bool write : {true, false}) {
      CAPTURE(bytes, write);
      auto options = Met::with(1);
      options.write = write;
      options.remote.handle = {ports::HandleKind::region, 1, 2, 3};
      options.remote.offset_bytes = 100;
      REQUIRE(met.start(bytes, options) == Status::success);
      const auto pieces = met.asked();
      const uint64_t count = (bytes + fragment - 1) / fragment;
      CHECK(pieces.size() == count);
      uint64_t at = 0;
      for (size_t i = 0; i < pieces.size(); ++i) {
        CHECK(pieces[i].kind == (write ? MessageKind::write_request : MessageKind::read_request));
        CHECK(pieces[i].remote.offset_bytes == 100 + at);
        CHECK(pieces[i].remote.handle == options.remote.handle);
        CHECK(pieces[i].data_class == 0);
        at += pieces[i].length_bytes;
        if (i + 1 == pieces.size()) continue;
        CHECK(pieces[i].length_bytes % page == 0);
        CHECK(pieces[i].length_bytes == pieces[0].length_bytes);
        CHECK(pieces[i].length_bytes <= fragment);
      }
      CHECK(at == bytes);
      CHECK(pieces.back().length_bytes + page * count > pieces[0].length_bytes);
      for (const auto& piece : pieces) {
        CHECK(met.ended().empty());
        if (write) {
          met.ack(piece.cookie);
        } else {
          FragmentMessage reply;
          reply.kind = MessageKind::read_reply;
          reply.cookie = piece.cookie;
          reply.length_bytes = piece.length_bytes;
          reply.exposed = met.peer.memory->register_region(Bytes(met.memory).first(piece.length_bytes));
          met.peer.say(reply);
          met.rest();
        }
      }
      const auto all = met.ended();
      REQUIRE(all.size() == 1);
      CHECK(all[0].status == Status::success);
      CHECK(all[0].context == 1);
      met.peer.received.clear();
    }
  }
  CHECK(met.rejected() == 0);
}

TEST_CASE("routed_end_rma__several_at_once__take_turns_within_the_window") {
  Met met;
  constexpr size_t most = 64;  // RoutedOptions
  REQUIRE(met.start(40 * uint64_t{fragment}, Met::with(1)) == Status::success);
  REQUIRE(met.start(40 * uint64_t{fragment}, Met::with(2)) == Status::success);
  const auto first = met.asked();
  REQUIRE(first.size() == most);
  for (size_t i = 0; i < most; ++i) CHECK(first[i].remote.offset_bytes == i / 2 * fragment);
  std::set<uint64_t> cookies;
  for (const auto& piece : first) cookies.insert(piece.cookie);
  CHECK(cookies.size() == most);
  met.ack(first[0].cookie);
  CHECK(met.asked().size() == 1);
  for (size_t i = 1; i < most; ++i) met.peer.say(FragmentAck{first[i].cookie, Status::success});
  const auto rest = met.asked();
  CHECK(rest.size() == 80 - most - 1);
  CHECK(met.ended().empty());
}

TEST_CASE("routed_end_rma__a_piece_fails__nothing_more_begins_and_the_first_reason_is_told") {
  Met met;
  REQUIRE(met.start(100 * uint64_t{fragment} / 2, Met::with(1)) == Status::success);
  REQUIRE(met.start(30 * uint64_t{fragment}, Met::with(2)) == Status::success);
  const auto pieces = met.asked();
  REQUIRE(pieces.size() == 64);
  std::vector<uint64_t> of_one, of_two;
  for (size_t i = 0; i < pieces.size(); ++i) (i % 2 == 0 && i < 60 ? of_one : i < 60 ? of_two : of_one).push_back(pieces[i].cookie);
  met.ack(of_one[0], Status::rma_op);
  met.ack(of_one[1], Status::rma_handle);
  for (const auto& more : met.asked()) CHECK(more.remote.offset_bytes < 30 * uint64_t{fragment});
  CHECK(met.ended().empty());
  for (size_t i = 2; i < of_one.size(); ++i) met.peer.say(FragmentAck{of_one[i], Status::success});
  met.rest();
  const auto ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].context == 1);
  CHECK(ended[0].status == Status::rma_op);
}

TEST_CASE("routed_end_rma__as_many_as_there_may_be__more_are_told_so_until_one_has_ended") {
  Met met;
  for (uint64_t i = 0; i < routed_operations_max; ++i) REQUIRE(met.start(1, Met::with(i)) == Status::success);
  CHECK(met.start(1) == Status::no_buffers);
  const auto pieces = met.asked();
  met.ack(pieces[0].cookie);
  CHECK(met.ended().size() == 1);
  CHECK(met.start(1) == Status::success);
  CHECK(met.start(1) == Status::no_buffers);
}

TEST_CASE("routed_end_rma__its_source__is_withdrawn_when_it_is_taken_or_answered") {
  Met met;
  auto options = Met::with(1);
  options.local_completion = true;
  REQUIRE(met.start(2 * uint64_t{fragment}, options) == Status::success);
  const auto pieces = met.asked();
  REQUIRE(pieces.size() == 2);
  const auto read = [&](const FragmentMessage& piece) {
    std::vector<std::byte> got(piece.length_bytes);
    cci::RmaOptions pull;
    pull.write = false;
    pull.local = met.peer.memory->register_region(MutableBytes(got), 0);
    pull.remote.handle = piece.exposed;
    pull.length_bytes = piece.length_bytes;
    met.peer.ended.clear();
    REQUIRE(met.peer.endpoint->rma(met.peer.connection, pull) == Status::success);
    met.peer.wake();
    REQUIRE(met.run([&] { return !met.peer.ended.empty(); }));
    if (met.peer.ended[0] == Status::success)
      CHECK(std::equal(got.begin(), got.end(), met.memory.begin() + static_cast<std::ptrdiff_t>(piece.remote.offset_bytes)));
    return met.peer.ended[0];
  };
  for (const auto& piece : pieces) CHECK(read(piece) == Status::success);
  met.peer.say(FragmentReleased{pieces[0].cookie, false});
  met.rest();
  CHECK(read(pieces[0]) == Status::rma_handle);
  CHECK(met.app.count(EventType::local_completion) == 0);
  met.ack(pieces[1].cookie);  // says it as well
  CHECK(read(pieces[1]) == Status::rma_handle);
  CHECK(met.app.count(EventType::local_completion) == 1);
  CHECK(met.ended().empty());
  met.ack(pieces[0].cookie);
  CHECK(met.ended().size() == 1);
  CHECK(met.app.count(EventType::local_completion) == 1);
  CHECK(met.rejected() == 0);
}

TEST_CASE("routed_end_rma__answers_to_what_was_not_asked__are_counted_and_change_nothing") {
  Met met;
  REQUIRE(met.start(1, Met::with(1)) == Status::success);
  const uint64_t written = met.asked().at(0).cookie;
  REQUIRE(met.start(1, Met::reading(2)) == Status::success);
  const uint64_t read = met.asked().at(0).cookie;
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.length_bytes = 1;
  reply.exposed = met.peer.memory->register_region(Bytes(met.memory).first(1));
  uint64_t counted = 0;
  const auto is_counted = [&] {
    met.rest();
    CHECK(met.rejected() == ++counted);
    CHECK(met.ended().empty());
  };
  met.peer.say(FragmentAck{read, Status::success});
  is_counted();
  met.peer.say(FragmentAck{1000, Status::success});
  is_counted();
  reply.cookie = written;
  met.peer.say(reply);
  is_counted();
  reply.cookie = 1000;
  met.peer.say(reply);
  is_counted();
  met.peer.say(FragmentReleased{1000, false});
  is_counted();
  met.peer.say(FragmentReleased{written, true});
  is_counted();
  met.ack(written);
  reply.cookie = read;
  met.peer.say(reply);
  met.rest();
  CHECK(met.ended().size() == 2);
  met.peer.say(FragmentAck{written, Status::success});
  is_counted();
  CHECK_FALSE(met.peer.gone);
}

TEST_CASE("routed_end_rma__a_read_reply_of_another_length__closes_the_connection") {
  const uint32_t length = GENERATE(99u, 101u);
  Met met;
  REQUIRE(met.start(100, Met::reading(2)) == Status::success);
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = met.asked().at(0).cookie;
  reply.length_bytes = length;
  reply.exposed = met.peer.memory->register_region(Bytes(met.memory).first(length));
  met.peer.say(reply);
  REQUIRE(met.run([&] { return met.peer.gone; }));
  CHECK(met.rejected() == 1);
  const auto ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == Status::disconnected);
  CHECK(met.app.take(EventType::disconnected)->status == Status::error);
}

TEST_CASE("routed_end_rma__a_read_reply__is_answered_with_fragment_released_in_any_case") {
  const bool good = GENERATE(true, false);
  Met met;
  REQUIRE(met.start(100, Met::reading(2)) == Status::success);
  const auto question = met.asked().at(0);
  CHECK(question.exposed.kind == ports::HandleKind::none);
  std::vector<std::byte> there(100, std::byte{0x5a});
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = question.cookie;
  reply.length_bytes = 100;
  reply.exposed = met.peer.memory->register_region(Bytes(there));
  if (!good) reply.exposed.key ^= 1;
  met.peer.say(reply);
  REQUIRE(met.run([&] { return met.peer.last(MessageKind::fragment_released).has_value(); }));
  const auto taken = decode_fragment_released(*met.peer.last(MessageKind::fragment_released));
  CHECK(taken->cookie == question.cookie);
  CHECK(taken->of_read);
  met.rest();
  const auto ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == (good ? Status::success : Status::rma_handle));
  CHECK((met.memory[0] == std::byte{0x5a}) == good);
  met.memory[0] = std::byte{1};
}

TEST_CASE("routed_end_rma__a_read_that_failed_there__ends_with_its_reason_and_detail") {
  Met met;
  REQUIRE(met.start(100, Met::reading(2)) == Status::success);
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = met.asked().at(0).cookie;
  reply.ending = ports::OperationResult(Status::mailbox_too_long, 50);
  met.peer.say(reply);
  met.rest();
  const auto ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == Status::mailbox_too_long);
  CHECK(ended[0].ending().detail == 50);
  CHECK_FALSE(met.peer.last(MessageKind::fragment_released));
}

TEST_CASE("routed_end_rma__a_put__goes_with_its_extent_the_first_piece_alone_if_refusable") {
  struct Row {
    bool mailbox, write, posted;
    uint64_t bytes;
    size_t at_once;
  };
  for (const Row& row : std::vector<Row>{{true, true, false, 3ull * fragment, 1},
                                         {true, true, false, fragment, 1},
                                         {true, true, true, 3ull * fragment, 3},
                                         {true, false, false, 3ull * fragment, 3},
                                         {false, true, false, 3ull * fragment, 3}}) {
    CAPTURE(row.mailbox, row.write, row.posted, row.bytes);
    Met met;
    auto options = Met::with(1);
    options.write = row.write;
    options.buffer_is_posted = row.posted;
    options.remote.handle = {row.mailbox ? ports::HandleKind::mailbox : ports::HandleKind::region, 1, 2, 3};
    options.remote.offset_bytes = 40;
    options.remote.put.source = 9;
    REQUIRE(met.start(row.bytes, options) == Status::success);
    const auto pieces = met.asked();
    REQUIRE(pieces.size() == row.at_once);
    if (row.mailbox) {
      CHECK(pieces[0].remote.put.base_offset_bytes == 40);
      CHECK(pieces[0].remote.put.total_bytes == row.bytes);
    }
    if (!row.write) continue;
    met.ack(pieces[0].cookie, ports::OperationResult(Status::success, 4));
    const auto rest = met.asked();
    CHECK(pieces.size() + rest.size() == (row.bytes + fragment - 1) / fragment);
    for (size_t i = 1; i < pieces.size(); ++i) met.ack(pieces[i].cookie, ports::OperationResult(Status::success, 4));
    for (const auto& piece : rest) met.ack(piece.cookie, ports::OperationResult(Status::success, 4));
    const auto ended = met.ended();
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].status == Status::success);
    CHECK(ended[0].ending().epoch() == 4u);
  }
}

// All pieces of a put go to one epoch, but who answers one again may not know it any more.
TEST_CASE("routed_end_rma__pieces_that_end_differently__the_first_failure_or_epoch_counts") {
  const ports::OperationResult of_five(Status::success, 5), of_six(Status::success, 6), unknown(Status::success);
  struct Row {
    std::vector<ports::OperationResult> endings;
    Status status;
    std::optional<uint64_t> epoch;
  };
  for (const Row& row :
       {Row{{of_five, of_five, Status::rma_op}, Status::rma_op, {}}, Row{{of_five, Status::rma_op, of_five}, Status::rma_op, {}},
        Row{{Status::rma_op, of_five, Status::rma_handle}, Status::rma_op, {}},
        Row{{of_five, Status::mailbox_stale, Status::rma_op}, Status::mailbox_stale, {}},
        Row{{unknown, of_five, unknown}, Status::success, 5}, Row{{of_five, unknown, unknown}, Status::success, 5},
        Row{{unknown, of_five, of_six}, Status::success, 5}, Row{{unknown, unknown, unknown}, Status::success, {}}}) {
    Met met;
    auto options = Met::with(1);
    options.remote.handle = {ports::HandleKind::mailbox, 1, 2, 3};
    options.buffer_is_posted = true;
    REQUIRE(met.start(3ull * fragment, options) == Status::success);
    const auto pieces = met.asked();
    REQUIRE(pieces.size() == 3);
    for (size_t i = 0; i < 3; ++i) {
      CHECK(met.ended().empty());
      met.ack(pieces[i].cookie, row.endings[i]);
    }
    const auto ended = met.ended();
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].status == row.status);
    CHECK(ended[0].ending().epoch() == row.epoch);
    CHECK(met.rejected() == 0);
  }
}

TEST_CASE("routed_end_rma__a_put_whose_first_piece_is_refused__sends_no_other") {
  Met met;
  auto options = Met::with(1);
  options.remote.handle = {ports::HandleKind::mailbox, 1, 2, 3};
  REQUIRE(met.start(3ull * fragment, options) == Status::success);
  met.ack(met.asked().at(0).cookie, Status::mailbox_empty);
  CHECK(met.asked().empty());
  const auto ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == Status::mailbox_empty);
}

TEST_CASE("routed_end_rma__fences__each_waits_for_all_before_it_and_holds_all_behind_it") {
  Met met;
  auto fenced = Met::with(2);
  fenced.fence = true;
  REQUIRE(met.start(1, Met::with(1)) == Status::success);
  REQUIRE(met.start(2, fenced) == Status::success);
  REQUIRE(met.start(3, Met::with(3)) == Status::success);  // behind the fence, without one of its own
  REQUIRE(met.app.endpoint->send(met.connection, as_bytes("behind"), 4) == Status::success);
  fenced.context = 5;
  REQUIRE(met.start(5, fenced) == Status::success);
  met.rest();
  CHECK_FALSE(met.peer.last(MessageKind::message));
  const auto one = met.asked();
  REQUIRE(one.size() == 1);
  CHECK(one[0].length_bytes == 1);
  met.ack(one[0].cookie);
  CHECK(met.peer.last(MessageKind::message));
  const auto two = met.asked();
  REQUIRE(two.size() == 2);
  CHECK(two[0].length_bytes == 2);
  CHECK(two[1].length_bytes == 3);
  met.ack(two[0].cookie);
  met.ack(two[1].cookie);
  CHECK(met.asked().empty());  // the message has not ended
  met.peer.say(MessageAck{1, Status::success});
  const auto five = met.asked();
  REQUIRE(five.size() == 1);
  CHECK(five[0].length_bytes == 5);
  met.ack(five[0].cookie);
  CHECK(met.ended().size() == 5);
  // With nothing before it a fence is none.
  REQUIRE(met.start(6, fenced) == Status::success);
  CHECK(met.asked().size() == 1);
}

TEST_CASE("routed_end_rma__its_completion_message__goes_when_all_is_there_and_ends_it") {
  Met met;
  auto options = Met::with(1);
  options.completion_message = as_bytes("done");
  REQUIRE(met.start(2ull * fragment, options) == Status::success);
  const auto pieces = met.asked();
  met.ack(pieces[0].cookie, ports::OperationResult(Status::success, 3));
  CHECK_FALSE(met.peer.last(MessageKind::message));
  met.ack(pieces[1].cookie, ports::OperationResult(Status::success, 3));
  REQUIRE(met.peer.last(MessageKind::message));
  CHECK(as_text(decode_message(*met.peer.last(MessageKind::message))->payload) == "done");
  CHECK(met.ended().empty());
  met.peer.say(MessageAck{1, Status::success});
  met.rest();
  auto ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == Status::success);
  CHECK(ended[0].ending().epoch() == 3u);
  // Never after a failure; and one that is too long is refused before anything.
  met.peer.received.clear();
  REQUIRE(met.start(1, options) == Status::success);
  met.ack(met.asked().at(0).cookie, Status::rma_op);
  CHECK_FALSE(met.peer.last(MessageKind::message));
  ended = met.ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].status == Status::rma_op);
  const std::vector<std::byte> longest(met.app.endpoint->max_send_bytes(met.connection)), longer(longest.size() + 1);
  options.completion_message = Bytes(longest);
  CHECK(met.start(1, options) == Status::success);
  options.completion_message = Bytes(longer);
  CHECK(met.start(1, options) == Status::message_size);
}

TEST_CASE("routed_end_rma__the_connection_ends__all_ends_and_nothing_can_be_read") {
  Met met;
  auto fenced = Met::with(3);
  fenced.fence = true;
  REQUIRE(met.start(2ull * fragment, Met::with(1)) == Status::success);
  REQUIRE(met.start(1, Met::reading(2)) == Status::success);
  REQUIRE(met.start(1, fenced) == Status::success);
  REQUIRE(met.app.endpoint->send(met.connection, as_bytes("behind"), 4) == Status::success);
  REQUIRE(met.asked().size() == 3);
  if (GENERATE(true, false)) {
    met.peer.say(Bye{Status::disconnected, "enough"});
  } else {
    met.peer.endpoint->disconnect(met.peer.connection);
    met.peer.wake();
  }
  REQUIRE(met.run([&] { return met.app.count(EventType::disconnected) > 0; }));
  const auto ended = met.ended();
  std::set<uint64_t> contexts;
  for (const auto& event : ended) {
    CHECK(event.status == Status::disconnected);
    contexts.insert(event.context);
  }
  CHECK(ended.size() == 4);
  CHECK(contexts == std::set<uint64_t>{1, 2, 3, 4});
  CHECK(met.app.memory->deregister_region(met.local) == Status::success);
  CHECK(met.start(1) == Status::not_found);
}

TEST_CASE("routed_end_rma__the_connection_ends_under_a_read__destination_is_deregistered") {
  Met met;
  const uint64_t before = met.next_slot();
  REQUIRE(met.start(fragment, Met::reading()) == Status::success);
  met.rest();
  REQUIRE(met.next_slot() != before);
  met.peer.say(Bye{Status::disconnected, "enough"});
  REQUIRE(met.run([&] { return met.app.count(EventType::disconnected) > 0; }));
  CHECK(met.next_slot() == before);
}

TEST_CASE("routed_end_rma__the_endpoint_is_destroyed__what_it_registered_is_given_back") {
  Met met;
  const uint64_t before = met.next_slot();
  REQUIRE(met.start(4ull * fragment) == Status::success);
  REQUIRE(met.start(fragment, Met::reading()) == Status::success);
  met.rest();
  const uint64_t in_the_middle = met.next_slot();
  REQUIRE(in_the_middle > before);
  met.world.remove_actor(met.app.node, &met.app);
  met.app.events.clear();
  met.app.endpoint.reset();
  std::set<uint64_t> free;
  for (uint64_t i = 0; i <= in_the_middle - before; ++i)
    free.insert(met.app.memory->register_region(MutableBytes(met.memory), cci::access_write).number);
  CHECK(*free.begin() == before);
  CHECK(*free.rbegin() == in_the_middle);
}

// One fragment at one router, step by step, as both its neighbours see it: what is pulled, offered, told and given back, and what
// becomes of it when a step fails or never comes.
#include "tests/unit/routing/passing.h"

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;

TEST_CASE("router_fragment__a_write_to_an_end__pulled_released_written_and_acknowledged") {
  Passing met(true);
  met.open_target();
  met.left.say(met.offer(met.left));
  REQUIRE(met.acked(met.left));
  CHECK(met.acked(met.left)->good());
  REQUIRE(met.taken(met.left));
  CHECK(met.taken(met.left)->cookie == cookie);
  CHECK_FALSE(met.taken(met.left)->of_read);
  CHECK(met.memory == met.source);
  CHECK(met.left.received.size() == 2);
  CHECK(met.right.received.empty());  // an end hears nothing of fragments
  CHECK(met.held() == 0);
  CHECK(met.pulled() == 1);
  CHECK(met.node->counters.get(Counter::routed_bytes) == met.source.size());
  met.still_works();
}

TEST_CASE("router_fragment__a_write_to_another_router__is_offered_and_kept_until_released") {
  const uint8_t crossed = GENERATE(uint8_t{0}, uint8_t{1});
  Passing met(false, crossed);
  met.target.handle = {ports::HandleKind::region, 3, 4, 5};
  met.target.offset_bytes = 99;
  FragmentMessage first = met.offer(met.left);
  first.data_class = crossed;
  met.left.say(first);
  const auto offer = met.offered(met.right, MessageKind::write_request);
  REQUIRE(offer);
  CHECK(offer->cookie == cookie);
  CHECK(offer->length_bytes == met.source.size());
  CHECK(offer->data_class == crossed + 1);
  CHECK(offer->remote.handle == met.target.handle);
  CHECK(offer->remote.offset_bytes == 99);
  REQUIRE(met.taken(met.left));  // ours by now
  CHECK_FALSE(met.left.last(MessageKind::fragment_ack));
  met.rest();
  CHECK(met.held() == 1);
  CHECK(met.read(met.right, *offer) == Status::success);
  CHECK(met.got == met.source);
  CHECK(met.held() == 1);
  met.right.say(FragmentReleased{cookie, true});  // of another direction: it is nobody's
  met.rest();
  CHECK(met.rejected() == 1);
  CHECK(met.held() == 1);
  met.right.say(FragmentReleased{cookie, false});
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  CHECK(met.read(met.right, *offer) == Status::rma_handle);  // one-use
  met.right.say(FragmentReleased{cookie, false});
  met.rest();
  CHECK(met.rejected() == 2);
  // How it ended comes from beyond, as it is.
  met.right.say(FragmentAck{cookie, ports::OperationResult(Status::success, 12)});
  REQUIRE(met.acked(met.left));
  CHECK(met.acked(met.left)->good());
  CHECK(met.acked(met.left)->epoch() == 12u);
  met.still_works();
}

TEST_CASE("router_fragment__a_write_that_fails_beyond__the_answer_frees_the_buffer_as_well") {
  Passing met(false);
  met.left.say(met.offer(met.left));
  REQUIRE(met.offered(met.right, MessageKind::write_request));
  REQUIRE(met.taken(met.left));
  CHECK(met.held() == 1);
  met.right.say(FragmentAck{cookie, Status::mailbox_empty});
  REQUIRE(met.acked(met.left));
  CHECK(met.acked(met.left)->status == Status::mailbox_empty);
  CHECK(met.held() == 0);
  CHECK(met.rejected() == 0);
  met.still_works();
}

TEST_CASE("router_fragment__an_answer_from_beyond_while_data_comes__is_discarded_and_returned") {
  const bool refused = GENERATE(true, false);
  Passing met(false, 0, 16, 1u << 20);
  sim::LinkOptions slow;
  slow.rate_bytes_per_s = 10'000'000;
  met.fabric.set_link("left", slow);
  met.left.say(met.offer(met.left));
  const auto offer = met.offered(met.right, MessageKind::write_request);
  REQUIRE(offer);
  REQUIRE(met.node->router->fragments_leaving_early() == 1);
  CHECK(met.pulled() == 0);
  if (refused) {
    met.right.say(FragmentAck{cookie, Status::rma_handle});
    REQUIRE(met.acked(met.left));
    CHECK(met.acked(met.left)->status == Status::rma_handle);
  } else {
    met.right.say(FragmentReleased{cookie, false});
    met.world.run_for(milliseconds(5));
  }
  CHECK(met.pulled() == 0);
  CHECK(met.held() == 1);
  CHECK(met.node->router->fragments_leaving_early() == 0);
  REQUIRE(met.run([&] { return met.pulled() == 1; }));
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  CHECK_FALSE(met.left.last(MessageKind::fragment_released));  // the answer says it
  met.still_works();
}

TEST_CASE("router_fragment__a_write_that_the_end_does_not_grant__its_status_and_the_buffer") {
  Passing met(true, 0, 16, 1u << 20);
  met.open_target();
  met.target.handle.key ^= 1;
  if (GENERATE(true, false)) {  // while it still arrives, or when it is here
    sim::LinkOptions slow;
    slow.rate_bytes_per_s = 10'000'000;
    met.fabric.set_link("left", slow);
  }
  met.left.say(met.offer(met.left));
  REQUIRE(met.acked(met.left));
  CHECK(met.acked(met.left)->status == Status::rma_handle);
  REQUIRE(met.run([&] { return met.pulled() == 1; }));
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  CHECK(met.memory == std::vector<std::byte>(met.source.size()));
  met.still_works();
}

TEST_CASE("router_fragment__what_is_offered_cannot_be_pulled__answered_with_the_reason") {
  const bool right_is_end = GENERATE(true, false);
  Passing met(right_is_end);
  met.open_target();
  FragmentMessage bad = met.offer(met.left);
  bad.exposed.key ^= 1;
  met.left.say(bad);
  REQUIRE(met.acked(met.left));
  CHECK(met.acked(met.left)->status == Status::rma_handle);
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  CHECK(met.right.received.empty());
  CHECK_FALSE(met.left.last(MessageKind::fragment_released));
  met.still_works();
}

TEST_CASE("router_fragment__a_cookie_twice_at_once__second_is_answered_first_goes_on") {
  Passing met(false);
  met.prove();
  for (int i = 0; i < 2; ++i) met.left.say(met.offer(met.left));
  REQUIRE(met.acked(met.left));
  CHECK(met.acked(met.left)->status == Status::no_memory);
  met.rest();
  CHECK(met.rejected() == 1);
  CHECK(met.held() == 1);
  const auto offer = met.offered(met.right, MessageKind::write_request);
  REQUIRE(offer);
  CHECK(met.right.received.size() == 1);
  CHECK(met.read(met.right, *offer) == Status::success);
  met.right.say(FragmentReleased{cookie, false});
  met.rest();
  CHECK(met.held() == 0);
  // Over now, so it may be used again.
  met.forget();
  met.left.say(met.offer(met.left));
  CHECK(met.offered(met.right, MessageKind::write_request));
  CHECK(met.rejected() == 1);
}

TEST_CASE("router_fragment__a_cookie_of_a_write_and_of_a_read_from_either_side__are_four") {
  Passing met(false, 1);
  met.prove(1);
  for (RawPeer* peer : {&met.left, &met.right}) met.ask(*peer);
  for (RawPeer* peer : {&met.left, &met.right}) {
    for (const MessageKind kind : {MessageKind::write_request, MessageKind::read_reply}) {
      FragmentMessage offer = met.offer(*peer, kind);
      offer.data_class = 1;
      peer->say(offer);
    }
  }
  met.rest();
  CHECK(met.rejected() == 0);
  CHECK(met.held() == 4);
  uint32_t left_over = 4;
  for (RawPeer* peer : {&met.left, &met.right}) {
    for (const bool of_read : {false, true}) {
      peer->say(FragmentReleased{cookie, of_read});
      met.rest();
      CHECK(met.held() == --left_over);
    }
  }
  CHECK(met.rejected() == 0);
}

TEST_CASE("router_fragment__a_read_from_an_end__pulled_by_its_own_reference_and_offered") {
  Passing met(true);
  met.left.say(met.question());
  const auto reply = met.offered(met.left, MessageKind::read_reply);
  REQUIRE(reply);
  CHECK(reply->cookie == cookie);
  CHECK(reply->ending.good());
  CHECK(reply->length_bytes == met.source.size());
  CHECK(reply->data_class == 1);
  CHECK(met.read(met.left, *reply) == Status::success);
  CHECK(met.got == met.source);
  met.rest();
  CHECK(met.held() == 1);
  CHECK(met.right.received.empty());  // nothing to answer `taken`
  met.left.say(FragmentReleased{cookie, false});
  met.rest();
  CHECK(met.rejected() == 1);
  CHECK(met.held() == 1);
  met.left.say(FragmentReleased{cookie, true});
  met.rest();
  CHECK(met.held() == 0);
  met.still_works();
}

TEST_CASE("router_fragment__a_read_that_the_end_does_not_grant__is_answered_with_the_reason") {
  Passing met(true);
  FragmentMessage question = met.question();
  question.remote.handle.key ^= 1;
  met.left.say(question);
  const auto reply = met.offered(met.left, MessageKind::read_reply);
  REQUIRE(reply);
  CHECK(reply->ending.status == Status::rma_handle);
  CHECK(reply->cookie == cookie);
  CHECK(reply->exposed.kind == ports::HandleKind::none);
  CHECK_FALSE(met.left.last(MessageKind::fragment_ack));
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  met.still_works();
}

TEST_CASE("router_fragment__a_read_from_beyond__question_passes_and_reply_is_carried") {
  Passing met(false);
  const FragmentMessage question = met.question();
  std::vector<std::byte> asked;
  encode(question, asked);
  met.left.say(question);
  REQUIRE(met.offered(met.right, MessageKind::read_request));
  CHECK(met.right.received.back() == asked);
  CHECK(met.known() == 0);
  FragmentMessage reply = met.offer(met.right, MessageKind::read_reply);
  reply.data_class = 1;
  met.right.say(reply);
  REQUIRE(met.taken(met.right));
  CHECK(met.taken(met.right)->of_read);
  CHECK(met.taken(met.right)->cookie == cookie);
  const auto carried = met.offered(met.left, MessageKind::read_reply);
  REQUIRE(carried);
  CHECK(carried->data_class == 2);
  CHECK(carried->exposed != reply.exposed);
  CHECK(met.read(met.left, *carried) == Status::success);
  CHECK(met.got == met.source);
  met.left.say(FragmentReleased{cookie, true});
  met.rest();
  CHECK(met.held() == 0);
  // And one that failed there.
  met.forget();
  met.ask(met.left);
  FragmentMessage failed;
  failed.kind = MessageKind::read_reply;
  failed.cookie = cookie;
  failed.ending = ports::OperationResult(Status::mailbox_too_long, 77);
  met.right.say(failed);
  const auto told = met.offered(met.left, MessageKind::read_reply);
  REQUIRE(told);
  CHECK(told->ending.status == Status::mailbox_too_long);
  CHECK(told->ending.detail == 77);
  CHECK(met.known() == 0);
}

TEST_CASE("router_fragment__released_while_a_read_still_comes__is_discarded_and_passed_on") {
  Passing met(false, 0, 16, 1u << 20);
  sim::LinkOptions slow;
  slow.rate_bytes_per_s = 10'000'000;
  met.fabric.set_link("right", slow);
  met.ask(met.left);
  FragmentMessage reply = met.offer(met.right, MessageKind::read_reply);
  reply.data_class = 1;
  met.right.say(reply);
  REQUIRE(met.offered(met.left, MessageKind::read_reply));
  met.left.say(FragmentReleased{cookie, true});
  met.world.run_for(milliseconds(5));
  CHECK(met.pulled() == 0);
  CHECK(met.held() == 1);
  REQUIRE(met.taken(met.right));  // or its buffer would never come back
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.pulled() == 1);
  met.still_works();
}

// Nobody takes it, and whoever is next would be blamed for that.
TEST_CASE("router_fragment__a_read_reply_that_was_not_asked_for__closes_and_is_never_pulled") {
  const bool right_is_end = GENERATE(false, true);
  Passing met(right_is_end, 1);
  RawPeer* from = &met.right;
  FragmentMessage reply = met.offer(met.right, MessageKind::read_reply);
  reply.data_class = right_is_end ? 0 : 1;
  SECTION("from the side of the destination") {}
  SECTION("from the side of the initiator") {
    from = &met.left;
    reply = met.offer(met.left, MessageKind::read_reply);
    reply.data_class = 1;
  }
  if (!right_is_end) {
    SECTION("of what another side was asked for") { met.ask(met.right); }
    SECTION("of another cookie") {
      met.ask(met.left);
      ++reply.cookie;
    }
    SECTION("of another length") {
      met.ask(met.left);
      reply.length_bytes -= 1;
    }
    SECTION("a second time") {
      met.ask(met.left);
      FragmentMessage failed;
      failed.kind = MessageKind::read_reply;
      failed.cookie = cookie;
      failed.ending = Status::rma_handle;
      met.right.say(failed);
      REQUIRE(met.offered(met.left, MessageKind::read_reply));
    }
  }
  SECTION("one that failed") {
    reply.ending = Status::rma_handle;
    reply.exposed = {};
  }
  from->say(reply);
  REQUIRE(met.run([&] { return met.left.gone && met.right.gone; }, seconds(60)));
  CHECK(met.rejected() == 1);
  CHECK(met.pulled() == 0);
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
}

TEST_CASE("router_fragment__reads_asked_for__as_many_as_the_window_allows_and_each_cookie_once") {
  Passing met(false);
  FragmentMessage question = met.question();
  uint64_t count = fragments_per_side_max;
  SECTION("one more than the window") {}
  SECTION("a cookie twice") { count = 1; }
  for (question.cookie = 0; question.cookie < count; ++question.cookie) {
    met.left.say(question);
    if (question.cookie % 50 == 0) met.rest();
  }
  met.rest();
  CHECK(met.rejected() == 0);
  if (count == 1) question.cookie = 0;
  met.left.say(question);
  REQUIRE(met.run([&] { return met.right.gone; }));
  CHECK(met.rejected() == 1);
}

TEST_CASE("router_fragment__lengths_and_classes__those_of_an_honest_chain_and_no_others") {
  const bool reads = GENERATE(false, true);
  Passing met(true, reads ? uint8_t{0} : uint8_t{1});
  met.open_target();
  const auto ask = [&](uint32_t length, uint8_t data_class) {
    met.forget();
    FragmentMessage message = reads ? met.question() : met.offer(met.left);
    message.length_bytes = length;
    message.data_class = data_class;
    met.left.say(message);
    if (reads) {
      const auto reply = met.offered(met.left, MessageKind::read_reply);
      REQUIRE(reply);
      if (reply->ending.good()) met.left.say(FragmentReleased{cookie, true});
      met.rest();
      return reply->ending.status;
    }
    REQUIRE(met.acked(met.left));
    met.rest();
    return met.acked(met.left)->status;
  };
  const uint8_t right_class = reads ? 0 : 1;
  CHECK(ask(1, right_class) == Status::success);
  CHECK(ask(fragment_bytes, right_class) == Status::success);
  CHECK(met.rejected() == 0);
  CHECK(ask(fragment_bytes + 1, right_class) == Status::range);
  CHECK(met.rejected() == 1);
  if (!reads) {
    for (const uint8_t other : {uint8_t{0}, uint8_t{2}, uint8_t{8}}) CHECK(ask(1, other) == Status::range);
    CHECK(met.rejected() == 4);
  }
  CHECK(met.pulled() == 2);
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  met.still_works();
}

TEST_CASE("router_fragment__as_many_of_one_connection_as_the_window_allows__one_more_closes") {
  Passing met(false);
  uint64_t number = 0;
  for (; number < fragments_per_side_max; ++number) {
    met.left.say(met.endless(met.left, MessageKind::write_request, number));
    if (number % 50 == 0) met.rest();
  }
  met.rest();
  CHECK_FALSE(met.left.gone);
  CHECK(met.known() == fragments_per_side_max);
  CHECK(met.rejected() == 0);
  met.left.say(met.endless(met.left, MessageKind::write_request, number));
  REQUIRE(met.run([&] { return met.right.gone; }));
  CHECK(met.rejected() == 1);
  REQUIRE(met.run([&] { return met.left.gone; }, seconds(60)));
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
}

TEST_CASE("router_fragment__the_connection_ends_at_any_step__every_buffer_comes_back") {
  const bool by_left = GENERATE(true, false), lost = GENERATE(true, false);
  enum class At { waiting, arriving, arriving_and_offered, offered, arriving_and_written };
  const At at = GENERATE(At::waiting, At::arriving, At::arriving_and_offered, At::offered, At::arriving_and_written);
  CAPTURE(by_left, lost, static_cast<int>(at));
  Passing met(at == At::arriving_and_written, 0, 8, 1u << 20);
  met.open_target();
  if (at == At::arriving_and_offered || at == At::arriving_and_written) {
    sim::LinkOptions slow;
    slow.rate_bytes_per_s = 10'000'000;
    met.fabric.set_link("left", slow);
    met.left.say(met.offer(met.left));
    REQUIRE(met.run([&] { return met.node->router->fragments_leaving_early() == 1; }));
  } else if (at == At::offered) {
    met.left.say(met.offer(met.left));
    REQUIRE(met.offered(met.right, MessageKind::write_request));
    met.rest();
  } else {
    met.left.say(met.endless(met.left));
    met.rest();
    if (at == At::waiting) {
      met.left.say(met.endless(met.left, MessageKind::write_request, cookie + 1));  // one buffer of the class, and it is lent
      met.rest();
      CHECK(met.known() == 2);
    }
  }
  CHECK(met.held() == 1);
  RawPeer& who = by_left ? met.left : met.right;
  RawPeer& other = by_left ? met.right : met.left;
  if (lost) {
    who.endpoint->disconnect(who.connection);
    who.wake();
  } else {
    who.say(Bye{Status::disconnected, "enough"});
  }
  // What the network has been asked for ends first, or is given up.
  const Duration at_most = at == At::waiting || at == At::arriving ? seconds(60) : seconds(5);
  REQUIRE(met.run([&] { return other.last(MessageKind::bye).has_value(); }));
  REQUIRE(met.run([&] { return other.gone && met.held() == 0; }, at_most));
  met.rest();
  CHECK(met.known() == 0);
  CHECK(met.node->router->connections_open() == 0);
  CHECK(met.rejected() == 0);
}

// A network below that takes one RMA at a time: the others wait for it here, in their buffers.
TEST_CASE("router_fragment__no_room_below__waits_for_it_and_all_go_on_in_the_end") {
  ports::TransportOptions below;
  below.rmas_in_flight_max = 1;
  Passing met(true, 0, 32, fragment_bytes, below);
  met.open_target();
  met.left.say(met.offer(met.left));
  REQUIRE(met.acked(met.left));  // it has moved something
  constexpr uint64_t count = 8;
  std::vector<std::vector<std::byte>> targets(count, std::vector<std::byte>(met.source.size()));
  for (uint64_t i = 0; i < count; ++i) {
    met.target.handle = met.right.memory->register_region(MutableBytes(targets[i]), cci::access_write);
    met.left.say(met.offer(met.left, MessageKind::write_request, 100 + i));
  }
  met.left.say(met.question());
  const auto reply = met.offered(met.left, MessageKind::read_reply);
  REQUIRE(reply);
  CHECK(met.read(met.left, *reply) == Status::success);
  CHECK(met.got == met.source);
  met.left.say(FragmentReleased{cookie, true});
  REQUIRE(met.run([&] { return met.pulled() == count + 2; }));
  met.rest();
  for (const auto& target : targets) CHECK(target == met.source);
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  met.still_works();
}

TEST_CASE("router_fragment__the_connection_ends_while_some_wait_below__buffers_come_back") {
  ports::TransportOptions below;
  below.rmas_in_flight_max = 1;
  Passing met(false, 0, 32, fragment_bytes, below);
  met.prove();
  for (uint64_t i = 0; i < 4; ++i) met.left.say(met.endless(met.left, MessageKind::write_request, i));
  met.rest();
  CHECK(met.held() == 4);
  met.right.say(Bye{Status::disconnected, "enough"});
  met.rest();
  CHECK(met.held() == 1);  // the one that the network has been asked for
  REQUIRE(met.run([&] { return met.held() == 0; }, seconds(60)));
  CHECK(met.known() == 0);
}

// The answer `taken` is one message too many for who reads none; meanwhile the data is on its way to the other side.
TEST_CASE("router_fragment__its_message_closes_the_connection__bytes_under_way_stay_its_own") {
  Passing met(true, 0, 16, 1u << 20);
  met.open_target();
  met.left.holds = true;
  constexpr size_t taken_by_left = 1024, below = 256;
  const auto say = [&](size_t count) {
    for (size_t sent = 0; sent < count;) {
      std::vector<std::byte> message;
      encode_plain(MessageKind::keepalive, message);
      if (met.right.send(message) == Status::success) {
        ++sent;
      } else {
        met.world.run_for(milliseconds(1));
      }
    }
    met.rest();
  };
  say(taken_by_left + below + out_messages_max);
  CHECK_FALSE(met.right.gone);
  CHECK(met.left.received.size() == taken_by_left);
  sim::LinkOptions slow;
  slow.rate_bytes_per_s = 10'000'000;
  met.fabric.set_link("right", slow);
  met.left.say(met.offer(met.left));
  REQUIRE(met.run([&] { return met.rejected() == 1; }));
  CHECK(met.pulled() == 1);
  CHECK(met.memory.back() == std::byte{});  // it is still being written
  CHECK(met.held() == 1);
  REQUIRE(met.run([&] { return met.held() == 0; }, seconds(30)));
  CHECK(met.known() == 0);
  const auto [there, sent] = std::mismatch(met.memory.begin(), met.memory.end(), met.source.begin());
  CHECK(std::all_of(there, met.memory.end(), [](std::byte byte) { return byte == std::byte{}; }));
}

// Both wait for the one shared buffer, what begins on the router's own subnet for longer.
TEST_CASE("router_fragment__a_buffer_is_free_again__what_is_in_transit_has_it_first") {
  Passing met(false, 1, classes_max + 1);
  struct Ends {
    cci::Connection left, right;
  };
  const Ends transit{met.left.connection, met.right.connection};
  met.prove(1);
  met.open(false, 0);
  const Ends local{met.left.connection, met.right.connection};
  met.prove();
  const auto use = [&](const Ends& ends) { met.left.connection = ends.left, met.right.connection = ends.right; };
  const auto write = [&](const Ends& ends, uint64_t number) {
    use(ends);
    FragmentMessage message = met.offer(met.left, MessageKind::write_request, number);
    message.data_class = ends.left == transit.left ? 1 : 0;
    REQUIRE(met.left.say(message) == Status::success);
    met.world.run_for(milliseconds(5));
  };
  for (const uint64_t number : {1u, 2u}) write(local, number);
  write(transit, 3);
  REQUIRE(met.held() == 3);
  write(local, 4);
  write(transit, 5);
  REQUIRE(met.held() == 3);
  met.forget();
  use(local);
  met.right.say(FragmentReleased{1, false});
  const auto next = met.offered(met.right, MessageKind::write_request);
  REQUIRE(next);
  CHECK(next->cookie == 5);
}

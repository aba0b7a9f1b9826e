// One fragment at one router, step by step, as both its neighbours see it: what is pulled, offered, told and given back, and what
// becomes of it when a step fails or never comes.
#include "routing/router/router_impl.h"
#include "tests/unit/routing/kinds.h"
#include "tests/unit/routing/raw_peer.h"
#include "tests/unit/routing/routed_nodes.h"

#undef CHECK
#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;
using namespace ccixfer::routing::test;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t fragment_bytes = 64u << 10;
constexpr uint64_t cookie = 7;

std::vector<std::byte> some_bytes(size_t count) {
  sim::Random random(1);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

// left - router - right. Left is the initiator's end, or a router (`crossed` 1); right is the destination's end, or a router.
struct Passing {
  explicit Passing(bool right_is_end, uint8_t crossed = 0, uint32_t pool_fragments = 16, uint32_t one_bytes = fragment_bytes)
      : left(world, fabric, "left", "10.0.0.66"), right(world, fabric, "right", "10.9.0.10"), source(some_bytes(one_bytes)) {
    RouterOptions options;
    options.fragment_bytes = one_bytes;
    options.memory_bytes = uint64_t{pool_fragments} * one_bytes;
    node = std::make_unique<RouterNode>(
        world, fabric, "router", std::vector<DeviceSpec>{{"left", "10.0.0.1", {1, 1}, {}}, {"right", "10.9.0.1", {1, 9}, {}}},
        options);
    world.run_for(milliseconds(20));
    right.accepts = true;
    if (crossed > 0) know(left, "sim://10.0.0.1:7000", 50, {1, 1}, {1, 3});
    if (!right_is_end) know(right, "sim://10.9.0.1:7000", 100, {1, 9}, {1, 2});
    ConnectRequest request = RawPeer::usual_request(right_is_end ? "cci://1:9:10.9.0.10:7000" : "cci://1:2:10.2.0.77:7000");
    request.source = crossed > 0 ? SubnetId{1, 3} : SubnetId{1, 1};
    request.crossed = crossed;
    REQUIRE(left.connect("sim://10.0.0.1:7000", ports::Role::hop));
    REQUIRE(left.say(request) == Status::success);
    REQUIRE(run([&] { return right.last(MessageKind::connect_request).has_value(); }));
    ConnectReply reply{Status::success, {}, 1392, 1u << 20, {}, 0};
    if (!right_is_end) reply.hops.push_back({"sim", "beyond", 1, 2, milliseconds(1), 0});
    REQUIRE(right.say(reply) == Status::success);
    REQUIRE(run([&] { return left.last(MessageKind::connect_reply).has_value(); }));
    left.say_plain(MessageKind::connect_ack);
    REQUIRE(run([&] { return right.last(MessageKind::connect_ack).has_value(); }));
    forget();
  }
  void know(RawPeer& peer, const std::string& uri, uint64_t id, SubnetId here, SubnetId there) {
    REQUIRE(peer.greet(uri, id, here));
    RouterRecord record{id, 1, false, {}};
    record.devices.push_back({here, 1'000'000'000, 0, true, false, {}, peer.endpoint->uri(), 0});
    record.devices.push_back({there, 1'000'000'000, 0, true, false, {}, "sim://10.77.0.1:7000", 0});
    REQUIRE(peer.tell(record));
  }
  bool run(const std::function<bool()>& done, Duration at_most = seconds(5)) { return left.run(done, at_most); }
  void rest() { world.run_for(milliseconds(50)); }
  void forget() { left.received.clear(), right.received.clear(); }
  [[nodiscard]] uint32_t held() const { return node->router->fragments_in_use(); }
  [[nodiscard]] size_t known() const { return node->router->fragments().size(); }
  [[nodiscard]] uint64_t rejected() const { return node->counters.get(Counter::routed_rejected); }
  [[nodiscard]] uint64_t pulled() const { return node->counters.get(Counter::routed_fragments); }

  // As whoever holds the data offers it.
  FragmentMessage offer(RawPeer& from, MessageKind kind = MessageKind::write_request, uint64_t number = cookie) {
    FragmentMessage message;
    message.kind = kind;
    message.cookie = number;
    message.length_bytes = static_cast<uint32_t>(source.size());
    message.exposed = from.memory->register_region(Bytes(source));
    message.remote = target;
    return message;
  }
  // One that never arrives.
  FragmentMessage endless(RawPeer& from, MessageKind kind = MessageKind::write_request, uint64_t number = cookie) {
    FragmentMessage message = offer(from, kind, number);
    arrivals.push_back(std::make_unique<ports::Arrival>());
    message.exposed = from.memory->register_arriving(Bytes(source), arrivals.back().get());
    return message;
  }
  // Where the right end wants it.
  void open_target() {
    memory.assign(source.size(), std::byte{});
    target.handle = right.memory->register_region(MutableBytes(memory), cci::access_write);
  }
  // What is at the right end to be read.
  FragmentMessage question() {
    FragmentMessage message;
    message.kind = MessageKind::read_request;
    message.cookie = cookie;
    message.length_bytes = static_cast<uint32_t>(source.size());
    message.remote.handle = right.memory->register_region(Bytes(source));
    return message;
  }
  std::optional<FragmentMessage> offered(const RawPeer& to, MessageKind kind) {
    run([&] { return to.last(kind).has_value(); });
    const auto message = to.last(kind);
    return message ? decode_fragment(*message) : std::nullopt;
  }
  std::optional<ports::Ending> acked(const RawPeer& to) {
    run([&] { return to.last(MessageKind::fragment_ack).has_value(); });
    const auto message = to.last(MessageKind::fragment_ack);
    if (!message) return std::nullopt;
    const auto ack = decode_fragment_ack(*message);
    return ack && ack->cookie == cookie ? std::optional(ack->ending) : std::nullopt;
  }
  std::optional<Taken> taken(const RawPeer& by) {
    run([&] { return by.last(MessageKind::taken).has_value(); });
    const auto message = by.last(MessageKind::taken);
    return message ? decode_taken(*message) : std::nullopt;
  }
  // The neighbour reads what was offered.
  Status read(RawPeer& peer, const FragmentMessage& message) {
    got.assign(message.length_bytes, std::byte{});
    cci::RmaOptions options;
    options.write = false;
    options.local = peer.memory->register_region(MutableBytes(got), 0);
    options.remote.handle = message.exposed;
    options.length_bytes = message.length_bytes;
    peer.ended.clear();
    REQUIRE(peer.endpoint->rma(peer.connection, options) == Status::success);
    peer.wake();
    REQUIRE(run([&] { return !peer.ended.empty(); }));
    static_cast<void>(peer.memory->deregister_region(options.local));
    return peer.ended[0];
  }
  // Both ends have moved something, so that the connection may hold more than one buffer of a direction.
  void prove(uint8_t data_class = 0) {
    FragmentMessage first = offer(left, MessageKind::write_request, 999);
    first.data_class = data_class;
    left.say(first);
    REQUIRE(offered(right, MessageKind::write_request));
    right.say(Taken{999, false});
    rest();
    REQUIRE(held() == 0);
    forget();
  }
  void still_works() {
    CHECK_FALSE(left.gone);
    CHECK_FALSE(right.gone);
    forget();
    left.say_plain(MessageKind::keepalive);
    CHECK(run([&] { return right.last(MessageKind::keepalive).has_value(); }));
  }

  sim::World world{9};
  sim::Fabric fabric{world, {}};
  RawPeer left, right;
  std::unique_ptr<RouterNode> node;
  std::vector<std::byte> source, memory, got;
  ports::RemoteRef target;
  std::vector<std::unique_ptr<ports::Arrival>> arrivals;
};

}  // namespace

TEST_CASE("router_fragment__a_write_to_an_end__pulled_told_as_taken_written_and_acknowledged") {
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

TEST_CASE("router_fragment__a_write_to_another_router__is_offered_with_one_router_more_and_kept_until_it_is_taken") {
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
  met.right.say(Taken{cookie, true});  // of another direction: it is nobody's
  met.rest();
  CHECK(met.rejected() == 1);
  CHECK(met.held() == 1);
  met.right.say(Taken{cookie, false});
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  CHECK(met.read(met.right, *offer) == Status::rma_handle);  // one-use
  met.right.say(Taken{cookie, false});
  met.rest();
  CHECK(met.rejected() == 2);
  // How it ended comes from beyond, as it is.
  met.right.say(FragmentAck{cookie, ports::Ending(Status::success, 12)});
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

TEST_CASE("router_fragment__an_answer_from_beyond_while_the_data_still_comes__it_is_drained_and_given_back") {
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
    met.right.say(Taken{cookie, false});
    met.world.run_for(milliseconds(5));
  }
  CHECK(met.pulled() == 0);
  CHECK(met.held() == 1);
  CHECK(met.node->router->fragments_leaving_early() == 0);
  REQUIRE(met.run([&] { return met.pulled() == 1; }));
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.known() == 0);
  CHECK_FALSE(met.left.last(MessageKind::taken));  // the answer says it
  met.still_works();
}

TEST_CASE("router_fragment__a_write_that_the_end_does_not_grant__its_status_comes_and_the_buffer_comes_back") {
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

TEST_CASE("router_fragment__what_is_offered_cannot_be_pulled__answered_with_the_reason_and_given_back") {
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
  CHECK_FALSE(met.left.last(MessageKind::taken));
  met.still_works();
}

TEST_CASE("router_fragment__a_cookie_twice_at_once__the_second_is_answered_and_the_first_goes_on") {
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
  met.right.say(Taken{cookie, false});
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
      peer->say(Taken{cookie, of_read});
      met.rest();
      CHECK(met.held() == --left_over);
    }
  }
  CHECK(met.rejected() == 0);
}

TEST_CASE("router_fragment__a_read_from_an_end__pulled_by_the_application_s_own_reference_and_offered_to_who_asked") {
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
  met.left.say(Taken{cookie, false});
  met.rest();
  CHECK(met.rejected() == 1);
  CHECK(met.held() == 1);
  met.left.say(Taken{cookie, true});
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

TEST_CASE("router_fragment__a_read_from_beyond_another_router__the_question_passes_as_it_is_and_the_reply_is_carried") {
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
  met.left.say(Taken{cookie, true});
  met.rest();
  CHECK(met.held() == 0);
  // And one that failed there.
  met.forget();
  FragmentMessage failed;
  failed.kind = MessageKind::read_reply;
  failed.cookie = cookie;
  failed.ending = ports::Ending(Status::mailbox_too_long, 77);
  met.right.say(failed);
  const auto told = met.offered(met.left, MessageKind::read_reply);
  REQUIRE(told);
  CHECK(told->ending.status == Status::mailbox_too_long);
  CHECK(told->ending.detail == 77);
  CHECK(met.known() == 0);
}

TEST_CASE("router_fragment__taken_while_a_read_still_comes__is_drained_and_the_end_before_hears_that_it_was_taken") {
  Passing met(false, 0, 16, 1u << 20);
  sim::LinkOptions slow;
  slow.rate_bytes_per_s = 10'000'000;
  met.fabric.set_link("right", slow);
  FragmentMessage reply = met.offer(met.right, MessageKind::read_reply);
  reply.data_class = 1;
  met.right.say(reply);
  REQUIRE(met.offered(met.left, MessageKind::read_reply));
  met.left.say(Taken{cookie, true});
  met.world.run_for(milliseconds(5));
  CHECK(met.pulled() == 0);
  CHECK(met.held() == 1);
  REQUIRE(met.taken(met.right));  // or its buffer would never come back
  met.rest();
  CHECK(met.held() == 0);
  CHECK(met.pulled() == 1);
  met.still_works();
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
      if (reply->ending.good()) met.left.say(Taken{cookie, true});
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

TEST_CASE("router_fragment__as_many_of_one_connection_as_the_window_allows__and_one_more_closes_it") {
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

TEST_CASE("router_fragment__the_connection_ends_at_any_step_of_a_fragment__every_buffer_comes_back") {
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

TEST_CASE("router_messages__cut_short__are_malformed_whoever_says_them_and_close_the_connection") {
  const bool by_left = GENERATE(true, false);
  for (const MessageKind kind :
       {MessageKind::message, MessageKind::message_ack, MessageKind::fragment_ack, MessageKind::mailbox_hint,
        MessageKind::write_request, MessageKind::read_request, MessageKind::read_reply, MessageKind::taken, MessageKind::bye}) {
    CAPTURE(by_left, static_cast<int>(kind));
    Passing met(false);
    RawPeer& from = by_left ? met.left : met.right;
    std::vector<std::byte> message = message_with(static_cast<uint8_t>(kind), "", {});
    message.resize(6);
    from.send(message);
    REQUIRE(met.run([&] { return met.left.gone && met.right.gone; }));
    CHECK(met.rejected() == 1);
    const RawPeer& other = by_left ? met.right : met.left;
    REQUIRE(other.received.size() == 1);
    REQUIRE(other.last(MessageKind::bye));
    CHECK(decode_bye(*other.last(MessageKind::bye))->status == Status::error);
    CHECK(decode_bye(*other.last(MessageKind::bye))->reason.find("malformed") == 0);
  }
}

TEST_CASE("router_messages__of_routers_only__pass_between_routers_and_not_from_ends") {
  for (const MessageKind kind : {MessageKind::draining, MessageKind::others_wait}) {
    CAPTURE(static_cast<int>(kind));
    {
      Passing met(false, 1);
      met.right.say_plain(kind);
      met.left.say_plain(kind);
      met.rest();
      const size_t passed = kind == MessageKind::draining ? 1 : 0;
      CHECK(met.left.received.size() == passed);
      CHECK(met.right.received.size() == passed);
      met.still_works();
    }
    Passing met(true, 0);
    (GENERATE(true, false) ? met.left : met.right).say_plain(kind);
    REQUIRE(met.run([&] { return met.left.gone && met.right.gone; }));
    CHECK(met.rejected() == 1);
  }
}

TEST_CASE("router_messages__the_ends_watch_one_another__that_goes_as_far_as_the_last_router_and_silence_of_a_hop_ends_nothing") {
  const bool right_is_end = GENERATE(true, false), watched = GENERATE(true, false);
  CAPTURE(right_is_end, watched);
  Passing met(right_is_end);
  if (watched) met.left.say_plain(MessageKind::watched);
  met.rest();
  CHECK(met.right.last(MessageKind::watched).has_value() == (watched && !right_is_end));
  met.right.freeze(true);
  met.world.run_for(seconds(60));
  CHECK(met.left.gone == !watched);
  if (watched) return;
  REQUIRE(met.left.last(MessageKind::bye));
  CHECK(decode_bye(*met.left.last(MessageKind::bye))->reason.find("10.9.0.10") != std::string::npos);
}

TEST_CASE("router_messages__of_one_who_reads_nothing__as_many_wait_as_may_and_then_the_connection_is_closed") {
  Passing met(false);
  met.rest();
  met.right.freeze(true);
  // What the connection below has under way, and then what waits here.
  constexpr size_t below = 256;
  size_t sent = 0;
  const auto say = [&](size_t up_to) {
    while (sent < up_to && !met.left.gone) {
      std::vector<std::byte> message;
      encode(MessageAck{sent, Status::success}, message);
      if (met.left.send(message) == Status::success) {
        ++sent;
      } else {
        met.world.run_for(milliseconds(1));
      }
    }
    met.rest();
  };
  say(below + out_messages_max);
  CHECK_FALSE(met.left.gone);
  CHECK(met.rejected() == 0);
  say(below + out_messages_max + 1);
  CHECK(met.run([&] { return met.left.gone; }, seconds(1)));
  CHECK(met.rejected() == 1);
  // What was taken before is delivered, if it is read by and by; then why there is no more.
  met.right.freeze(false);
  REQUIRE(met.run([&] { return met.right.gone; }));
  REQUIRE(met.right.last(MessageKind::bye));
  CHECK(decode_bye(*met.right.last(MessageKind::bye))->reason == "more messages than can be held");
  CHECK(met.right.received.size() == below + out_messages_max + 2);
  CHECK(met.run([&] { return met.node->router->connections_open() == 0; }));
}

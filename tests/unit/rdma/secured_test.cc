// Connections whose ends prove who they are: who learns what of whom, who is refused with which words, what somebody between them
// sees, and what comes of what they change.
#include "tests/unit/rdma/rig.h"
#include "tests/unit/stream/own_trust.h"

namespace ccixfer::rdma::testing {
namespace {

using ccixfer::testing::OwnTrust;

Buffer bytes_of(std::string_view text) { return {as_bytes(text).begin(), as_bytes(text).end()}; }

struct SecureRig {
  explicit SecureRig(uint64_t seed = 1) : rig({}, {}, seed, of_a, of_b) {}
  // A dial of a to b that ends.
  const Recorder::Ended& dial(const std::string& uri, ports::Role role = ports::Role::application) {
    ports::DialRequest request;
    request.uri = uri;
    request.role = role;
    request.timeout = 20s;
    REQUIRE(rig.a.transport->dial(request));
    rig.world.wake(rig.a.node);
    REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
    return rig.a.sink.connected.back();
  }
  std::shared_ptr<OwnTrust> of_a = std::make_shared<OwnTrust>();
  std::shared_ptr<OwnTrust> of_b = std::make_shared<OwnTrust>();
  Rig rig;
};

// Stands between a and b, and hands on what it likes of the packets of both.
class Relay final : public sim::Actor, public RdmaEvents {
 public:
  // Of a packet that goes to b (true) or to a, with its number from 0 on in that direction: what is handed on.
  using Rewrite = std::function<std::vector<Buffer>(bool to_b, size_t number, Buffer packet)>;

  explicit Relay(
      Rig& rig, Rewrite rewrite = [](bool, size_t, Buffer packet) { return std::vector<Buffer>{std::move(packet)}; })
      : rig_(rig), node_(rig.world.add_node("r")), net_(rig.fabric, node_, "r", 1), rewrite_(std::move(rewrite)) {
    rig.world.add_actor(node_, this);
  }
  ~Relay() override { rig_.world.remove_actor(node_, this); }
  void turn(Instant now) override { net_.poll(now, *this); }
  [[nodiscard]] Instant next_deadline() const override { return never; }

  void requested(PairId pair, std::string_view) override {
    of_a_ = pair;
    net_.accept(pair);
    of_b_ = *net_.dial("sim-rdma://b:1");
  }
  void connected(PairId pair) override {
    (pair == of_a_ ? a_is_there_ : b_is_there_) = true;
    if (a_is_there_ && b_is_there_) {
      for (const auto& [to_b, packet] : early_) hand_on(to_b, packet);
    }
  }
  void closed(PairId pair, Status, std::string_view) override {
    const PairId other = pair == of_a_ ? of_b_ : of_a_;
    (pair == of_a_ ? of_a_ : of_b_) = 0;
    if (other != 0) net_.close(std::exchange(pair == of_a_ ? of_b_ : of_a_, 0));
  }
  void received(PairId pair, Bytes bytes) override {
    const bool to_b = pair == of_a_;
    for (Buffer& packet : rewrite_(to_b, numbers_[to_b ? 1 : 0]++, Buffer(bytes.begin(), bytes.end()))) {
      seen.emplace_back(reinterpret_cast<const char*>(packet.data()), packet.size());
      if (a_is_there_ && b_is_there_) {
        hand_on(to_b, packet);
      } else {
        early_.emplace_back(to_b, std::move(packet));
      }
    }
  }
  void completed(PairId, uint64_t, WorkStatus) override {}
  void sendable(PairId) override {}
  void device_failed(std::string_view) override {}

  [[nodiscard]] size_t packets(bool to_b) const { return numbers_[to_b ? 1 : 0]; }
  std::vector<std::string> seen;

 private:
  void hand_on(bool to_b, const Buffer& packet) {
    const Bytes part(packet);
    const PairId pair = to_b ? of_b_ : of_a_;
    if (pair != 0) static_cast<void>(net_.post_send(pair, {&part, 1}));
  }

  Rig& rig_;
  sim::NodeId node_;
  sim::SimRdmaNet net_;
  Rewrite rewrite_;
  PairId of_a_ = 0, of_b_ = 0;
  bool a_is_there_ = false, b_is_there_ = false;
  std::array<size_t, 2> numbers_{};
  std::vector<std::pair<bool, Buffer>> early_;
};

constexpr const char* relay_uri = "sim-rdma://r:1";

// Each end says something, then the dialler disconnects. How many messages arrived whole at the other end.
struct Talk {
  size_t at_a = 0, at_b = 0;
  bool ended = false;  // both transports have nothing left of it
};
Talk talk(Rig& rig) {
  ports::DialRequest request;
  request.uri = relay_uri;
  request.timeout = 5s;
  REQUIRE(rig.a.transport->dial(request));
  rig.world.wake(rig.a.node);
  static_cast<void>(rig.run([&] { return !rig.b.sink.requests.empty() || !rig.a.sink.connected.empty(); }));
  std::optional<ConnectionId> at_b;
  if (!rig.b.sink.requests.empty()) {
    at_b = rig.b.sink.requests.back();
    static_cast<void>(rig.b.transport->accept(*at_b));
    rig.world.wake(rig.b.node);
  }
  static_cast<void>(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  const bool is_open = !rig.a.sink.connected.empty() && rig.a.sink.connected.back().status == Status::success;
  if (is_open && at_b) {
    const ConnectionId at_a = rig.a.sink.connected.back().id;
    for (uint64_t token = 0; token < 4; ++token) {
      static_cast<void>(rig.a.send(at_a, bytes_of("from a to b"), token));
      static_cast<void>(rig.b.send(*at_b, bytes_of("from b to a"), token));
    }
    static_cast<void>(rig.run([&] { return rig.a.sink.messages.size() == 4 && rig.b.sink.messages.size() == 4; }, 10s));
    rig.a.transport->disconnect(at_a);
    rig.world.wake(rig.a.node);
  }
  rig.pass(60s);
  Talk result;
  for (const Buffer& message : rig.a.sink.messages) result.at_a += message == bytes_of("from b to a") ? 1u : 100u;
  for (const Buffer& message : rig.b.sink.messages) result.at_b += message == bytes_of("from a to b") ? 1u : 100u;
  result.ended = true;
  for (const Recorder::Ended& dial : rig.a.sink.connected) result.ended &= !rig.a.transport->delivered_bytes(dial.id);
  for (const ConnectionId id : rig.b.sink.requests) result.ended &= !rig.b.transport->delivered_bytes(id);
  return result;
}

}  // namespace

TEST_CASE("rdma_secured__both_ends__know_who_the_other_is_and_how_it_is_protected") {
  SecureRig secure;
  Rig& rig = secure.rig;
  rig.connect();
  CHECK(rig.a.transport->peer(rig.at_a).proved == secure.of_b->name());
  CHECK(rig.b.transport->peer(rig.at_b).proved == secure.of_a->name());
  const auto hops = rig.a.transport->hops(rig.at_a);
  REQUIRE(hops.size() == 1);
  CHECK(hops[0].peer == secure.of_b->name());
  CHECK((hops[0].protection == "aes-256-gcm" || hops[0].protection == "chacha20-poly1305"));
  CHECK(secure.of_a->dialled == "sim-rdma://b:1");
  CHECK(secure.of_b->asked == std::vector{ports::Role::application});
}

TEST_CASE("rdma_secured__without_trust__nothing_is_proved") {
  Rig rig;
  rig.connect();
  CHECK(rig.a.transport->peer(rig.at_a).proved.empty());
  CHECK(rig.a.transport->hops(rig.at_a)[0].protection.empty());
}

TEST_CASE("rdma_secured__messages_and_operations_of_every_length__arrive_as_they_were") {
  SecureRig secure(GENERATE(range(1u, 6u)));
  Rig& rig = secure.rig;
  rig.connect();
  uint64_t token = 0;
  for (const uint32_t size : {0u, 1u, 64u, 1408u, rig.a.transport->max_send_bytes()}) {
    REQUIRE(rig.a.send(rig.at_a, filled(size, 3), token++) == Status::success);
  }
  REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == token; }));
  REQUIRE(rig.b.sink.messages.size() == token);
  CHECK(rig.b.sink.messages.back() == filled(rig.a.transport->max_send_bytes(), 3));
  for (const size_t size : {size_t{1}, size_t{inline_bytes_max}, size_t{inline_bytes_max} + 1, size_t{2'000'000}}) {
    for (const bool write : {true, false}) {
      Buffer ours = filled(size, 5);
      Buffer theirs = filled(size, 6);
      const Buffer wanted = write ? ours : theirs;
      const ports::Handle local = rig.a.memory.register_region(ours, 3);
      const ports::Handle remote = rig.b.memory.register_region(theirs, 3);
      REQUIRE(rig.a.rma(write, rig.at_a, local, ours, remote, ++token) == Status::success);
      REQUIRE(rig.run([&] { return rig.a.status_of(token).has_value(); }));
      CHECK(rig.a.status_of(token) == Status::success);
      CHECK((write ? theirs == wanted : ours == wanted));
      REQUIRE(rig.a.memory.deregister_region(local) == Status::success);
      REQUIRE(rig.b.memory.deregister_region(remote) == Status::success);
    }
  }
}

TEST_CASE("rdma_secured__what_passes__shows_no_message_no_connect_data_and_no_reason") {
  SecureRig secure;
  Rig& rig = secure.rig;
  Relay relay(rig);
  const Buffer data = bytes_of("canary of connect data");
  ports::DialRequest dial;
  dial.uri = relay_uri;
  dial.data = data;
  SECTION("a message") {
    REQUIRE(rig.a.transport->dial(dial));
    rig.world.wake(rig.a.node);
    REQUIRE(rig.run([&] { return !rig.b.sink.requests.empty(); }));
    REQUIRE(rig.b.transport->accept(rig.b.sink.requests[0]) == Status::success);
    rig.world.wake(rig.b.node);
    REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
    REQUIRE(rig.a.send(rig.a.sink.connected[0].id, bytes_of("canary of a message"), 1) == Status::success);
    REQUIRE(rig.run([&] { return rig.b.sink.messages.size() == 1; }));
    CHECK(rig.b.sink.messages[0] == bytes_of("canary of a message"));
  }
  SECTION("a reason") {
    REQUIRE(rig.a.transport->dial(dial));
    rig.world.wake(rig.a.node);
    REQUIRE(rig.run([&] { return !rig.b.sink.requests.empty(); }));
    REQUIRE(rig.b.transport->reject(rig.b.sink.requests[0], "canary of a reason") == Status::success);
    rig.world.wake(rig.b.node);
    REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
    CHECK(rig.a.sink.connected[0].reason == "canary of a reason");
  }
  REQUIRE(relay.seen.size() > 4);
  for (const std::string& packet : relay.seen) CHECK(packet.find("canary") == std::string::npos);
}

TEST_CASE("rdma_secured__somebody_else_answers__the_dial_ends_as_not_authenticated") {
  SecureRig secure;
  secure.of_a->wanted = secure.of_a->identity.id();
  const Recorder::Ended& ended = secure.dial("sim-rdma://b:1");
  CHECK(ended.status == Status::not_authenticated);
  CHECK(ended.reason == "another identity than the one that was wanted");
  secure.rig.pass(30s);
  CHECK(secure.rig.b.sink.requests.empty());
}

TEST_CASE("rdma_secured__a_dialler_that_may_not__hears_why_and_the_application_does_not") {
  SecureRig secure;
  Status expected = Status::not_authenticated;
  std::string reason = "an unknown peer";
  SECTION("a stranger") { secure.of_b->stranger = secure.of_a->identity.id(); }
  SECTION("a role") {
    secure.of_b->denied = ports::Role::router;
    expected = Status::not_authorised;
    reason = "a role that it may not have";
  }
  const Recorder::Ended& ended = secure.dial("sim-rdma://b:1", ports::Role::router);
  CHECK(ended.status == expected);
  CHECK(ended.reason == reason);
  CHECK(secure.rig.b.sink.requests.empty());
  REQUIRE(secure.of_b->away.size() == 1);  // and its owner hears of it, with who it was
  CHECK(secure.of_b->away[0].peer == secure.of_a->identity.id());
  CHECK(secure.of_b->away[0].error.message == reason);
}

TEST_CASE("rdma_secured__one_end_insecure__refused_with_what_to_do") {
  const bool dialler_is_secured = GENERATE(true, false);
  const auto trust = std::make_shared<OwnTrust>();
  Rig rig({}, {}, 1, dialler_is_secured ? trust : nullptr, dialler_is_secured ? nullptr : trust);
  ports::DialRequest request;
  request.uri = "sim-rdma://b:1";
  REQUIRE(rig.a.transport->dial(request));
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return !rig.a.sink.connected.empty(); }));
  CHECK(rig.a.sink.connected[0].status == Status::not_authenticated);
  CHECK(rig.a.sink.connected[0].reason ==
        (dialler_is_secured ? connection::acceptor_is_insecure : connection::dialler_is_insecure));
  CHECK(rig.b.sink.requests.empty());
  CHECK(rig.b.counters.get(Counter::hello_rejected) == 1);
  CHECK(trust->away.size() == (dialler_is_secured ? 0 : 1));
}

// What a relay may do is to hand packets on as they are.
TEST_CASE("rdma_secured__each_packet_attacked_in_every_way__no_byte_of_it_is_delivered_and_everything_ends") {
  size_t to_a = 0, to_b = 0;
  {
    SecureRig secure;
    Relay relay(secure.rig);
    const Talk fine = talk(secure.rig);
    REQUIRE((fine.at_a == 4 && fine.at_b == 4 && fine.ended));
    to_a = relay.packets(false);
    to_b = relay.packets(true);
    REQUIRE((to_a > 4 && to_b > 4));
  }
  enum class Attack { flip_first, flip_middle, flip_last, drop, doubled, plain, injected, cut };
  for (const Attack attack : {Attack::flip_first, Attack::flip_middle, Attack::flip_last, Attack::drop, Attack::doubled,
                              Attack::plain, Attack::injected, Attack::cut}) {
    for (const bool forward : {true, false}) {
      for (size_t attacked = 0; attacked < (forward ? to_b : to_a); ++attacked) {
        CAPTURE(static_cast<int>(attack), forward, attacked);
        bool was_sealed = false;
        SecureRig secure;
        Relay relay(secure.rig, [&](bool towards_b, size_t number, Buffer packet) -> std::vector<Buffer> {
          if (towards_b != forward || number != attacked) return std::vector<Buffer>{std::move(packet)};
          was_sealed = packet.size() > 2 && packet[2] == std::byte{1};
          switch (attack) {
            case Attack::flip_first:
              packet.front() ^= std::byte{1};
              break;
            case Attack::flip_middle:
              packet[packet.size() / 2] ^= std::byte{16};
              break;
            case Attack::flip_last:
              packet.back() ^= std::byte{128};
              break;
            case Attack::drop:
              return {};
            case Attack::doubled:
              return std::vector<Buffer>{packet, packet};
            case Attack::plain:  // as if it had never been sealed
              packet[2] = std::byte{0};
              break;
            case Attack::injected: {
              Buffer credit;
              wire::Writer out(credit);
              encode(out, PacketHeader{1});
              return std::vector<Buffer>{std::move(packet), std::move(credit)};
            }
            case Attack::cut:
              packet.pop_back();
              break;
          }
          return std::vector<Buffer>{std::move(packet)};
        });
        const Talk result = talk(secure.rig);
        CHECK(result.ended);
        CHECK((result.at_a <= 4 && result.at_b <= 4));  // and each as it was sent
        if (was_sealed && attack != Attack::drop) {
          const uint64_t noticed =
              secure.rig.a.counters.get(Counter::frames_rejected) + secure.rig.b.counters.get(Counter::frames_rejected) +
              secure.rig.a.counters.get(Counter::hello_rejected) + secure.rig.b.counters.get(Counter::hello_rejected);
          // The last packet of a connection may come when the other end has gone.
          if (attacked + 1 < (forward ? to_b : to_a)) CHECK(noticed > 0);
        }
      }
    }
  }
}

// The proof of the dialler is the last thing that it says without a seal, and whoever stands between may write behind it.
TEST_CASE("rdma_secured__a_hello_behind_the_proof_of_another__is_no_request") {
  size_t proofs = 0;
  {
    SecureRig secure;
    Relay relay(secure.rig, [&](bool to_b, size_t, Buffer packet) {
      proofs += to_b && packet[2] == std::byte{0} && packet.size() > packet_header_bytes ? 1u : 0u;
      return std::vector<Buffer>{std::move(packet)};
    });
    REQUIRE(talk(secure.rig).at_b == 4);
    REQUIRE(proofs > 1);
  }
  SecureRig secure;
  size_t seen = 0;
  Relay relay(secure.rig, [&](bool to_b, size_t, Buffer packet) {
    if (!to_b || packet[2] != std::byte{0} || packet.size() == packet_header_bytes || ++seen != proofs)
      return std::vector<Buffer>{std::move(packet)};
    wire::Hello hello;
    hello.offer = {4000, 16, 8};
    wire::Writer out(packet);  // goes on at the end
    wire::encode(out, hello);
    return std::vector<Buffer>{std::move(packet)};
  });
  const Talk result = talk(secure.rig);
  CHECK(result.ended);
  CHECK(secure.rig.b.sink.requests.empty());
  CHECK(secure.of_b->asked.empty());
  CHECK(secure.rig.b.counters.get(Counter::hello_rejected) == 1);
}

// Of a stranger's, by hand.
TEST_CASE("rdma_secured__a_stranger_that_says_what_it_likes__is_counted_and_gone") {
  SecureRig secure;
  Rig& rig = secure.rig;
  RawPeer peer(rig);
  SECTION("no TLS") {
    peer.packet(0, [](wire::Writer& out) { wire::encode_handshake(out, as_bytes("GET / HTTP/1.1\r\n\r\n")); });
  }
  SECTION("sealed, before there are keys") {
    Buffer packet(64);
    packet[2] = std::byte{1};
    peer.raw(packet);
  }
  SECTION("a header that means nothing") {
    Buffer packet(64);
    packet[2] = std::byte{2};
    peer.raw(packet);
  }
  rig.pass(10s);
  peer.settle();
  CHECK(peer.is_closed);
  CHECK(rig.b.sink.requests.empty());
  CHECK(rig.b.counters.get(Counter::hello_rejected) + rig.b.counters.get(Counter::frames_rejected) > 0);
}

TEST_CASE("rdma_secured__many_at_once__all_get_in_though_each_turn_takes_a_few") {
  SecureRig secure;
  Rig& rig = secure.rig;
  constexpr size_t diallers = 40;
  for (size_t i = 0; i < diallers; ++i) {
    ports::DialRequest request;
    request.uri = "sim-rdma://b:1";
    request.timeout = 20s;
    REQUIRE(rig.a.transport->dial(request));
  }
  rig.world.wake(rig.a.node);
  REQUIRE(rig.run([&] { return rig.b.sink.requests.size() == diallers; }));
  CHECK(secure.of_b->handshakes == diallers);
}

}  // namespace ccixfer::rdma::testing

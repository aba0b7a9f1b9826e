// Peers whose address changes while a connection lasts, and others who say so of peers that are where they were.
#include <algorithm>

#include "core/base/log.h"
#include "tests/unit/datagram/rig.h"
#include "tests/unit/stream/own_trust.h"

namespace ccixfer::datagram::testing {
namespace {

using ccixfer::testing::OwnTrust;

struct MovingRig {
  explicit MovingRig(bool is_sealed, const sim::DatagramLinkOptions& link = {},
                     reliability::Congestion congestion = reliability::Congestion::new_reno)
      : rig(link, {}, 1, congestion, is_sealed ? std::make_shared<OwnTrust>() : nullptr,
            is_sealed ? std::make_shared<OwnTrust>() : nullptr) {
    rig.connect();
  }
  // Who stands between them has gone by then.
  ~MovingRig() { rig.fabric.stand_between(nullptr); }
  MovingRig(const MovingRig&) = delete;
  MovingRig& operator=(const MovingRig&) = delete;

  // A message arrives, each way.
  void talk(uint64_t token) {
    const size_t at_a = rig.a.sink.messages.size();
    const size_t at_b = rig.b.sink.messages.size();
    REQUIRE(rig.a.send(rig.at_a, filled(500, token), token) == Status::success);
    REQUIRE(rig.b.send(rig.at_b, filled(500, token + 1), token) == Status::success);
    REQUIRE(rig.run([&] { return rig.a.status_of(token).has_value() && rig.b.status_of(token).has_value(); }));
    REQUIRE(rig.a.status_of(token) == Status::success);
    REQUIRE(rig.b.status_of(token) == Status::success);
    REQUIRE(rig.b.sink.messages.size() == at_b + 1);
    REQUIRE(rig.a.sink.messages.size() == at_a + 1);
    CHECK(rig.b.sink.messages.back() == filled(500, token));
  }
  [[nodiscard]] uint64_t changed() const { return rig.b.counters.get(Counter::addresses_changed); }
  [[nodiscard]] uint64_t unproved() const { return rig.b.counters.get(Counter::addresses_unproved); }
  [[nodiscard]] bool all_is_well() const { return rig.a.sink.disconnected.empty() && rig.b.sink.disconnected.empty(); }

  Rig rig;
};

TEST_CASE("moves__a_nat_forgets_the_dialler_in_mid_transfer__all_arrives_over_its_new_address") {
  const bool is_sealed = GENERATE(true, false);
  const auto congestion = GENERATE(reliability::Congestion::new_reno, reliability::Congestion::bbr);
  sim::DatagramLinkOptions link;
  link.loss_chance = GENERATE(0.0, 0.05);
  link.reorder_chance = link.loss_chance;
  MovingRig moving(is_sealed, link, congestion);
  Rig& rig = moving.rig;
  std::vector<std::string> lines;
  set_log_sink([&](LogLevel, std::string_view line) { lines.emplace_back(line); }, LogLevel::info);
  const Buffer source = filled(20'000'000, 1);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.b.memory.register_region(target, cci::access_write);
  write.source = source;
  REQUIRE(rig.a.rma(rig.at_a, write, 1'000'000) == Status::success);
  Buffer read_into(source.size());
  ports::RmaRequest read;
  read.write = false;
  read.remote.handle = rig.b.memory.register_region(Bytes(source));
  read.destination = read_into;
  REQUIRE(rig.a.rma(rig.at_a, read, 1'000'001) == Status::success);
  constexpr uint64_t count = 500;
  uint64_t sent = 0;
  bool moved = false;
  REQUIRE(rig.run([&] {
    while (sent < count && rig.a.send(rig.at_a, filled(50 + sent, sent), sent) == Status::success) ++sent;
    if (!moved && rig.b.sink.messages.size() > count / 2) {
      moved = true;
      rig.a.net->appear_as("nat", 40'001);
    }
    return rig.a.sink.completions.size() == count + 2;
  }));
  set_log_sink(nullptr, LogLevel::error);
  for (const auto& completion : rig.a.sink.completions) CHECK(completion.status == Status::success);
  CHECK((target == source));
  CHECK((read_into == source));
  REQUIRE(rig.b.sink.messages.size() == count);
  for (uint64_t i = 0; i < count; ++i) REQUIRE(rig.b.sink.messages[i] == filled(50 + i, i));
  CHECK(moved);
  CHECK(moving.all_is_well());
  CHECK(moving.changed() == 1);
  CHECK(rig.a.counters.get(Counter::addresses_changed) == 0);
  CHECK(rig.b.transport->peer(rig.at_b).address == "nat");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].ends_with("peer moved from=a port=1 to=nat port=40001"));
}

// It sends nothing of its own that would show where it is: its keepalive does.
TEST_CASE("moves__an_end_that_only_receives__is_found_again") {
  MovingRig moving(GENERATE(true, false));
  Rig& rig = moving.rig;
  const Buffer source = filled(20'000'000, 1);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.a.memory.register_region(target, cci::access_write);
  write.source = source;
  REQUIRE(rig.b.rma(rig.at_b, write, 1) == Status::success);
  rig.pass(5ms);
  REQUIRE_FALSE(rig.b.status_of(1));
  rig.a.net->appear_as("a", 2);
  REQUIRE(rig.run([&] { return rig.b.status_of(1).has_value(); }));
  CHECK(rig.b.status_of(1) == Status::success);
  CHECK((target == source));
  CHECK(moving.changed() == 1);
}

TEST_CASE("moves__the_acceptor_moves_and_others_after_it__the_connection_lasts") {
  MovingRig moving(GENERATE(true, false));
  Rig& rig = moving.rig;
  rig.b.net->appear_as("elsewhere", 7);
  moving.talk(1);
  rig.a.net->appear_as("nat", 1);
  moving.talk(2);
  rig.a.net->appear_as("nat", 2);
  moving.talk(3);
  rig.b.net->appear_as("b", 1);
  moving.talk(4);
  CHECK(moving.all_is_well());
  CHECK(moving.changed() == 2);
  CHECK(rig.a.counters.get(Counter::addresses_changed) == 2);
}

TEST_CASE("moves__challenges_and_answers_get_lost__they_come_again") {
  MovingRig moving(GENERATE(true, false));
  Rig& rig = moving.rig;
  const size_t lost_max = GENERATE(size_t{1}, size_t{2}, size_t{3});
  rig.a.net->appear_as("nat", 1);
  const size_t path_bytes = packet_head_bytes(rig.a.transport->hops(rig.at_a)[0].protection != "") + path_frame_bytes +
                            packet_tail_bytes(rig.a.transport->hops(rig.at_a)[0].protection != "");
  size_t lost = 0;
  rig.fabric.stand_between([&](const std::string&, Buffer& bytes) { return bytes.size() != path_bytes || lost++ >= 2 * lost_max; });
  moving.talk(1);
  CHECK(lost > 2 * lost_max);
  CHECK(moving.changed() == 1);
}

// RFC 9000, 9.4: what was known of the old path is nothing for the new one.
TEST_CASE("moves__the_new_path__begins_with_the_first_window_and_the_shortest_packets") {
  sim::DatagramLinkOptions link;
  link.delay_min = link.delay_max = 20ms;
  link.queue_bytes = link.receive_bytes = 64u << 20;
  link.path_bytes = 8192;
  MovingRig moving(true, link);
  Rig& rig = moving.rig;
  const Buffer source = filled(60'000'000, 1);
  Buffer target(source.size());
  ports::RmaRequest write;
  write.remote.handle = rig.a.memory.register_region(target, cci::access_write);
  write.source = source;
  REQUIRE(rig.b.rma(rig.at_b, write, 1) == Status::success);
  size_t before = 0, longest_before = 0, first = 0, longest_first = 0;
  Instant moved_at = never;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from != "b") return true;
    if (moving.changed() == 0) {
      before += bytes.size();
      longest_before = std::max(longest_before, bytes.size());
      return true;
    }
    if (moved_at == never) moved_at = rig.world.now();
    if (rig.world.now() >= moved_at + 40ms) return true;
    const bool is_probe = bytes.size() == 1472;
    if (!is_probe) first += bytes.size();
    if (!is_probe) longest_first = std::max(longest_first, bytes.size());
    return true;
  });
  rig.pass(500ms);
  REQUIRE_FALSE(rig.b.status_of(1));
  REQUIRE(before > 5'000'000);
  REQUIRE(longest_before > 7000);
  rig.a.net->appear_as("nat", 1);
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.status_of(1).has_value(); }));
  CHECK(rig.b.status_of(1) == Status::success);
  CHECK((target == source));
  CHECK(longest_first <= packet_bytes_base);
  CHECK(first > packet_bytes_base);
  CHECK(first <= (reliability::window_first_datagrams + 2) * packet_bytes_base);
}

// What the acceptor remembers of hellos holds for those of before the move too.
TEST_CASE("moves__the_hello_comes_again_after_a_move__opens_nothing") {
  Rig rig;
  Buffer hello;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from == "a" && open_packet(bytes)->header.kind == PacketKind::hello) hello = bytes;
    return true;
  });
  rig.connect();
  rig.fabric.stand_between(nullptr);
  const Address before = rig.a.net->address();
  rig.a.net->appear_as("nat", 1);
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  REQUIRE(rig.run([&] { return rig.b.counters.get(Counter::addresses_changed) == 1; }));
  rig.fabric.forge(before, rig.b.net->address(), hello);
  rig.pass(1s);
  rig.a.transport->disconnect(rig.at_a);
  rig.world.wake(rig.a.node);
  rig.pass(5s);
  rig.fabric.forge(before, rig.b.net->address(), hello);
  rig.pass(1s);
  CHECK(rig.b.sink.requests.size() == 1);
}

// ---- Others.

// Sealed packets that nobody sealed, of somebody who knows all that passes in clear.
TEST_CASE("moves__packets_with_wrong_keys_from_elsewhere__are_counted_and_nobody_is_asked") {
  MovingRig moving(true);
  Rig& rig = moving.rig;
  RawPeer stranger(rig, "s");
  Buffer genuine;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from == "a") genuine = bytes;
    return true;
  });
  moving.talk(1);
  rig.fabric.stand_between(nullptr);
  PacketHeader header = open_packet(genuine)->header;
  const uint64_t before = rig.b.counters.get(Counter::datagrams_rejected);
  for (uint64_t i = 1; i <= 50; ++i) {
    header.number += 1000;
    Buffer forged;
    wire::Writer out(forged);
    begin_packet(out, header);
    out.bytes(filled(100, i));
    stranger.send(forged);
  }
  CHECK(stranger.got.empty());
  CHECK(rig.b.counters.get(Counter::datagrams_rejected) == before + 50);
  CHECK(moving.changed() + moving.unproved() == 0);
  moving.talk(2);
}

TEST_CASE("moves__old_packets_from_elsewhere__are_nothing_new_and_nobody_is_asked") {
  const bool is_sealed = GENERATE(true, false);
  MovingRig moving(is_sealed);
  Rig& rig = moving.rig;
  RawPeer stranger(rig, "s");
  std::vector<Buffer> recorded;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from == "a") recorded.push_back(bytes);
    return true;
  });
  for (uint64_t token = 1; token <= 20; ++token) moving.talk(token);
  rig.fabric.stand_between(nullptr);
  for (const Buffer& bytes : recorded) stranger.send(bytes);
  CHECK(stranger.got.empty());
  CHECK(rig.b.counters.get(is_sealed ? Counter::datagrams_duplicate : Counter::datagrams_rejected) >= recorded.size());
  CHECK(moving.changed() + moving.unproved() == 0);
  CHECK(rig.b.sink.messages.size() == 20);
  moving.talk(30);
}

// A late packet of before the move comes after it: it is taken where it is sealed, and moves nobody back.
TEST_CASE("moves__a_late_packet_from_the_old_address__moves_nobody_back") {
  MovingRig moving(true);
  Rig& rig = moving.rig;
  Buffer late;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from != "a" || !late.empty()) return true;
    late = bytes;
    return false;
  });
  REQUIRE(rig.a.send(rig.at_a, filled(10, 1), 1) == Status::success);
  rig.pass(1ms);
  REQUIRE_FALSE(late.empty());
  const Address before = rig.a.net->address();
  rig.a.net->appear_as("nat", 1);
  REQUIRE(rig.a.send(rig.at_a, filled(10, 2), 2) == Status::success);
  REQUIRE(rig.run([&] { return moving.changed() == 1; }));
  rig.fabric.forge(before, rig.b.net->address(), late);
  moving.talk(3);
  CHECK(moving.changed() == 1);
  CHECK(moving.unproved() == 0);
  CHECK(rig.b.transport->peer(rig.at_b).address == "nat");
}

// Somebody takes packets off the path and sends them in the name of victims, who never asked for anything.
TEST_CASE("moves__packets_in_the_name_of_victims__bring_each_three_times_as_much_at_most") {
  const bool is_sealed = GENERATE(true, false);
  MovingRig moving(is_sealed);
  Rig& rig = moving.rig;
  std::vector<std::unique_ptr<RawPeer>> victims;
  for (size_t i = 0; i < 20; ++i) victims.push_back(std::make_unique<RawPeer>(rig, "v" + std::to_string(i)));
  std::vector<size_t> named(victims.size());
  size_t next = 0;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    // Short ones: what they allow is soon used up.
    if (from != "a" || next >= victims.size() || bytes.size() > 100) return true;
    named[next] += bytes.size();
    rig.fabric.forge(victims[next]->address(), rig.b.net->address(), bytes);
    ++next;
    return false;
  });
  for (uint64_t token = 1; next < victims.size(); ++token) {
    REQUIRE(token < 200);
    moving.talk(token);
    rig.pass(2s);
  }
  rig.pass(20s);
  size_t asked = 0;
  for (size_t i = 0; i < victims.size(); ++i) {
    victims[i]->settle();
    size_t bytes = 0;
    for (const Buffer& each : victims[i]->got) bytes += each.size();
    CHECK(bytes <= unproved_bytes_factor * named[i]);
    asked += victims[i]->got.size();
  }
  CHECK(asked > 0);
  CHECK(moving.changed() == 0);
  CHECK(moving.unproved() > 0);
  CHECK(rig.b.transport->peer(rig.at_b).address == "a");
  moving.talk(1000);
  CHECK(moving.all_is_well());
}

// An observer who is faster than the path, and hands on what it is asked: whoever still receives where it was stays there.
TEST_CASE("moves__faster_copies_of_all_packets_from_elsewhere__move_nobody") {
  sim::DatagramLinkOptions link;
  link.delay_min = link.delay_max = 10ms;
  MovingRig moving(true, link);
  Rig& rig = moving.rig;
  RawPeer observer(rig, "s");
  const Address there = observer.address();
  size_t handed_on = 0;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    // It leaves first and arrives first: what the peer itself sends is a duplicate.
    if (from == "a") rig.fabric.forge(there, rig.b.net->address(), bytes);
    return true;
  });
  for (uint64_t token = 1; token <= 20; ++token) {
    moving.talk(token);
    observer.settle();
    for (; handed_on < observer.got.size(); ++handed_on)
      rig.fabric.forge(rig.b.net->address(), rig.a.net->address(), observer.got[handed_on]);
    rig.pass(300ms);
  }
  CHECK(handed_on > 0);
  CHECK(rig.b.counters.get(Counter::datagrams_duplicate) > 20);
  CHECK(moving.changed() == 0);
  CHECK(moving.unproved() > 0);
  CHECK(rig.b.transport->peer(rig.at_b).address == "a");
}

// Without keys: somebody who knows the key, and answers what it is asked.
TEST_CASE("moves__plain__who_knows_the_key_is_asked_and_takes_nothing_from_a_peer_that_is_there") {
  Rig rig;
  RawPeer peer(rig, "p");
  RawPeer stranger(rig, "s");
  peer.open();
  stranger.index = peer.index;
  stranger.key = peer.key;
  const bool peer_answers = GENERATE(true, false);
  const auto answer_of = [](RawPeer& each) {
    const auto asked = each.all<PathChallengeFrame>();
    REQUIRE(asked.size() == 1);
    return PathAnswerFrame{asked[0].token};
  };
  stranger.frames_as(1000, [](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, as_bytes("hello")}); });
  const PathAnswerFrame of_stranger = answer_of(stranger);
  peer.settle();
  const PathAnswerFrame of_peer = answer_of(peer);
  CHECK(of_stranger.token != of_peer.token);
  // Guesses, and what the other was asked.
  stranger.frames_as(1001, [&](wire::Writer& out) { encode(out, PathAnswerFrame{of_stranger.token + 1}); });
  stranger.frames_as(1002, [&](wire::Writer& out) { encode(out, of_peer); });
  peer.frames([&](wire::Writer& out) { encode(out, PathAnswerFrame{of_stranger.token}); });
  CHECK(rig.b.counters.get(Counter::addresses_changed) == 0);
  if (peer_answers) {
    peer.frames([&](wire::Writer& out) { encode(out, of_peer); });
    stranger.frames_as(1003, [&](wire::Writer& out) { encode(out, of_stranger); });
  }
  rig.pass(3s);
  CHECK(rig.b.counters.get(Counter::addresses_changed) == 0);
  CHECK(rig.b.sink.messages.empty());
  CHECK(rig.b.sink.disconnected.empty());
  peer.frames([](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, as_bytes("hello")}); });
  CHECK(rig.b.sink.messages.size() == 1);
}

TEST_CASE("moves__plain__the_peer_is_silent_where_it_was__it_moves_and_what_it_says_is_taken") {
  Rig rig;
  RawPeer peer(rig, "p");
  RawPeer there(rig, "s");
  peer.open();
  there.index = peer.index;
  there.key = peer.key;
  there.frames_as(5, [](wire::Writer& out) { encode(out, PingFrame{}); });
  const auto asked = there.all<PathChallengeFrame>();
  REQUIRE(asked.size() == 1);
  there.frames_as(6, [&](wire::Writer& out) { encode(out, PathAnswerFrame{asked[0].token}); });
  rig.pass(300ms);
  CHECK(rig.b.counters.get(Counter::addresses_changed) == 1);
  there.frames_as(7, [](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, as_bytes("hello")}); });
  CHECK(rig.b.sink.messages.size() == 1);
}

// The host has a new address, from which the kernel sends, and the one of before is still there: what came to it is answered from
// it.
TEST_CASE("moves__plain__sends_from_elsewhere_and_answers_where_it_was__ends_and_does_not_hang") {
  MovingRig moving(false);
  Rig& rig = moving.rig;
  RawPeer elsewhere(rig, "s");
  const Address there = elsewhere.address();
  const auto frame_of = [](const Buffer& bytes) {
    const auto packet = open_packet(bytes);
    REQUIRE(packet);
    wire::Reader in(packet->body);
    return decode_frame(in);
  };
  std::vector<uint64_t> asked_there;
  rig.fabric.stand_between([&](const std::string& from, Buffer& bytes) {
    if (from != "a") return true;
    const auto frame = frame_of(bytes);
    const auto* answer = frame ? std::get_if<PathAnswerFrame>(&*frame) : nullptr;
    const auto is_of_there = [&] { return std::find(asked_there.begin(), asked_there.end(), answer->token) != asked_there.end(); };
    if (answer != nullptr && !is_of_there()) return true;
    rig.fabric.forge(there, rig.b.net->address(), bytes);
    return false;
  });
  REQUIRE(rig.a.send(rig.at_a, filled(500, 1), 1) == Status::success);
  size_t handed_on = 0;
  const auto is_over = [&] { return !rig.a.sink.disconnected.empty() && !rig.b.sink.disconnected.empty(); };
  const auto goes_on = [&] { return moving.changed() > 0 && rig.a.status_of(1) == Status::success; };
  for (int i = 0; i < 600 && !is_over() && !goes_on(); ++i) {
    rig.pass(50ms);
    elsewhere.settle();
    for (; handed_on < elsewhere.got.size(); ++handed_on) {
      const auto frame = frame_of(elsewhere.got[handed_on]);
      const auto* challenge = frame ? std::get_if<PathChallengeFrame>(&*frame) : nullptr;
      if (challenge != nullptr) asked_there.push_back(challenge->token);
      rig.fabric.forge(rig.b.net->address(), rig.a.net->address(), elsewhere.got[handed_on]);
    }
  }
  CHECK(asked_there.size() > 1);
  CHECK((is_over() || goes_on()));
}

TEST_CASE("moves__nobody_answers_there__asked_a_few_times_and_the_connection_stays") {
  Rig rig;
  RawPeer peer(rig, "p");
  RawPeer stranger(rig, "s");
  peer.open();
  stranger.index = peer.index;
  stranger.key = peer.key;
  for (uint64_t i = 0; i < 40; ++i) {
    stranger.frames_as(100 + i, [](wire::Writer& out) { encode(out, PingFrame{}); });
  }
  rig.pass(6s);
  peer.settle();
  stranger.settle();
  CHECK(stranger.all<PathChallengeFrame>().size() == path_challenges_max);
  CHECK(peer.all<PathChallengeFrame>().size() == path_challenges_max);
  CHECK(rig.b.counters.get(Counter::addresses_unproved) == 1);
  CHECK(rig.b.sink.disconnected.empty());
  peer.frames([](wire::Writer& out) { encode(out, MessageFrame{0, 0, false, as_bytes("hello")}); });
  CHECK(rig.b.sink.messages.size() == 1);
}

// ---- Frames.

TEST_CASE("moves__a_challenge__is_answered_once_where_it_came_from_and_by_no_more_than_it_was") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) { encode(out, PathChallengeFrame{4711}); });
  REQUIRE(peer.got.size() == 1);
  CHECK(peer.got[0].size() == packet_overhead_bytes + path_frame_bytes);
  REQUIRE(peer.all<PathAnswerFrame>().size() == 1);
  CHECK(peer.all<PathAnswerFrame>()[0].token == 4711);
  peer.frames([](wire::Writer& out) { encode(out, PathAnswerFrame{4711}); });  // that nobody asked for
  CHECK(rig.b.sink.disconnected.empty());
}

TEST_CASE("moves__two_challenges_in_a_packet__a_violation") {
  Rig rig;
  RawPeer peer(rig, "p");
  peer.open();
  peer.frames([](wire::Writer& out) {
    encode(out, PathChallengeFrame{1});
    encode(out, PathChallengeFrame{2});
  });
  CHECK(peer.all<PathAnswerFrame>().empty());
  CHECK(rig.b.counters.get(Counter::frames_rejected) == 1);
  CHECK(rig.b.sink.disconnected.size() == 1);
}

}  // namespace
}  // namespace ccixfer::datagram::testing

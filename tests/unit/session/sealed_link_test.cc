// Links with encryption, and somebody on the way who sees every message and may change, drop, double, reorder, cut and invent them.
#include <algorithm>
#include <catch2/catch.hpp>

#include "app/session/message_seal.h"
#include "app/session/session_keys.h"
#include "tests/unit/session/link_fixture.h"

namespace ccixfer::session {
namespace {

using fake::Frame;
using fake::FrameKind;

constexpr std::string_view canary = "incoming/the-name-that-nobody-may-see";
constexpr uint64_t messages_each_way = 6;

SealSetup someone() {
  return {trust::Identity::generate().value(), std::nullopt, [] { return int64_t{1'800'000'000}; }};
}

struct SealedWorld : fake::World {
  explicit SealedWorld(uint16_t lanes = 1) : World(lanes, Direction::push, someone()) {}
  ~SealedWorld() {  // what the test set uses what is the test's
    net.in_between = nullptr;
    net.fault = nullptr;
  }

  bool run_until_secured() {
    return run([&] { return link->is_secured() && acceptor->link != nullptr && acceptor->link->is_secured(); });
  }
  // Session messages and a lane message both ways, all with the canary or numbers in them.
  void talk() {
    say_messages();
    acceptor->link->post_on_lane(0, Credit{17, false});
    link->post_on_lane(0, Ask{5});
  }
  void say_messages() {
    for (uint64_t i = 1; i <= messages_each_way; ++i) {
      link->post(End{i, 0, 0});
      acceptor->link->post(End{i, 0, 0});
    }
    link->post(Unlisted{false, std::string(canary), "a reason"});
  }
  [[nodiscard]] bool all_came() const {
    return user.messages.size() == messages_each_way && acceptor->user.messages.size() == messages_each_way &&
           acceptor->user.others.size() == 1 && user.lane_messages.size() == 1 && acceptor->user.lane_messages.size() == 1;
  }
  // What came is a beginning of what was said, in order, and nothing else.
  [[nodiscard]] bool nothing_wrong_came() const {
    for (const fake::Recorder* heard : std::initializer_list<const fake::Recorder*>{&user, &acceptor->user}) {
      for (uint64_t i = 0; i < heard->messages.size(); ++i) {
        if (heard->messages[i] != i + 1) return false;
      }
      for (const Message& message : heard->others) {
        const auto* unlisted = std::get_if<Unlisted>(&message);
        if (!std::holds_alternative<Abort>(message) && (unlisted == nullptr || unlisted->path != canary)) return false;
      }
      if (heard->lane_messages.size() > 1) return false;
    }
    return true;
  }
  [[nodiscard]] bool over() const { return user.lost != nullptr || acceptor->user.lost != nullptr; }
};

TEST_CASE("sealed_link__handshake__both_ends_prove_themselves_and_messages_pass") {
  SealedWorld world;
  const SealSetup& far = *world.acceptor->seal;
  REQUIRE(world.run_until_secured());
  CHECK(world.link->proved()->id == far.identity.id());
  CHECK(world.acceptor->link->peer().proved == trust::to_string(world.acceptor->link->proved()->id));
  CHECK(world.acceptor->link->proved()->id != far.identity.id());
  world.talk();
  REQUIRE(world.run([&] { return world.all_came(); }));
  CHECK(world.nothing_wrong_came());
  CHECK_FALSE(world.over());
}

TEST_CASE("sealed_link__whoever_is_on_the_way__reads_no_word") {
  SealedWorld world;
  std::string recording;
  size_t sealed = 0;
  world.net.in_between = [&](std::string_view, std::vector<Frame>& frames) {
    for (const Frame& frame : frames) {
      recording += as_text(frame.bytes);
      if (frame.kind == FrameKind::message && is_sealed_message(frame.bytes)) ++sealed;
    }
  };
  REQUIRE(world.run_until_secured());
  world.talk();
  REQUIRE(world.run([&] { return world.all_came(); }));
  CHECK(recording.find(canary) == std::string::npos);
  CHECK(sealed == 2 * messages_each_way + 3);
  CHECK(recording.size() > 1000);
}

enum class Harm : uint8_t { flip, drop, twice, cut, swap };

// The message with that number, handshake included, is harmed; false: there are not so many.
bool harmed(size_t number, Harm harm, size_t byte) {
  SealedWorld world;
  size_t seen = 0;
  std::vector<Frame> held;
  world.net.in_between = [&](std::string_view, std::vector<Frame>& frames) {
    if (frames[0].kind != FrameKind::message) return;
    if (!held.empty()) {
      frames.push_back(std::move(held[0]));
      held.clear();
    }
    if (seen++ != number) return;
    std::vector<std::byte>& bytes = frames[0].bytes;
    switch (harm) {
      case Harm::flip:
        bytes[byte % bytes.size()] ^= std::byte{0x10};
        return;
      case Harm::drop:
        frames.clear();
        return;
      case Harm::twice:
        frames.push_back(frames[0]);
        return;
      case Harm::cut:
        bytes.resize(byte % bytes.size());
        return;
      case Harm::swap:
        held.push_back(std::move(frames[0]));
        frames.clear();
        return;
    }
  };
  if (world.run([&] { return world.over() || (world.link->is_secured() && world.acceptor->link->is_secured()); }, 3000) &&
      !world.over()) {
    world.talk();
  }
  world.run([&] { return world.over() || world.all_came(); }, 3000);
  CHECK(world.nothing_wrong_came());
  if (world.user.lost) CHECK(world.user.lost->kind != ErrorKind::bug);
  return seen > number;
}

TEST_CASE("sealed_link__each_message_harmed__nothing_wrong_is_heard") {
  for (const Harm harm : {Harm::flip, Harm::drop, Harm::twice, Harm::cut, Harm::swap}) {
    size_t number = 0;
    while (harmed(number, harm, 7 + 13 * number)) ++number;
    CHECK(number > 10);
  }
}

TEST_CASE("sealed_link__each_byte_of_a_sealed_message_flipped__the_session_ends_with_integrity_or_protocol") {
  for (size_t byte = 0;; ++byte) {
    SealedWorld world;
    bool flipped = false;
    bool was_longer = false;
    REQUIRE(world.run_until_secured());
    world.net.in_between = [&](std::string_view, std::vector<Frame>& frames) {
      if (frames[0].kind != FrameKind::message || flipped) return;
      flipped = true;
      was_longer = byte < frames[0].bytes.size();
      if (was_longer) frames[0].bytes[byte] ^= std::byte{1};
    };
    world.link->post(End{1, 0, 0});
    REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr || !world.acceptor->user.messages.empty(); }));
    if (!was_longer) break;
    REQUIRE(world.acceptor->user.messages.empty());
    const ErrorKind kind = world.acceptor->user.lost->kind;
    REQUIRE((kind == ErrorKind::integrity || kind == ErrorKind::protocol));
  }
}

TEST_CASE("sealed_link__message_without_its_seal__is_heard_from_nobody") {
  for (const bool abort : {false, true}) {
    SealedWorld world;
    REQUIRE(world.run_until_secured());
    world.talk();
    REQUIRE(world.run([&] { return world.all_came(); }));
    world.net.in_between = [&](std::string_view, std::vector<Frame>& frames) {
      if (frames[0].kind != FrameKind::message) return;
      const Message forged = abort ? Message(Abort{ErrorKind::authentication, "forged"}) : Message(End{99, 0, 0});
      frames[0].bytes = encode(forged, messages_each_way + 20);
    };
    world.link->post(End{messages_each_way + 1, 0, 0});
    REQUIRE(world.run([&] { return world.acceptor->user.lost != nullptr; }));
    CHECK(world.acceptor->user.lost->kind == ErrorKind::protocol);
    CHECK(world.acceptor->user.messages.size() == messages_each_way);
  }
}

// A router that makes up handshake parts of one direction, with right checksums, or cuts the last real one otherwise, and takes
// away the sealed message that has the same number: its sender is told that it came.
struct Forger {
  enum class Way : uint8_t { ahead, ahead_and_drop, in_place, cut_in_two };
  Way way = Way::ahead;
  bool of_dialler = true;
  uint64_t last_part = 0;  // of that direction
  uint64_t number = 0;     // of the sealed message that is meant
  bool forged = false;

  static Frame part(uint64_t as, std::string bytes) {
    return {FrameKind::message, fake::made_up_token, Status::success, encode(HandshakePart{std::move(bytes)}, as), {}};
  }
  void pass(std::string_view from, std::vector<Frame>& frames) {
    if (frames[0].kind != FrameKind::message || from.empty() != of_dialler) return;
    if (const auto head = sealed_head(frames[0].bytes)) {
      if (head->channel != SealedChannel::session || head->number != number || way == Way::ahead) return;
      const bool here = way == Way::in_place;
      forged = forged || here;
      frames[0].bytes = encode(HandshakePart{"x"}, here ? number : 1);
      return;
    }
    const Result<Decoded> plain = decode(frames[0].bytes);
    if (!plain || plain->sequence != last_part || forged || way == Way::in_place) return;
    forged = true;
    if (way != Way::cut_in_two) return frames.push_back(part(number, "x"));
    const std::string whole = std::get<HandshakePart>(plain->message).bytes;
    frames[0].bytes = encode(HandshakePart{whole.substr(0, 20)}, last_part);
    frames.push_back(part(last_part + 1, whole.substr(20)));
  }
};

uint64_t last_handshake_part(bool of_dialler) {
  SealedWorld world;
  uint64_t last = 0;
  world.net.in_between = [&](std::string_view from, std::vector<Frame>& frames) {
    if (frames[0].kind != FrameKind::message || from.empty() != of_dialler || is_sealed_message(frames[0].bytes)) return;
    last = std::max(last, decode(frames[0].bytes)->sequence);
  };
  REQUIRE(world.run_until_secured());
  return last;
}

// false: nobody noticed.
bool ends_with_integrity(Forger forger) {
  SealedWorld world;
  world.net.in_between = [&](std::string_view from, std::vector<Frame>& frames) { forger.pass(from, frames); };
  const auto secured = [&] { return world.acceptor->link && world.link->is_secured() && world.acceptor->link->is_secured(); };
  if (world.run([&] { return world.over() || secured(); }, 3000) && !world.over()) world.say_messages();
  world.run([&] { return world.over(); }, 3000);
  CHECK(forger.forged);
  CHECK(world.nothing_wrong_came());
  const fake::Recorder& deceived = forger.of_dialler ? world.acceptor->user : world.user;
  return deceived.lost != nullptr && deceived.lost->kind == ErrorKind::integrity;
}

TEST_CASE("sealed_link__handshake_part_with_the_number_of_a_sealed_message__ends_with_integrity") {
  using Way = Forger::Way;
  for (const bool of_dialler : {true, false}) {
    const uint64_t last = last_handshake_part(of_dialler);
    REQUIRE(last > 0);
    for (const Way way : {Way::ahead, Way::ahead_and_drop}) {
      const uint64_t sealed = messages_each_way + (of_dialler ? 1 : 0);  // behind the last of them nothing else would tell
      for (uint64_t ahead = 1; ahead <= sealed; ++ahead) {
        INFO("of the dialler " << of_dialler << ", dropped " << (way == Way::ahead_and_drop) << ", " << ahead << " ahead");
        CHECK(ends_with_integrity({way, of_dialler, last, last + ahead}));
      }
    }
    for (const Way way : {Way::in_place, Way::cut_in_two}) {
      INFO("of the dialler " << of_dialler << ", cut in two " << (way == Way::cut_in_two));
      CHECK(ends_with_integrity({way, of_dialler, last, last + 1}));
    }
  }
}

TEST_CASE("sealed_link__abort_without_a_seal_before_the_keys__counts_only_as_a_refusal") {
  for (const ErrorKind kind : {ErrorKind::authentication, ErrorKind::no_space}) {
    SealedWorld world;
    world.net.in_between = [&](std::string_view from, std::vector<Frame>& frames) {
      if (frames[0].kind == FrameKind::message && !from.empty()) frames[0].bytes = encode(Abort{kind, "go away"}, 1);
    };
    REQUIRE(world.run([&] { return !world.user.others.empty(); }));
    const auto* abort = std::get_if<Abort>(&world.user.others[0]);
    REQUIRE(abort != nullptr);
    CHECK(abort->kind == (kind == ErrorKind::authentication ? kind : ErrorKind::network));
    CHECK_FALSE(world.link->is_secured());
  }
}

TEST_CASE("sealed_link__more_lanes__prove_that_they_are_of_the_session") {
  SealedWorld world(3);
  REQUIRE(world.run_until_up(3));
  REQUIRE(world.run_until_secured());
  world.acceptor->link->post_on_lane(2, Credit{4, true});
  REQUIRE(world.run([&] { return !world.user.lane_messages.empty(); }));
  CHECK(world.user.lane_messages[0].first == 2);
}

TEST_CASE("sealed_link__lane_of_a_stranger_or_an_old_hello__is_not_of_the_session") {
  SealedWorld world(2);
  REQUIRE(world.run_until_up(2));
  Hello hello = world.link->hello();
  hello.session = world.link->session();
  hello.lane = 1;
  CHECK(world.acceptor->link->admits(hello) == LaneAdmission::stranger);  // no proof
  world.link->prove(hello);
  Hello other = hello;
  other.lane = 0;
  CHECK(world.acceptor->link->admits(other) == LaneAdmission::stranger);
  other = hello;
  other.proof[31] ^= 1;
  CHECK(world.acceptor->link->admits(other) == LaneAdmission::stranger);
  other = hello;
  other.moves = !other.moves;
  CHECK(world.acceptor->link->admits(other) == LaneAdmission::stranger);
  CHECK(world.acceptor->link->admits(hello) == LaneAdmission::admitted);
  CHECK(world.acceptor->link->admits(hello) == LaneAdmission::repeated);
  SealedWorld elsewhere(1);
  REQUIRE(elsewhere.run_until_secured());
  Hello foreign = hello;
  elsewhere.link->prove(foreign);
  CHECK(world.acceptor->link->admits(foreign) == LaneAdmission::stranger);
}

// A router that loses its way to the acceptor asks again over another one, with the same words.
TEST_CASE("sealed_link__connection_that_was_asked_for_before__is_refused_and_the_session_is_not_called_gone") {
  SealedWorld world(2);
  REQUIRE(world.run_until_up(2));
  Hello hello = world.link->hello();
  hello.session = world.link->session();
  hello.lane = 1;
  CHECK(fake::knock(world, encode(hello)) == "unknown session");
  world.link->prove(hello);
  REQUIRE(world.acceptor->link->admits(hello) == LaneAdmission::admitted);
  CHECK(fake::knock(world, encode(hello)) == "network: this connection was asked for before");
  CHECK(world.acceptor->link->live_lanes().size() == 2);
}

TEST_CASE("sealed_link__lane_message_again_ahead_or_of_another_lane__does_not_open") {
  SealedWorld world;
  REQUIRE(world.run_until_secured());
  const SessionKeys& near = *world.link->keys();
  const SessionKeys& far = *world.acceptor->link->keys();
  LaneSeal out(near, 1, 4);
  LaneSeal in(far, 1, 4);
  const std::vector<std::byte> first = out.seal(encode(Ask{1}, 0));
  const std::vector<std::byte> second = out.seal(encode(Ask{2}, 0));
  CHECK_FALSE(in.open(second));
  CHECK(in.open(first));
  CHECK_FALSE(in.open(first));
  CHECK(in.open(second));
  LaneSeal other_lane(far, 2, 4);
  CHECK_FALSE(other_lane.open(first));
  LaneSeal other_dial(far, 1, 5);
  CHECK_FALSE(other_dial.open(first));
  LaneSeal reflected(near, 1, 4);
  CHECK_FALSE(reflected.open(first));
}

TEST_CASE("sealed_link__lanes_die_all_the_time__messages_come_once_and_in_order") {
  SealedWorld world(2);
  REQUIRE(world.run_until_secured());
  size_t step = 0;
  world.net.fault = [&](size_t, FrameKind) { return ++step % 23 == 0 ? fake::Fault::cut_after : fake::Fault::none; };
  for (uint64_t i = 1; i <= 40; ++i) {
    world.link->post(End{i, 0, 0});
    world.acceptor->link->post(End{i, 0, 0});
  }
  REQUIRE(world.run([&] { return world.user.messages.size() == 40 && world.acceptor->user.messages.size() == 40; }));
  CHECK(world.nothing_wrong_came());
  CHECK(world.net.dials > 4);
}

TEST_CASE("sealed_link__dialler_whose_certificate_is_refused__hears_why") {
  // The acceptor believes an authority that did not sign the dialler's certificate: its own key, cut off from the chain.
  SealedWorld world;
  world.net.in_between = [&](std::string_view from, std::vector<Frame>& frames) {
    // The dialler's last flight is damaged, as if its proof were wrong.
    if (frames[0].kind != FrameKind::message || !from.empty() || is_sealed_message(frames[0].bytes)) return;
    const Result<Decoded> decoded = decode(frames[0].bytes);
    if (!decoded || decoded->sequence == 1) return;
    HandshakePart part = std::get<HandshakePart>(decoded->message);
    part.bytes[part.bytes.size() / 2] ^= 1;
    frames[0].bytes = encode(part, decoded->sequence);
  };
  REQUIRE(world.run([&] { return !world.user.others.empty() && world.acceptor->user.lost != nullptr; }));
  CHECK_FALSE(world.acceptor->link->is_secured());
  REQUIRE(std::holds_alternative<Abort>(world.user.others[0]));
}

TEST_CASE("sealed_link__transfer_key__is_another_one_for_another_peer") {
  SealedWorld one;
  SealedWorld two;
  REQUIRE(one.run_until_secured());
  REQUIRE(two.run_until_secured());
  CHECK(one.acceptor->link->hello().transfer == two.acceptor->link->hello().transfer);
  CHECK(one.acceptor->link->transfer_key() != two.acceptor->link->transfer_key());
  CHECK(one.acceptor->link->transfer_key() == one.acceptor->link->transfer_key());
}

}  // namespace
}  // namespace ccixfer::session

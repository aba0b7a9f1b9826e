// The server beside askers that are none.
#include "tests/unit/bench/rig.h"

using namespace ccixfer;
using namespace ccixfer::bench;

namespace {

// An asking side of the test's own: connects with `hello`, and its messages and ends are the test's.
struct Stranger {
  explicit Stranger(Pair& pair_) : pair(pair_), endpoint(*pair_.here.endpoint) {
    pair.here.deadline = [this] { return endpoint.next_deadline(); };
    pair.here.work = [this](Instant now) {
      for (const auto& hello : std::exchange(to_dial, {})) {
        cci::ConnectOptions options;
        options.data = hello;
        REQUIRE(endpoint.connect(uri, options));
      }
      endpoint.turn(now);
      while (auto event = endpoint.get_event()) {
        if (event->type == cci::EventType::connect) {
          answers.emplace_back(event->status, event->reason);
          connections.push_back(event->connection);
        } else if (event->type == cci::EventType::receive) {
          messages.emplace_back(event->data().begin(), event->data().end());
        } else if (event->type == cci::EventType::send) {
          ended.push_back(event->status);
        } else if (event->type == cci::EventType::disconnected) {
          ++lost;
        }
      }
      endpoint.turn(now);
    };
  }
  void dial(const std::vector<std::byte>& hello) {
    const size_t before = answers.size();
    to_dial.push_back(hello);
    pair.world.wake(pair.east);
    until([&] { return answers.size() > before; });
  }
  void until(const std::function<bool()>& reached) {
    REQUIRE(pair.world.run_until(reached, after(pair.world.now(), std::chrono::seconds(30))) == sim::RunEnd::reached);
  }
  void say(const std::vector<std::byte>& message, size_t index = 0) {
    CHECK(endpoint.send(connections[index], message, 0, true) == Status::success);
    pair.world.wake(pair.east);
  }
  std::vector<std::byte> answer() {
    until([&] { return !messages.empty(); });
    std::vector<std::byte> first = std::move(messages.front());
    messages.erase(messages.begin());
    return first;
  }
  // One byte written there: what became of it.
  Status write(const ports::Handle& where, size_t index = 0) {
    const auto local = endpoint.memory().register_region(byte, 0);
    cci::RmaOptions rma;
    rma.local = local;
    rma.remote.handle = where;
    rma.length_bytes = 1;
    const size_t before = ended.size();
    CHECK(endpoint.rma(connections[index], rma) == Status::success);
    pair.world.wake(pair.east);
    until([&] { return ended.size() > before; });
    static_cast<void>(endpoint.memory().deregister_region(local));
    return ended.back();
  }
  // Memory for what the server writes and puts back.
  Open open_here() {
    Open open;
    open.slot_bytes = 64;
    open.slots = 2;
    open.buffers = 2;
    open.reply_bytes = 8;
    open.landing = endpoint.memory().register_region(landing, cci::access_write);
    rvma::MailboxOptions options;
    options.key = 5;
    CHECK(endpoint.mailboxes().open(99, options) == Status::success);
    CHECK(endpoint.mailboxes().post(99, landing, 0) == Status::success);
    open.mailbox = endpoint.mailboxes().handle(99);
    return open;
  }

  Pair& pair;
  cci::Endpoint& endpoint;
  std::vector<std::vector<std::byte>> to_dial, messages;
  std::vector<std::pair<Status, std::string>> answers;
  std::vector<cci::Connection> connections;
  std::vector<Status> ended;
  std::vector<std::byte> byte = std::vector<std::byte>(64, std::byte{0x5a}), landing = std::vector<std::byte>(64);
  size_t lost = 0;
};

}  // namespace

TEST_CASE("server__other_services_and_versions__refused_with_words") {
  Pair pair(40, {});
  Stranger stranger(pair);
  stranger.dial({});
  CHECK(stranger.answers[0].first == Status::refused);
  CHECK(stranger.answers[0].second == "here is `ccixfer bench --serve` and nothing else");
  CHECK(pair.server.sessions() == 0);
  stranger.dial(encode_hello(Purpose::extra));
  CHECK(stranger.answers[1].first == Status::success);
  CHECK(pair.server.sessions() == 0);  // it only is there
  for (size_t i = 0; i < sessions_max; ++i) {
    stranger.dial(encode_hello(Purpose::session));
    CHECK(stranger.answers.back().first == Status::success);
  }
  CHECK(pair.server.sessions() == sessions_max);
  stranger.dial(encode_hello(Purpose::session));
  CHECK(stranger.answers.back().first == Status::refused);
  CHECK(stranger.answers.back().second == "too many measurements at once");
  stranger.dial(encode_hello(Purpose::extra));
  CHECK(stranger.answers.back().first == Status::success);
  // One that goes makes room for the next, though it never opened.
  stranger.endpoint.disconnect(stranger.connections[2]);
  pair.world.wake(pair.east);
  stranger.until([&] { return pair.server.sessions() == sessions_max - 1; });
  CHECK(pair.server.ended() == 1);
  CHECK(pair.server.dropped() == 0);
  stranger.dial(encode_hello(Purpose::session));
  CHECK(stranger.answers.back().first == Status::success);
}

TEST_CASE("server__sessions_that_say_nothing__make_room_for_one_that_measures") {
  Pair pair(45, {});
  Stranger stranger(pair);
  for (size_t i = 0; i < sessions_max; ++i) stranger.dial(encode_hello(Purpose::session));
  stranger.say(encode(stranger.open_here()), 3);
  static_cast<void>(stranger.answer());
  stranger.dial(encode_hello(Purpose::session));
  CHECK(stranger.answers.back().first == Status::refused);
  stranger.until([&] { return pair.server.sessions() == 1; });
  CHECK(pair.server.dropped() == sessions_max - 1);
  CHECK(pair.server.last_drop() == "no `open` came");
  stranger.until([&] { return stranger.lost == sessions_max - 1; });
  stranger.dial(encode_hello(Purpose::session));
  CHECK(stranger.answers.back().first == Status::success);
  // The one that opened stays, and whoever connects later has its time too.
  stranger.until([&] { return pair.server.sessions() == 1; });
  CHECK(pair.server.dropped() == sessions_max);
  stranger.say(encode_padded(Kind::echo, 10), 3);
  CHECK(stranger.answer() == encode_padded(Kind::echo, 10));
}

TEST_CASE("server__everything_it_answers__with_what_was_asked_for") {
  Pair pair(41, {});
  Stranger stranger(pair);
  stranger.dial(encode_hello(Purpose::session));
  stranger.say(encode(stranger.open_here()));
  const auto opened = decode_opened(stranger.answer());
  REQUIRE(opened);
  CHECK(opened->wait == Wait::spin);
  std::vector<std::byte> echo = encode_padded(Kind::echo, 8);
  echo[5] = std::byte{77};
  stranger.say(encode_padded(Kind::count, 8));  // not answered
  stranger.say(echo);
  CHECK(stranger.answer() == echo);
  // A write with its completion message comes back as one.
  stranger.say(encode_padded(Kind::written, 1));
  CHECK(stranger.answer() == encode_padded(Kind::written, 1));
  // An address is good for one write, until the next is asked for.
  stranger.say(encode_want(8));
  const auto address = decode_address(stranger.answer());
  REQUIRE(address);
  CHECK(stranger.write(*address) == Status::success);
  stranger.say(encode_want(1));
  const auto next = decode_address(stranger.answer());
  REQUIRE(next);
  CHECK(stranger.write(*address) != Status::success);
  CHECK(stranger.write(*next) == Status::success);
  stranger.say(encode_padded(Kind::exchange, 1));
  CHECK(decode_want(stranger.answer()) == 8);
  CHECK(stranger.write(*next) != Status::success);
  stranger.say(encode_address(stranger.endpoint.memory().register_region(stranger.landing, cci::access_write)));
  CHECK(stranger.answer() == encode_padded(Kind::exchange, 1));
  // Puts are taken, more of them than were posted, and those of the echo mailbox come back.
  for (int i = 0; i < 5; ++i) CHECK(stranger.write(opened->mailbox) == Status::success);
  CHECK_FALSE(stranger.endpoint.mailboxes().next_completion());
  CHECK(stranger.write(opened->echo_mailbox) == Status::success);
  std::optional<rvma::Completion> back;
  stranger.until([&] { return (back = stranger.endpoint.mailboxes().next_completion()).has_value(); });
  CHECK(back->mailbox == 99);
  CHECK(back->status == Status::success);
  CHECK(pair.server.dropped() == 0);
}

TEST_CASE("server__a_session_that_ends__takes_back_what_it_lent") {
  Pair pair(42, {});
  Stranger stranger(pair);
  stranger.dial(encode_hello(Purpose::session));
  stranger.say(encode(stranger.open_here()));
  const auto opened = decode_opened(stranger.answer());
  REQUIRE(opened);
  stranger.say(encode_want(8));
  const auto address = decode_address(stranger.answer());
  REQUIRE(address);
  stranger.dial(encode_hello(Purpose::extra));
  CHECK(stranger.write(opened->region, 1) == Status::success);
  CHECK(stranger.write(*address, 1) == Status::success);
  CHECK(stranger.write(opened->mailbox, 1) == Status::success);
  stranger.endpoint.disconnect(stranger.connections[0]);
  pair.world.wake(pair.east);
  stranger.until([&] { return pair.server.sessions() == 0; });
  CHECK(pair.server.ended() == 1);
  CHECK(pair.server.dropped() == 0);
  CHECK(stranger.write(opened->region, 1) != Status::success);
  CHECK(stranger.write(*address, 1) != Status::success);
  CHECK(stranger.write(opened->mailbox, 1) != Status::success);
  CHECK(stranger.write(opened->echo_mailbox, 1) != Status::success);
}

TEST_CASE("server__a_peer_that_takes_no_answer__is_dropped") {
  Pair pair(44, {});
  Stranger stranger(pair);
  stranger.dial(encode_hello(Purpose::session));
  stranger.say(encode(stranger.open_here()));
  REQUIRE(decode_opened(stranger.answer()));
  CHECK(stranger.endpoint.set_receive_buffers(1) == Status::success);
  cci::Event held;  // the one buffer
  pair.here.work = [&](Instant now) {
    stranger.endpoint.turn(now);
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(stranger.endpoint.send(stranger.connections[0], encode_padded(Kind::echo, 8), 0, true));
    }
    while (auto event = stranger.endpoint.get_event()) {
      if (event->type == cci::EventType::receive) held = std::move(*event);
      if (event->type == cci::EventType::disconnected) ++stranger.lost;
    }
    stranger.endpoint.turn(now);
  };
  pair.world.wake(pair.east);
  for (int i = 0; i < 10'000 && pair.server.dropped() == 0; ++i) {
    pair.world.run_for(std::chrono::milliseconds(1));
    pair.world.wake(pair.east);
  }
  CHECK(pair.server.dropped() == 1);
  CHECK(pair.server.last_drop().rfind("cannot answer: ", 0) == 0);
}

TEST_CASE("server__answers_that_cannot_be_written__end_the_session") {
  struct Case {
    const char* why;
    std::function<void(Open&)> change;
    std::vector<std::byte> message;
  };
  const std::vector<Case> cases{
      {"an answer failed: ", [](Open& open) { open.landing.number ^= 1; }, encode_padded(Kind::written, 1)},
      {"cannot write back: ", [](Open& open) { open.landing = {}; }, encode_padded(Kind::written, 1)},
      {"a message before `open`", [](Open& open) { open.slots = 0; }, {}},
      {"an address of no size that was agreed", [](Open&) {}, encode_want(0)},
      {"an address of no size that was agreed", [](Open&) {}, encode_want(9)},
      {"an address of no size that was agreed", [](Open&) {}, encode_padded(Kind::want, 3)},
      {"a write without an address", [](Open&) {}, encode_padded(Kind::exchange, 1)},
      {"a malformed address", [](Open&) {}, encode_padded(Kind::address, 3)},
      {"a message of no kind", [](Open&) {}, {std::byte{99}}},
      {"a message that does not belong here", [](Open&) {}, encode_padded(Kind::opened, 1)},
      {"a message that does not belong here", [](Open&) {}, encode_padded(Kind::open, 1)},
  };
  for (size_t i = 2; i < cases.size() + 2; ++i) {
    const Case& one = cases[i % cases.size()];
    INFO(one.why << " " << i);
    Pair pair(50 + i, {});
    Stranger stranger(pair);
    stranger.dial(encode_hello(Purpose::session));
    Open open = stranger.open_here();
    one.change(open);
    if (open.slots == 0) {
      stranger.say(encode_padded(Kind::count, 8));
    } else {
      stranger.say(encode(open));
      REQUIRE(decode_opened(stranger.answer()));
      stranger.say(one.message);
    }
    stranger.until([&] { return stranger.lost == 1 && pair.server.sessions() == 0; });
    CHECK(pair.server.dropped() == 1);
    CHECK(pair.server.ended() == 1);
    CHECK(pair.server.last_drop().rfind(one.why, 0) == 0);
  }
}

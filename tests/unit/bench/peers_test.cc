// The asking side beside peers that are no server, or a bad one; and the server beside askers that are none.
#include <fmt/format.h>

#include <set>

#include "tests/unit/bench/rig.h"

using namespace ccixfer;
using namespace ccixfer::bench;

namespace {

// In the server's place: accepts, and answers `open` as asked. What comes after that is the test's.
struct Peer {
  explicit Peer(Pair& pair_) : pair(pair_), endpoint(*pair_.there.endpoint) {
    pair.there.deadline = [this] { return endpoint.next_deadline(); };
    pair.there.work = [this](Instant now) {
      endpoint.turn(now);
      while (auto event = endpoint.get_event()) take(*event);
      while (const auto put = endpoint.mailboxes().next_completion()) {
        if (on_put) on_put(*put);
      }
      endpoint.turn(now);
    };
  }
  void take(cci::Event& event) {
    if (event.type == cci::EventType::connect_request) {
      ++requests;
      if (on_request && !on_request(event)) return;
      CHECK(endpoint.accept(event, 7) == Status::success);
    } else if (event.type == cci::EventType::accept) {
      connection = event.connection;
    } else if (event.type == cci::EventType::receive) {
      const auto open_here = decode_open(event.data());
      if (!open_here) return on_message ? on_message(event.data()) : void();
      open = *open_here;
      if (on_open) return on_open();
      offer();
    }
  }
  // Memory and mailboxes as the server has them.
  void offer() {
    memory.assign(static_cast<size_t>(open.slot_bytes * open.slots), std::byte{});
    Opened opened;
    opened.region = endpoint.memory().register_region(memory, cci::access_read | cci::access_write);
    for (const uint64_t number : {11u, 12u}) {
      rvma::MailboxOptions options;
      options.key = number;
      CHECK(endpoint.mailboxes().open(number, options) == Status::success);
    }
    opened.mailbox = endpoint.mailboxes().handle(11);
    opened.echo_mailbox = endpoint.mailboxes().handle(12);
    say(encode(opened));
  }
  void say(const std::vector<std::byte>& message) { CHECK(endpoint.send(connection, message, 0) == Status::success); }
  [[nodiscard]] const Error& end() {
    REQUIRE(pair.run() == sim::RunEnd::reached);
    INFO(pair.asker.error().message);
    return pair.asker.error();
  }

  Pair& pair;
  cci::Endpoint& endpoint;
  cci::Connection connection;
  Open open;
  std::vector<std::byte> memory;
  size_t requests = 0;
  std::function<bool(cci::Event&)> on_request;  // false: it was decided here
  std::function<void()> on_open;
  std::function<void(Bytes)> on_message;
  std::function<void(const rvma::Completion&)> on_put;
};

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

const std::string check_it = std::string(uri) + ": check that `ccixfer bench --serve` runs there and can be reached";
const std::string same_version = std::string(uri) + ": use the same version";

}  // namespace

TEST_CASE("asker__peers_that_refuse__no_answer_and_their_words") {
  Pair pair(20, {});
  Peer peer(pair);
  peer.on_request = [&](cci::Event& event) {
    CHECK(decode_hello(event.data()) == Purpose::session);
    CHECK(peer.endpoint.reject(event, "go \n away") == Status::success);
    return false;
  };
  CHECK(peer.end().kind == ErrorKind::no_answer);
  CHECK(pair.asker.error().message == "refused: go %0A away: " + check_it);
  CHECK(pair.asker.next_deadline() == never);
  CHECK_FALSE(pair.asker.open());

  Pair silent(21, {});
  Peer there(silent);
  there.on_request = [&](cci::Event& event) {
    CHECK(there.endpoint.reject(event) == Status::success);
    return false;
  };
  CHECK(there.end().kind == ErrorKind::no_answer);
  CHECK(silent.asker.error().message == "refused: " + check_it);
}

TEST_CASE("asker__uri_that_is_none__said_at_once") {
  Pair pair(22, {});
  Asker asker(*pair.here.endpoint, pair.here.entropy, *make_plan({}), "sim://");
  asker.turn(pair.world.now());
  CHECK(asker.ended());
  CHECK(asker.error().kind == ErrorKind::usage);
  CHECK(asker.next_deadline() == never);
}

TEST_CASE("asker__peer_says_nothing_after_open__no_answer_at_the_timeout") {
  Pair pair(23, {.timeout = "3"});
  Peer peer(pair);
  peer.on_open = [] {};
  CHECK(peer.end().kind == ErrorKind::no_answer);
  CHECK(pair.asker.error().message == "nothing moved within the timeout: " + check_it);
  between(pair.world.now() - Instant{}, std::chrono::seconds(3), std::chrono::milliseconds(3100));
}

TEST_CASE("asker__peer_answers_open_with_something_else__protocol") {
  Pair pair(24, {});
  Peer peer(pair);
  peer.on_open = [&] { peer.say(encode_padded(Kind::echo, 8)); };
  CHECK(peer.end().kind == ErrorKind::protocol);
  CHECK(pair.asker.error().message == "the peer answered something else: " + same_version + " there");
}

TEST_CASE("asker__peer_goes__before_and_after_it_opened") {
  Pair pair(25, {});
  Peer peer(pair);
  peer.on_open = [&] { peer.endpoint.disconnect(peer.connection); };
  CHECK(peer.end().kind == ErrorKind::no_answer);
  CHECK(pair.asker.error().message.find("the peer has gone (") == 0);
  CHECK(pair.asker.error().message.find("): " + std::string(uri) + ": see that it runs, and try again") != std::string::npos);

  Pair later(26, {.tests = "message-latency"});
  Peer there(later);
  there.on_message = [&](Bytes) { there.endpoint.disconnect(there.connection); };
  CHECK(there.end().kind == ErrorKind::network);
}

TEST_CASE("asker__what_was_written_comes_back_changed__integrity_and_no_row") {
  for (const size_t at : {size_t{0}, size_t{4095}}) {
    Pair pair(27 + at, {.tests = "rma-write", .sizes = "4096"});
    Peer peer(pair);
    peer.on_open = [&] {
      peer.offer();
      // Between the write's arrival and the read's.
      pair.world.at(after(pair.world.now(), one_way * 3), [&, at] {
        CHECK(std::set<std::byte>(peer.memory.begin(), peer.memory.end()).size() > 200);  // no pattern that memory has by itself
        peer.memory[at] ^= std::byte{1};
      });
    };
    CHECK(peer.end().kind == ErrorKind::integrity);
    CHECK(pair.asker.error().message == std::string("what was written came back changed: ") + uri + ": check memory and network");
    CHECK(pair.rows.empty());
  }
}

TEST_CASE("asker__memory_that_the_peer_lends_is_none__protocol") {
  Pair pair(30, {});
  Peer peer(pair);
  peer.on_open = [&] {
    Opened opened;
    opened.region.kind = opened.mailbox.kind = opened.echo_mailbox.kind = ports::HandleKind::region;
    opened.region.number = 12345;
    peer.say(encode(opened));
  };
  CHECK(peer.end().kind == ErrorKind::protocol);
  CHECK(pair.asker.error().message.find("an operation failed (") == 0);
  CHECK(pair.asker.error().message.find("): " + std::string(uri) + ": try again") != std::string::npos);
}

TEST_CASE("asker__what_it_asks_for__fits_the_plan") {
  const auto asked = [](const PlanText& text) {
    Pair pair(31, text);
    Peer peer(pair);
    peer.on_open = [&] { peer.endpoint.disconnect(peer.connection); };
    CHECK(peer.end().kind == ErrorKind::no_answer);
    return peer.open;
  };
  const Open usual = asked({});
  CHECK(usual.slot_bytes == 4u << 20);
  CHECK(usual.slots == 16);
  CHECK(usual.buffers == 64);
  CHECK(usual.reply_bytes == 64);
  CHECK(asked({.sizes = "64MiB", .depth = "16"}).slots == 4);  // 256 MiB are the most
  CHECK(asked({.sizes = "1MiB,64MiB,2MiB", .depth = "2"}).slots == 2);
  CHECK(asked({.sizes = "1MiB,3MiB,2MiB"}).slot_bytes == 3u << 20);
  CHECK(asked({.message_size = "100", .sizes = "1"}).slot_bytes == 100);
  const Open small = asked({.tests = "message-rate,connect", .message_size = "100"});
  CHECK(small.slot_bytes == 100);  // sizes are of other tests
  CHECK(small.reply_bytes == 100);
  for (const char* test : {"rma-write", "rma-read", "rvma-put"}) CHECK(asked({.tests = test, .sizes = "1000"}).slot_bytes == 1000);
}

TEST_CASE("asker__completion__what_comes_out_of_turn_is_refused") {
  // As the peer's answer to the first put there comes a message, or later ones of a kind that is not due.
  const auto first = [](const std::vector<std::byte>& message) {
    Pair pair(32, {.tests = "completion", .count = "2"});
    Peer peer(pair);
    std::vector<std::byte> buffer(64);
    peer.on_put = [&](const rvma::Completion&) { peer.say(message); };
    peer.on_open = [&] {
      peer.offer();
      CHECK(peer.endpoint.mailboxes().post(12, buffer, 0) == Status::success);
    };
    const Error error = peer.end();
    CHECK(error.kind == ErrorKind::protocol);
    CHECK(error.message == "the peer answered out of turn: " + same_version);
  };
  first(encode_padded(Kind::written, 1));
  first(encode_padded(Kind::exchange, 1));
  first(encode_want(64));
  first(encode_padded(Kind::echo, 8));
  first({});
}

TEST_CASE("asker__puts_that_find_no_buffer__go_out_again_and_are_counted") {
  Pair pair(33, {.tests = "rvma-put", .sizes = "1000", .depth = "4", .count = "10"});
  Peer peer(pair);
  std::vector<std::byte> buffer(1000);
  const auto post = [&] { CHECK(peer.endpoint.mailboxes().post(11, buffer, 1000) == Status::success); };
  peer.on_put = [&](const rvma::Completion&) { post(); };
  peer.on_open = [&] {
    peer.offer();
    post();  // one for four
  };
  CHECK(peer.end().kind == ErrorKind::ok);
  const Row& row = pair.row("rvma-put", 1000);
  CHECK(row.count == 10);
  CHECK(row.depth == 4);
  CHECK(row.again > 3);

  // Only of puts: a read that finds nothing is an error.
  Pair plain(34, {.tests = "rvma-put", .sizes = "1000", .depth = "4", .count = "10"});
  REQUIRE(plain.run() == sim::RunEnd::reached);
  CHECK(plain.row("rvma-put", 1000).again == 0);
}

TEST_CASE("asker__a_row_by_count__as_many_operations_as_asked_and_no_other") {
  Pair pair(36, {.tests = "message-latency,connect", .count = "7"});
  Peer peer(pair);
  size_t echoes = 0;
  peer.on_message = [&](Bytes message) {
    ++echoes;
    peer.say({message.begin(), message.end()});
  };
  CHECK(peer.end().kind == ErrorKind::ok);
  CHECK(echoes == 7);
  CHECK(peer.requests == 1 + 7);
}

TEST_CASE("asker__rows_by_time__as_long_as_asked_and_without_the_first_tenth") {
  Pair pair(
      35,
      {.tests = "message-latency,connect,completion,rma-write", .sizes = "4096", .depth = "1", .seconds = "0.5", .timeout = "0.1"});
  REQUIRE(pair.run() == sim::RunEnd::reached);
  REQUIRE(pair.asker.error().kind == ErrorKind::ok);
  for (const char* test : {"message-latency", "connect", "completion-put", "rma-write"}) {
    INFO(test);
    const Row& row = pair.row(test);
    between(row.took, std::chrono::milliseconds(500), std::chrono::milliseconds(520));
    CHECK(row.count > 10);
    // What was measured is what the time is of.
    const double each = std::chrono::duration<double>(row.took).count() / static_cast<double>(row.count);
    if (row.test == "message-latency")
      CHECK(each == Approx(2.0 * std::chrono::duration<double>(row.latency.p50).count()).epsilon(0.02));
    if (row.test == "rma-write") CHECK(each == Approx(0.002).epsilon(0.1));
  }
}

TEST_CASE("asker__empty_turn__a_lost_connection_and_one_alone") {
  Pair alone(36, {.tests = "empty-turn", .count = "2", .connections = "1"});
  REQUIRE(alone.run() == sim::RunEnd::reached);
  CHECK(alone.asker.error().kind == ErrorKind::ok);
  REQUIRE(alone.rows.size() == 1);
  CHECK(alone.rows[0].connections == 1);

  Pair lost(37, {.tests = "empty-turn", .count = "2", .connections = "3"});
  Peer peer(lost);
  peer.on_request = [&](cci::Event& event) {
    if (peer.requests == 1) return true;
    CHECK(decode_hello(event.data()) == Purpose::extra);
    if (peer.requests == 2) return true;
    CHECK(peer.endpoint.reject(event, "full") == Status::success);
    return false;
  };
  CHECK(peer.end().kind == ErrorKind::network);
  CHECK(lost.asker.error().message ==
        std::string("a further connection failed (refused: full): ") + uri + ": raise the limit of open files, or take fewer");
  CHECK(peer.requests == 3);
  REQUIRE(lost.rows.size() == 1);  // the one of a single connection was whole

  Pair gone(38, {.tests = "empty-turn", .count = "50", .connections = "2"});
  Peer other(gone);
  other.on_request = [&](cci::Event&) {
    if (other.requests == 2) {
      gone.world.at(after(gone.world.now(), std::chrono::milliseconds(20)), [&] {
        other.endpoint.disconnect(other.connection);
        gone.world.wake(gone.west);
      });
    }
    return true;
  };
  CHECK(other.end().kind == ErrorKind::network);
  CHECK(gone.asker.error().message == std::string("a connection is lost: ") + uri + ": take fewer connections");
}

TEST_CASE("asker__connect__a_refusal_is_no_connection") {
  Pair pair(45, {.tests = "connect", .count = "5"});
  Peer peer(pair);
  peer.on_request = [&](cci::Event& event) {
    if (peer.requests <= 3) return true;
    CHECK(peer.endpoint.reject(event) == Status::success);
    return false;
  };
  CHECK(peer.end().kind == ErrorKind::network);
  CHECK(pair.asker.error().message ==
        std::string("a further connection failed (refused): ") + uri + ": raise the limit of open files, or take fewer");
  CHECK(peer.requests == 4);
  CHECK(pair.rows.empty());
}

TEST_CASE("asker__empty_turn__words_of_the_peer_are_no_connection") {
  Pair pair(46, {.tests = "empty-turn", .count = "20", .connections = "3"});
  Peer peer(pair);
  cci::Connection session;
  peer.on_request = [&](cci::Event&) {
    if (peer.requests == 2) session = peer.connection;
    for (int i = 0; peer.requests == 2 && i < 20; ++i) {
      pair.world.at(after(pair.world.now(), std::chrono::milliseconds(i)), [&] {
        CHECK(peer.endpoint.send(session, encode_padded(Kind::echo, 8), 0) == Status::success);
        pair.world.wake(pair.west);
      });
    }
    return true;
  };
  CHECK(peer.end().kind == ErrorKind::ok);
  REQUIRE(pair.rows.size() == 2);
  CHECK(pair.rows[1].connections == 3);
}

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

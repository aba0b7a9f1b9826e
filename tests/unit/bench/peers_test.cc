// The asking side beside peers that are no server, or a bad one.
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

// Else whoever talks much would be measured as fast.
TEST_CASE("asker__operations_in_flight__words_of_the_peer_are_the_end_of_none") {
  for (const char* test : {"message-rate", "rma-write", "rma-read"}) {
    INFO(test);
    Pair pair(47, {.tests = test, .sizes = "4096", .depth = "1", .count = "10"});
    Peer peer(pair);
    size_t messages = 0;
    peer.on_message = [&](Bytes) { ++messages; };
    peer.on_open = [&] {
      peer.offer();
      for (int i = 0; i < 100; ++i) {
        pair.world.at(after(pair.world.now(), std::chrono::microseconds(200) * i), [&] {
          CHECK(peer.endpoint.send(peer.connection, encode_padded(Kind::echo, 8), 0) == Status::success);
          pair.world.wake(pair.west);
        });
      }
    };
    CHECK(peer.end().kind == ErrorKind::ok);
    REQUIRE(pair.rows.size() == 1);
    CHECK(pair.rows[0].count == 10);
    CHECK(pair.rows[0].took >= 10 * 2 * one_way);  // there and back, one at a time
    CHECK(messages == (std::string(test) == "message-rate" ? 10 : 0));
  }
}

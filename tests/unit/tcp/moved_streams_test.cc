// Streams that leave one net and go on in another one, as between threads of a process.
#include "tests/unit/tcp/nets.h"

namespace ccixfer::tcp {

TEST_CASE("tcp__a_stream_that_moves__loses_no_byte_and_is_told_readable_where_it_is_now") {
  Pair pair(ByReference::never);
  auto other = make("127.0.0.1", false);
  REQUIRE(send_text(*pair.client, pair.out, "before ") == 7);
  REQUIRE(pair.watch.run([&] { return pair.watch.find(0, StreamEventType::readable, pair.in) != nullptr; }));
  auto loose = pair.server->release(pair.in);  // with bytes that nobody has read
  REQUIRE(loose);
  std::string text;
  CHECK(recv_some(*pair.server, pair.in, text) == stream::io_error);  // the name is dead there
  REQUIRE(send_text(*pair.client, pair.out, "between ") == 8);
  const StreamId in = other->adopt(std::move(loose));
  REQUIRE(in != 0);
  Watch watch{{other.get(), pair.client.get()}};
  REQUIRE(send_text(*pair.client, pair.out, "after") == 5);
  REQUIRE(watch.run([&] {
    static_cast<void>(recv_some(*other, in, text));
    return text.size() == 20;
  }));
  CHECK(text == "before between after");
  CHECK(watch.find(0, StreamEventType::readable, in) != nullptr);
  CHECK(watch.find(0, StreamEventType::accepted) == nullptr);
  REQUIRE(send_text(*other, in, "back") == 4);
  text.clear();
  REQUIRE(watch.run([&] { return recv_some(*pair.client, pair.out, text) != stream::io_again; }));
  CHECK(text == "back");
}

TEST_CASE("tcp__a_stream_that_moves_and_is_dropped_on_its_way__ends_at_the_peer") {
  Pair pair(ByReference::never);
  auto loose = pair.server->release(pair.in);
  REQUIRE(loose);
  loose.reset();
  std::string text;
  CHECK(pair.watch.run([&] { return recv_some(*pair.client, pair.out, text) == stream::io_closed; }));
}

TEST_CASE("tcp__a_stream_that_is_being_dialled__cannot_move") {
  auto net = make("127.0.0.1", false);
  const StreamId id = *net->dial("tcp://127.0.0.1:1");
  CHECK(net->release(id) == nullptr);
}

}  // namespace ccixfer::tcp

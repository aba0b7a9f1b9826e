// Streams by their ids: what is possible with each and when, and that none is taken for another.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/tcp/calls.h"
#include "tests/unit/tcp/nets.h"
#include "transports/tcp/socket.h"

namespace ccixfer::tcp {
namespace {

using calls::Call;

int64_t receive_through(TcpNet& net, StreamId id) {
  const auto splice_pipe = net.make_splice_pipe();
  REQUIRE(splice_pipe != nullptr);
  return net.recv_to(id, *splice_pipe, 10);
}

TEST_CASE("streams__not_open_yet_or_no_more__nothing_can_be_sent_or_received") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  const StreamId dialled = *client->dial(server->uri());
  std::string got;
  const auto impossible = [&](StreamId id) {
    CHECK(send_text(*client, id, "too early or too late") == stream::io_error);
    CHECK(recv_some(*client, id, got) == stream::io_error);
    CHECK(receive_through(*client, id) == stream::io_error);
    CHECK_FALSE(client->nothing_to_read(id));
  };
  impossible(dialled);  // the kernel has connected it already: it is told of by the next poll
  impossible(dialled + 1);
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected, dialled) != nullptr; }));
  CHECK(send_text(*client, dialled, "now") == 3);
  client->close(dialled);
  impossible(dialled);
  const StreamId next = *client->dial(server->uri());
  CHECK(next != dialled);
  CHECK((next & 0xffffffff) == (dialled & 0xffffffff));  // its place is used again
  impossible(dialled);
  client->close(dialled);  // and means nothing
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected, next) != nullptr; }));
  CHECK(send_text(*client, next, "now") == 3);
}

TEST_CASE("streams__closed_and_opened_in_any_order__each_has_a_place_of_its_own") {
  const auto server = make();
  const auto client = make("127.0.0.1", false);
  Watch watch({server.get(), client.get()});
  std::set<StreamId> ids;
  std::vector<StreamId> open;
  const auto dial = [&] {
    open.push_back(*client->dial(server->uri()));
    CHECK(ids.insert(open.back()).second);
    std::set<uint64_t> places;
    for (const StreamId id : open) CHECK(places.insert(id & 0xffffffff).second);
    CHECK(*places.rbegin() < 4);
  };
  for (int i = 0; i < 4; ++i) dial();
  for (const size_t index : {1u, 0u, 1u}) {
    client->close(open[index]);
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(index));
  }
  for (int i = 0; i < 3; ++i) dial();
  REQUIRE(
      watch.run([&] { return watch.count(1, StreamEventType::connected) == 4 && watch.count(0, StreamEventType::accepted) >= 4; }));
  for (const StreamId id : open) CHECK(watch.find(1, StreamEventType::connected, id));
}

// What an event leads to may close the stream of the next one.
TEST_CASE("streams__closed_by_what_was_reported_before__are_not_reported") {
  Pair pair(ByReference::to_other_machines);
  const StreamId other_out = *pair.client->dial(pair.server->uri());
  REQUIRE(pair.watch.run([&] {
    return pair.watch.count(0, StreamEventType::accepted) == 2 && pair.watch.find(1, StreamEventType::connected, other_out);
  }));
  for (const StreamId id : {pair.out, other_out}) REQUIRE(send_text(*pair.client, id, "to each") == 7);
  REQUIRE(pair.watch.run([&] { return pair.client->waiting_bytes(pair.out) + pair.client->waiting_bytes(other_out) == 0; }));
  StreamId other_in = pair.in;
  for (const StreamEvent& event : pair.watch.events[0]) {
    if (event.type == StreamEventType::accepted && event.id != pair.in) other_in = event.id;
  }
  size_t reported = 0;
  // Both have an event in the same poll, whichever comes first.
  for (const StreamId id : {pair.out, other_out}) REQUIRE(send_text(*pair.client, id, "and more") == 8);
  pair.server->poll(pair.watch.clock.now(), [&](const StreamEvent&) {
    ++reported;
    pair.server->close(pair.in);
    pair.server->close(other_in);
  });
  CHECK(reported == 1);
}

TEST_CASE("streams__closed_while_it_is_told_to_be_readable__its_room_is_not_told_of") {
  Pair pair(ByReference::to_other_machines);
  size_t events = 0;
  REQUIRE(send_text(*pair.client, pair.out, "last words") == 10);
  pair.client->close(pair.out);
  REQUIRE(readable(*pair.server, 10'000));
  while (events == 0) {
    pair.server->poll(pair.watch.clock.now(), [&](const StreamEvent& event) {
      ++events;
      CHECK(event.type == StreamEventType::readable);
      pair.server->close(event.id);
    });
  }
  CHECK(events == 1);
}

// Bytes leave at once; how many wait in the kernel is bounded towards other hosts only.
TEST_CASE("streams__sockets_of_both_ends__do_not_wait_for_more") {
  const Pair pair(ByReference::to_other_machines);
  size_t sockets = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0 || peer.ss_family != AF_INET) continue;
    ++sockets;
    int value = 0;
    size = sizeof value;
    REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size) == 0);
    CHECK(value == 1);
    REQUIRE(getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &value, &size) == 0);
    CHECK(value != notsent_lowat_bytes);
  }
  CHECK(sockets == 2);
}

TEST_CASE("streams__accepted__say_who_dialled") {
  const Pair pair(ByReference::to_other_machines);
  const std::string& from = pair.watch.find(0, StreamEventType::accepted)->reason;
  CHECK(from.starts_with("tcp://127.0.0.1:"));
  CHECK(from != pair.server->uri());
}

TEST_CASE("streams__a_dial_that_fails__is_told_of_once") {
  const auto client = make("127.0.0.1", false);
  std::string uri;
  { uri = make()->uri(); }
  Watch watch({client.get()});
  const StreamId dialled = *client->dial(uri);
  REQUIRE(watch.run([&] { return watch.find(0, StreamEventType::failed, dialled) != nullptr; }));
  for (int i = 0; i < 3; ++i) watch.poll();
  CHECK(watch.events[0].size() == 1);
  CHECK(watch.events[0].front().reason.ends_with(inet::error_words(ECONNREFUSED)));
  std::string got;
  CHECK(recv_some(*client, dialled, got) == stream::io_error);
}

}  // namespace
}  // namespace ccixfer::tcp

// What the kernel may answer at any time, and seldom does.
#include "tests/unit/tcp/calls.h"

#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/tcp/nets.h"
#include "transports/inet/device_watch.h"
#include "transports/tcp/kernel_splice_pipe.h"
#include "transports/tcp/zero_copy_pipe.h"

namespace ccixfer::tcp {
namespace {

using calls::Call;
using calls::Watched;

// Of two pieces: with both, more than is joined into one.
struct Pieces {
  std::vector<std::byte> bytes = std::vector<std::byte>(3000, std::byte{7});
  std::array<stream::ConstIoSpan, 2> both{{{bytes.data(), 1000}, {bytes.data() + 1000, 2000}}};
  [[nodiscard]] std::span<const stream::ConstIoSpan> first(size_t count) const { return {both.data(), count}; }
  [[nodiscard]] int64_t size(size_t count) const { return count == 1 ? 1000 : 3000; }
};

int64_t receive(TcpNet& net, StreamId id, size_t pieces) {
  std::array<std::byte, 8000> memory{};
  const std::array<stream::IoSpan, 2> into{{{memory.data(), 4000}, {memory.data() + 4000, 4000}}};
  return net.recv(id, {into.data(), pieces});
}

// Bytes of the client have come to the server's socket.
void came(Pair& pair) {
  REQUIRE(pair.watch.run([&] { return pair.server->waiting_bytes(pair.in) == 0 && pair.client->waiting_bytes(pair.out) == 0; }));
}

TEST_CASE("calls__interrupted_by_a_signal__are_made_again") {
  Pair pair(ByReference::always);
  const size_t count = GENERATE(size_t{1}, size_t{2});
  const Pieces pieces;
  Watched watched;
  watched.fail(Call::send, EINTR, 3);
  REQUIRE(pair.client->send(pair.out, pieces.first(count)) == pieces.size(count));
  CHECK(watched.count(Call::send) == 4);
  came(pair);
  pair.watch.poll();
  watched.fail(Call::recv, EINTR, 3);
  watched.forget();
  CHECK(receive(*pair.server, pair.in, count) == pieces.size(count));
  CHECK(watched.count(Call::recv) == 4);

  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const stream::ConstIoSpan lent{bulk.data(), bulk.size(), true};
  watched.fail(Call::vmsplice, EINTR, 2);
  watched.fail(Call::splice, EINTR, 2);
  watched.forget();
  REQUIRE(pair.client->send(pair.out, {&lent, 1}) == static_cast<int64_t>(bulk.size()));
  CHECK(watched.count(Call::vmsplice) == 3);
  CHECK(watched.count(Call::splice) >= 3);
  const auto splice_pipe = pair.server->make_splice_pipe();
  REQUIRE(splice_pipe != nullptr);
  REQUIRE(pair.watch.run([&] { return pair.client->waiting_bytes(pair.out) == 0; }));
  watched.fail(Call::splice, EINTR, 2);
  const int64_t taken = pair.server->recv_to(pair.in, *splice_pipe, 5000);
  REQUIRE(taken > 0);
  watched.fail(Call::splice, EINTR, 2);
  const stream::ConstIoSpan through{nullptr, static_cast<size_t>(taken), true, splice_pipe.get()};
  CHECK(pair.server->send(pair.in, {&through, 1}) == taken);
}

TEST_CASE("calls__what_a_socket_says__again_closed_or_broken") {
  struct Case {
    int error;
    int64_t sending, receiving;
  };
  const auto [error, sending, receiving] = GENERATE(values<Case>({{EAGAIN, stream::io_again, stream::io_again},
                                                                  {EPIPE, stream::io_closed, stream::io_error},
                                                                  {ECONNRESET, stream::io_closed, stream::io_error},
                                                                  {ENETUNREACH, stream::io_error, stream::io_error}}));
  const size_t count = GENERATE(size_t{1}, size_t{2});
  CAPTURE(error, count);
  Pair pair(ByReference::to_other_machines);
  const Pieces pieces;
  REQUIRE(pair.server->send(pair.in, pieces.first(1)) == 1000);
  REQUIRE(pair.watch.run([&] { return receive(*pair.client, pair.out, 1) == 1000; }));
  REQUIRE(pair.client->nothing_to_read(pair.out));
  Watched watched;
  watched.fail(Call::send, error);
  CHECK(pair.client->send(pair.out, pieces.first(count)) == sending);
  // What the peer said last may be there; while the socket is only full, nothing is.
  CHECK(pair.client->nothing_to_read(pair.out) == (error == EAGAIN));
  watched.forget();
  CHECK(pair.client->send(pair.out, pieces.first(count)) == (error == EAGAIN ? stream::io_again : pieces.size(count)));
  CHECK(watched.count(Call::send) == (error == EAGAIN ? 0 : 1));  // full: not tried before there is word of room
  watched.fail(Call::recv, error);
  CHECK(receive(*pair.server, pair.in, count) == receiving);
}

// Of the bytes before the error the caller must know, or it would send them twice.
TEST_CASE("calls__an_error_after_a_part_went_out__tells_of_the_part_first") {
  Pair pair(ByReference::always);
  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const std::array<std::byte, 10> head{};
  const std::array<stream::ConstIoSpan, 3> spans{
      {{head.data(), head.size()}, {bulk.data(), bulk.size(), true}, {head.data(), head.size()}}};
  Watched watched;
  const bool in_bulk = GENERATE(true, false);
  const int error = GENERATE(EPIPE, EAGAIN);
  if (in_bulk) watched.fail(Call::splice, error);
  if (!in_bulk) watched.fail(Call::send, error, 1, 1);
  const int64_t n = pair.client->send(pair.out, spans);
  // Bulk memory that found no room waits in the pipe, and has been taken.
  CHECK(n == (in_bulk && error == EPIPE ? 10 : 10 + static_cast<int64_t>(bulk.size())));
  CHECK(pair.client->send(pair.out, {spans.data(), 1}) == (error == EAGAIN ? stream::io_again : in_bulk ? stream::io_closed : 10));
}

TEST_CASE("calls__pages_that_cannot_be_read__touched_once_and_then_an_error") {
  Pair pair(ByReference::to_other_machines);
  const size_t count = GENERATE(size_t{1}, size_t{2});
  const Pieces pieces;
  Watched watched;
  watched.fail(Call::send, EFAULT);
  CHECK(pair.client->send(pair.out, pieces.first(count)) == pieces.size(count));
  CHECK(watched.count(Call::send) == 2);
  watched.forget();
  watched.fail(Call::send, EFAULT, 5);
  CHECK(pair.client->send(pair.out, pieces.first(count)) == stream::io_error);
  CHECK(watched.count(Call::send) == 2);
}

// A network that is told of more to come fills its packets.
TEST_CASE("calls__the_parts_of_one_send__say_that_more_follows_and_the_last_does_not") {
  Pair pair(ByReference::always);
  Pair way_in(ByReference::to_other_machines);
  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const std::array<std::byte, 10> head{};
  const bool more = GENERATE(false, true);
  Watched watched;
  const auto send = [&](std::initializer_list<stream::ConstIoSpan> list) {
    std::vector<stream::ConstIoSpan> spans(list);
    spans.back().more = more;
    int64_t size = 0;
    for (const auto& span : spans) size += static_cast<int64_t>(span.size);
    watched.forget();
    REQUIRE(pair.client->send(pair.out, spans) == size);
  };
  const stream::ConstIoSpan copied{head.data(), head.size()}, lent{bulk.data(), bulk.size(), true};
  send({copied});
  CHECK(watched.more(Call::send) == std::vector{more});
  send({copied, copied});
  CHECK(watched.more(Call::send) == std::vector{more});
  send({copied, lent});
  CHECK(watched.more(Call::send) == std::vector{true});
  CHECK(watched.more(Call::splice).back() == more);
  send({lent, copied});
  CHECK(watched.more(Call::splice).front());
  CHECK(watched.more(Call::send) == std::vector{more});
  const auto splice_pipe = way_in.server->make_splice_pipe();
  const auto load = [&] {
    REQUIRE(send_text(*way_in.client, way_in.out, "twenty bytes of words") == 21);
    REQUIRE(way_in.watch.run([&] {
      return splice_pipe->held_bytes() == 21 ||
             (way_in.server->recv_to(way_in.in, *splice_pipe, 21) == 21 && splice_pipe->held_bytes() == 21);
    }));
  };
  load();
  send({{nullptr, 21, true, splice_pipe.get()}, copied});
  CHECK(watched.more(Call::splice) == std::vector{true});
  CHECK(watched.more(Call::send) == std::vector{more});
  load();
  send({copied, {nullptr, 21, true, splice_pipe.get()}});
  CHECK(watched.more(Call::send) == std::vector{true});
  CHECK(watched.more(Call::splice) == std::vector{more});
}

TEST_CASE("calls__many_small_parts__one_call_of_at_most_128") {
  Pair pair(ByReference::always);
  const std::array<std::byte, 10> head{};
  std::vector<stream::ConstIoSpan> spans(300, {head.data(), head.size()});
  Watched watched;
  REQUIRE(pair.client->send(pair.out, spans) == 3000);
  CHECK(watched.count(Call::send) == 3);
  CHECK(watched.more(Call::send) == std::vector{true, true, false});
}

TEST_CASE("calls__a_host_that_gives_no_pipe_or_a_small_one__bulk_is_copied") {
  Pair pair(ByReference::always);
  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const stream::ConstIoSpan lent{bulk.data(), bulk.size(), true};
  Watched watched;
  const int way = GENERATE(0, 1, 2);
  if (way == 0) watched.fail(Call::pipe, EMFILE, 2);
  if (way == 1) watched.pipe_sizes((128 << 10) - 1);
  if (way == 2) watched.fail(Call::vmsplice, EINVAL);
  CHECK(pair.client->send(pair.out, {&lent, 1}) == static_cast<int64_t>(bulk.size()));
  CHECK(watched.count(Call::send) == 1);
  if (way < 2) CHECK(pair.client->unacknowledged_bytes(pair.out) == 0);
  if (way < 2) CHECK(pair.client->make_splice_pipe() == nullptr);
  watched.forget();
  watched.pipe_sizes(1 << 20);
  REQUIRE(pair.client->send(pair.out, {&lent, 1}) > 0);  // it is not asked again
  CHECK(watched.count(Call::pipe) == 0);
  CHECK(watched.count(Call::vmsplice) == 0);
}

TEST_CASE("calls__a_pipe_just_large_enough__is_used") {
  Pair pair(ByReference::always);
  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const stream::ConstIoSpan lent{bulk.data(), bulk.size(), true};
  Watched watched;
  watched.pipe_sizes(128 << 10);
  CHECK(pair.client->send(pair.out, {&lent, 1}) > 0);
  CHECK(watched.count(Call::send) == 0);
  CHECK(pair.client->make_splice_pipe() == nullptr);
  watched.pipe_sizes(256 << 10);
  CHECK(pair.client->make_splice_pipe() != nullptr);
}

// Pages of a file that is not there any more: others are.
TEST_CASE("calls__memory_that_cannot_be_lent_now__is_copied_and_the_next_is_lent") {
  Pair pair(ByReference::always);
  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const stream::ConstIoSpan lent{bulk.data(), bulk.size(), true};
  Watched watched;
  watched.fail(Call::vmsplice, EFAULT);
  CHECK(pair.client->send(pair.out, {&lent, 1}) == static_cast<int64_t>(bulk.size()));
  CHECK(watched.count(Call::send) == 1);
  watched.forget();
  CHECK(pair.client->send(pair.out, {&lent, 1}) == static_cast<int64_t>(bulk.size()));
  CHECK(watched.count(Call::send) == 0);
}

TEST_CASE("calls__splice_pipe__errors_of_the_socket_and_of_a_host_that_cannot_splice") {
  struct Case {
    int error;
    int64_t answer;
  };
  const auto [error, answer] = GENERATE(values<Case>({{EINVAL, stream::io_full},
                                                      {ENOSYS, stream::io_full},
                                                      {ENOMEM, stream::io_full},
                                                      {EAGAIN, stream::io_again},
                                                      {ECONNRESET, stream::io_error}}));
  Pair pair(ByReference::to_other_machines);
  const auto splice_pipe = pair.server->make_splice_pipe();
  Watched watched;
  watched.fail(Call::splice, error);
  CHECK(pair.server->recv_to(pair.in, *splice_pipe, 10) == answer);
}

TEST_CASE("calls__waiting_and_unacknowledged__of_what_cannot_be_told_the_safe_answer") {
  Pair pair(ByReference::always);
  const std::vector<std::byte> bulk(zero_copy_bytes_min, std::byte{8});
  const stream::ConstIoSpan lent{bulk.data(), bulk.size(), true};
  Watched watched;
  watched.fail(Call::queued, EBADF);
  CHECK(pair.client->unacknowledged_bytes(pair.out) == 0);  // nothing was lent: not asked
  CHECK(pair.client->waiting_bytes(pair.out) == 0);
  REQUIRE(pair.client->send(pair.out, {&lent, 1}) > 0);
  watched.fail(Call::queued, EBADF);
  CHECK(pair.client->unacknowledged_bytes(pair.out) == UINT64_MAX);
  const StreamId nobody = pair.out + 1000;
  CHECK(pair.client->waiting_bytes(nobody) == 0);
  CHECK(pair.client->unacknowledged_bytes(nobody) == 0);
  CHECK_FALSE(pair.client->nothing_to_read(nobody));
  CHECK_FALSE(pair.client->lends(nobody));
  pair.client->peer_is_elsewhere(nobody);
}

TEST_CASE("calls__out_of_what_a_connection_needs__accepting_pauses_until_a_stream_closes") {
  const int error = GENERATE(EMFILE, ENFILE, ENOBUFS, ENOMEM);
  const bool a_stream_closes = GENERATE(true, false);
  CAPTURE(error, a_stream_closes);
  Pair pair(ByReference::to_other_machines);
  Instant now = pair.watch.clock.now();
  size_t accepted = 0;
  const auto poll = [&] {
    pair.server->poll(now, [&](const StreamEvent& event) { accepted += event.type == StreamEventType::accepted ? 1u : 0u; });
  };
  Watched watched;
  REQUIRE(pair.client->dial(pair.server->uri()));
  REQUIRE(readable(*pair.server, 10'000));
  watched.fail(Call::accept, error);
  poll();
  REQUIRE(watched.count(Call::accept) == 1);
  poll();
  now += accept_retry - 1ns;
  poll();
  CHECK(watched.count(Call::accept) == 1);
  if (a_stream_closes) {
    pair.server->close(pair.in);
  } else {
    now += 1ns;
    poll();
  }
  poll();
  CHECK(accepted == 1);
}

TEST_CASE("calls__a_connection_that_ended_in_the_backlog__does_not_stop_accepting") {
  Pair pair(ByReference::to_other_machines);
  Watched watched;
  REQUIRE(pair.client->dial(pair.server->uri()));
  REQUIRE(readable(*pair.server, 10'000));
  watched.fail(Call::accept, ECONNABORTED);
  pair.watch.poll();
  REQUIRE(watched.count(Call::accept) == 1);
  pair.watch.poll();
  CHECK(pair.watch.count(0, StreamEventType::accepted) == 2);
}

TEST_CASE("calls__a_stream_that_cannot_be_watched__is_not_accepted_and_not_dialled") {
  Pair pair(ByReference::to_other_machines);
  const auto client = make("127.0.0.1", false);
  Watch watch({pair.server.get(), client.get()});
  Watched watched;
  watched.fail(Call::epoll_add, ENOSPC);
  const auto dialled = client->dial(pair.server->uri());
  REQUIRE(dialled);
  REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::failed, *dialled) != nullptr; }));
  CHECK(watch.find(1, StreamEventType::failed)->status == Status::disconnected);
  REQUIRE(watch.run([&] { return watch.count(0, StreamEventType::accepted) == 1; }));
  const auto again = client->dial(pair.server->uri());
  watched.fail(Call::epoll_add, ENOSPC);
  REQUIRE(watch.run([&] {
    std::string text;
    return recv_some(*client, *again, text) == stream::io_closed;
  }));
  CHECK(watch.count(0, StreamEventType::accepted) == 1);
}

TEST_CASE("calls__a_dial_that_fails_at_once__says_why") {
  struct Case {
    int error;
    Status status;
  };
  const auto [error, status] = GENERATE(values<Case>({{ECONNREFUSED, Status::refused},
                                                      {ETIMEDOUT, Status::timed_out},
                                                      {EHOSTUNREACH, Status::unreachable},
                                                      {ENETUNREACH, Status::unreachable},
                                                      {ENETDOWN, Status::unreachable},
                                                      {EADDRNOTAVAIL, Status::unreachable},
                                                      {EACCES, Status::unreachable},
                                                      {EMFILE, Status::unreachable},
                                                      {ENFILE, Status::unreachable},
                                                      {ENOBUFS, Status::unreachable},
                                                      {EAFNOSUPPORT, Status::unreachable},
                                                      {EPERM, Status::disconnected}}));
  const auto client = make("127.0.0.1", false);
  Watch watch({client.get()});
  Watched watched;
  watched.fail(Call::connect, error);
  const auto dialled = client->dial("tcp://127.0.0.1:9");
  REQUIRE(dialled);
  REQUIRE(readable(*client));  // who waits on the handle hears of it
  watch.poll();
  const StreamEvent* failed = watch.find(0, StreamEventType::failed, *dialled);
  REQUIRE(failed != nullptr);
  CHECK(failed->status == status);
  CHECK(failed->reason == "tcp://127.0.0.1:9: " + inet::error_words(error));
  watch.poll();
  CHECK(watch.count(0, StreamEventType::failed) == 1);
  client->close(*dialled);
  // One that is closed before it was told of is not told of.
  watched.fail(Call::connect, error);
  client->close(*client->dial("tcp://127.0.0.1:9"));
  watch.poll();
  CHECK(watch.count(0, StreamEventType::failed) == 1);
}

TEST_CASE("calls__a_net_without_its_descriptors__is_an_error_that_says_so") {
  const Call call = GENERATE(Call::epoll_create, Call::timer, Call::event, Call::epoll_add);
  const size_t after = GENERATE(size_t{0}, size_t{1});
  if (after == 1 && call != Call::epoll_add) return;
  Watched watched;
  watched.fail(call, EMFILE, 1, after);
  const auto net = TcpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}, .backlog = 4, .listen = false});
  REQUIRE_FALSE(net);
  CHECK(net.error().kind == ErrorKind::network);
  CHECK(net.error().message == "no descriptors for a network: " + inet::error_words(EMFILE));
}

// --- Interfaces ---

const std::vector<calls::Interface> host = {{"lo", "127.0.0.1", IFF_UP | IFF_LOOPBACK},
                                            {"none0", "", IFF_UP},
                                            {"eth0", "2001:db8::1", IFF_UP},
                                            {"eth0", "fe80::1", IFF_UP},
                                            {"eth0", "192.0.2.1", IFF_UP},
                                            {"eth1", "192.0.2.2", IFF_UP},
                                            {"eth1", "2001:db8::2", IFF_UP},
                                            {"off0", "192.0.2.9", 0}};

TEST_CASE("interfaces__those_that_are_up__not_loopback_nor_link_local_and_ipv4_first") {
  using List = std::vector<std::string>;
  Watched watched;
  watched.interfaces(host);
  CHECK(inet::interface_hosts(AF_INET, {}) == List{"192.0.2.1", "192.0.2.2"});
  CHECK(inet::interface_hosts(AF_INET6, {}) == List{"192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"});
  CHECK(inet::interface_hosts(AF_INET6, "eth1") == List{"192.0.2.2", "2001:db8::2"});
  CHECK(inet::interface_hosts(AF_INET, "eth2") == List{});
  watched.fail(Call::interfaces, EMFILE);
  CHECK_FALSE(inet::interface_hosts(AF_INET, {}));
}

TEST_CASE("interfaces__a_net_bound_to_every_address__has_a_uri_of_each_or_the_loopback") {
  const auto net = make("0.0.0.0");
  Watched watched;
  watched.interfaces(host);
  const std::string uri = net->uri();
  const std::string port = uri.substr(uri.rfind(':'));
  CHECK(net->uris() == std::vector<std::string>{"tcp://192.0.2.1" + port, "tcp://192.0.2.2" + port});
  CHECK(uri == "tcp://192.0.2.1" + port);
  watched.interfaces({});
  CHECK(net->uris() == std::vector<std::string>{"tcp://127.0.0.1" + port});
  watched.fail(Call::interfaces, EMFILE);
  CHECK(net->uris() == std::vector<std::string>{"tcp://127.0.0.1" + port});
}

Address address_of(const std::string& host_name) {
  inet::Address address;
  REQUIRE(inet::numeric_address(host_name, 1, address));
  return address;
}

TEST_CASE("device_watch__the_address_goes_and_comes__lost_once_each_time") {
  Watched watched;
  watched.interfaces(host);
  inet::DeviceWatch watch;
  const std::string bound = GENERATE(as<std::string>{}, "192.0.2.2", "2001:db8::2");
  watch.open(address_of(bound));
  REQUIRE(watch);
  CHECK_FALSE(watch.lost_now());  // something else changed
  watched.interfaces({host.begin(), host.begin() + 5});
  CHECK(watch.lost_now());
  CHECK_FALSE(watch.lost_now());
  watched.fail(Call::interfaces, EMFILE);  // who cannot say says nothing new
  CHECK_FALSE(watch.lost_now());
  watched.interfaces(host);
  CHECK_FALSE(watch.lost_now());
  watched.fail(Call::interfaces, EMFILE);
  CHECK_FALSE(watch.lost_now());
  watched.interfaces({});
  CHECK(watch.lost_now());
}

TEST_CASE("device_watch__an_address_that_no_interface_has__is_not_watched") {
  Watched watched;
  watched.interfaces(host);
  const std::string bound = GENERATE(as<std::string>{}, "0.0.0.0", "::", "127.0.0.1", "192.0.2.9");
  inet::DeviceWatch watch;
  watch.open(address_of(bound));
  CHECK_FALSE(watch);
}

}  // namespace
}  // namespace ccixfer::tcp

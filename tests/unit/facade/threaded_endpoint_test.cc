// The facade under several threads: what each of them began ends as it should, whoever made the progress. Run under tsan, too.
#include "core/facade/threaded_endpoint.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/counters.h"
#include "core/host/clock.h"
#include "tests/unit/host/few_processes.h"
#include "transports/stream/stream_transport.h"
#include "transports/tcp/tcp_net.h"

// Catch's assertions are for one thread: the others count what is wrong.
#include <catch2/catch.hpp>

namespace ccixfer::facade {
namespace {

using namespace std::chrono_literals;
using cci::Connection;
using cci::EventType;

class SeededEntropy final : public ports::Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : state_(seed) {}
  uint64_t next_u64() override { return state_ = state_ * 6364136223846793005u + 1442695040888963407u; }

 private:
  uint64_t state_;
};

// A listening process in small.
struct Party {
  explicit Party(uint64_t seed, const cci::EndpointOptions& options = {}, const ports::TransportOptions& below = {})
      : entropy(seed) {
    auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}, .backlog = 64, .listen = true});
    REQUIRE(net);
    memory = std::make_shared<cci::MemoryTable>(entropy, counters);
    auto transport = std::make_unique<stream::StreamTransport>(below, std::move(*net), counters);
    auto started = ThreadedEndpoint::start(std::make_unique<cci::Endpoint>(options, std::move(transport), memory, counters));
    REQUIRE(started);
    endpoint = std::move(*started);
  }
  Counters counters;
  SeededEntropy entropy;
  std::shared_ptr<cci::MemoryTable> memory;
  std::unique_ptr<ThreadedEndpoint> endpoint;
};

// The next event of that type; others are dropped.
std::optional<ThreadedEvent> next(ThreadedEndpoint& endpoint, EventType type) {
  for (int i = 0; i < 1000; ++i) {
    std::optional<ThreadedEvent> event = endpoint.get_event(20s);
    if (!event || event->type() == type) return event;
  }
  return std::nullopt;
}

struct Joined {
  Connection at_dialler, at_acceptor;
};

Joined join(Party& dialler, Party& acceptor) {
  Connected connected;
  std::thread dials([&] {
    cci::ConnectOptions options;
    options.timeout = 20s;
    connected = dialler.endpoint->connect_blocking(acceptor.endpoint->uri(), options);
  });
  auto request = next(*acceptor.endpoint, EventType::connect_request);
  if (request) static_cast<void>(acceptor.endpoint->accept(*request, 7));
  dials.join();
  REQUIRE(request);
  REQUIRE(connected.status == Status::success);
  const auto accepted = next(*acceptor.endpoint, EventType::accept);
  REQUIRE(accepted);
  REQUIRE(accepted->context() == 7);
  return {connected.connection, accepted->connection()};
}

TEST_CASE("facade__connect_blocking__success_refusal_and_timeout_without_an_event") {
  Party a(1), b(2);
  static_cast<void>(join(a, b));
  Connected refused;
  std::thread dials([&] { refused = a.endpoint->connect_blocking(b.endpoint->uri(), {}); });
  auto request = next(*b.endpoint, EventType::connect_request);
  if (request) static_cast<void>(b.endpoint->reject(*request, "not today"));
  dials.join();
  REQUIRE(refused.status == Status::refused);
  REQUIRE(refused.reason == "not today");
  REQUIRE_FALSE(refused.connection);
  cci::ConnectOptions soon;
  soon.timeout = 10ms;
  REQUIRE(a.endpoint->connect_blocking(b.endpoint->uri(), soon).status == Status::timed_out);  // nobody decides
  REQUIRE(a.endpoint->connect_blocking("nonsense", {}).status == Status::invalid);
  REQUIRE_FALSE(a.endpoint->get_event());
}

TEST_CASE("facade__blocking_sends_of_many_threads__each_delivered_once_in_its_threads_order") {
  cci::EndpointOptions few;
  few.send_operations_max = 3;  // less than threads: some wait for room
  few.receive_buffers = 4;
  Party a(1, few), b(2, few);
  const Joined pair = join(a, b);
  constexpr uint32_t threads = 4, each = 200;
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> senders;
  for (uint32_t t = 0; t < threads; ++t) {
    senders.emplace_back([&, t] {
      for (uint32_t i = 0; i < each; ++i) {
        const uint32_t words[2] = {t, i};
        const Status status = a.endpoint->send_blocking(pair.at_dialler, {reinterpret_cast<const std::byte*>(words), sizeof words});
        if (status != Status::success) ++wrong;
      }
    });
  }
  // Two threads take them, and let go of them at once.
  std::mutex mutex;
  std::vector<std::vector<uint32_t>> received(threads);
  std::atomic<uint32_t> count{0};
  std::vector<std::thread> takers;
  for (int t = 0; t < 2; ++t) {
    takers.emplace_back([&] {
      while (count < threads * each) {
        const auto event = b.endpoint->get_event(100ms);
        if (!event || event->type() != EventType::receive) continue;
        uint32_t words[2] = {threads, 0};
        if (event->data().size() == sizeof words) std::memcpy(words, event->data().data(), sizeof words);
        const std::lock_guard<std::mutex> lock(mutex);
        if (words[0] < threads) received[words[0]].push_back(words[1]);
        ++count;
      }
    });
  }
  for (std::thread& thread : senders) thread.join();
  for (std::thread& thread : takers) thread.join();
  REQUIRE(wrong == 0);
  for (auto& of_one : received) {
    std::sort(of_one.begin(), of_one.end());  // two takers: the order of taking is theirs
    REQUIRE(of_one.size() == each);
    for (uint32_t i = 0; i < each; ++i) REQUIRE(of_one[i] == i);
  }
  REQUIRE_FALSE(a.endpoint->get_event());  // BLOCKING gives no events
}

TEST_CASE("facade__blocking_rmas_and_registrations_of_many_threads__right_bytes") {
  Party a(1), b(2);
  const Joined pair = join(a, b);
  constexpr size_t threads = 4, rounds = 20, size = 300'000;
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> workers;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] {
      std::vector<std::byte> source(size), target(size), back(size);
      for (size_t round = 0; round < rounds; ++round) {
        std::fill(source.begin(), source.end(), static_cast<std::byte>(1 + t * rounds + round));
        const auto local = a.endpoint->register_region(source, cci::access_read);
        const auto landing = a.endpoint->register_region(back, cci::access_write);
        const auto remote = b.endpoint->register_region(target, cci::access_read | cci::access_write);
        cci::RmaOptions options;
        options.local = local;
        options.remote.handle = remote;
        options.length_bytes = size;
        if (a.endpoint->rma_blocking(pair.at_dialler, options).status != Status::success || target != source) ++wrong;
        options.write = false;
        options.local = landing;
        if (a.endpoint->rma_blocking(pair.at_dialler, options).status != Status::success || back != source) ++wrong;
        if (b.endpoint->deregister_region(remote) != Status::success) ++wrong;
        if (a.endpoint->rma_blocking(pair.at_dialler, options).status != Status::rma_handle) ++wrong;
        static_cast<void>(a.endpoint->deregister_region(local));
        static_cast<void>(a.endpoint->deregister_region(landing));
      }
    });
  }
  for (std::thread& thread : workers) thread.join();
  REQUIRE(wrong == 0);
}

TEST_CASE("facade__ordinary_calls__keep_their_contexts_and_failures_of_silent_ones_are_told") {
  cci::EndpointOptions one;
  one.receive_buffers = 1;
  Party a(1), b(2, one);
  const Joined pair = join(a, b);
  REQUIRE(a.endpoint->set_send_timeout(pair.at_dialler, 200ms) == Status::success);
  const std::byte byte{1};
  cci::SendOptions options;
  options.silent = true;
  for (uint64_t i = 0; i < 3; ++i) {
    options.context = 100 + i;
    REQUIRE(a.endpoint->send(pair.at_dialler, {&byte, 1}, options) == Status::success);
  }
  for (uint64_t i = 1; i < 3; ++i) {
    const auto event = next(*a.endpoint, EventType::send);
    REQUIRE(event);
    REQUIRE(event->context() == 100 + i);
    REQUIRE(event->status() == Status::receiver_not_ready);
  }
}

TEST_CASE("facade__send_that_does_not_end_in_time__timed_out_and_its_end_is_forgotten") {
  cci::EndpointOptions one;
  one.receive_buffers = 1;
  Party a(1), b(2, one);
  const Joined pair = join(a, b);
  const std::byte byte{1};
  REQUIRE(a.endpoint->send_blocking(pair.at_dialler, {&byte, 1}) == Status::success);
  REQUIRE(a.endpoint->send_blocking(pair.at_dialler, {&byte, 1}, 20ms) == Status::timed_out);
  REQUIRE(next(*b.endpoint, EventType::receive));  // let go: the second finds room
  REQUIRE(next(*b.endpoint, EventType::receive));
  REQUIRE(a.endpoint->send_blocking(pair.at_dialler, {&byte, 1}) == Status::success);
  REQUIRE_FALSE(a.endpoint->get_event());
}

TEST_CASE("facade__destroyed_while_threads_wait__they_come_back_and_held_events_stay_valid") {
  cci::EndpointOptions one;
  one.receive_buffers = 1;
  auto a = std::make_unique<Party>(1);
  Party b(2, one);
  const Joined pair = join(*a, b);
  const Joined other = join(b, *a);
  const std::byte byte{1};
  REQUIRE(a->endpoint->send_blocking(pair.at_dialler, {&byte, 1}) == Status::success);
  REQUIRE(b.endpoint->send_blocking(other.at_dialler, {&byte, 1}) == Status::success);
  const auto held = next(*a->endpoint, EventType::receive);
  REQUIRE(held);
  ThreadedEndpoint& endpoint = *a->endpoint;
  Status sent = Status::success;
  bool got = true;
  std::thread sender([&] {
    sent = endpoint.send_blocking(pair.at_dialler, {&byte, 1});  // finds no buffer
  });
  std::thread taker([&] {
    while (const auto event = endpoint.get_event(forever)) {
    }
    got = false;
  });
  while (endpoint.calls_waiting() < 2) std::this_thread::yield();
  a->endpoint.reset();
  sender.join();
  taker.join();
  REQUIRE(sent == Status::device_dead);
  REQUIRE_FALSE(got);
  REQUIRE(held->data().size() == 1);
  REQUIRE(held->data()[0] == byte);
  REQUIRE(next(*b.endpoint, EventType::disconnected));
}

TEST_CASE("facade__what_cannot_begin__comes_back_at_once_with_the_reason") {
  Party a(1), b(2);
  const Joined pair = join(a, b);
  const std::vector<std::byte> large(a.endpoint->max_send_bytes(pair.at_dialler) + 1);
  const Bytes fits = Bytes(large).first(large.size() - 1);
  REQUIRE(fits.size() > 1000);
  REQUIRE(a.endpoint->send_blocking(pair.at_dialler, large) == Status::message_size);
  REQUIRE(a.endpoint->send_blocking(pair.at_dialler, fits) == Status::success);
  REQUIRE(a.endpoint->send_blocking(Connection{}, fits) == Status::not_found);
  cci::RmaOptions options;
  options.length_bytes = 10;
  REQUIRE(a.endpoint->rma_blocking(pair.at_dialler, options).status == Status::rma_handle);
  REQUIRE(a.endpoint->rma_blocking(Connection{}, options).status == Status::not_found);
  REQUIRE(a.endpoint->set_send_timeout(Connection{}, 1s) == Status::not_found);
  REQUIRE(a.endpoint->set_keepalive(Connection{}, 1s) == Status::not_found);
  REQUIRE(a.endpoint->max_send_bytes(Connection{}) == 0);
  REQUIRE(a.endpoint->deregister_region({}) == Status::rma_handle);
  REQUIRE(a.endpoint->calls_waiting() == 0);
  REQUIRE_FALSE(a.endpoint->get_event());
}

TEST_CASE("facade__a_request_of_another_endpoint__is_not_decided_by_this_one") {
  Party a(1), b(2), c(3);
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  auto request = next(*b.endpoint, EventType::connect_request);
  REQUIRE(request);
  REQUIRE(c.endpoint->accept(*request, 0) == Status::invalid);
  REQUIRE(c.endpoint->reject(*request, "not mine") == Status::invalid);
  ThreadedEvent none;
  REQUIRE(b.endpoint->accept(none, 0) == Status::invalid);
  REQUIRE(b.endpoint->reject(none, "nothing") == Status::invalid);
  ThreadedEvent moved;
  moved = std::move(*request);
  REQUIRE(b.endpoint->accept(moved, 9) == Status::success);
  const auto accepted = next(*b.endpoint, EventType::accept);
  REQUIRE(accepted);
  REQUIRE(accepted->context() == 9);
  const auto connected = next(*a.endpoint, EventType::connect);
  REQUIRE(connected);
  a.endpoint->disconnect(connected->connection());
  REQUIRE(next(*b.endpoint, EventType::disconnected));
}

TEST_CASE("facade__a_request_that_is_let_go__is_refused_at_once") {
  ports::TransportOptions silent;  // nothing else wakes the thread that has to say so
  silent.keepalive = Duration{0};
  Party a(1, {}, silent), b(2, {}, silent);
  REQUIRE(a.endpoint->connect(b.endpoint->uri(), {}));
  auto request = next(*b.endpoint, EventType::connect_request);
  REQUIRE(request);
  request.reset();
  const auto refused = next(*a.endpoint, EventType::connect);
  REQUIRE(refused);
  REQUIRE(refused->status() == Status::refused);
}

TEST_CASE("facade__no_descriptor_for_its_thread__an_error_that_says_so") {
  Counters counters;
  SeededEntropy entropy(1);
  auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}, .backlog = 64, .listen = true});
  REQUIRE(net);
  auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
  auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::move(*net), counters);
  auto endpoint = std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters);
  const int free = ::dup(0);
  REQUIRE(free >= 0);
  ::close(free);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit none{static_cast<rlim_t>(free), before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto started = ThreadedEndpoint::start(std::move(endpoint));
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE_FALSE(started);
  REQUIRE(started.error().kind == ErrorKind::network);
}

TEST_CASE("threaded_endpoint__start__host_gives_no_thread__is_told") {
  CHECK(testing::with_few_processes(1, [] {
    Counters counters;
    SeededEntropy entropy(1);
    auto net = tcp::TcpNet::create({.listen_host = "127.0.0.1", .port = 0, .interface_name = {}, .backlog = 64, .listen = true});
    if (!net) return false;
    auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
    auto transport = std::make_unique<stream::StreamTransport>(ports::TransportOptions{}, std::move(*net), counters);
    const auto started =
        ThreadedEndpoint::start(std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::move(transport), memory, counters));
    return !started && started.error().kind == ErrorKind::file_io;
  }));
}

}  // namespace
}  // namespace ccixfer::facade

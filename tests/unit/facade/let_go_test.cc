// An event that is let go, over a transport that nothing but the facade itself wakes.
#include <sys/eventfd.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <mutex>

#include "core/base/counters.h"
#include "core/facade/threaded_endpoint.h"
#include "tests/unit/cci/fake_transport.h"

namespace ccixfer::facade {
namespace {

using namespace std::chrono_literals;

// What the progress thread did, for the thread of the test.
struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  bool rejected = false;
  bool turned_since = false;
};

// Has one request at once, and its descriptor never becomes readable.
class Asleep final : public ports::Transport {
 public:
  Asleep(Seen& seen, int handle) : seen_(seen), handle_(handle) {}
  void bind(ports::TransportSink& sink, ports::RmaTarget&) override { sink_ = &sink; }
  std::string uri() const override { return "asleep://1"; }
  uint32_t max_send_bytes() const override { return 4096; }
  Result<ports::ConnectionId> dial(const ports::DialRequest&) override { return ports::ConnectionId{1, 1}; }
  Status accept(ports::ConnectionId) override { return Status::success; }
  Status reject(ports::ConnectionId, std::string_view) override {
    const std::lock_guard<std::mutex> lock(seen_.mutex);
    seen_.rejected = true;
    return Status::success;
  }
  void disconnect(ports::ConnectionId) override {}
  Status send(ports::ConnectionId, std::span<const Bytes>, uint64_t) override { return Status::success; }
  Status rma(ports::ConnectionId, const ports::RmaRequest&, uint64_t) override { return Status::success; }
  void set_send_timeout(ports::ConnectionId, Duration) override {}
  void set_keepalive(ports::ConnectionId, Duration) override {}
  std::vector<ports::HopInfo> hops(ports::ConnectionId) const override { return {}; }
  void turn(Instant) override {
    if (!std::exchange(offered_, true))
      sink_->on_connect_request({7, 1}, ports::Role::application, ports::Attribute::reliable_ordered, {});
    const std::lock_guard<std::mutex> lock(seen_.mutex);
    seen_.turned_since = seen_.rejected;
    seen_.changed.notify_all();
  }
  void arm(Instant) override {}
  Instant next_deadline() const override { return never; }
  int os_handle() const override { return handle_; }

 private:
  Seen& seen_;
  int handle_;
  bool offered_ = false;
  ports::TransportSink* sink_ = nullptr;
};

TEST_CASE("facade__a_request_is_let_go__the_transport_has_a_turn_to_say_so") {
  Seen seen;
  const int handle = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  REQUIRE(handle >= 0);
  {
    cci::CountingEntropy entropy;
    Counters counters;
    auto memory = std::make_shared<cci::MemoryTable>(entropy, counters);
    auto started = ThreadedEndpoint::start(
        std::make_unique<cci::Endpoint>(cci::EndpointOptions{}, std::make_unique<Asleep>(seen, handle), memory, counters));
    REQUIRE(started);
    auto request = (*started)->get_event(20s);
    REQUIRE(request);
    REQUIRE(request->type() == cci::EventType::connect_request);
    request.reset();
    std::unique_lock<std::mutex> lock(seen.mutex);
    REQUIRE(seen.rejected);
    REQUIRE(seen.changed.wait_for(lock, 20s, [&] { return seen.turned_since; }));
  }
  ::close(handle);
}

}  // namespace
}  // namespace ccixfer::facade

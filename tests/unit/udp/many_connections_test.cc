// Ten thousand connections at one socket, from the sockets of four others, over the loopback.
#include "core/host/clock.h"
#include "core/host/entropy.h"
#include "tests/unit/datagram/crowd.h"
#include "transports/udp/udp_net.h"

namespace ccixfer::udp {
namespace {

using namespace std::chrono_literals;
using datagram::testing::CrowdEnd;

constexpr size_t diallers = 4, each = 2500, all = diallers * each;

struct Party {
  explicit Party(bool listens, size_t most) {
    UdpNetOptions options;
    options.listen = listens;
    options.listen_host = "127.0.0.1";
    auto made = UdpNet::create(options);
    REQUIRE(made);
    end.emplace(datagram::DatagramOptions{}, std::move(*made), entropy, most);
  }
  host::SystemEntropy entropy;
  std::optional<CrowdEnd> end;
};

struct Gathering {
  Gathering() {
    for (size_t i = 0; i < diallers; ++i) others.push_back(std::make_unique<Party>(false, each));
    listener.end->answers = true;
  }
  // Nothing waits for the clock: each end has its turn, until it is done or a minute is over.
  bool run(const std::function<bool()>& done) {
    const Instant limit = after(clock.now(), 60s);
    while (!done()) {
      if (clock.now() > limit) return false;
      for (const auto& other : others) other->end->turn(clock.now());
      listener.end->turn(clock.now());
    }
    return true;
  }
  [[nodiscard]] size_t answers() const {
    size_t total = 0;
    for (const auto& other : others) total += other->end->messages;
    return total;
  }
  host::SystemClock clock;
  Party listener{true, all};
  std::vector<std::unique_ptr<Party>> others;
};

}  // namespace

TEST_CASE("udp__ten_thousand_connections_at_one_socket__each_carries_a_message_and_its_answer") {
  Gathering gathering;
  const std::string uri = gathering.listener.end->transport->uri();
  REQUIRE(gathering.run([&] {
    bool all_open = gathering.listener.end->open.size() == all;
    for (const auto& other : gathering.others) {
      other->end->dial(uri, each, 50);
      all_open = all_open && other->end->open.size() == each;
    }
    return all_open;
  }));
  for (size_t i = 0; i < each; ++i) {
    for (const auto& other : gathering.others) other->end->say(other->end->open[i]);
    const size_t said = (i + 1) * diallers;
    REQUIRE(gathering.run([&] { return gathering.answers() == said; }));
  }
  CHECK(gathering.listener.end->messages == all);
  CHECK(gathering.listener.end->failed + gathering.listener.end->lost == 0);
}

}  // namespace ccixfer::udp

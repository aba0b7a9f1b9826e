// Several senders with always something to send, and one bottleneck that they share: a rate, a round trip, a queue that drops what
// does not fit. Time passes from one event to the next; nothing is random but the losses that a test asks for.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "core/reliability/congestion.h"
#include "core/reliability/pacer.h"
#include "core/reliability/send_ledger.h"
#include "transports/sim/random.h"

namespace ccixfer::reliability::testing {

struct BottleneckOptions {
  uint64_t rate = 6'250'000;  // bytes a second
  Duration round_trip = std::chrono::milliseconds(20);
  double queue_products = 1;  // of rate and round trip
  double loss = 0;
};

class Bottleneck {
 public:
  static constexpr uint32_t datagram = 1472;

  explicit Bottleneck(const BottleneckOptions& options);
  // Which sends from `begins` on. Returns its number.
  size_t add(std::unique_ptr<CongestionControl> control, Duration begins = Duration{0});
  void end(size_t flow) { flows_[flow]->ended = true; }  // it sends nothing more
  void lengthen(Duration more) { options_.round_trip += more; }
  void run(Duration time);

  [[nodiscard]] uint64_t delivered_bytes(size_t flow) const { return flows_[flow]->ledger.delivered_bytes(); }
  [[nodiscard]] CongestionControl& control(size_t flow) { return *flows_[flow]->control; }
  [[nodiscard]] Duration waiting() const;  // how long a packet that comes now stands in the queue
  [[nodiscard]] uint64_t dropped() const { return dropped_; }
  [[nodiscard]] Instant now() const { return now_; }

 private:
  struct Flow {
    std::unique_ptr<CongestionControl> control;
    Instant begins{};
    bool ended = false;
    Pacer pacer{2 * datagram, 64 * datagram};
    SendLedger ledger;
    RttEstimator rtt;
    SendLedger::Outcome out;
    [[nodiscard]] bool has_room() const { return !ended && ledger.in_flight_bytes() + datagram <= control->window_bytes(); }
  };
  struct Coming {
    Instant at{};
    size_t flow = 0;
    uint64_t number = 0;
  };
  void send(Flow& flow, size_t number);
  void acknowledge(const Coming& coming);
  static void learn(Flow& flow, Instant now);
  [[nodiscard]] Instant next_event() const;

  BottleneckOptions options_;
  uint64_t queue_bytes_;
  sim::Random random_{1};
  Instant now_{std::chrono::seconds(100)};
  Instant link_free_{};
  std::vector<std::unique_ptr<Flow>> flows_;
  std::deque<Coming> coming_;
  uint64_t dropped_ = 0;
};

}  // namespace ccixfer::reliability::testing

// Costs of connections: to make one, and of an empty turn with many of them.
#include <fmt/format.h>

#include <algorithm>

#include "app/bench/measures.h"

namespace ccixfer::bench {
namespace {

// Turns of one sample: a single one is shorter than the clock is fine.
constexpr uint32_t turns_a_sample = 256;
constexpr uint32_t connects_at_once = 64;

// Dials are told apart from the session by their context.
class Dialling : public Measure {
 public:
  using Measure::Measure;

 protected:
  void dial() {
    cci::ConnectOptions options;
    const std::vector<std::byte> hello = encode_hello(Purpose::extra);
    options.data = hello;
    options.timeout = channel_.plan.timeout;
    options.context = extra_context;
    const auto connection = channel_.endpoint.connect(channel_.uri, options);
    if (!connection) fail_with(connection.error().kind, connection.error().message);
  }
  bool connected(const cci::Event& event) {
    if (event.status == Status::success) return true;
    fail_with(event.status == Status::no_route ? ErrorKind::no_route : ErrorKind::network,
              fmt::format("a further connection failed ({}{}{}): {}: raise the limit of open files, or take fewer",
                          to_string(event.status), event.reason.empty() ? "" : ": ", event.reason, channel_.uri));
    return false;
  }
};

// One after the other: connect, connected, disconnect.
class Connect final : public Dialling {
 public:
  explicit Connect(Channel& channel) : Dialling(channel), span_(channel.plan) {}
  void begin(Instant now) override {
    span_.begin(now);
    began_ = now;
    dial();
  }
  void on_event(const cci::Event& event, Instant now) override {
    if (event.type != cci::EventType::connect || !connected(event)) return;
    ++progress_;
    if (span_.ended_one(now)) samples_.add(now - began_);
    channel_.endpoint.disconnect(event.connection);
    if (!span_.enough(now)) {
      began_ = now;
      return dial();
    }
    finished_ = true;
    Row row;
    row.test = to_string(Test::connect);
    row.latency_of = "connect";
    row.count = samples_.count();
    row.took = span_.took(now);
    row.latency = samples_.percentiles();
    rows_.push_back(row);
  }

 private:
  Span span_;
  Samples samples_;
  Instant began_{};
};

// With the session's connection alone, then with `connections` of them; in bursts that take turns would need to close them again.
class EmptyTurn final : public Dialling {
 public:
  explicit EmptyTurn(Channel& channel) : Dialling(channel), span_(channel.plan) {}
  ~EmptyTurn() override {
    for (const cci::Connection connection : extra_) channel_.endpoint.disconnect(connection);
  }
  void begin(Instant now) override { settle(now); }
  void on_event(const cci::Event& event, Instant now) override {
    quiet_ = false;
    if (event.type == cci::EventType::disconnected) {
      return fail_with(ErrorKind::network, fmt::format("a connection is lost: {}: take fewer connections", channel_.uri));
    }
    if (event.type != cci::EventType::connect) return;
    --dialling_;
    if (!connected(event)) return;
    ++progress_;
    extra_.push_back(event.connection);
    more(now);
  }
  void on_turn(Instant now) override {
    if (dialling_ > 0 || finished_) return;
    if (!quiet_) {  // a sample with an event in it is none
      quiet_ = true;
      turns_ = 0;
      since_ = now;
      return;
    }
    if (++turns_ < turns_a_sample) return;
    ++progress_;
    if (span_.ended_one(now)) samples_.add(now - since_);
    turns_ = 0;
    since_ = now;
    if (span_.enough(now)) finish_row(now);
  }

 private:
  void settle(Instant now) {
    span_.begin(now);
    samples_.clear();
    quiet_ = false;
  }
  void more(Instant now) {
    while (1 + extra_.size() + dialling_ < channel_.plan.connections && dialling_ < connects_at_once && !error()) {
      ++dialling_;
      dial();
    }
    if (dialling_ == 0) settle(now);
  }
  void finish_row(Instant now) {
    Row row;
    row.test = to_string(Test::empty_turn);
    row.latency_of = "turn";
    row.connections = 1 + extra_.size();
    row.count = samples_.count() * turns_a_sample;
    row.took = span_.took(now);
    row.latency = samples_.percentiles(turns_a_sample);
    rows_.push_back(row);
    if (row.connections >= channel_.plan.connections) {
      finished_ = true;
      return;
    }
    more(now);
  }

  Span span_;
  Samples samples_;
  std::vector<cci::Connection> extra_;
  uint32_t dialling_ = 0;
  uint32_t turns_ = 0;
  bool quiet_ = false;
  Instant since_{};
};

}  // namespace

std::unique_ptr<Measure> make_connect(Channel& channel) { return std::make_unique<Connect>(channel); }
std::unique_ptr<Measure> make_empty_turn(Channel& channel) { return std::make_unique<EmptyTurn>(channel); }

}  // namespace ccixfer::bench

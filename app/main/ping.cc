// `ccixfer ping`: the hops to a peer, and how long messages to its endpoint take. A message's completion means that it reached the
// peer's endpoint (CCI §IV.C: a reliable send completes when it is delivered), so one message is one round trip; nobody has to
// answer.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "app/bench/failed_connect.h"
#include "app/main/commands.h"
#include "app/main/question.h"
#include "core/base/units.h"
#include "routing/transport/messages.h"

namespace ccixfer::program {
namespace {

constexpr Duration dialler_slack = std::chrono::seconds(1);  // the endpoint knows which hop does not answer: let it speak first

// What is less than can be seen is not said to be nothing.
std::string milliseconds(double seconds) { return seconds < 1e-6 ? "<0.001" : fmt::format("{:.3f}", seconds * 1e3); }

// Who answers at a hop and how what it carries is protected.
std::string trust_of(const report::Hop& hop) {
  if (hop.protection.empty()) return hop.peer.empty() ? ", not protected" : fmt::format(", {}, not protected", printable(hop.peer));
  return fmt::format(", {}, {}", hop.peer.empty() ? "somebody" : printable(hop.peer), printable(hop.protection));
}

// Of several hops: the slowest subnet.
std::optional<size_t> bottleneck_of(const std::vector<ports::HopInfo>& path) {
  const auto slower = [](const ports::HopInfo& a, const ports::HopInfo& b) { return a.rate_bits_per_s < b.rate_bits_per_s; };
  const auto slowest = std::min_element(path.begin(), path.end(), slower);
  if (path.size() < 2 || slowest->rate_bits_per_s == 0) return std::nullopt;
  return static_cast<size_t>(slowest - path.begin());
}

class PingHandler final : public LoopHandler {
 public:
  PingHandler(const Process& process, const PingCommand& command, Node& node, std::string address)
      : process_(process),
        command_(command),
        endpoint_(*node.endpoint),
        address_(std::move(address)),
        give_up_(after(after(process.loop.now(), command.timeout), dialler_slack)) {}

  Result<void> begin() {
    cci::ConnectOptions options;
    options.role = ports::Role::admin;
    options.timeout = command_.timeout;
    auto connection = endpoint_.connect(address_, options);
    if (!connection) return tl::unexpected(connection.error());
    return {};
  }

  bool turn(Instant now) override {
    process_.reporter.set_now(now);
    endpoint_.turn(now);
    while (auto event = endpoint_.get_event()) handle(*event, now);
    if (error_.kind == ErrorKind::ok && !finished_ && now >= give_up_) {
      error_ = {ErrorKind::no_answer,
                fmt::format("no answer within the timeout: {}: check that the peer runs and can be reached", address_)};
    }
    return error_.kind == ErrorKind::ok && !finished_;
  }
  Instant next_deadline() const override { return std::min(endpoint_.next_deadline(), give_up_); }
  void on_signal(int number, Instant) override {
    if (number != SIGUSR1) error_ = {ErrorKind::interrupted, fmt::format("interrupted: by a signal: {}", address_)};
  }
  const Error& error() const { return error_; }

 private:
  void handle(const cci::Event& event, Instant now) {
    if (event.type == cci::EventType::connect) {
      if (event.status != Status::success) return refused(event);
      connection_ = event.connection;
      ping_.uri = address_;
      ping_.max_send_bytes = endpoint_.max_send_bytes(connection_);
      const std::vector<ports::HopInfo> path = endpoint_.hops(connection_);
      ping_.path = report_hops(path);
      ping_.fragment_bytes = path.empty() ? 0 : path.front().fragment_bytes;
      ping_.bottleneck = bottleneck_of(path);
      return send(now);
    }
    if (event.type == cci::EventType::send) {
      if (event.status != Status::success) return lost(to_string(event.status));
      give_up_ = after(now, command_.timeout);
      ping_.round_trips_s.push_back(std::chrono::duration<double>(now - sent_at_).count());
      return ping_.round_trips_s.size() < command_.count ? send(now) : finish();
    }
    if (event.type == cci::EventType::disconnected)
      lost(event.reason.empty() ? to_string(event.status) : std::string_view(event.reason));
  }
  void refused(const cci::Event& event) {
    error_ = bench::failed_connect(event.status, event.reason, address_, "check that the peer runs and can be reached");
  }
  void lost(std::string_view why) {
    error_ = {ErrorKind::network, fmt::format("the connection is lost ({}): {}: try again", why, address_)};
  }
  void send(Instant now) {
    const std::vector<std::byte> message(routing::ping_message_bytes);
    sent_at_ = now;
    const Status status = endpoint_.send(connection_, message, 1);
    if (status != Status::success) lost(to_string(status));
  }
  void finish() {
    finished_ = true;
    endpoint_.disconnect(connection_);
    report::Reporter& out = process_.reporter;
    out.event(report::ping_event(out.seconds(), ping_));
    const std::string fragment = ping_.fragment_bytes == 0 ? "" : fmt::format(", fragments of {} bytes", ping_.fragment_bytes);
    out.output(fmt::format("{}: at most {} bytes a message{}", ping_.uri, ping_.max_send_bytes, fragment));
    for (size_t i = 0; i < ping_.path.size(); ++i) {
      const report::Hop& hop = ping_.path[i];
      const double beyond_s = i + 1 < ping_.path.size() ? ping_.path[i + 1].round_trip_s : 0;
      const std::string rate = hop.rate_bits_per_s == 0 ? "" : ", " + format_link_rate(hop.rate_bits_per_s);
      out.output(fmt::format("hop {}: {} {}{}{}{}, round trip {} ms of {} ms to the end{}{}", i + 1, hop.transport, hop.node,
                             hop.subnet.empty() ? "" : " subnet ", hop.subnet, rate, milliseconds(hop.round_trip_s - beyond_s),
                             milliseconds(hop.round_trip_s), trust_of(hop),
                             ping_.bottleneck == i ? "  <- the slowest subnet" : ""));
    }
    std::vector<double> times = ping_.round_trips_s;
    std::sort(times.begin(), times.end());
    out.output(fmt::format("{} messages of {} bytes: round trip min {:.3f} ms, median {:.3f} ms, max {:.3f} ms", times.size(),
                           routing::ping_message_bytes, times.front() * 1e3, times[times.size() / 2] * 1e3, times.back() * 1e3));
  }

  const Process& process_;
  const PingCommand& command_;
  cci::Endpoint& endpoint_;
  const std::string address_;
  Instant give_up_, sent_at_{};
  cci::Connection connection_;
  report::Ping ping_;
  bool finished_ = false;
  Error error_{ErrorKind::ok, ""};
};

}  // namespace

CommandEnd run_ping(const Process& process, const PingCommand& command) {
  auto question = Question::open(process, command.common, command.uri);
  if (!question) return {question.error(), {}};
  PingHandler handler(process, command, (*question)->node(), (*question)->address());
  if (auto begun = handler.begin(); !begun) return {begun.error(), {}};
  process.loop.run(handler);
  return {handler.error(), {}};
}

}  // namespace ccixfer::program

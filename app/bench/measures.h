// What the asking side does in turn, each a small machine over one open session: it begins, takes the session's events, and gives
// rows. Internal to app/bench.
#pragma once
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/bench/messages.h"
#include "app/bench/plan.h"
#include "core/cci/endpoint.h"
#include "core/memory/bulk_memory.h"

namespace ccixfer::bench {

// An open session, and our memory for it.
struct Channel {
  cci::Endpoint& endpoint;
  const Plan& plan;
  std::string uri;
  cci::Connection connection;
  Opened peer;
  uint64_t slot_bytes = 0;
  uint32_t slots = 0;
  memory::BulkMemory memory;       // slots * slot_bytes: what goes out and what reads bring in
  std::vector<std::byte> landing;  // what the peer writes or puts back
  ports::Handle local, landing_region, address;
  uint64_t mailbox = 0;
};

class Measure {
 public:
  explicit Measure(Channel& channel) : channel_(channel) {}
  virtual ~Measure() = default;
  virtual void begin(Instant now) = 0;
  virtual void on_event(const cci::Event& event, Instant now) = 0;  // the session's, and of connections with our context
  virtual void on_put(const rvma::Completion&, Instant) {}          // into our mailbox
  virtual void on_turn(Instant) {}
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }
  [[nodiscard]] uint64_t progress() const { return progress_; }                    // grows with every operation that ended
  [[nodiscard]] std::vector<Row> take_rows() { return std::exchange(rows_, {}); }  // those that came since the last call

 protected:
  void fail_with(ErrorKind kind, std::string message);
  void expect(Status status);                // of a call: anything but success ends the measurement
  bool expect_end(const cci::Event& event);  // of an operation: the same
  Channel& channel_;
  bool finished_ = false;
  uint64_t progress_ = 0;
  std::vector<Row> rows_;

 private:
  std::optional<Error> error_;
};

// When a row has warmed up and when it has enough. By time: a tenth of it is warm-up. By count: all count.
class Span {
 public:
  explicit Span(const Plan& plan) : plan_(plan) {}
  void begin(Instant now);
  bool ended_one(Instant now);  // one more operation ended: is it to be measured?
  [[nodiscard]] bool enough(Instant now) const;
  [[nodiscard]] bool warm() const { return warm_; }
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] Duration took(Instant now) const { return now - measured_from_; }

 private:
  const Plan& plan_;
  Instant began_{}, measured_from_{};
  bool warm_ = false;
  uint64_t count_ = 0;
};

// Writes a pattern to the peer, reads it back, compares: figures of broken transfers are worth nothing.
[[nodiscard]] std::unique_ptr<Measure> make_check(Channel& channel);
[[nodiscard]] std::unique_ptr<Measure> make_latency(Channel& channel, uint32_t message_bytes);
[[nodiscard]] std::unique_ptr<Measure> make_message_rate(Channel& channel);
[[nodiscard]] std::unique_ptr<Measure> make_bandwidth(Channel& channel, Test test, uint64_t size_bytes);
[[nodiscard]] std::unique_ptr<Measure> make_completion(Channel& channel);
[[nodiscard]] std::unique_ptr<Measure> make_connect(Channel& channel);
[[nodiscard]] std::unique_ptr<Measure> make_empty_turn(Channel& channel);

inline constexpr uint64_t extra_context = ~uint64_t{0};  // of connections that connect and empty-turn make

}  // namespace ccixfer::bench

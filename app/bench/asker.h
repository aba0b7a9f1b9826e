// The asking side: connects, opens a session, checks that data arrive as they are, measures what the plan names, one thing after
// the other. Rows come out as they are finished. Ends by itself: all rows, or an error: no_answer, protocol, no_route (connect),
// network (the peer has gone), timeout (nothing moved for plan.timeout), usage (the plan does not fit the path), integrity.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/plan.h"
#include "core/base/ring_buffer.h"
#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"

namespace ccixfer::bench {

struct Channel;
class Measure;

class Asker {
 public:
  // Endpoint and entropy outlive it; no turn of the endpoint comes after its end.
  Asker(cci::Endpoint& endpoint, ports::Entropy& entropy, Plan plan, std::string uri);
  ~Asker();
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;

  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool wants_spin() const;  // empty-turn counts turns: nothing must wait
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] const Error& error() const { return error_; }  // when ended; kind ok: all rows are out
  [[nodiscard]] std::optional<Row> next_row();
  [[nodiscard]] bool open() const { return opened_; }
  [[nodiscard]] Wait peer_wait() const;                                            // when open
  [[nodiscard]] const std::vector<ports::HopInfo>& hops() const { return hops_; }  // when open

 private:
  void take_events(Instant now);
  void handle(const cci::Event& event, Instant now);
  void on_connect(const cci::Event& event);
  void open_session();
  void on_opened(const cci::Event& event);
  void on_put(const rvma::Completion& completion, Instant now);
  [[nodiscard]] const std::vector<uint64_t>& sizes_of(Test test) const;
  void next_measure(Instant now);
  void judge(Instant now);
  void end(Error error);

  cci::Endpoint& endpoint_;
  ports::Entropy& entropy_;
  const Plan plan_;
  std::unique_ptr<Channel> channel_;
  std::unique_ptr<Measure> measure_;
  size_t next_test_ = 0, next_size_ = 0;       // of plan_.tests, and of its sizes in the present one
  std::vector<uint64_t> message_sizes_bytes_;  // of message-latency; known when the path is
  bool checked_ = false;
  bool begun_ = false, opened_ = false, ended_ = false;
  Instant again_at_ = never;
  uint64_t progress_ = 0;
  Instant give_up_ = never;
  Error error_{ErrorKind::ok, ""};
  RingBuffer<Row> rows_;
  std::vector<ports::HopInfo> hops_;
};

}  // namespace ccixfer::bench

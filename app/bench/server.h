// The serving side of a measurement: answers echoes, lends memory and mailboxes to peers, puts and writes back what `completion`
// needs. Several asking sides at once, each with its own memory; one that goes takes its memory with it, once no operation of ours
// uses it. A peer that asks for too much, speaks out of turn, or says nothing for open_time is disconnected; the others do not
// notice.
// In: now, and the endpoint's events. Errors: none of its own; what a peer did is counted in `dropped()`.
// Bounds: sessions_max, memory_bytes_max a session; connections that only are there are the transport's to bound.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "app/bench/messages.h"
#include "core/cci/endpoint.h"
#include "core/ports/entropy.h"

namespace ccixfer::bench {

inline constexpr size_t sessions_max = 8;
inline constexpr Duration open_time = std::chrono::seconds(10);  // in which a session says what it wants

class Server {
 public:
  // Endpoint and entropy outlive it; it outlives the endpoint's last turn.
  Server(cci::Endpoint& endpoint, ports::Entropy& entropy, Wait wait);
  ~Server();
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] size_t sessions() const { return sessions_.size(); }
  [[nodiscard]] uint64_t ended() const { return ended_; }      // sessions that came and went
  [[nodiscard]] uint64_t dropped() const { return dropped_; }  // of them: by us, or lost in the middle
  [[nodiscard]] const std::string& last_drop() const { return last_drop_; }

 private:
  struct Session;
  void handle(cci::Event& event);
  void on_request(cci::Event& event);
  void on_message(Session& session, Bytes message);
  void on_open(Session& session, Bytes message);
  void on_completion(const rvma::Completion& completion);
  void write_back(Session& session, const ports::Handle& where, std::optional<Bytes> completion_message);
  void say(Session& session, Bytes message);
  void drop(Session& session, std::string why);
  void drop_silent();
  void leave(Session& session);
  void sweep();
  [[nodiscard]] Session* find(uint64_t id);

  cci::Endpoint& endpoint_;
  ports::Entropy& entropy_;
  const Wait wait_;
  std::unordered_map<uint64_t, std::unique_ptr<Session>> sessions_;
  std::unordered_map<uint64_t, uint64_t> mailboxes_;  // number -> session
  uint64_t next_id_ = 1;
  uint64_t ended_ = 0, dropped_ = 0;
  std::string last_drop_;
  bool leaving_ = false;  // some session waits for its last operations
  Instant now_{};
  Instant silent_until_ = never;  // the first session that is to be dropped, unless it opens by then
};

}  // namespace ccixfer::bench

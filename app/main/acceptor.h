// The listening side: turns hellos into sessions and runs them, several at once: a Destination each (recv --root), or a Source each
// (send --serve). Gives each receiving session a share of the buffer pool, so that none starves the next.
// Errors of a session are the peer's (told by Abort) and the log's; the first ended transfer's is kept for --once.
// Bounds: accepted_sessions_max; a session that is not opened within open_timeout ends.
#pragma once
#include <list>
#include <memory>
#include <optional>

#include "app/main/forwarder.h"
#include "app/main/machine.h"
#include "app/session/link.h"

namespace ccixfer::program {

inline constexpr size_t accepted_sessions_max = 64;
inline constexpr size_t transfers_remembered_max = 64;  // besides those that have a session
inline constexpr uint32_t session_buffers_min = 4;
inline constexpr Duration open_timeout = std::chrono::seconds(30);
inline constexpr Duration farewell_timeout = std::chrono::seconds(3);  // for an Abort to reach the peer

struct AcceptorOptions {
  recv::Root* root = nullptr;    // recv --root: accept pushes
  int served_root = -1;          // send --serve: accept pulls
  uint32_t allowed_options = 0;  // of Open::options that this side agrees to; the others are refused
  uint64_t rate_bytes_per_s = 0;
  uint16_t lanes_max = session::lanes_max;
  bool once = false;
};

class Acceptor final : public session::AcceptUser {
 public:
  Acceptor(const Bench& bench, session::Hub& hub, const AcceptorOptions& options);
  ~Acceptor() override;
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  bool take_completion(const rvma::Completion& completion);
  void stop(const Error& why, Instant now);  // ends all sessions, takes no new ones
  [[nodiscard]] bool idle() const;           // no session left
  [[nodiscard]] size_t sessions() const;
  [[nodiscard]] size_t unfinished() const;  // transfers under way: their result does not stand yet
  [[nodiscard]] Tally tally() const;
  [[nodiscard]] const std::optional<Error>& first_end() const;  // kind ok when it went well

  Result<session::Link*> on_new_session(const session::Hello& hello, Instant now) override;
  session::Link* find_session(const session::Hello& hello) override;

 private:
  class Session;
  // A transfer that has a session, or had one lately: a later one goes on with its counts.
  struct Transfer {
    session::TransferId id{};
    std::shared_ptr<session::TransferRecord> record;
    Tally tally;            // of this process
    unsigned sessions = 0;  // that there are now
  };
  [[nodiscard]] uint32_t share() const;
  [[nodiscard]] Transfer& transfer(const session::TransferId& id);

  const Bench bench_;
  session::Hub& hub_;
  const AcceptorOptions options_;
  bool stopped_ = false;
  std::list<Transfer> transfers_;
  Tally forgotten_;  // of transfers that are in the list no more
  std::list<std::unique_ptr<Session>> sessions_;
  std::optional<Error> first_end_;
};

}  // namespace ccixfer::program

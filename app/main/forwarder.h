// A LinkHandler that stands in front of a role that does not exist yet: the session's first messages (OpenPart, Opened, Queued,
// Abort) are its owner's; what else comes before the role is kept and replayed, afterwards all goes through. Bounds:
// early_messages_max; the path of an Open, its OpenJoiner's.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/session/link.h"
#include "app/session/open.h"

namespace ccixfer::program {

inline constexpr size_t early_messages_max = 256;

class Forwarder final : public session::LinkHandler {
 public:
  void attach(session::LinkHandler& role);  // replays what was kept
  void detach();                            // the role goes; what still comes is dropped

  [[nodiscard]] const std::optional<session::Open>& open() const { return open_; }        // acceptor: complete
  [[nodiscard]] const std::optional<session::Opened>& opened() const { return opened_; }  // dialler
  [[nodiscard]] bool is_helper() const { return is_helper_; }                             // dialler of a team, once it is opened
  [[nodiscard]] const std::optional<session::Queued>& queued() const { return queued_; }  // dialler: the last word on its place
  [[nodiscard]] uint64_t queue_news() const { return queue_news_; }                       // how many there were
  [[nodiscard]] const std::optional<Error>& lost() const { return lost_; }      // link lost, aborted by the peer, protocol error
  [[nodiscard]] bool was_aborted() const { return was_aborted_; }               // the peer has said why it ends the session
  [[nodiscard]] bool peer_broke_protocol() const { return violated_; }          // why it is lost; the peer does not know yet
  [[nodiscard]] bool peer_left() const { return had_lane_ && lanes_.empty(); }  // there was a lane, and there is none

  void on_lane_up(session::LaneIndex lane) override;
  void on_lane_down(session::LaneIndex lane) override;
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override;
  void on_message(const session::Message& message) override;
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override;
  void on_link_lost(const Error& error) override;

 private:
  struct Early {
    std::optional<session::LaneIndex> lane;  // none: a session message
    session::Message message;
  };
  void take_part(const session::OpenPart& part);
  void keep(Early early);
  void fail_with(Error error);
  void reject(std::string words);  // the peer broke the protocol

  session::LinkHandler* role_ = nullptr;
  bool detached_ = false;
  std::set<session::LaneIndex> lanes_;
  bool had_lane_ = false;
  std::vector<Early> early_;
  session::OpenJoiner joiner_;
  std::optional<session::Open> open_;
  std::optional<session::Opened> opened_;
  bool is_helper_ = false;
  std::optional<session::Queued> queued_;
  uint64_t queue_news_ = 0;
  std::optional<Error> lost_;
  bool was_aborted_ = false;
  bool violated_ = false;
};

}  // namespace ccixfer::program

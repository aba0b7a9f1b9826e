// The way of a helper's pieces to a second receiver (app/session/README.md, "Several receivers of one file system"), from the view
// of the helper: which shared files have a place there, which pieces are on their way, and what has been placed.
// It stands between two sessions that come and go by themselves: the helper's with the first receiver (SecondPathUser, a Source),
// and the one with the second receiver (SecondSource). What was not placed when either is gone is the first receiver's again.
// In: files that the helper reads pieces of, places from the first receiver, and what the second one says. Out: a route for each
// file that has a place, questions and news for the first receiver.
// Protocol thread. Memory: a number for each piece that is not placed yet.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "app/send/piece_route.h"
#include "app/session/messages.h"
#include "core/base/time.h"

namespace ccixfer::send {

inline constexpr Duration second_path_patience = std::chrono::seconds(2);

// What the session with the first receiver hears. It is told in the turn of another session, so it may need one of its own.
class SecondPathUser {
 public:
  virtual ~SecondPathUser() = default;
  virtual void on_second_path_news() = 0;                                            // a turn is due
  virtual void tell_first_receiver(const session::Message& message) = 0;             // AskPlace, Placed
  virtual void on_not_placed(uint64_t index, const std::set<uint64_t>& pieces) = 0;  // these are to be sent to the first receiver
};

// What waits for the lanes of the session with the second receiver.
struct SecondPathLoad {
  size_t segments_ready = 0;
  size_t lanes = 0;
  bool lane_is_idle = false;
  bool is_stuck = false;  // nothing has moved for second_path_patience, though something should
  [[nodiscard]] size_t segments_ahead() const { return lanes > 0 ? 2 * lanes + 2 : 0; }  // so many may wait
};

// The session with the second receiver.
class SecondPathLink {
 public:
  virtual ~SecondPathLink() = default;
  virtual void tell_second_receiver(const session::Message& message) = 0;  // SharedPlace, PlaceEnded
  virtual SegmentSink& sink() = 0;
  virtual const Wrapping& wrapping() = 0;
  virtual SecondPathLoad load() const = 0;
};

class SecondPath final : public PieceRoutes {
 public:
  // `warn`: a line for whoever started the process.
  explicit SecondPath(std::function<void(const std::string& line)> warn) : warn_(std::move(warn)) {}

  void attach(SecondPathUser* user);  // nullptr: the session is over; its files are forgotten
  void attach(SecondPathLink* link);  // nullptr: the same of the second receiver; what is not placed goes to the first one
  [[nodiscard]] bool has_user() const { return user_ != nullptr; }
  // The transfer has ended: the session with the second receiver is to end too.
  void end() { is_over_ = true; }
  [[nodiscard]] bool is_over() const { return is_over_; }
  [[nodiscard]] bool has_unplaced() const;
  [[nodiscard]] SecondPathLoad load() const { return link_ != nullptr ? link_->load() : SecondPathLoad{}; }

  // --- From the session with the first receiver
  // Asks for a place, the first time. nullptr: there is none, or nothing moves there.
  [[nodiscard]] std::shared_ptr<const PieceRoute> route_of(uint64_t index) override;
  void on_place(const session::SharedPlace& place);
  void file_ended(uint64_t index) override;

  void load_changed() {
    if (user_ != nullptr) user_->on_second_path_news();
  }

  // --- From the session with the second receiver. `number`: what the file is called there.
  void piece_goes(uint64_t number, uint64_t piece);
  [[nodiscard]] bool on_state(const session::PlaceState& state);        // false: that makes no sense
  [[nodiscard]] bool on_placed(const session::Placed& placed);          // the same
  [[nodiscard]] bool on_wanted_again(uint64_t number, uint64_t piece);  // it came damaged there; the same

 private:
  struct File {
    uint64_t number = 0;  // 0: the second receiver has not been told of it
    bool is_refused = false;
    std::shared_ptr<PieceRoute> route;  // while it is open
    std::set<uint64_t> unplaced;
  };
  using Files = std::map<uint64_t, File>;
  void close(Files::iterator at);
  [[nodiscard]] Files::iterator find_by(uint64_t number);

  const std::function<void(const std::string& line)> warn_;
  SecondPathUser* user_ = nullptr;
  SecondPathLink* link_ = nullptr;
  Files files_;                             // by the index that the first receiver knows
  std::map<uint64_t, uint64_t> by_number_;  // indices
  uint64_t next_number_ = 1;                // never used again: late news of a file are not taken for another one's
  std::string told_;                        // why the last place was refused: each reason is told once in a row
  bool is_over_ = false;
};

}  // namespace ccixfer::send

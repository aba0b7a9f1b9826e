// The session of a helper with a second receiver: it carries pieces that the helper's Source reads, and nothing else. What the
// second receiver says of them goes to the SecondPath. It ends when the path is over, or with its link: then another one may
// follow. Protocol thread.
#pragma once
#include <memory>
#include <optional>

#include "app/send/rate_cap.h"
#include "app/send/second_path.h"
#include "app/send/segment_sender.h"
#include "app/session/link.h"
#include "app/session/liveness.h"

namespace ccixfer::send {

struct SecondSourceParts {
  session::Link& link;
  ports::Handle pool_region;
  std::shared_ptr<RateCap> rate;
  std::shared_ptr<SecondPath> path;
  std::shared_ptr<session::Compressor> compressor;  // none: nothing is compressed
  Duration disk_patience = forever;                 // as of SourceOptions
};

class SecondSource final : public session::LinkHandler, public SecondPathLink, public SegmentSink {
 public:
  explicit SecondSource(const SecondSourceParts& parts);
  ~SecondSource() override;

  void start(Instant now);
  void turn(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool idle() const { return !sender_.lanes().anything_in_air(); }
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }
  [[nodiscard]] Instant last_progress() const { return liveness_.last_progress(); }
  [[nodiscard]] uint64_t bytes_placed() const { return bytes_placed_; }  // in whole pieces: whether it gets anywhere
  [[nodiscard]] uint64_t bytes_sent() const { return sender_.bytes_sent(); }
  void abort(const Error& error);  // tells the peer

  void tell_second_receiver(const session::Message& message) override;
  SegmentSink& sink() override { return *this; }
  const Wrapping& wrapping() override { return wrapping_; }
  SecondPathLoad load() const override {
    return {sender_.data_ready(), sender_.lanes().live(), sender_.lanes().has_idle_credit(), is_stuck_};
  }
  void add(FilledSegment&& segment) override;

  void on_lane_up(session::LaneIndex lane) override;
  void on_lane_down(session::LaneIndex lane) override;
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override;
  void on_message(const session::Message& message) override;
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override;
  void on_link_lost(const Error& error) override;

 private:
  void ends();
  void look_whether_it_moves();
  void judge(bool makes_sense);
  [[nodiscard]] bool on_resend(const session::Resend& resend);

  session::Link& link_;
  const std::shared_ptr<SecondPath> path_;
  Wrapping wrapping_;
  SegmentSender sender_;
  bool is_attached_ = false;
  bool is_bye_posted_ = false;
  bool had_lane_ = false;
  bool is_stuck_ = false;
  Instant moved_at_{};     // or nothing was to be moved
  bool has_news_ = false;  // a turn is due
  session::Liveness liveness_;
  uint64_t bytes_placed_ = 0;
  Instant now_{};
  std::optional<Error> error_;
};

}  // namespace ccixfer::send

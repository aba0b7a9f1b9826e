// How near a session of a destination is to its end, and how it ended: with an error, or after its
// summary.
// In: what the source says of the end, and what becomes of the link. Out: which of the last steps
// is due.
// Protocol thread.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>

#include "app/session/messages.h"
#include "core/base/result.h"

namespace ccixfer::recv {

class SessionEnd {
 public:
  void start() { is_started_ = true; }
  [[nodiscard]] bool is_started() const { return is_started_; }
  // The first error ends the session; false: it has ended already.
  bool fail(Error reason);
  [[nodiscard]] const Error* error() const { return error_ ? &*error_ : nullptr; }

  // The source said how many entries there are. False: it had said so before. An error: it makes no
  // sense.
  [[nodiscard]] Result<bool> on_end(const session::End& end);
  // The source named something that it could not list. False: it has named more than it may.
  [[nodiscard]] bool on_unlisted();
  [[nodiscard]] uint32_t unlisted_named() const { return unlisted_named_; }
  [[nodiscard]] bool on_bye();  // false: before the summary
  void on_link_lost() { is_link_gone_ = true; }
  // The source's process has ended by its own will: nobody comes back for the summary.
  void on_departure() { is_link_gone_ = is_link_gone_ || is_summary_posted_; }

  // How many entries there are, once that is known and as long as the last sync has not begun.
  [[nodiscard]] std::optional<uint64_t> entries_before_last_sync() const;
  void begin_last_sync() { is_last_sync_running_ = true; }
  void end_last_sync() { is_last_sync_running_ = false; }
  void summary_posted() { is_summary_posted_ = true; }
  [[nodiscard]] bool is_summary_posted() const { return is_summary_posted_; }

  // Nothing is received any more. After the summary everything is durable: then the transfer
  // succeeded, and a link that goes does not change that, whether or not the source knows it.
  [[nodiscard]] bool is_over() const { return error_ || is_bye_said_ || (is_link_gone_ && is_summary_posted_); }
  // What is not durable yet is synced at once: there is nothing to wait for.
  [[nodiscard]] bool is_closing() const { return error_ || is_bye_said_; }
  [[nodiscard]] bool is_link_gone() const { return is_link_gone_; }

 private:
  bool is_started_ = false;
  std::optional<Error> error_;
  std::optional<session::End> end_;
  uint32_t unlisted_named_ = 0;
  bool is_last_sync_running_ = false;
  bool is_summary_posted_ = false;
  bool is_bye_said_ = false;
  bool is_link_gone_ = false;
};

}  // namespace ccixfer::recv

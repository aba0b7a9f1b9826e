// What a helper of a team is told to send (session::ToRead): its entries come from the destination, because the leader of the team
// has listed them. Nothing is listed here; the source is only opened.
// Errors: orders that make no sense are nonsense of the peer. A source that cannot be opened ends the session
// (ListerHandler::on_selection_failed). A file is sent only in the version that the leader listed, of which the order tells: so a
// destination cannot have a file that nobody listed.
// Bounds: entries_outstanding_max entries, as for a source that lists.
#pragma once
#include <memory>
#include <optional>

#include "app/send/entry_table.h"
#include "app/send/file_wants.h"
#include "app/send/jobs.h"
#include "app/send/lister.h"
#include "app/send/reports.h"
#include "app/session/messages.h"
#include "core/base/result.h"

namespace ccixfer::send {

class Orders {
 public:
  Orders(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, FileWants& wants, Reports& reports,
         ListerHandler& handler);

  void open_sources();                                   // once
  [[nodiscard]] bool may_read() const { return open_; }  // the sources are open
  [[nodiscard]] Result<void> on_order(const session::ToRead& order);

 private:
  struct OpenData {
    std::shared_ptr<WalkHold> walk;
    std::optional<Error> error;
  };
  void opened(OpenData& data);

  const std::shared_ptr<Jobs> jobs_;
  const std::shared_ptr<WalkHold> walk_;
  EntryTable& entries_;
  FileWants& wants_;
  Reports& reports_;
  ListerHandler& handler_;
  bool open_ = false;
};

}  // namespace ccixfer::send

#include "app/send/orders.h"

#include <utility>

#include "app/send/answers.h"
#include "app/session/limits.h"

namespace ccixfer::send {

Orders::Orders(std::shared_ptr<Jobs> jobs, std::shared_ptr<WalkHold> walk, EntryTable& entries, FileWants& wants, Reports& reports,
               ListerHandler& handler)
    : jobs_(std::move(jobs)), walk_(std::move(walk)), entries_(entries), wants_(wants), reports_(reports), handler_(handler) {}

void Orders::open_sources() {
  auto data = std::make_unique<OpenData>();
  data->walk = walk_;
  jobs_->submit(
      *this, std::move(data),
      [](ports::FileSystem& files, OpenData& job, Jobs&) {
        Result<void> opened = (*job.walk)->select(files);
        if (opened) opened = (*job.walk)->open_roots(files);
        if (!opened) job.error = opened.error();
      },
      &Orders::opened);
}

void Orders::opened(OpenData& data) {
  if (data.error) return handler_.on_selection_failed(*data.error);
  open_ = true;
}

Result<void> Orders::on_order(const session::ToRead& order) {
  for (const session::ToRead::File& file : order.files) {
    if (entries_.used() >= session::entries_outstanding_max) return nonsense("more files to read than may be outstanding");
    if (entries_.find(file.index) != nullptr) return nonsense("a file to read that is being read");
    if (file.is_shared && is_small(file.size_bytes)) return nonsense("a file to read in part that has no pieces");
    Entry& entry = entries_.at(entries_.add(file.index, 0));
    entry.type = session::EntryType::file;
    entry.listed = {file.size_bytes, {file.mtime_s, file.mtime_ns}, file.version, true};
    entry.path = file.path;
    reports_.listed(file.size_bytes);
    reports_.wanted(entry);
    if (file.is_shared) {
      wants_.want_compared(entry, false);
    } else if (Result<void> wanted = wants_.want_whole(entry); !wanted) {
      return wanted;
    }
  }
  return {};
}

}  // namespace ccixfer::send

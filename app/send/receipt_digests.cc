#include "app/send/receipt_digests.h"

namespace ccixfer::send {

using session::EntryType;

namespace {

receipt::EntryType type_of(EntryType type) {
  if (type == EntryType::directory) return receipt::EntryType::directory;
  return type == EntryType::symlink ? receipt::EntryType::link : receipt::EntryType::file;
}

bool is_listed(EntryType type) { return type == EntryType::file || type == EntryType::directory || type == EntryType::symlink; }

}  // namespace

void ReceiptDigests::take(Entry& entry) {
  if (sink_ == nullptr || entry.stream || !is_listed(entry.type)) return;
  if (entry.path.empty() && entry.type == EntryType::directory) return;  // the session's path itself
  ++entry.jobs;
  waiting_.push_back(entries_.slot_of(entry));
}

std::unique_ptr<ReceiptDigests::Data> ReceiptDigests::next_batch() {
  auto data = std::make_unique<Data>();
  data->walk = walk_;
  uint64_t bytes = 0;
  while (!waiting_.empty() && data->items.size() < receipt_batch_entries_max) {
    const Entry& entry = entries_.at(waiting_.front());
    bytes += entry.listed.size_bytes;
    if (!data->items.empty() && bytes > receipt_batch_bytes_max) break;
    Item& item = data->items.emplace_back();
    item.slot = waiting_.front();
    item.place = (*walk_)->place(entry.source, entry.path);
    item.name = item.place.name;
    item.version = entry.listed.version;
    item.mode = entry.mode;
    item.entry.type = type_of(entry.type);
    item.entry.path = entry.path.empty() ? Walk::own_name((*walk_)->given(entry.source)) : entry.path;
    waiting_.pop_front();
  }
  return data;
}

void ReceiptDigests::start() {
  while (!waiting_.empty() && running_ < receipt_jobs_max) {
    ++running_;
    jobs_->submit(*this, next_batch(), &ReceiptDigests::describe, &ReceiptDigests::described);
  }
}

void ReceiptDigests::describe(ports::FileSystem& files, Data& data, Jobs& jobs) {
  for (Item& item : data.items) {
    SourcePlace place = item.place;
    place.name = item.name;
    receipt::Subject subject;
    subject.type = item.entry.type;
    subject.directory = place.directory;  // of a link
    subject.below = item.name;
    subject.open = [&](bool is_directory) {
      // A directory of the list may be a link itself: it is on the way to what is in it.
      if (is_directory && place.follow == Follow::on_the_way) place.follow = Follow::all;
      return open_place(files, place).fd;
    };
    subject.is_wanted = [&](const ports::FileStat& stat) { return version_of(stat) == item.version; };
    subject.step = [&] { jobs.steps().fetch_add(1, std::memory_order_relaxed); };
    item.is_there = receipt::describe(files, subject, item.entry);
    if (item.entry.type != receipt::EntryType::link) item.entry.mode = item.mode;
  }
}

void ReceiptDigests::described(Data& data) {
  --running_;
  for (Item& item : data.items) {
    // A file that is gone was delivered all the same; nobody can say any more what was in it.
    if (!item.entry.path.empty()) item.is_there ? sink_->on_entry(item.entry) : sink_->on_unlisted();
    static_cast<void>(entries_.job_ended(entries_.at(item.slot)));
  }
}

}  // namespace ccixfer::send

#include "transports/sim/sim_inode.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace ccixfer::sim {

size_t Inode::read(MutableBytes into, uint64_t offset_bytes, bool from_disk) const {
  if (offset_bytes >= now.size_bytes) return 0;
  const size_t total = static_cast<size_t>(std::min<uint64_t>(into.size(), now.size_bytes - offset_bytes));
  for (size_t done = 0; done < total;) {
    const size_t index = static_cast<size_t>((offset_bytes + done) / page_bytes);
    const size_t at = static_cast<size_t>((offset_bytes + done) % page_bytes);
    const size_t count = std::min(page_bytes - at, total - done);
    const std::vector<PagePtr>& shown = from_disk && !dirty[index] ? durable_pages : pages;
    if (index < shown.size() && shown[index] != nullptr) {
      std::memcpy(into.data() + done, shown[index]->data() + at, count);
    } else {
      std::memset(into.data() + done, 0, count);
    }
    done += count;
  }
  return total;
}

void Inode::set_size(uint64_t size_bytes) {
  now.size_bytes = size_bytes;
  pages.resize(static_cast<size_t>((size_bytes + page_bytes - 1) / page_bytes));
  if (dirty.size() < pages.size()) dirty.resize(pages.size());
}

void Inode::write(Bytes from, uint64_t offset_bytes, bool keeps_no_zeros) {
  if (from.empty()) return;
  if (offset_bytes + from.size() > now.size_bytes) set_size(offset_bytes + from.size());
  for (size_t done = 0; done < from.size();) {
    const size_t index = static_cast<size_t>((offset_bytes + done) / page_bytes);
    const size_t at = static_cast<size_t>((offset_bytes + done) % page_bytes);
    const size_t count = std::min(page_bytes - at, from.size() - done);
    PagePtr& page = pages[index];
    const Bytes part = from.subspan(done, count);
    if (keeps_no_zeros && count == page_bytes && std::ranges::all_of(part, [](std::byte byte) { return byte == std::byte{0}; })) {
      page = nullptr;
      dirty[index] = true;
      done += count;
      continue;
    }
    if (page == nullptr) {
      page = std::make_shared<Page>();
    } else if (page.use_count() > 1) {
      page = std::make_shared<Page>(*page);  // the other one is on the disk
    }
    std::memcpy(page->data() + at, part.data(), count);
    dirty[index] = true;
    done += count;
  }
}

void Inode::truncate(uint64_t size_bytes) {
  const bool shrinks = size_bytes < now.size_bytes;
  set_size(size_bytes);
  const size_t tail = static_cast<size_t>(size_bytes % page_bytes);
  if (shrinks && tail != 0 && pages.back() != nullptr) {  // what was cut off must read as zeroes if the file grows again
    pages.back() = std::make_shared<Page>(*pages.back());
    std::fill(pages.back()->begin() + static_cast<std::ptrdiff_t>(tail), pages.back()->end(), std::byte{0});
    dirty[pages.size() - 1] = true;
  }
}

size_t Inode::allocated_pages() const {
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(), [](const PagePtr& page) { return page != nullptr; }));
}

void Inode::sync() {
  durable_pages.resize(pages.size());
  for (size_t i = 0; i < pages.size(); ++i) {
    if (dirty[i]) durable_pages[i] = pages[i];
  }
  dirty.assign(pages.size(), false);
  durable = now;
}

void Inode::sync(Random& random, double decay_chance) {
  const std::vector<bool> written = dirty;
  sync();
  for (size_t i = 0; i < durable_pages.size(); ++i) {
    if (!written[i] || durable_pages[i] == nullptr || !random.chance(decay_chance)) continue;
    auto decayed = std::make_shared<Page>(*durable_pages[i]);
    const uint64_t used_bytes = std::min<uint64_t>(page_bytes, now.size_bytes - i * page_bytes);
    (*decayed)[static_cast<size_t>(random.below(used_bytes))] ^= std::byte{1} << static_cast<int>(random.below(8));
    durable_pages[i] = std::move(decayed);
  }
}

bool Inode::is_dirty() const { return std::find(dirty.begin(), dirty.end(), true) != dirty.end(); }

void Inode::lose_dirty() { dirty.assign(dirty.size(), false); }

void Inode::evict(size_t first_page, size_t end_page) {
  for (size_t i = first_page; i < std::min(end_page, pages.size()); ++i) {
    if (!dirty[i]) pages[i] = i < durable_pages.size() ? durable_pages[i] : nullptr;
  }
}

void Inode::crash(Random& random) {
  enum class Fate : uint8_t { drop, keep, mix };
  const uint64_t draw = random.below(10);
  const Fate fate = draw < 4 ? Fate::drop : draw < 7 ? Fate::keep : Fate::mix;
  const std::vector<PagePtr> written = std::move(pages);
  const Meta wanted = now;
  pages = durable_pages;
  now = durable;
  if (fate == Fate::keep) {
    now = wanted;
  } else if (fate == Fate::mix) {
    if (random.chance(0.5)) now.mode = wanted.mode;
    if (random.chance(0.5)) now.mtime = wanted.mtime;
    if (random.chance(0.5)) now.uid = wanted.uid, now.gid = wanted.gid;
    if (random.chance(0.7)) {
      now.size_bytes =
          random.between(std::min(wanted.size_bytes, durable.size_bytes), std::max(wanted.size_bytes, durable.size_bytes));
    }
  }
  pages.resize(std::max(pages.size(), written.size()));
  for (size_t i = 0; i < written.size(); ++i) {
    if (fate == Fate::drop || i >= dirty.size() || !dirty[i] || written[i] == nullptr) continue;
    if (fate == Fate::keep || random.chance(0.4)) {
      pages[i] = written[i];
    } else if (random.chance(0.5)) {  // torn: some sectors of the new page
      auto torn = pages[i] == nullptr ? std::make_shared<Page>() : std::make_shared<Page>(*pages[i]);
      const size_t cut = static_cast<size_t>(random.below(page_bytes / sector_bytes)) * sector_bytes;
      std::memcpy(torn->data(), written[i]->data(), cut);
      pages[i] = std::move(torn);
    }
  }
  dirty.assign(pages.size(), true);
  const uint64_t size_bytes = now.size_bytes;
  now.size_bytes = pages.size() * page_bytes;
  truncate(size_bytes);
  dirty.assign(pages.size(), true);
  sync();
}

void Journal::apply(const Operation& operation) {
  for (const Change& change : operation) {
    if (change.node != nullptr) {
      change.directory->durable_entries[change.name] = change.node;
    } else {
      change.directory->durable_entries.erase(change.name);
    }
  }
}

template <typename Wanted>
void Journal::apply_wanted(Wanted&& wanted) {
  std::set<std::pair<const Inode*, std::string>> names;  // looked up only: its order (by address) is never walked
  std::vector<bool> chosen(log_.size());
  for (size_t i = log_.size(); i-- > 0;) {
    const Operation& operation = log_[i];
    chosen[i] = wanted(operation, i) || std::any_of(operation.begin(), operation.end(), [&](const Change& change) {
                  return names.contains({change.directory.get(), change.name});
                });
    if (!chosen[i]) continue;
    for (const Change& change : operation) names.emplace(change.directory.get(), change.name);
  }
  std::vector<Operation> rest;
  for (size_t i = 0; i < log_.size(); ++i) {
    if (chosen[i]) {
      apply(log_[i]);
    } else {
      rest.push_back(std::move(log_[i]));
    }
  }
  log_ = std::move(rest);
}

void Journal::sync_all() {
  for (const Operation& operation : log_) apply(operation);
  log_.clear();
}

void Journal::sync_directory(const Inode& directory, bool ordered) {
  bool reached = false;
  apply_wanted([&](const Operation& operation, size_t) {
    const bool concerns =
        std::any_of(operation.begin(), operation.end(), [&](const Change& change) { return change.directory.get() == &directory; });
    reached = reached || concerns;
    return concerns || (ordered && reached);
  });
}

void Journal::crash(Random& random) {
  const uint64_t draw = random.below(10);
  if (draw < 4) {
    log_.clear();
  } else if (draw < 6) {
    sync_all();
  } else if (draw < 8) {
    const size_t kept = static_cast<size_t>(random.below(log_.size() + 1));
    apply_wanted([&](const Operation&, size_t index) { return index < kept; });
  } else {
    apply_wanted([&](const Operation&, size_t) { return random.chance(0.5); });
  }
  log_.clear();
}

}  // namespace ccixfer::sim

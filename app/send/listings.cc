#include "app/send/listings.h"

#include <algorithm>

#include "core/base/check.h"

namespace ccixfer::send {

void Listings::add(std::shared_ptr<WalkBatch> batch, bool needs_digests) {
  Listing listing;
  listing.batch = std::move(batch);
  listing.ready = !needs_digests;
  listings_.push_back(std::move(listing));
  drop_announced();
}

std::optional<uint64_t> Listings::next_without_digests() const {
  for (size_t i = 0; i < listings_.size(); ++i) {
    if (!listings_[i].ready && !listings_[i].digests_started) return first_number_ + i;
  }
  return std::nullopt;
}

std::shared_ptr<WalkBatch> Listings::start_digests(uint64_t number) {
  CHECK(number >= first_number_ && number - first_number_ < listings_.size());
  Listing& listing = listings_[number - first_number_];
  listing.digests_started = true;
  return listing.batch;
}

void Listings::digested(uint64_t number) {
  CHECK(number >= first_number_ && number - first_number_ < listings_.size());
  listings_[number - first_number_].ready = true;
  drop_announced();
}

const WalkRecord* Listings::front() const {
  if (listings_.empty() || !listings_.front().ready) return nullptr;
  return &listings_.front().batch->records[listings_.front().next];
}

std::string_view Listings::front_path() const { return listings_.front().batch->path(*front()); }
std::string_view Listings::front_more() const { return listings_.front().batch->more(*front()); }

void Listings::pop() {
  CHECK(front() != nullptr);
  ++listings_.front().next;
  drop_announced();
}

// A batch without records is one too: it tells that sources are over.
void Listings::drop_announced() {
  while (!listings_.empty() && listings_.front().ready && listings_.front().next == listings_.front().batch->records.size()) {
    sources_announced_ = std::max(sources_announced_, listings_.front().batch->sources_walked);
    listings_.drop_front();
    ++first_number_;
  }
}

}  // namespace ccixfer::send

// Batches of the walk on their way to the announcer.
#include "app/send/listings.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace ccixfer::send {
namespace {

std::shared_ptr<WalkBatch> batch_of(const std::vector<std::string>& paths, uint32_t sources_walked = 0) {
  auto batch = std::make_shared<WalkBatch>();
  for (const std::string& path : paths) {
    WalkRecord record;
    record.path_at = static_cast<uint32_t>(batch->text.size());
    record.path_bytes = static_cast<uint32_t>(path.size());
    batch->text += path;
    batch->records.push_back(record);
  }
  batch->sources_walked = sources_walked;
  return batch;
}

std::string take_all(Listings& listings) {
  std::string all;
  for (; listings.front() != nullptr; listings.pop()) all += listings.front_path();
  return all;
}

TEST_CASE("listings__records__come_in_the_order_of_the_walk") {
  Listings listings;
  CHECK(listings.front() == nullptr);
  listings.add(batch_of({"a", "b"}), false);
  listings.add(batch_of({"c"}), false);
  CHECK(listings.batches() == 2);
  CHECK(take_all(listings) == "abc");
  CHECK(listings.batches() == 0);
}

TEST_CASE("listings__digests_are_read__the_batch_and_those_behind_it_wait") {
  Listings listings;
  listings.add(batch_of({"a"}), false);
  listings.add(batch_of({"b"}), true);
  listings.add(batch_of({"c"}), true);
  listings.add(batch_of({"d"}), false);
  CHECK(listings.next_without_digests() == 1);
  CHECK(listings.start_digests(1)->text == "b");
  CHECK(listings.next_without_digests() == 2);
  CHECK(listings.start_digests(2)->text == "c");
  CHECK_FALSE(listings.next_without_digests());
  CHECK(take_all(listings) == "a");
  listings.digested(2);
  CHECK(listings.front() == nullptr);
  listings.digested(1);
  CHECK(take_all(listings) == "bcd");
}

TEST_CASE("listings__batch_without_records__tells_that_sources_are_over") {
  Listings listings;
  listings.add(batch_of({"a"}, 1), false);
  listings.add(batch_of({}, 3), false);
  CHECK(listings.sources_announced() == 0);
  listings.pop();
  CHECK(listings.sources_announced() == 3);
  listings.add(batch_of({}, 4), false);
  CHECK(listings.sources_announced() == 4);
  CHECK(listings.batches() == 0);
}

}  // namespace
}  // namespace ccixfer::send

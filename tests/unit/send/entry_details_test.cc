// What an entry tells of its owners.
#include "app/send/entry_details.h"

#include <catch2/catch.hpp>

#include "app/send/walk.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {
namespace {

// Whom a number belongs to elsewhere must not depend on how many owners came before.
TEST_CASE("entry_details__more_owners_than_are_remembered__each_entry_of_theirs_says_the_name") {
  WatchedFiles files;
  send::EntryDetails details({.owner_names = true}, 2);
  const auto told = [&](uint32_t uid, uint32_t gid) {
    send::WalkBatch batch;
    send::WalkRecord& record = batch.records.emplace_back();
    record.stat.uid = uid;
    record.stat.gid = gid;
    CHECK(details.add(files, batch, {}).empty());
    return std::string(batch.user(record)) + ":" + std::string(batch.group(record));
  };
  const std::string both = told(1, 1);
  CHECK(both.size() > 2);
  CHECK(told(1, 1) == ":");
  for (int i = 0; i < 3; ++i) CHECK(told(2, 2) == both);
  CHECK(told(0, 0) == ":");
}

}  // namespace
}  // namespace ccixfer::send_test

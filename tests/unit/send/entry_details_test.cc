// What an entry tells of its owners, and of attributes that cannot be read.
#include "app/send/entry_details.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "app/send/walk.h"
#include "app/session/messages.h"
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

// An access control list that is lost without a word opens the file to whom it kept out.
TEST_CASE("entry_details__file_cannot_be_opened_for_its_attributes__says_so_unless_it_is_gone_or_unreadable") {
  WatchedFiles files;
  int error = 0;
  files.hook = [&error](std::string_view call, std::string_view) { return call == "open" ? error : 0; };
  send::EntryDetails details({.extended = session::option_acls});
  const auto told = [&](const send::EntryDetails::Place& place) {
    send::WalkBatch batch;
    batch.records.emplace_back();
    return details.add(files, batch, place);
  };
  for (const int passing : {-EIO, -EMFILE, -ENFILE, -ENOMEM, -ESTALE}) {
    CAPTURE(passing);
    error = passing;
    const std::string problem = "its extended attributes cannot be read: " + std::generic_category().message(-passing);
    CHECK(told({.name = "f"}) == problem);
    CHECK(told({.error = passing}) == problem);
  }
  for (const int lasting : {-ENOENT, -ENOTDIR, -ELOOP, -EXDEV, -EACCES}) {
    CAPTURE(lasting);
    error = lasting;
    CHECK(told({.name = "f"}).empty());
    CHECK(told({.error = lasting}).empty());
  }
}

}  // namespace
}  // namespace ccixfer::send_test

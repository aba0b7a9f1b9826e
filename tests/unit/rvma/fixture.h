// One table with mailbox 1 (key 7) and two buffers of 64 bytes. For the tests that are named after a row of the reference's lists.
#pragma once
#include <catch2/catch.hpp>

#include "tests/unit/rvma/place.h"

namespace ccixfer::rvma {

struct Fixture {
  Counters counters;
  MailboxTable table;
  std::vector<std::byte> a = fill(64, 0xee);
  std::vector<std::byte> b = fill(64, 0xee);

  explicit Fixture(MailboxOptions options = {.key = 7}, MailboxTable::Limits limits = {}) : table(limits, counters) {
    REQUIRE(table.open(1, options) == Status::success);
  }
  void post_both() {
    REQUIRE(table.post(1, a, 100) == Status::success);
    REQUIRE(table.post(1, b, 101) == Status::success);
  }
  Status begin(const ports::RemoteRef& ref, uint64_t length, uint64_t connection = 1) {
    return table.begin_write(connection, ref, length).status;
  }
  Status put(const Put& put, uint64_t offset, const std::vector<std::byte>& bytes, uint64_t connection = 1) {
    return place(table, put.at(offset), bytes, connection).status;
  }
};

}  // namespace ccixfer::rvma

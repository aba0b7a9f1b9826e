// The books on packets, as a pure machine; and the codecs of what this room alone sends.
#include "transports/rdma/credits.h"

#include "tests/unit/rdma/rig.h"

namespace ccixfer::rdma::testing {
namespace {

TEST_CASE("credits__both_ends__never_more_than_the_window_and_never_stuck") {
  Credits here, there;
  here.open(64);
  there.open(16);
  for (int round = 0; round < 1000; ++round) {
    uint32_t sent = 0;
    while (here.any()) {
      here.spend();
      REQUIRE(there.taken());
      ++sent;
    }
    REQUIRE(sent <= 16);
    REQUIRE_FALSE(there.taken());
    REQUIRE(there.due());
    REQUIRE(here.granted(there.give()));
    REQUIRE(there.owed() == 0);
    REQUIRE(here.any());
  }
}

TEST_CASE("credits__one_packet_at_a_time__waits_for_a_packet_to_ride_with_until_half_is_owed") {
  Credits credits;
  credits.open(16);
  REQUIRE(credits.give() == 12);  // the first ones are there from the beginning
  for (int i = 0; i < 7; ++i) {
    REQUIRE(credits.taken());
    REQUIRE_FALSE(credits.due());
  }
  REQUIRE(credits.taken());
  REQUIRE(credits.due());
  REQUIRE(credits.give() == 8);
  REQUIRE_FALSE(credits.due());
}

TEST_CASE("credits__more_than_anybody_gives__is_noticed") {
  Credits credits;
  REQUIRE(credits.granted(credits_held_max - credits_first));
  REQUIRE_FALSE(credits.granted(1));
}

TEST_CASE("packets__records__come_back_as_they_were_and_nothing_shorter_does") {
  Announced announced;
  announced.operation = 3 << 16 | 5;
  announced.total_bytes = 77;
  announced.remote.handle = {ports::HandleKind::mailbox, 3, 0, 4, 5, 6, 7};
  announced.remote.offset_bytes = 8;
  announced.remote.put = {1, 2, 3, 4, 5};
  announced.address = UINT64_MAX - 77;
  announced.key = 0xdeadbeef;
  const bool write = GENERATE(true, false);
  Buffer bytes;
  wire::Writer out(bytes);
  encode(out, announced, write);
  REQUIRE(record_kind(bytes) == (write ? RecordKind::announced_write : RecordKind::announced_read));
  REQUIRE(bytes.size() == record_bytes(*record_kind(bytes)));
  const auto back = decode_announced(bytes);
  REQUIRE(back);
  REQUIRE(back->operation == announced.operation);
  REQUIRE(back->total_bytes == announced.total_bytes);
  REQUIRE(back->remote.handle == announced.remote.handle);
  REQUIRE(back->remote.offset_bytes == announced.remote.offset_bytes);
  REQUIRE(back->remote.put.base_offset_bytes == 4);
  REQUIRE(back->address == announced.address);
  REQUIRE(back->key == announced.key);
  for (size_t size = 0; size < bytes.size(); ++size) REQUIRE_FALSE(decode_announced(Bytes(bytes).first(size)));
  bytes.push_back({});
  REQUIRE_FALSE(decode_announced(bytes));
  Buffer told;
  wire::Writer progress(told);
  encode(progress, Progress{4, 5});
  REQUIRE(decode_progress(told)->done_bytes == 5);
  for (size_t size = 0; size < told.size(); ++size) REQUIRE_FALSE(decode_progress(Bytes(told).first(size)));
}

}  // namespace
}  // namespace ccixfer::rdma::testing

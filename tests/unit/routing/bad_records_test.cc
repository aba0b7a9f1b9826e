// How many bad records a link may bring, and for how long a peer that brought more is not let in.
#include "routing/router/bad_records.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

const Instant start = Instant{} + std::chrono::seconds(100);

}  // namespace

TEST_CASE("bad_record_count__more_than_a_window_may_have__is_one_too_many") {
  BadRecordCount count;
  for (uint32_t i = 0; i < link_offences_max; ++i) CHECK(count.add(start));
  CHECK_FALSE(count.add(start + link_offences_window - Duration(1)));
  CHECK(count.add(start + link_offences_window));  // another window
}

TEST_CASE("bad_record_count__logged__once") {
  BadRecordCount count;
  CHECK(count.first_to_log());
  CHECK_FALSE(count.first_to_log());
}

TEST_CASE("cut_off_peers__a_peer__is_out_for_its_time_and_no_other_is") {
  CutOffPeers peers;
  peers.add("a", start);
  CHECK(peers.has("a", start + cut_off_time - Duration(1)));
  CHECK_FALSE(peers.has("a", start + cut_off_time));
  CHECK_FALSE(peers.has("b", start));
}

TEST_CASE("cut_off_peers__too_many__the_first_to_be_let_in_again_is_forgotten") {
  CutOffPeers peers;
  for (size_t i = 0; i < cut_off_max; ++i) peers.add(fmt::format("{}", i), start + Duration((i + 1) % cut_off_max));
  peers.add("one more", start + Duration(cut_off_max));
  CHECK_FALSE(peers.has(fmt::format("{}", cut_off_max - 1), start));
  CHECK(peers.has("0", start));
  CHECK(peers.has("one more", start));
}

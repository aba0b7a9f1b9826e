// How many bad records a peer may bring, for how long one that brought more is not let in, and what is logged.
#include "routing/router/bad_peers.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

const Instant start = Instant{} + std::chrono::seconds(100);

void cut_off(BadPeers& peers, const std::string& peer, Instant now) {
  for (uint32_t i = 0; i <= peer_offences_max; ++i) static_cast<void>(peers.add(peer, now));
}

}  // namespace

TEST_CASE("bad_peers__more_than_a_window_may_have__is_one_too_many") {
  BadPeers peers;
  for (uint32_t i = 0; i < peer_offences_max; ++i) CHECK_FALSE(peers.add("a", start).cut_off);
  CHECK_FALSE(peers.add("b", start).cut_off);  // another has a count of its own
  CHECK_FALSE(peers.is_cut_off("a", start));
  CHECK(peers.add("a", start + peer_offences_window - Duration(1)).cut_off);
  CHECK(peers.is_cut_off("a", start + peer_offences_window));
}

TEST_CASE("bad_peers__in_the_next_window__counted_anew") {
  BadPeers peers;
  for (uint32_t i = 0; i < peer_offences_max; ++i) static_cast<void>(peers.add("a", start));
  CHECK_FALSE(peers.add("a", start + peer_offences_window).cut_off);
}

TEST_CASE("bad_peers__logged__once_until_it_was_cut_off") {
  BadPeers peers;
  CHECK(peers.add("a", start).to_log);
  CHECK_FALSE(peers.add("a", start).to_log);
  CHECK_FALSE(peers.add("a", start + 2 * peer_offences_window).to_log);
  CHECK(peers.add("b", start).to_log);
  cut_off(peers, "a", start + 2 * peer_offences_window);
  CHECK_FALSE(peers.add("a", start + 2 * peer_offences_window + cut_off_time - Duration(1)).to_log);
  CHECK(peers.add("a", start + 2 * peer_offences_window + 2 * cut_off_time).to_log);
}

TEST_CASE("bad_peers__cut_off__is_out_for_its_time_and_no_other_is") {
  BadPeers peers;
  cut_off(peers, "a", start);
  CHECK(peers.is_cut_off("a", start + cut_off_time - Duration(1)));
  CHECK_FALSE(peers.is_cut_off("a", start + cut_off_time));
  CHECK_FALSE(peers.is_cut_off("b", start));
  CHECK_FALSE(peers.add("a", start + cut_off_time).cut_off);  // it begins anew
}

TEST_CASE("bad_peers__too_many_cut_off__the_first_to_be_let_in_again_is_forgotten") {
  BadPeers peers;
  for (size_t i = 0; i < bad_peers_max; ++i) cut_off(peers, fmt::format("{}", i), start + Duration((i + 1) % bad_peers_max));
  cut_off(peers, "one more", start + Duration(bad_peers_max));
  CHECK_FALSE(peers.is_cut_off(fmt::format("{}", bad_peers_max - 1), start));
  CHECK(peers.is_cut_off("0", start));
  CHECK(peers.is_cut_off("one more", start));
}

TEST_CASE("bad_peers__many_that_are_only_counted__push_out_nobody_who_is_cut_off") {
  BadPeers peers;
  cut_off(peers, "rogue", start);
  for (size_t i = 0; i < 2 * bad_peers_max; ++i) static_cast<void>(peers.add(fmt::format("{}", i), start + Duration(i)));
  CHECK(peers.is_cut_off("rogue", start));
}

TEST_CASE("peers_logged__many__each_once_and_no_more_than_the_bound") {
  PeersLogged logged;
  for (size_t i = 0; i < peers_logged_max; ++i) CHECK(logged.first(fmt::format("{}", i)));
  CHECK_FALSE(logged.first("0"));
  CHECK_FALSE(logged.first("one more"));
}

// Congestion control by losses.
#include "core/reliability/new_reno.h"

#include <catch2/catch.hpp>
#include <vector>

#include "core/reliability/send_ledger.h"

using namespace ccixfer;
using namespace std::chrono_literals;
using reliability::NewReno;
using reliability::SentPacket;

namespace {
const Instant start{std::chrono::seconds(100)};
constexpr uint32_t datagram = 1000;

void acked(NewReno& control, uint32_t bytes, Instant sent_at, bool limited) {
  SentPacket packet;
  packet.sent_at = sent_at;
  packet.bytes = bytes;
  packet.limited = limited;
  reliability::AckReport report;
  report.now = sent_at;
  report.packets = {&packet, 1};
  control.acked(report);
}

void lost(NewReno& control, Instant sent_at, Instant now) {
  SentPacket packet;
  packet.sent_at = sent_at;
  packet.bytes = datagram;
  control.lost({now, {&packet, 1}, 0});
}

}  // namespace

TEST_CASE("new_reno__acks__the_window_doubles_each_round_trip_then_grows_by_one_datagram") {
  NewReno control(datagram);
  REQUIRE(control.window_bytes() == 10 * datagram);
  REQUIRE(control.is_doubling());
  for (int i = 0; i < 10; ++i) acked(control, datagram, start, true);
  REQUIRE(control.window_bytes() == 20 * datagram);
  lost(control, start, start + 10ms);
  REQUIRE(control.window_bytes() == 10 * datagram);
  REQUIRE_FALSE(control.is_doubling());
  for (int i = 0; i < 10; ++i) acked(control, datagram, start + 11ms, true);
  REQUIRE(control.window_bytes() == 11 * datagram);
}

TEST_CASE("new_reno__many_losses_of_one_flight__one_reduction") {
  NewReno control(datagram);
  lost(control, start, start + 10ms);
  lost(control, start + 1ms, start + 11ms);
  lost(control, start + 10ms, start + 20ms);
  REQUIRE(control.window_bytes() == 5 * datagram);
  acked(control, datagram, start + 5ms, true);  // of that flight: no growth
  REQUIRE(control.window_bytes() == 5 * datagram);
  lost(control, start + 11ms, start + 21ms);  // of the next one
  REQUIRE(control.window_bytes() == 5 * datagram / 2);
}

TEST_CASE("new_reno__bounds__never_below_two_datagrams_never_above_the_maximum") {
  NewReno control(datagram);
  for (int i = 1; i < 100; ++i) lost(control, start + i * 10ms, start + i * 10ms + 5ms);
  REQUIRE(control.window_bytes() == 2 * datagram);
  control.timed_out();
  REQUIRE(control.window_bytes() == 2 * datagram);
  NewReno other(datagram);
  for (int i = 0; i < 3000; ++i) acked(other, 100 * datagram, start, true);
  REQUIRE(other.window_bytes() == reliability::in_flight_bytes_max);
}

TEST_CASE("new_reno__timed_out__begins_with_two_datagrams_and_doubles_to_half_of_what_was") {
  NewReno control(datagram);
  control.timed_out();
  REQUIRE(control.window_bytes() == 2 * datagram);
  REQUIRE(control.is_doubling());
  acked(control, 3 * datagram, start, true);
  REQUIRE(control.window_bytes() == 5 * datagram);
  REQUIRE_FALSE(control.is_doubling());
}

TEST_CASE("new_reno__grown_in_part_then_lost_or_timed_out__needs_a_whole_window_to_grow") {
  for (const bool timed_out : {false, true}) {
    NewReno control(datagram);
    lost(control, start, start + 10ms);
    acked(control, 4 * datagram, start + 11ms, true);  // of 5 for one more
    if (timed_out) {
      control.timed_out();
    } else {
      lost(control, start + 12ms, start + 20ms);
    }
    const uint64_t half = 5 * datagram / 2;
    if (timed_out) acked(control, static_cast<uint32_t>(half - control.window_bytes()), start + 21ms, true);  // doubling
    REQUIRE(control.window_bytes() == half);
    acked(control, static_cast<uint32_t>(half) - 1, start + 21ms, true);
    REQUIRE(control.window_bytes() == half);
    acked(control, 1, start + 21ms, true);
    REQUIRE(control.window_bytes() == half + datagram);
  }
}

TEST_CASE("new_reno__the_application_is_the_limit__no_growth") {
  NewReno control(datagram);
  for (int i = 0; i < 10; ++i) acked(control, datagram, start, false);
  REQUIRE(control.window_bytes() == 10 * datagram);
}

TEST_CASE("new_reno__one_ack_of_many_packets__each_counts_by_its_own_instant_and_limit") {
  NewReno control(datagram);
  std::vector<SentPacket> packets(3);
  for (SentPacket& packet : packets) packet.bytes = datagram;
  packets[0].sent_at = start;  // of a flight that was paid for
  packets[1].sent_at = packets[2].sent_at = start + 2ms;
  packets[0].limited = packets[1].limited = true;
  lost(control, start, start + 1ms);
  lost(control, start + 2ms, start + 3ms);
  REQUIRE(control.window_bytes() == 5 * datagram / 2);
  for (SentPacket& packet : packets) packet.sent_at += 2ms;
  reliability::AckReport report;
  report.packets = packets;
  control.acked(report);
  control.acked(report);
  REQUIRE(control.window_bytes() == 5 * datagram / 2);  // 2 datagrams count, of 2.5 for one more
  control.acked(report);
  REQUIRE(control.window_bytes() == 7 * datagram / 2);
}

TEST_CASE("new_reno__pace__the_window_in_a_round_trip_and_some_more") {
  NewReno control(datagram);
  REQUIRE(control.pace_bytes_per_s() == 10 * datagram * 2ull * 1'000'000);  // no round trip is known
  control.round_trip(30ms, 20ms, start);
  REQUIRE(control.pace_bytes_per_s() == 2 * 10 * datagram * 50);  // doubling: twice the window
  lost(control, start, start + 10ms);
  REQUIRE(control.pace_bytes_per_s() == 5 * datagram * 50 * 5 / 4);
  control.round_trip(24h, 24h, start);
  REQUIRE(control.pace_bytes_per_s() == reliability::pace_min_bytes_per_s);
}

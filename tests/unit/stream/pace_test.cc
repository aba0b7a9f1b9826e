// How long chunks are: what the network takes in a while.
#include "transports/stream/pace.h"

#include "tests/unit/stream/rig.h"

namespace ccixfer::stream::testing {
namespace {

using namespace std::chrono_literals;

TEST_CASE("pace__bytes_between_two_moments_of_the_same_level__are_its_rate_until_the_next") {
  Pace pace;
  Instant now{1s};
  pace.moved(4'000'000, now);  // into an empty buffer
  pace.level(now += 2ms);
  REQUIRE(pace.bytes_in(1s) == 0);
  for (int i = 0; i < 10; ++i) pace.moved(100'000, now += 100us);
  REQUIRE(pace.bytes_in(1s) == 0);
  pace.level(now);
  REQUIRE(pace.bytes_in(1ms) == 1'000'000);
  pace.moved(50, now);
  pace.level(now + 10us);  // too short to say anything
  REQUIRE(pace.bytes_in(1ms) == 1'000'000);
  pace.moved(999'950, now);
  pace.level(now += 1s);
  REQUIRE(pace.bytes_in(1ms) == 1'000);
  pace.moved(1u << 24, now += 2ms);  // more than any buffer takes, so the level does not matter
  REQUIRE(pace.bytes_in(1ms) == 1u << 23);
}

// b writes to a peer over a network that takes 512 KiB in so long.
struct Writing {
  Rig rig;
  RawPeer peer{rig, "p"};
  ConnectionId id = peer.open();

  Writing() { rig.hub.capacity = 512u << 10; }
  void write(Bytes source, uint64_t token, const ports::FillProgress* fill = nullptr) {
    ports::RmaRequest request;
    request.remote.handle.kind = ports::HandleKind::region;
    request.source = source;
    request.fill = const_cast<ports::FillProgress*>(fill);
    REQUIRE(rig.b.transport->rma(id, request, token) == Status::success);
  }
  void pass(Duration time, size_t until_bytes) {
    for (int i = 0; i < 100 && peer.got.size() < until_bytes; ++i) {
      rig.now += time;
      rig.settle();
      peer.read();
    }
  }
  [[nodiscard]] std::vector<uint64_t> chunks() const {
    std::vector<uint64_t> sizes;
    for (size_t at = 0; const auto prefix = wire::decode_prefix(Bytes(peer.got).subspan(at));) {
      if (prefix->kind == wire::Kind::rma_write) sizes.push_back(prefix->payload_bytes);
      at += prefix->header_bytes + prefix->payload_bytes;
      if (at >= peer.got.size()) break;
    }
    return sizes;
  }
};

std::vector<uint64_t> chunks_at(Duration time) {
  Writing w;
  const Buffer source(6u << 20);
  w.write(source, 5);
  w.pass(time, source.size());
  return w.chunks();
}

TEST_CASE("engine__chunks__are_what_the_network_moves_in_a_millisecond_within_bounds") {
  const std::vector<uint64_t> fast = chunks_at(250us);  // 2 GB/s
  REQUIRE(fast.front() == chunk_bytes_min);
  REQUIRE(*std::max_element(fast.begin(), fast.end()) > 1u << 20);
  const std::vector<uint64_t> faster = chunks_at(10us);
  REQUIRE(*std::max_element(faster.begin(), faster.end()) <= wire::chunk_bytes_max);
  const std::vector<uint64_t> slow = chunks_at(100ms);
  REQUIRE(slow.size() == ((6u << 20) + chunk_bytes_min - 1) / chunk_bytes_min);
}

TEST_CASE("engine__chunks_of_what_still_arrives__no_longer_than_what_is_here") {
  Writing w;
  const Buffer source(4u << 20);
  w.write(source, 5);
  w.pass(250us, SIZE_MAX);
  REQUIRE(w.chunks().back() > 2 * chunk_bytes_min);
  w.peer.got.clear();
  ports::FillProgress fill;
  fill.placed_bytes = chunk_bytes_min + 1000;
  w.write(source, 6, &fill);
  w.pass(250us, chunk_bytes_min);
  REQUIRE(w.chunks() == std::vector<uint64_t>{chunk_bytes_min});
}

}  // namespace
}  // namespace ccixfer::stream::testing

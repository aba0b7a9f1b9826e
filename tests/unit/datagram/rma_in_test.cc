// The RMA operations of a peer that takes nothing of what it is sent.
#include "transports/datagram/rma_in.h"

#include <map>

#include "tests/unit/datagram/rig.h"

namespace ccixfer::datagram::testing {
namespace {

class CountingEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return state_ += 0x9e3779b97f4a7c15; }

 private:
  uint64_t state_ = 1;
};

TEST_CASE("rma_in__operations_begun_anew_without_end__wait_once_a_slot_and_the_newest_is_answered") {
  constexpr uint32_t slots = 4;
  CountingEntropy entropy;
  Counters counters;
  cci::MemoryTable target(entropy, counters);
  Buffer memory(5000, std::byte{1});
  RmaIn in;
  in.open(slots, 1000, 1);
  RmaReadFrame good;
  good.total_bytes = memory.size();
  good.remote.handle = target.register_region(Bytes(memory));
  RmaReadFrame bad = good;
  bad.remote.handle.key ^= 1;
  RmaWriteFrame refused;
  refused.total_bytes = 500;
  refused.remote = bad.remote;
  const Buffer data(500);
  refused.bytes = data;
  for (uint64_t generation = 1; generation < 10'000; ++generation) {
    for (uint64_t slot = 0; slot < slots; ++slot) {
      const uint64_t id = generation << 16 | slot;
      good.operation = bad.operation = refused.operation = id;
      switch ((generation + slot) % 3) {
        case 0:
          REQUIRE(in.read(good, target));
          break;
        case 1:
          REQUIRE(in.read(bad, target));
          break;
        default:
          REQUIRE(in.write(refused, target));
      }
    }
    REQUIRE(in.waiting() <= 2 * slots);
  }
  // What comes out at last is of the newest operation of each slot, once.
  std::vector<std::byte> out_bytes;
  std::map<uint64_t, size_t> answers, pieces;
  while (in.reply_due()) {
    wire::Writer out(out_bytes);
    ++answers[in.take_reply(out, 0).b];
  }
  while (in.fragment_due()) {
    wire::Writer out(out_bytes);
    const auto piece = in.take_fragment(out, 0, target);
    REQUIRE(piece);
    ++pieces[piece->b];
  }
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const uint64_t id = uint64_t{9'999} << 16 | slot;
    const bool is_good = (9'999 + slot) % 3 == 0;
    CHECK(answers[id] == (is_good ? 0 : 1));
    CHECK(pieces[id] == (is_good ? 5 : 0));
    // Lost on the way, the answer is due again, and once.
    if (is_good) continue;
    in.reply_lost(id);
    in.reply_lost(id);
    REQUIRE(in.reply_due());
    wire::Writer out(out_bytes);
    CHECK(in.take_reply(out, 0).b == id);
    CHECK_FALSE(in.reply_due());
  }
  CHECK(answers.size() + pieces.size() == 2 * slots);
  CHECK(in.waiting() == 0);
  in.abandon(target);
}

}  // namespace
}  // namespace ccixfer::datagram::testing

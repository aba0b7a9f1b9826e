// Connections over paths whose length they have to find out: what is sent arrives, in packets as long as the path carries, also
// when it comes to carry less in the middle of it.
#include <algorithm>

#include "core/base/hash.h"
#include "core/reliability/path_mtu.h"
#include "tests/unit/datagram/rig.h"
#include "transports/datagram/rma_in.h"
#include "transports/datagram/rma_out.h"

namespace ccixfer::datagram::testing {
namespace {

using ports::Attribute;
using reliability::Congestion;

sim::DatagramLinkOptions carries(uint32_t path_bytes) {
  sim::DatagramLinkOptions link;
  link.delay_min = link.delay_max = 5ms;
  link.rate_bytes_per_s = 50'000'000;
  link.queue_bytes = link.receive_bytes = 64u << 20;
  link.datagram_bytes = datagram_bytes_max;
  link.path_bytes = path_bytes;
  return link;
}

// Two ends, each of which writes to, reads from and speaks to the other.
class Traffic {
 public:
  Traffic(Rig& rig, size_t bytes) : rig_(rig), data_(filled(bytes, 5)), written_(bytes), read_(bytes) {
    to_ = rig.b.memory.register_region(written_, cci::access_write);
    from_ = rig.b.memory.register_region(Bytes(data_));
  }
  void begin() {
    for (size_t at = 0; at < data_.size(); at += piece_bytes) {
      const size_t size = std::min(piece_bytes, data_.size() - at);
      ports::RmaRequest write;
      write.remote.handle = to_;
      write.remote.offset_bytes = at;
      write.source = Bytes(data_).subspan(at, size);
      REQUIRE(rig_.a.rma(rig_.at_a, write, tokens_++) == Status::success);
      ports::RmaRequest read;
      read.write = false;
      read.remote.handle = from_;
      read.remote.offset_bytes = at;
      read.destination = MutableBytes(read_).subspan(at, size);
      REQUIRE(rig_.a.rma(rig_.at_a, read, tokens_++) == Status::success);
    }
  }
  void end() {
    REQUIRE(rig_.run([&] { return rig_.a.sink.completions.size() >= tokens_; }, 300s));
    for (const auto& completion : rig_.a.sink.completions) REQUIRE(completion.status == Status::success);
    CHECK(xxh3_64(written_) == xxh3_64(data_));
    CHECK(xxh3_64(read_) == xxh3_64(data_));
  }

 private:
  static constexpr size_t piece_bytes = 1 << 17;
  Rig& rig_;
  Buffer data_, written_, read_;
  ports::Handle to_, from_;
  uint64_t tokens_ = 0;
};

// Enough traffic for a whole search, and none under way after it.
void search_long(Rig& rig) {
  const Instant end = after(rig.world.now(), 3s);
  while (rig.world.now() < end) {
    rig.a.sink.completions.clear();
    Traffic little(rig, 10'000);
    little.begin();
    little.end();
  }
  rig.a.sink.completions.clear();
}

// The longest datagram of each end from now on.
struct Lengths {
  explicit Lengths(Rig& rig) {
    rig.fabric.stand_between([this](const std::string& from, std::vector<std::byte>& bytes) {
      size_t& longest = from == "a" ? of_a : of_b;
      longest = std::max(longest, bytes.size());
      return true;
    });
  }
  size_t of_a = 0, of_b = 0;
};

}  // namespace

TEST_CASE("path_length__paths_of_1280_1500_and_9000__data_arrive_in_packets_that_fill_them") {
  for (const Congestion congestion : {Congestion::new_reno, Congestion::bbr}) {
    for (const uint32_t path : {packet_bytes_base, 1232u, 1252u, 1472u, 8972u}) {
      CAPTURE(path);
      Rig rig(carries(path), {}, 1, congestion);
      rig.connect();
      Traffic traffic(rig, 2 << 20);
      traffic.begin();
      traffic.end();
      search_long(rig);
      Traffic more(rig, 1 << 20);
      Lengths lengths(rig);
      more.begin();
      more.end();
      CHECK(lengths.of_a <= path);
      CHECK(lengths.of_a + 8 > path);  // chunks are multiples of 8
      CHECK(lengths.of_b <= path);
      CHECK(lengths.of_b + 8 > path);
      // Nothing but probes was dropped, and they are no sign of congestion.
      CHECK(rig.a.counters.get(Counter::datagrams_lost) == 0);
      CHECK(rig.b.counters.get(Counter::datagrams_lost) == 0);
    }
  }
}

TEST_CASE("path_length__the_path_narrows_in_the_middle__everything_arrives_all_the_same") {
  struct Row {
    uint32_t before, after;
  };
  for (const Congestion congestion : {Congestion::new_reno, Congestion::bbr}) {
    for (const Row row : {Row{8972, 1472}, Row{8972, 1252}, Row{8972, packet_bytes_base}, Row{1472, 1252}}) {
      CAPTURE(row.before, row.after);
      Rig rig(carries(row.before), {}, 1, congestion);
      rig.connect();
      Traffic traffic(rig, 16 << 20);
      traffic.begin();
      rig.pass(150ms);
      REQUIRE(rig.a.sink.completions.size() < 256);
      rig.fabric.set_link(carries(row.after));
      const Instant narrowed = rig.world.now();
      traffic.end();
      CHECK(rig.world.now() - narrowed < 10s);
      search_long(rig);
      Lengths lengths(rig);
      Traffic more(rig, 1 << 20);
      more.begin();
      more.end();
      CHECK(lengths.of_a <= row.after);
      CHECK(lengths.of_a + 8 > row.after);
      CHECK(lengths.of_b <= row.after);
      CHECK(lengths.of_b + 8 > row.after);
    }
  }
}

// As Ethernet, where an interface of MTU 9,000 may be behind a switch of 1,500: the keepalive's short packets get through all
// along.
TEST_CASE("path_length__a_path_that_was_said_to_be_known_carries_less__everything_arrives") {
  constexpr uint32_t known = 0;
  for (const Congestion congestion : {Congestion::new_reno, Congestion::bbr}) {
    for (const bool rested : {false, true}) {
      CAPTURE(rested);
      Rig rig(carries(known), {}, 1, congestion);
      rig.connect();
      if (rested) rig.pass(3 * rest_after);
      std::vector<size_t> long_ones;
      rig.fabric.stand_between([&](const std::string& from, const std::vector<std::byte>& bytes) {
        if (from == "a" && bytes.size() >= packet_bytes_base) long_ones.push_back(bytes.size());
        return true;
      });
      Traffic little(rig, 9'500);
      little.begin();
      little.end();
      rig.fabric.stand_between(nullptr);
      CHECK(long_ones.size() == 1);  // nothing is searched for
      CHECK(long_ones[0] + 8 > datagram_bytes_max);
      if (rested) rig.pass(3 * rest_after);
      rig.a.sink.completions.clear();
      rig.fabric.set_link(carries(1472));
      Traffic traffic(rig, 1 << 20);
      traffic.begin();
      traffic.end();
      search_long(rig);
      Lengths lengths(rig);
      Traffic more(rig, 1 << 20);
      more.begin();
      more.end();
      CHECK(lengths.of_a <= 1472);
      CHECK(lengths.of_a + 8 > 1472);
      CHECK(lengths.of_b <= 1472);
    }
  }
}

TEST_CASE("path_length__a_lossy_path_narrows_and_widens__everything_arrives") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    sim::DatagramLinkOptions link = carries(8972);
    link.loss_chance = 0.02;
    link.reorder_chance = link.duplicate_chance = link.corrupt_chance = 0.01;
    Rig rig(link, {}, seed, seed % 2 == 0 ? Congestion::bbr : Congestion::new_reno);
    rig.connect();
    Traffic traffic(rig, 4 << 20);
    traffic.begin();
    for (const uint32_t path : {1252u, 8972u, 1200u}) {
      rig.pass(300ms);
      link.path_bytes = path;
      rig.fabric.set_link(link);
    }
    traffic.end();
  }
}

TEST_CASE("path_length__messages_longer_than_a_packet__arrive_once_and_in_order") {
  for (const Attribute attribute : {Attribute::reliable_ordered, Attribute::reliable_unordered}) {
    for (const double loss : {0.0, 0.1}) {
      sim::DatagramLinkOptions link = carries(1252);
      link.loss_chance = loss;
      Rig rig(link);
      rig.connect(attribute);
      const uint32_t longest = rig.a.transport->max_send_bytes();
      REQUIRE(longest == message_bytes_max(datagram_bytes_max));
      std::vector<Buffer> sent;
      for (uint32_t i = 0; i < 40; ++i) {
        sent.push_back(filled(i % 4 == 0 ? 10 : longest - i * 100, i + 1));
        REQUIRE(rig.a.send(rig.at_a, sent.back(), i) == Status::success);
        if (i == 20) rig.pass(50ms);
      }
      REQUIRE(rig.run([&] { return rig.a.sink.completions.size() == sent.size(); }));
      std::vector<Buffer> got(rig.b.sink.messages.begin(), rig.b.sink.messages.end());
      if (attribute == Attribute::reliable_unordered) {
        std::sort(got.begin(), got.end());
        std::sort(sent.begin(), sent.end());
      }
      CHECK((got == sent));
    }
  }
}

TEST_CASE("path_length__unreliable_messages_in_parts__arrive_whole_or_not_at_all") {
  sim::DatagramLinkOptions link = carries(1252);
  link.loss_chance = 0.1;
  Rig rig(link);
  rig.connect(Attribute::unreliable);
  const Buffer message = filled(8000, 3);
  for (uint64_t i = 0; i < 200; ++i) {
    REQUIRE(rig.a.send(rig.at_a, message, i) == Status::success);
    rig.pass(10ms);
  }
  rig.pass(1s);
  CHECK(rig.b.sink.messages.size() > 20);
  CHECK(rig.b.sink.messages.size() < 180);
  for (const Buffer& got : rig.b.sink.messages) REQUIRE((got == message));
  CHECK(rig.b.transport->held_bytes() <= InMessages::unreliable_in_parts_max * message.size());
}

TEST_CASE("path_length__a_message_in_parts_finds_no_buffer__it_comes_again") {
  Rig rig(carries(1252));
  rig.connect();
  rig.b.sink.buffers = 0;
  const Buffer message = filled(5000, 3);
  REQUIRE(rig.a.send(rig.at_a, message, 1) == Status::success);
  rig.pass(100ms);
  REQUIRE(rig.b.sink.messages.empty());
  rig.b.sink.buffers = SIZE_MAX;
  REQUIRE(rig.run([&] { return !rig.b.sink.messages.empty(); }));
  CHECK((rig.b.sink.messages[0] == message));
}

TEST_CASE("path_length__a_connection_that_sends_nothing__probes_nothing") {
  Rig rig(carries(8972));
  rig.connect();
  rig.pass(1s);
  Lengths lengths(rig);
  rig.pass(3600s);  // keepalive goes on
  CHECK(lengths.of_a < packet_bytes_base);
  CHECK(lengths.of_b < packet_bytes_base);
}

TEST_CASE("path_length__the_path_becomes_wider__longer_packets_go_when_the_raise_timer_has_passed") {
  Rig rig(carries(1472));
  rig.connect();
  const auto longest = [&] {
    search_long(rig);
    Lengths lengths(rig);
    Traffic traffic(rig, 1 << 20);
    traffic.begin();
    traffic.end();
    rig.fabric.stand_between(nullptr);
    return lengths.of_a;
  };
  CHECK(longest() > 1464);
  rig.fabric.set_link(carries(8972));
  CHECK(longest() <= 1472);
  rig.pass(reliability::raise_after);
  CHECK(longest() > 8964);
}

TEST_CASE("path_length__parts_that_cannot_be__end_the_connection") {
  const Buffer part(part_bytes, std::byte{1});
  using Frames = std::function<void(wire::Writer&)>;
  const std::vector<Frames> bad = {
      [&](wire::Writer& out) {
        encode(out, MessagePartFrame{0, 0, 5000, 0, part});
      },  // longer than agreed: 4,000
      [&](wire::Writer& out) {
        encode(out, MessagePartFrame{0, 1, 2000, 0, part});
      },  // of a flight to come
      [&](wire::Writer& out) {
        encode(out, MessagePartFrame{1024, 0, 2000, 0, part});
      },
      [&](wire::Writer& out) {
        encode(out, MessagePartFrame{0, 0, 2000, 1, part});
      },  // beyond its end
      [&](wire::Writer& out) {
        encode(out, MessagePartFrame{0, 0, 1024, 0, part});
      },  // the whole
      [&](wire::Writer& out) {
        encode(out, MessagePartFrame{0, 0, 2000, 0, part});
        encode(out, MessagePartFrame{0, 0, 3000, 0, part});
      },
      [&](wire::Writer& out) {
        encode(out, RmaWriteFrame{1 << 16, 9000, 0, {}, {}, 1023});
      },
      [&](wire::Writer& out) {
        encode(out, RmaWriteFrame{1 << 16, 9000, 0, {}, {}, 8192});
      },
      [&](wire::Writer& out) {
        encode(out, RmaReadFrame{1 << 16, 9000, {}, 8192});
      },
  };
  for (const Frames& frames : bad) {
    Rig rig;
    RawPeer peer(rig, "x");
    peer.open();
    peer.frames(frames);
    CHECK(rig.b.sink.disconnected.size() == 1);
  }
}

TEST_CASE("path_length__parts_that_are_never_completed__are_held_within_the_bound") {
  Rig rig;
  RawPeer peer(rig, "x");
  peer.open();
  const Buffer part(part_bytes, std::byte{1});
  for (uint64_t sequence = 1; sequence < 16; ++sequence) {
    peer.frames([&](wire::Writer& out) { encode(out, MessagePartFrame{sequence, 0, 4000, 0, part}); });
    peer.frames([&](wire::Writer& out) { encode(out, MessagePartFrame{sequence, 0, 4000, 0, part}); });
  }
  CHECK(rig.b.transport->held_bytes() == 15 * 4000);
  // A refusal and the end forget them.
  peer.frames([](wire::Writer& out) { encode(out, EndNoticeFrame{false, {Status::disconnected, "bye"}}); });
  rig.pass(1s);
  CHECK(rig.b.transport->held_bytes() == 0);
}

// ---- The machines of RMA when the path comes to carry less than their operations were cut for.

namespace {

struct Cut {
  Cut() {
    out.open(4, 8912);
    in.open(4, 8912, 1);
  }
  std::optional<std::pair<reliability::Carried, Buffer>> take() {
    if (!out.chunk_due()) return std::nullopt;
    Buffer bytes;
    const size_t size = out.next_chunk_frame_bytes();
    wire::Writer writer(bytes);
    const reliability::Carried carried = out.take_chunk(writer, 0);
    REQUIRE(bytes.size() == size);
    return std::pair{carried, bytes};
  }
  bool arrives(const Buffer& bytes) {
    wire::Reader reader(bytes);
    const Frame frame = decode_frame(reader).value();
    if (const auto* write = std::get_if<RmaWriteFrame>(&frame)) return in.write(*write, memory);
    return in.write_more(std::get<RmaWriteMoreFrame>(frame), memory);
  }
  void push(size_t size) {
    source = filled(size, 9);
    target = Buffer(size);
    ports::RmaRequest request;
    request.remote.handle = memory.register_region(target, cci::access_write);
    request.source = source;
    out.push(request, 1, 0);
    out.start(0);
  }
  sim::SimEntropy entropy{1};
  Counters counters;
  cci::MemoryTable memory{entropy, counters};
  Buffer source, target;
  RmaOut out;
  RmaIn in;
};

}  // namespace

TEST_CASE("path_length__chunks_that_became_too_long__go_in_parts_and_are_placed_once") {
  for (const size_t size : {size_t{8000}, size_t{8900}, size_t{20'000}, size_t{8912 * 3}}) {
    CAPTURE(size);
    Cut cut;
    cut.push(size);
    std::vector<std::pair<reliability::Carried, Buffer>> whole;
    while (auto piece = cut.take()) whole.push_back(std::move(*piece));
    cut.out.fit(1144);
    for (const auto& [carried, bytes] : whole) cut.out.chunk_lost(carried.b, {carried.c, carried.a});
    std::vector<std::pair<reliability::Carried, Buffer>> parts;
    while (auto piece = cut.take()) {
      REQUIRE(piece->second.size() <= 1144 + chunk_frame_bytes_short);
      parts.push_back(std::move(*piece));
    }
    REQUIRE(parts.size() >= size / part_bytes);
    // Half of them arrive; a whole chunk comes late; then the other half.
    for (size_t i = 0; i < parts.size(); i += 2) REQUIRE(cut.arrives(parts[i].second));
    REQUIRE_FALSE(cut.in.reply_due());
    REQUIRE(cut.arrives(parts[0].second));  // again
    // What was placed is not placed again.
    wire::Reader reader(parts[2].second);
    const uint64_t placed = std::get<RmaWriteMoreFrame>(decode_frame(reader).value()).offset_bytes;
    cut.target[placed] ^= std::byte{1};
    REQUIRE(cut.arrives(whole.back().second));
    for (size_t i = 1; i < parts.size(); i += 2) REQUIRE(cut.arrives(parts[i].second));
    REQUIRE(cut.in.reply_due());
    cut.target[placed] ^= std::byte{1};
    CHECK((cut.target == cut.source));
    // Those parts that are lost go out again, and no others.
    REQUIRE_FALSE(cut.out.chunk_acked(parts[0].first.b, {parts[0].first.c, parts[0].first.a}));
    cut.out.chunk_lost(parts.back().first.b, {parts.back().first.c, parts.back().first.a});
    const auto again = cut.take();
    REQUIRE(again);
    CHECK((again->second == parts.back().second));
    CHECK_FALSE(cut.take());
  }
}

}  // namespace ccixfer::datagram::testing

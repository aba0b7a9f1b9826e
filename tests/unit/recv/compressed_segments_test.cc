// Compressed segments at the destination: written as what they were before, and a source that lies is found out.
#include <catch2/catch.hpp>

#include "app/session/compression.h"
#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv {

using namespace test;

namespace {

std::string text_of(Bytes data) { return {reinterpret_cast<const char*>(data.data()), data.size()}; }

struct CompressedRig : Rig {
  // A segment of that content, compressed; `plain_bytes`: what its trailer says; 0: the truth.
  void put(session::SegmentHeader header, Bytes plain, uint32_t plain_bytes = 0, bool damaged = false) {
    REQUIRE(session->run([&] { return source().has_credit(); }));
    session::Compressor compressor(3);
    const session::Workspaces::Lease lease(compressor.workspaces());
    const Bytes data = compressor.compress(plain, lease);
    REQUIRE_FALSE(data.empty());
    auto& [lane_index, lane] = *source().lanes.begin();
    header.session = session->source_link->session();
    header.lane_session = lane.open.lane_session;
    header.n = lane.next_n++;
    header.data_bytes = static_cast<uint32_t>(data.size());
    header.plain_bytes = plain_bytes != 0 ? plain_bytes : static_cast<uint32_t>(plain.size());
    header.compressed_check = xxh3_64(data);
    header.hash = xxh3_128(plain);
    std::vector<std::byte> segment(data.size() + session::segment_trailer_bytes);
    std::copy(data.begin(), data.end(), segment.begin());
    static_cast<void>(session::seal_hashed(segment, header));
    if (damaged) segment[data.size() / 2] ^= std::byte{1};
    source().put_raw(lane_index, std::move(segment), header.n);
  }
  static session::SegmentHeader piece_header(uint64_t number) {
    session::SegmentHeader header;
    header.kind = session::SegmentKind::piece;
    header.index = 0;
    header.sequence = number;
    header.file_version = 5;
    return header;
  }
};

std::vector<std::byte> pack_of(uint64_t index, const std::string& content) {
  std::vector<std::byte> data(session::pack_record_bytes + content.size());
  session::put_pack_record(data, {index, static_cast<uint32_t>(content.size()), xxh3_128(as_bytes(content)), as_bytes(content)});
  std::copy(as_bytes(content).begin(), as_bytes(content).end(), data.begin() + session::pack_record_bytes);
  return data;
}

}  // namespace

TEST_CASE("compressed_segments__pieces_and_packs__arrive_as_what_they_were") {
  CompressedRig rig;
  const auto data = pattern(piece + 1000, 1);
  const std::string small(5000, 'x');
  rig.announce({file_entry("big", data.size()), file_entry("small", small.size())});
  rig.put(CompressedRig::piece_header(0), Bytes(data).first(piece), 0, true);
  REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 1; }));  // damage is no fault of the source's
  rig.put(CompressedRig::piece_header(0), Bytes(data).first(piece));
  rig.put(CompressedRig::piece_header(1), Bytes(data).subspan(piece));
  session::SegmentHeader pack;
  pack.kind = session::SegmentKind::pack;
  pack.count = 1;
  rig.put(pack, pack_of(1, small), 0, true);
  REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 2; }));
  rig.put(pack, pack_of(1, small));
  rig.session->source_link->post(end_of(0));
  REQUIRE(rig.run_until_result(0));
  REQUIRE(rig.run_until_result(1));
  CHECK((rig.temporary.read("big") == text_of(data)));
  CHECK((rig.temporary.read("small") == small));
  rig.finish(2);
}

TEST_CASE("compressed_segments__sizes_that_lie__end_the_session_as_a_fault_of_the_source") {
  CompressedRig rig;
  const bool is_pack = GENERATE(false, true);
  const auto data = pattern(piece + 1000, 1);
  rig.announce({file_entry("f", is_pack ? 5000 : data.size())});
  session::SegmentHeader header = CompressedRig::piece_header(0);
  if (is_pack) {
    header = {};
    header.kind = session::SegmentKind::pack;
    header.count = 1;
    rig.put(header, pack_of(0, std::string(5000, 'x')), 9000);
  } else {
    rig.put(header, Bytes(data).first(piece - 1), piece);
  }
  REQUIRE(rig.session->run([&] { return rig.source().aborted != nullptr; }));
  CHECK(rig.source().aborted->kind == ErrorKind::protocol);
  CHECK_FALSE(rig.temporary.has("f"));
}

}  // namespace ccixfer::recv

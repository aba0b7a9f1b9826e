// Entries segments are judged once each and in order, however they arrive.
#include "app/recv/entry_queue.h"

#include <catch2/catch.hpp>
#include <map>

#include "app/session/limits.h"
#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

// A segment of that many bytes counts as that many entries; `answers` has what else is said of one.
struct Rig final : EntriesHandler {
  test::JobRig rig;
  test::FakeSession session;
  std::vector<std::pair<size_t, uint64_t>> judged;   // bytes, first index
  std::map<size_t, JudgedSegment> answers;           // by bytes
  std::vector<session::SegmentHeader> first;         // of those that no key opens
  std::vector<std::pair<uint64_t, size_t>> decided;  // first index, entries
  EntryQueue queue{rig.jobs,
                   [this](MutableBytes segment, const session::SegmentHeader& header, uint64_t first_index, bool may_be_sealed) {
                     judged.emplace_back(segment.size(), first_index);
                     if (!may_be_sealed) first.push_back(header);
                     if (const auto at = answers.find(segment.size()); at != answers.end()) return at->second;
                     JudgedSegment all;
                     all.decisions->resize(segment.size());
                     return all;
                   },
                   *this, session};
  void on_decided(uint64_t first_index, std::vector<Decision> decisions) override {
    decided.emplace_back(first_index, decisions.size());
  }
  void receive(uint64_t sequence, size_t bytes, uint64_t n = 0) {
    const std::vector<std::byte> segment(bytes);
    session::SegmentHeader header;
    header.sequence = sequence;
    header.lane_session = 3;
    header.n = n;
    queue.receive(segment, header);
  }
  void turn() {
    queue.turn();
    rig.pool.reap();
  }
};

TEST_CASE("entry_queue__warning_of_the_judge__is_told") {
  Rig rig;
  rig.answers[10].decisions->resize(1);
  rig.answers[10].warning = "an older tree";
  rig.receive(0, 10);
  rig.receive(1, 20);
  rig.turn();
  rig.turn();
  CHECK(rig.session.warnings == std::vector<std::string>{"an older tree"});
}

TEST_CASE("entry_queue__segments_out_of_order_and_twice__are_judged_once_each_in_order") {
  Rig rig;
  rig.receive(1, 20);
  rig.receive(1, 20);
  rig.turn();
  CHECK(rig.judged.empty());
  rig.receive(0, 10);
  rig.queue.turn();
  CHECK(rig.queue.is_running());
  rig.receive(0, 10);  // it is in its job
  rig.queue.turn();
  CHECK(rig.rig.jobs.running() == 1);
  rig.rig.pool.reap();
  CHECK_FALSE(rig.queue.is_running());
  rig.receive(0, 10);
  rig.turn();
  rig.turn();
  CHECK(rig.judged == std::vector<std::pair<size_t, uint64_t>>{{10, 0}, {20, 10}});
  CHECK(rig.decided == std::vector<std::pair<uint64_t, size_t>>{{0, 10}, {10, 20}});
  CHECK(rig.queue.next_index() == 30);
}

TEST_CASE("entry_queue__first_entries__are_judged_unsealed_in_place_of_the_first_segment") {
  Rig rig;
  rig.queue.receive_first({});
  rig.turn();
  CHECK(rig.judged.empty());
  const std::vector<std::byte> bytes(10, std::byte{3});
  rig.queue.receive_first({4, bytes});
  rig.receive(1, 20);
  rig.receive(0, 30);  // they are here
  rig.turn();
  rig.turn();
  rig.receive(0, 30);
  rig.turn();
  CHECK(rig.judged == std::vector<std::pair<size_t, uint64_t>>{{10, 0}, {20, 10}});
  REQUIRE(rig.first.size() == 1);
  CHECK(rig.first[0].kind == session::SegmentKind::entries);
  CHECK(rig.first[0].index == 0);
  CHECK(rig.first[0].count == 4);
  CHECK(rig.first[0].data_bytes == 10);
  CHECK(rig.first[0].hash == xxh3_128(bytes));
}

TEST_CASE("entry_queue__damaged_segment__its_put_is_asked_for_and_the_next_copy_counts") {
  Rig rig;
  rig.answers[10].is_damaged = true;
  rig.receive(0, 10, 42);
  rig.turn();
  CHECK(rig.session.puts == std::vector<std::pair<uint64_t, uint64_t>>{{3, 42}});
  CHECK(rig.queue.next_index() == 0);
  rig.receive(0, 11);
  rig.turn();
  CHECK(rig.queue.next_index() == 11);
}

TEST_CASE("entry_queue__error__is_a_fault_of_the_peer_only_where_the_peer_is_to_blame") {
  const std::map<ErrorKind, int> refusals{{ErrorKind::protocol, 1}, {ErrorKind::not_authorised, 1}, {ErrorKind::no_space, 0}};
  for (const auto& [kind, count] : refusals) {
    Rig rig;
    rig.answers[10].decisions = fail(kind, "why");
    rig.receive(0, 10);
    rig.turn();
    REQUIRE(rig.session.errors.size() == 1);
    CHECK(rig.session.errors[0].kind == kind);
    CHECK(rig.session.refusals == count);
    CHECK(rig.decided.empty());
  }
}

TEST_CASE("entry_queue__session_that_failed_meanwhile__nothing_is_decided") {
  Rig rig;
  rig.receive(0, 10);
  rig.queue.turn();
  rig.session.fail({ErrorKind::network, ""});
  rig.rig.pool.reap();
  CHECK(rig.decided.empty());
  CHECK(rig.queue.next_index() == 0);
}

TEST_CASE("entry_queue__bounds__what_is_beyond_one_refuses_the_session") {
  const uint64_t fit = entries_held_bytes_max / entries_segment_bytes_max;
  Rig far;
  far.receive(session::entries_outstanding_max, 1);
  CHECK(far.session.errors.empty());
  far.receive(session::entries_outstanding_max + 1, 1);
  CHECK(far.session.refusals == 1);
  Rig large;
  large.receive(1, entries_segment_bytes_max);
  CHECK(large.session.errors.empty());
  large.receive(2, entries_segment_bytes_max + 1);
  CHECK(large.session.refusals == 1);
  Rig many;
  for (uint64_t i = 0; i < fit; ++i) many.receive(i, entries_segment_bytes_max);
  CHECK(many.session.errors.empty());
  many.turn();  // the memory of one that was judged is free again
  many.receive(fit, entries_segment_bytes_max);
  CHECK(many.session.errors.empty());
  many.receive(fit + 1, entries_segment_bytes_max);
  CHECK(many.session.refusals == 1);
}

}  // namespace
}  // namespace ccixfer::recv

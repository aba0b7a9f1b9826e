// Packs become staged files; damage, failures and failed sessions.
#include "app/recv/pack_stager.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "tests/unit/recv/parts.h"
#include "tests/unit/session/whole_segment.h"

namespace ccixfer::recv {
namespace {

struct Rig {
  test::JobRig rig;
  test::FakeSession session;
  test::FakeFiles files;
  memory::Pool pool{session::segment_bytes_max, 2};
  Inbox inbox;
  bool damaged = false;
  std::function<void(PackItem&)> outcome = [](PackItem& item) { item.staged = "staged"; };
  std::vector<uint64_t> staged;
  bool is_sealed = false;
  int opened = 0;
  explicit Rig(bool sealed = false) : is_sealed(sealed) {}
  PackStager stager{rig.jobs,
                    {[this](MutableBytes segment, const session::SegmentHeader& header) {
                       CHECK(session_test::peek(segment)->n == header.n);
                       ++opened;
                       return !damaged;
                     },
                     [this](std::vector<PackItem>& items) {
                       for (PackItem& item : items) {
                         staged.push_back(item.task->index);
                         outcome(item);
                       }
                     }},
                    is_sealed,
                    inbox,
                    files,
                    session};
  // Each file has three bytes. `count`: as the trailer says.
  void receive(const std::vector<uint64_t>& indices, uint32_t count) {
    std::vector<std::byte> data;
    const Bytes content = as_bytes("abc");
    for (const uint64_t index : indices) {
      const size_t at = data.size();
      data.resize(at + session::pack_record_bytes + 3);
      session::put_pack_record(MutableBytes(data).subspan(at), {index, 3, xxh3_128(content), content});
      std::copy(content.begin(), content.end(), data.end() - 3);
    }
    session::SegmentHeader header;
    header.kind = session::SegmentKind::pack;
    header.count = count;
    header.n = 8;
    test::Segment segment = test::segment_of(pool, header, data);
    inbox.add(std::move(segment.arrival));
    stager.receive(inbox.take(), segment.header);
  }
};

TEST_CASE("pack_stager__files_that_wait__are_staged_and_go_to_the_committer") {
  Rig rig;
  FileInWork& one = rig.files.add(1, 3);
  rig.files.add(2, 3);
  rig.files.add(3, 3).fail({});
  rig.receive({1, 2, 3, 9}, 4);
  CHECK(one.is_held());
  CHECK_FALSE(one.takes_content());
  CHECK(rig.inbox.held() == 1);
  rig.receive({1}, 1);  // again, while it is being written: only its hash is of interest
  rig.rig.pool.reap();
  CHECK(rig.staged == std::vector<uint64_t>{1, 2});
  REQUIRE(rig.files.staged.size() == 2);
  CHECK(rig.files.staged[0].staged == "staged");
  CHECK(rig.files.staged[0].size_bytes == 3);
  CHECK_FALSE(rig.files.staged[0].file);
  CHECK_FALSE(one.is_held());
  CHECK(rig.inbox.held() == 0);
}

TEST_CASE("pack_stager__a_record_of_another_length_than_was_announced__is_damage_and_nothing_is_written") {
  const uint64_t announced = GENERATE(1u, 4u);
  Rig rig;
  FileInWork& before = rig.files.add(1, 3);
  FileInWork& file = rig.files.add(2, announced);
  rig.files.add(3, size_unknown);
  rig.receive({1, 2}, 2);
  rig.rig.pool.reap();
  CHECK(rig.staged.empty());
  CHECK_FALSE(before.is_held());
  CHECK(before.takes_content());
  CHECK(file.takes_content());
  CHECK(rig.session.puts.size() == 1);
  CHECK(rig.inbox.held() == 0);
  rig.receive({3}, 1);  // nobody could announce it
  rig.rig.pool.reap();
  CHECK(rig.staged == std::vector<uint64_t>{3});
}

TEST_CASE("pack_stager__damage__the_put_is_asked_for_and_the_files_wait_for_it") {
  for (const bool in_the_list : {false, true}) {
    Rig rig;
    FileInWork& file = rig.files.add(1, 3);
    rig.damaged = true;
    rig.receive({1}, in_the_list ? 2 : 1);
    rig.rig.pool.reap();
    INFO(in_the_list);
    CHECK(rig.staged.empty());
    CHECK(rig.session.puts == std::vector<std::pair<uint64_t, uint64_t>>{{3, 8}});
    CHECK(file.takes_content());
    CHECK_FALSE(file.is_held());
    CHECK(rig.inbox.held() == 0);
    CHECK(rig.files.notes.empty());
  }
}

TEST_CASE("pack_stager__file_that_cannot_be_staged__fails_alone_or_ends_the_session") {
  Rig digest;
  digest.files.add(1, 3);
  digest.outcome = [](PackItem& item) { item.digest_differs = true; };
  digest.receive({1}, 1);
  digest.rig.pool.reap();
  CHECK(digest.files.find(1)->failure()->kind == ErrorKind::integrity);
  Rig broken;
  broken.files.add(1, 3);
  broken.outcome = [](PackItem& item) { item.error_number = EIO; };
  broken.receive({1}, 1);
  broken.rig.pool.reap();
  CHECK(broken.files.notes == std::vector<std::string>{"io failed 5 1: 0"});
  CHECK(broken.files.find(1)->takes_content());
  Rig full;
  full.files.add(1, 3);
  full.files.add(2, 3);
  full.outcome = [](PackItem& item) { item.error_number = item.task->index == 1 ? ENOSPC : 0; };
  full.receive({1, 2}, 2);
  full.rig.pool.reap();
  CHECK(full.session.errors.size() == 1);
  CHECK(full.files.notes.empty());
}

TEST_CASE("pack_stager__session_that_failed_meanwhile__what_was_staged_is_removed") {
  Rig rig;
  rig.files.add(1, 3);
  rig.files.add(2, 3);
  rig.outcome = [](PackItem& item) { (item.task->index == 1 ? item.staged = "staged" : item.staged).append(""); };
  rig.receive({1, 2}, 2);
  rig.session.fail({ErrorKind::network, ""});
  rig.rig.pool.reap();
  CHECK(rig.files.notes == std::vector<std::string>{"staged 1: 3"});
}

}  // namespace
}  // namespace ccixfer::recv

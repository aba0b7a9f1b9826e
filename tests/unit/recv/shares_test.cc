// Which staged files of a session other receivers may write to: each is made known once, to all who ask.
#include "app/recv/shares.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "app/recv/shared_place.h"
#include "tests/unit/recv/parts.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;

namespace {

class CountingEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return ++last_; }

 private:
  uint64_t last_ = 0;
};

struct Rig : Place {
  FileInWork& add(uint64_t index) {
    FileInWork& file = known.add(index, 100);
    file.begin_pieces(std::make_shared<StagedFile>(*root->opened(), file.task(), false));
    return file;
  }
  Shares::Tell tell() {
    return [this](const session::SharedPlace& place) { told.push_back(place); };
  }
  JobRig jobs;
  FakeFiles known;
  CountingEntropy entropy;
  int made = 0, error = 0;
  Shares shares{jobs.jobs,
                [this](StagedFile&, const session::SharedPlace& place) {
                  ++made;
                  return error < 0 ? error : make_share(files, root->opened()->staging, place);
                },
                files, known, entropy};
  std::vector<session::SharedPlace> told;
};

}  // namespace

TEST_CASE("shares__who_asks__hears_of_the_place_when_it_is_made_and_it_is_made_once") {
  Rig rig;
  FileInWork& file = rig.add(3);
  rig.shares.ask(file, 1, rig.tell());
  rig.shares.ask(file, 2, rig.tell());
  rig.shares.ask(file, 2, rig.tell());  // it is told once
  CHECK(rig.told.empty());
  CHECK(file.is_held());
  CHECK_FALSE(rig.shares.is_made(3));
  rig.jobs.pool.reap();
  REQUIRE(rig.told.size() == 2);
  CHECK(rig.told[0].index == 3);
  CHECK(rig.told[0].size_bytes == 100);
  CHECK(rig.told[0].name == staged_name(file.task().key, file.task().version));
  CHECK(rig.told[0].token == rig.told[1].token);
  CHECK(rig.told[0].token != session::PlaceToken{});
  CHECK(rig.shares.is_made(3));
  CHECK_FALSE(file.is_held());
  CHECK(rig.known.notes == std::vector<std::string>{"job ended 3"});
  rig.shares.ask(file, 1, rig.tell());
  CHECK(rig.told.size() == 3);
  CHECK(rig.made == 1);
}

TEST_CASE("shares__two_files__have_tokens_of_their_own") {
  Rig rig;
  rig.shares.ask(rig.add(3), 1, rig.tell());
  rig.shares.ask(rig.add(4), 1, rig.tell());
  rig.jobs.pool.reap();
  REQUIRE(rig.told.size() == 2);
  CHECK(rig.told[0].token != rig.told[1].token);
}

TEST_CASE("shares__one_that_cannot_be_made__is_told_to_nobody_and_tried_again_for_the_next") {
  Rig rig;
  FileInWork& file = rig.add(3);
  rig.error = -ENOSPC;
  rig.shares.ask(file, 1, rig.tell());
  rig.jobs.pool.reap();
  CHECK(rig.told.empty());
  CHECK_FALSE(rig.shares.is_made(3));
  CHECK_FALSE(file.is_held());
  rig.error = 0;
  rig.shares.ask(file, 1, rig.tell());
  rig.jobs.pool.reap();
  CHECK(rig.told.size() == 1);
}

TEST_CASE("shares__a_file_that_ended__is_no_place_any_more") {
  Rig rig;
  rig.shares.ask(rig.add(3), 1, rig.tell());
  rig.jobs.pool.reap();
  rig.shares.ended(3);
  CHECK_FALSE(rig.shares.is_made(3));
}

}  // namespace ccixfer::recv

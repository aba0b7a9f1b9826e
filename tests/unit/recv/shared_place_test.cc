// A staged file that another receiver writes to: who may, and what the lock keeps out.
#include "app/recv/shared_place.h"

#include <catch2/catch.hpp>
#include <cerrno>

#include "app/recv/names.h"
#include "app/recv/second_root.h"
#include "transports/sim/sim_file_system.h"
#include "transports/sim/world.h"

using namespace ccixfer;
using namespace ccixfer::recv;
using ports::OpenMode;
using Lock = ports::FileSystem::Lock;

namespace {

constexpr int cwd = ports::FileSystem::no_directory;

struct FirstReceiver {
  explicit FirstReceiver(const sim::FileSystemOptions& options = {}) : files(world, node, options) {
    files.make_directory("/root/.ccixfer");
    staging = files.open(cwd, "/root/.ccixfer", {.directory = true}, 0);
    staged = files.open(staging, place.name, {.mode = OpenMode::read_write, .create = true}, 0600);
    REQUIRE(staged >= 0);
  }
  [[nodiscard]] int join(std::shared_ptr<JoinedShare>& out, const session::SharedPlace& wanted) {
    auto root = SecondRoot::open(files, "/root");
    REQUIRE(root);
    return (*root)->join(wanted, out);
  }
  void share() { share(place); }
  void share(const session::SharedPlace& wanted) {
    shared = make_share(files, staging, wanted);
    REQUIRE(shared >= 0);
  }
  [[nodiscard]] bool has_share() {
    ports::FileStat stat;
    return files.stat_at(staging, share_name(place.name), stat, false) >= 0;
  }

  sim::World world{7};
  sim::NodeId node = world.add_node("host");
  sim::SimFileSystem files;
  session::SharedPlace place{3, 100, {1, 2, 3, 4}, staged_name(path_key("a"), 5)};
  int staging = -1, staged = -1, shared = -1;
};

}  // namespace

TEST_CASE("shared_place__the_right_token__may_write_until_the_share_ends") {
  FirstReceiver owner;
  owner.share();
  std::shared_ptr<JoinedShare> share;
  REQUIRE(owner.join(share, owner.place) == 0);
  CHECK(share->begin_write() == 0);
  CHECK(owner.files.pwrite(share->fd(), as_bytes("abc"), 4) == 3);
  share->end_writes(1);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
  CHECK_FALSE(owner.has_share());
  // The owner holds the lock alone, and when it has let go the share is gone.
  CHECK(share->begin_write() == -EAGAIN);
  owner.files.close(owner.staged);
  CHECK(share->begin_write() == -EPERM);
  CHECK(owner.join(share, owner.place) == -EPERM);
}

TEST_CASE("shared_place__while_a_piece_is_written__the_owner_cannot_end_the_share") {
  FirstReceiver owner;
  owner.share();
  std::shared_ptr<JoinedShare> share;
  REQUIRE(owner.join(share, owner.place) == 0);
  REQUIRE(share->begin_write() == 0);
  REQUIRE(share->begin_write() == 0);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == -EAGAIN);
  share->end_writes(1);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == -EAGAIN);
  CHECK(owner.has_share());
  share->end_writes(1);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
}

TEST_CASE("shared_place__a_writer_that_is_gone__keeps_nobody_out") {
  FirstReceiver owner;
  owner.share();
  std::shared_ptr<JoinedShare> share;
  REQUIRE(owner.join(share, owner.place) == 0);
  REQUIRE(share->begin_write() == 0);
  share.reset();
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
}

TEST_CASE("shared_place__another_token_or_an_older_one__may_not_write") {
  FirstReceiver owner;
  owner.share();
  std::shared_ptr<JoinedShare> share;
  session::SharedPlace wrong = owner.place;
  wrong.token[15] = 1;
  CHECK(owner.join(share, wrong) == -EPERM);
  REQUIRE(owner.join(share, owner.place) == 0);
  owner.share(wrong);
  CHECK(share->begin_write() == -EPERM);
  CHECK(owner.files.lock(owner.staged, Lock::alone) == 0);  // whoever is refused holds no lock
}

TEST_CASE("shared_place__a_file_that_is_not_here_or_not_shared__cannot_be_joined") {
  FirstReceiver owner;
  std::shared_ptr<JoinedShare> share;
  CHECK(owner.join(share, owner.place) == -EPERM);
  session::SharedPlace other = owner.place;
  other.name = staged_name(path_key("b"), 5);
  CHECK(owner.join(share, other) == -ENOENT);
  CHECK(share == nullptr);
  CHECK(owner.files.open_descriptors() == 2);  // the staging directory's and the owner's
}

TEST_CASE("shared_place__another_size__may_not_write") {
  FirstReceiver owner;
  owner.share();
  std::shared_ptr<JoinedShare> share;
  session::SharedPlace larger = owner.place;
  larger.size_bytes = 1u << 30;
  CHECK(owner.join(share, larger) == -EPERM);
}

TEST_CASE("shared_place__locks_that_do_not_reach_the_other_host__nobody_joins") {
  FirstReceiver owner;
  owner.share();
  owner.files.close(owner.shared);  // as if the owner's lock was on its host alone
  std::shared_ptr<JoinedShare> share;
  CHECK(owner.join(share, owner.place) == -ENOTSUP);
  CHECK(owner.files.lock(owner.staged, Lock::alone) == 0);
}

TEST_CASE("shared_place__a_writer_that_retires__begins_nothing_more_and_ends_what_it_began") {
  FirstReceiver owner;
  owner.share();
  std::shared_ptr<JoinedShare> share;
  REQUIRE(owner.join(share, owner.place) == 0);
  REQUIRE(share->begin_write() == 0);
  share->retire();
  CHECK(share->begin_write() == -EPERM);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == -EAGAIN);
  share->end_writes(1);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
}

TEST_CASE("shared_place__without_locks__nothing_is_shared_and_the_owner_goes_on") {
  FirstReceiver owner({.has_locks = false});
  CHECK(make_share(owner.files, owner.staging, owner.place) == -ENOTSUP);
  std::shared_ptr<JoinedShare> share;
  CHECK(owner.join(share, owner.place) == -ENOTSUP);
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
  CHECK_FALSE(owner.has_share());
}

TEST_CASE("shared_place__no_share__costs_the_owner_a_look") {
  FirstReceiver owner;
  const uint64_t before = owner.files.calls();
  CHECK(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
  CHECK(owner.files.calls() == before + 1);
}

TEST_CASE("shared_place__a_power_cut_after_the_end__does_not_bring_the_share_back") {
  FirstReceiver owner;
  owner.share();
  owner.files.sync_all();
  REQUIRE(end_share(owner.files, owner.staging, owner.place.name, owner.staged) == 0);
  owner.files.crash();
  owner.files.mount();
  owner.staging = owner.files.open(cwd, "/root/.ccixfer", {.directory = true}, 0);
  CHECK_FALSE(owner.has_share());
}

TEST_CASE("shared_place__names__of_shares_and_nothing_else") {
  const std::string staged = staged_name(path_key("a"), 5);
  CHECK(is_share_name(share_name(staged)));
  CHECK_FALSE(is_share_name(staged));
  CHECK_FALSE(is_share_name("a.share"));
}

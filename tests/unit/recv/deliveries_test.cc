// The database of placed files: which rows it has, and when they go.
#include "app/recv/deliveries.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "app/recv/names.h"
#include "app/recv/opened_root.h"
#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

const Deliveries::Transfer ours{1};
const Deliveries::Transfer theirs{2};

struct Place {
  Place() : directory(files.open(ports::FileSystem::no_directory, temporary.path(), {.directory = true}, 0)), deliveries(open()) {}
  ~Place() {
    deliveries.reset();
    files.close(directory);
  }
  std::unique_ptr<Deliveries> open() { return Deliveries::open(files, directory, temporary.path(), nullptr); }
  void reopen() {
    deliveries.reset();
    deliveries = open();
  }
  TemporaryDirectory temporary;
  FaultyFiles files;
  int directory;
  std::unique_ptr<Deliveries> deliveries;
};

Deliveries::File file_of(const char* path, uint64_t version) {
  return {path_key(path), version, {100, ports::FileTime{1'700'000'000, 5}, 7}};
}

}  // namespace

TEST_CASE("deliveries__reopened__know_what_was_placed_by_version") {
  Place place;
  CHECK(place.deliveries->empty());
  CHECK_FALSE(place.deliveries->find(path_key("a"), 1));
  place.deliveries->add(ours, 1000, {file_of("a", 1), file_of("b", 2)});
  place.reopen();
  const auto found = place.deliveries->find(path_key("a"), 1);
  REQUIRE(found);
  CHECK(found->placed == file_of("a", 1).placed);
  CHECK_FALSE(place.deliveries->find(path_key("a"), 2));
  CHECK_FALSE(place.deliveries->find(path_key("c"), 1));
  place.deliveries->add(ours, 1001, {file_of("a", 2)});  // it changed and came again
  CHECK_FALSE(place.deliveries->find(path_key("a"), 1));
  CHECK(place.deliveries->find(path_key("a"), 2));
}

TEST_CASE("deliveries__a_transfer_ends_or_grows_old__its_rows_go_and_others_stay") {
  Place place;
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  place.deliveries->add(theirs, 2000, {file_of("b", 1)});
  SECTION("ends") { place.deliveries->forget(ours, {}); }
  SECTION("expires") { place.deliveries->expire(1000 + Deliveries::kept_s + 1); }
  CHECK_FALSE(place.deliveries->find(path_key("a"), 1));
  const auto found = place.deliveries->find(path_key("b"), 1);
  REQUIRE(found);
  place.deliveries->forget(ours, {found->transfer});  // one that took over what it had delivered
  CHECK(place.deliveries->empty());
  place.reopen();
  CHECK(place.deliveries->empty());
}

TEST_CASE("deliveries__damaged_database__is_begun_anew") {
  Place place;
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  place.deliveries.reset();
  const int fd = place.files.open(place.directory, "delivered.db", {.mode = ports::OpenMode::write}, 0);
  REQUIRE(place.files.pwrite(fd, as_bytes(std::string(4096, 'x')), 0) == 4096);
  place.files.close(fd);
  for (const char* suffix : {"-wal", "-shm"}) place.files.unlink_at(place.directory, std::string("delivered.db") + suffix, false);
  place.deliveries = place.open();
  CHECK(place.deliveries->empty());
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  CHECK(place.deliveries->find(path_key("a"), 1));
}

TEST_CASE("deliveries__of_a_later_program__is_begun_anew") {
  Place place;
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  place.deliveries.reset();
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(place.temporary.path("delivered.db").c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw, "PRAGMA user_version=2", nullptr, nullptr, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_close(raw) == SQLITE_OK);
  place.deliveries = place.open();
  CHECK(place.deliveries->empty());
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  CHECK(place.deliveries->find(path_key("a"), 1).has_value());
}

TEST_CASE("deliveries__of_one_week__stay_and_a_transfer_that_goes_on_stays_young") {
  Place place;
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  place.deliveries->add(theirs, 1000, {file_of("b", 1)});
  place.deliveries->add(theirs, 1001, {file_of("c", 1)});
  place.deliveries->expire(1000 + Deliveries::kept_s);
  CHECK(place.deliveries->find(path_key("a"), 1).has_value());
  place.deliveries->expire(1000 + Deliveries::kept_s + 1);
  CHECK_FALSE(place.deliveries->find(path_key("a"), 1).has_value());
  CHECK(place.deliveries->find(path_key("b"), 1).has_value());
  CHECK(place.deliveries->find(path_key("b"), 1)->transfer == place.deliveries->find(path_key("c"), 1)->transfer);
  CHECK_FALSE(place.deliveries->empty());
}

TEST_CASE("deliveries__more_than_may_be_remembered__are_not") {
  Place place;
  std::vector<Deliveries::File> many(Deliveries::files_max + 1, file_of("a", 1));
  place.deliveries->add(ours, 1000, many);
  CHECK(place.deliveries->empty());
  place.deliveries->add(ours, 1000, {});
  CHECK(place.deliveries->empty());
  place.deliveries->add(ours, 1000, {file_of("b", 1)});
  many.resize(Deliveries::files_max);
  place.deliveries->add(ours, 1000, many);  // with that one there are too many
  CHECK_FALSE(place.deliveries->find(path_key("a"), 1).has_value());
  CHECK(place.deliveries->find(path_key("b"), 1).has_value());
}

// It only saves work: where it cannot be had nothing is remembered, and nothing fails.
TEST_CASE("deliveries__cannot_be_opened__nothing_is_remembered_and_nothing_fails") {
  Place place;
  place.deliveries.reset();
  Deliveries::remove(place.files, place.directory);
  place.temporary.write("delivered.db/in-the-way", "x");
  place.deliveries = place.open();
  place.deliveries->add(ours, 1000, {file_of("a", 1)});
  CHECK_FALSE(place.deliveries->find(path_key("a"), 1));
  CHECK(place.deliveries->empty());
  place.deliveries->expire(1'000'000'000);
  place.deliveries->forget(ours, {});
  place.deliveries->abandon();
}

// Without times only the row tells that the file is the one that was placed; it goes when the transfer ends well.
TEST_CASE("destination__without_times__a_delivered_file_stays_until_the_transfer_has_ended") {
  DestinationOptions options;
  options.options = session::option_recursive;
  Rig rig(options);
  rig.announce({file_entry("a", 3), file_entry("b", 1)});
  rig.source().put_pack({{0, "abc"}});
  REQUIRE(rig.run_until_result(0));
  const auto again = [&] {
    rig.session->destination->abort({ErrorKind::network, "lost"});
    REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
    rig.session = std::make_unique<Session>(*rig.root, rig.work, options);
    rig.announced = rig.sequence = 0;
    rig.announce({file_entry("a", 3), file_entry("b", 1)});
  };
  SECTION("it is there") {
    again();
    CHECK(rig.source().verdicts[0] == Verdict::unchanged);
    CHECK(rig.source().verdicts[1] == Verdict::send);
    rig.source().put_pack({{1, "x"}});
    REQUIRE(rig.run_until_result(1));
    rig.finish(2);
    rig.session = std::make_unique<Session>(*rig.root, rig.work, options);
    rig.announced = rig.sequence = 0;
    rig.announce({file_entry("a", 3), file_entry("b", 1)});
    CHECK(rig.source().verdicts[0] == Verdict::send);
  }
  SECTION("somebody wrote it since") {
    const int fd = ::open(rig.temporary.path("a").c_str(), O_WRONLY | O_TRUNC);
    REQUIRE(::write(fd, "xyzz", 4) == 4);
    ::close(fd);
    again();
    CHECK(rig.source().verdicts[0] == Verdict::send);
  }
  SECTION("it has another version") {
    rig.session->destination->abort({ErrorKind::network, "lost"});
    REQUIRE(rig.session->run([&] { return rig.session->destination->idle(); }));
    rig.session = std::make_unique<Session>(*rig.root, rig.work, options);
    rig.announced = rig.sequence = 0;
    rig.announce({file_entry("a", 3, 6)});
    CHECK(rig.source().verdicts[0] == Verdict::send);
  }
}

}  // namespace ccixfer::recv

// Staged files to their names: what is synced when, what a failure of each call leaves, and copies across file systems.
#include "app/recv/commit.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <future>
#include <map>

#include "app/recv/names.h"
#include "app/recv/shared_place.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr int held_max = 128;  // directories

// Files whose content came in pieces, and files of packs, in one batch.
struct Batch : Place {
  explicit Batch(uint32_t options = archive_options) : Place(options) {}
  ~Batch() { files.hook = nullptr; }
  void add_pieces(const Entry& entry, const std::string& content) {
    CommitItem item;
    item.task = decide_one(entry).task;
    REQUIRE(item.task);
    item.file = std::make_shared<StagedFile>(*root->opened(), *item.task, false);
    item.staged = item.file->name();
    item.size_bytes = content.size();
    HeldFileRef held;
    REQUIRE(item.file->open(held) == 0);
    REQUIRE(item.file->write(*held, as_bytes(content + "and more"), 0) == 0);
    batch.push_back(item);
  }
  void add_of_pack(const Entry& entry, const std::string& content) {
    std::vector<PackItem> staged(1);
    staged[0].task = decide_one(entry).task;
    REQUIRE(staged[0].task);
    staged[0].content = as_bytes(content);
    stage_pack(*root->opened(), policy, *owner, staged);
    REQUIRE(staged[0].error_number == 0);
    CommitItem item;
    item.task = staged[0].task;
    item.staged = staged[0].staged;
    item.size_bytes = content.size();
    item.mark = staged[0].mark;
    batch.push_back(item);
  }
  void commit() { commit_batch(*root->opened(), *directories, policy, *owner, batch); }
  void fail(std::string_view failing, int error) {
    files.hook = [failing, error](std::string_view call, std::string_view) { return call == failing ? -error : 0; };
  }
  [[nodiscard]] size_t names_in(const std::string& below) const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(temporary.path(below)), {}));
  }
  std::vector<CommitItem> batch;
};

}  // namespace

TEST_CASE("commit__file_in_pieces__has_its_length_mode_and_time_and_no_row") {
  Batch place;
  place.add_pieces(file("f", 3, 0640), "abc");
  const Ledger::File row = place.batch[0].task->ledger_file();
  REQUIRE(place.root->opened()->ledger->add({{row, "f", {{0, {1, 2}}}}}));
  place.commit();
  CHECK(place.batch[0].outcome == CommitOutcome::ok);
  CHECK(place.batch[0].error_number == 0);
  CHECK_FALSE(place.batch[0].attributes_refused);
  CHECK(place.temporary.read("f") == "abc");
  CHECK((place.stat_of("f").st_mode & 07777u) == 0640);
  CHECK(place.stat_of("f").st_mtim.tv_nsec == 123'456'789);
  CHECK_FALSE(place.temporary.has(".ccixfer/" + place.batch[0].staged));
  CHECK(place.root->opened()->ledger->empty());
  CHECK_FALSE(place.batch[0].placed.has_value());  // its time tells whose it is
}

TEST_CASE("commit__a_large_file_is_replaced__it_is_held_beyond_the_rename") {
  Batch place;
  const auto put = [&](uint64_t size_bytes) {
    place.temporary.write("f", "old");
    std::filesystem::resize_file(place.temporary.path("f"), size_bytes);
  };
  place.root->opened()->one_writer_a_file = true;
  bool is_held = false;
  SECTION("a large one") {
    put(held_replaced_bytes);
    is_held = true;
  }
  SECTION("a small one") { put(held_replaced_bytes - 1); }
  SECTION("one with a further name, which frees nothing") {
    put(held_replaced_bytes);
    std::filesystem::create_hard_link(place.temporary.path("f"), place.temporary.path("another"));
  }
  SECTION("on another host's file system") {
    put(held_replaced_bytes);
    place.root->opened()->one_writer_a_file = false;
  }
  SECTION("nothing stood there") {}
  place.add_pieces(file("f", 3), "abc");
  place.commit();
  REQUIRE(place.batch[0].outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("f") == "abc");
  REQUIRE((place.batch[0].replaced != nullptr) == is_held);
  if (!is_held) return;
  ports::FileStat stat;
  REQUIRE(place.files.fstat(place.batch[0].replaced->fd(), stat) == 0);
  CHECK(stat.size_bytes == held_replaced_bytes);
  CHECK(stat.links == 0);
}

TEST_CASE("commit__a_call_for_a_file_in_pieces_fails__it_is_not_placed_and_stays_staged") {
  struct Row {
    std::string_view call;
    CommitOutcome outcome;
  };
  const Row row = GENERATE(Row{"truncate", CommitOutcome::failed}, Row{"fstat", CommitOutcome::failed},
                           Row{"set_mode", CommitOutcome::failed}, Row{"set_mtime", CommitOutcome::failed},
                           Row{"fsync", CommitOutcome::sync_failed}, Row{"rename_at", CommitOutcome::failed});
  INFO(row.call);
  Batch place;
  place.temporary.write("f", "old");
  place.add_pieces(file("f", 3, 0444), "abc");  // a mode that it is not made with
  const Ledger::File kept = place.batch[0].task->ledger_file();
  REQUIRE(place.root->opened()->ledger->add({{kept, "f", {{0, {1, 2}}}}}));
  place.fail(row.call, ENXIO);
  place.commit();
  place.files.hook = nullptr;
  CHECK(place.batch[0].outcome == row.outcome);
  CHECK(place.batch[0].error_number == ENXIO);
  CHECK(place.temporary.read("f") == "old");
  CHECK(place.temporary.has(".ccixfer/" + place.batch[0].staged));
  CHECK(place.root->opened()->ledger->all().value() == std::vector<Ledger::File>{kept});
}

TEST_CASE("commit__a_file_that_is_shared__is_placed_when_nobody_else_writes_there") {
  Batch place;
  OpenedRoot& root = *place.root->opened();
  place.add_pieces(file("f", 3), "abc");
  const std::string staged = place.batch[0].staged;
  const session::SharedPlace wanted{1, 3, {1, 2, 3}, staged};
  const int shared = make_share(place.files, root.staging, wanted);
  REQUIRE(shared >= 0);
  std::shared_ptr<JoinedShare> other;
  const int staging = place.files.open(root.fd, staging_name, {.directory = true}, 0);
  REQUIRE(JoinedShare::join(place.files, staging, wanted, other) == 0);
  REQUIRE(other->begin_write() == 0);
  place.commit();
  CHECK(place.batch[0].outcome == CommitOutcome::held);
  CHECK_FALSE(place.temporary.has("f"));
  CHECK(place.temporary.has(".ccixfer/" + staged));
  other->end_writes(1);
  place.batch[0].outcome = CommitOutcome::ok;
  place.commit();
  CHECK(place.batch[0].outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("f") == "abc");
  CHECK_FALSE(place.temporary.has(".ccixfer/" + share_name(staged)));
  place.batch.clear();
  place.files.close(shared);
  CHECK(other->begin_write() == -EPERM);  // though it has the file open, which has its final name now
}

TEST_CASE("commit__mode_or_time_is_refused__the_file_is_placed_and_it_is_told") {
  Batch place;
  place.add_pieces(file("f", 3, 0640), "abc");
  place.fail("set_mtime", EPERM);
  place.commit();
  CHECK(place.batch[0].outcome == CommitOutcome::ok);
  CHECK(place.batch[0].attributes_refused);
  CHECK(place.temporary.read("f") == "abc");
}

// The verdict saw an empty directory, or none.
TEST_CASE("commit__directory_in_the_files_place__goes_if_it_is_empty_else_it_is_said") {
  Batch place;
  place.add_pieces(file("f", 1), "1");
  std::filesystem::create_directory(place.temporary.path("f"));
  const bool filled = GENERATE(true, false);
  if (filled) place.temporary.write("f/x", "theirs");
  place.commit();
  CHECK((place.batch[0].outcome == CommitOutcome::ok) == !filled);
  CHECK(place.batch[0].error_number == (filled ? ENOTEMPTY : 0));
  CHECK(place.temporary.read(filled ? "f/x" : "f") == (filled ? "theirs" : "1"));
}

TEST_CASE("commit__one_of_a_batch_fails__the_others_are_placed") {
  Batch place;
  std::filesystem::create_directory(place.temporary.path("d"));
  place.add_of_pack(file("d/a", 1), "1");
  place.add_pieces(file("d/b", 1), "2");
  place.add_of_pack(file("c", 1), "3");
  place.files.hook = [](std::string_view call, std::string_view name) { return call == "rename_at" && name == "b" ? -EPERM : 0; };
  place.commit();
  CHECK(place.batch[0].outcome == CommitOutcome::ok);
  CHECK(place.batch[1].outcome == CommitOutcome::failed);
  CHECK(place.batch[1].error_number == EPERM);
  CHECK(place.batch[2].outcome == CommitOutcome::ok);
  CHECK(place.temporary.read("d/a") == "1");
  CHECK(place.temporary.read("c") == "3");
}

// What a name in a new directory needs: the directory's own name, synced once and before.
TEST_CASE("commit__new_directories__their_names_are_synced_before_the_renames_and_once") {
  Batch place;
  place.decide_one(directory("d"));
  const auto run = [&] {
    std::string calls;
    place.files.hook = [&](std::string_view call, std::string_view) {
      if (call == "syncfs" || call == "rename_at") calls += std::string(call) + " ";
      return 0;
    };
    place.commit();
    place.files.hook = nullptr;
    CHECK(place.batch.at(0).outcome == CommitOutcome::ok);
    place.batch.clear();
    return calls;
  };
  place.add_pieces(file("d/a", 1), "1");
  CHECK(run() == "syncfs rename_at ");
  place.add_pieces(file("d/b", 1), "1");
  CHECK(run() == "rename_at ");
  place.add_of_pack(file("d/c", 1), "1");
  CHECK(run() == "syncfs rename_at syncfs ");
}

TEST_CASE("commit__sync_before_the_renames_fails_twice__nothing_is_renamed") {
  Batch place;
  place.decide_one(directory("d"));
  place.add_pieces(file("d/a", 1), "1");
  int left = GENERATE(1, 2);
  const bool once = left == 1;
  place.files.hook = [&](std::string_view call, std::string_view) { return call == "syncfs" && left > 0 ? (--left, -EIO) : 0; };
  place.commit();
  place.files.hook = nullptr;
  CHECK(left == 0);
  CHECK(place.batch[0].outcome == (once ? CommitOutcome::ok : CommitOutcome::failed));  // names wait in the journal
  CHECK(place.temporary.has("d/a") == once);
  if (once) return;
  CHECK(place.batch[0].error_number == EIO);
  place.batch[0].outcome = CommitOutcome::ok;  // another time: the directory's name is still to be synced
  place.files.hook = [&](std::string_view call, std::string_view) {
    left += call == "syncfs" ? 1 : 0;
    return 0;
  };
  place.commit();
  CHECK(left == 1);
  CHECK(place.batch[0].outcome == CommitOutcome::ok);
}

TEST_CASE("commit__sync_after_the_renames_of_packs_fails__each_directory_tells_of_itself") {
  Batch place;
  place.decide({directory("d"), directory("d/e")});
  place.add_of_pack(file("d/e/a", 1), "1");
  bool renamed = false;
  int synced = 0;
  const bool is_well = GENERATE(true, false);
  place.files.hook = [&](std::string_view call, std::string_view) {
    renamed = renamed || call == "rename_at";
    if (!renamed) return 0;
    if (call == "syncfs") return -EIO;
    if (call != "fsync") return 0;
    return ++synced == 2 && !is_well ? -EIO : 0;
  };
  place.commit();
  place.files.hook = nullptr;
  CHECK(place.batch[0].outcome == (is_well ? CommitOutcome::ok : CommitOutcome::failed));
  CHECK(place.batch[0].error_number == (is_well ? 0 : EIO));
  if (is_well) CHECK(synced == 3);  // d/e, d and the root
}

TEST_CASE("commit__sync_of_the_directory_fails__the_file_has_failed") {
  Batch place;
  place.add_pieces(file("f", 1), "1");
  bool renamed = false;
  place.files.hook = [&](std::string_view call, std::string_view) {
    renamed = renamed || call == "rename_at";
    return call == "fsync" && renamed ? -EIO : 0;
  };
  place.commit();
  CHECK(place.batch[0].outcome == CommitOutcome::failed);
  CHECK(place.batch[0].error_number == EIO);
}

// Their descriptors are held until then.
TEST_CASE("commit__more_directories_than_are_held__synced_in_between") {
  Batch place;
  for (int i = 0; i <= held_max; ++i) {
    std::filesystem::create_directory(place.temporary.path("d" + std::to_string(i)));
    place.add_pieces(file("d" + std::to_string(i) + "/f", 1), "1");
  }
  const int failing = GENERATE(0, 1, held_max, held_max + 1);
  int renamed = 0;
  int synced = 0;
  int before_the_last = 0;
  place.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "rename_at" && ++renamed == held_max + 1) before_the_last = synced;
    return call == "fsync" && renamed > 0 && ++synced == failing ? -EIO : 0;
  };
  place.commit();
  CHECK(synced == held_max + 1);
  CHECK(before_the_last == held_max);
  const auto well = [](const CommitItem& item) { return item.outcome == CommitOutcome::ok; };
  CHECK(std::all_of(place.batch.begin(), place.batch.end(), well) == (failing == 0));
  // The journal of one holds the names of others too: it is not known which of them are lost.
  CHECK(std::none_of(place.batch.begin(), place.batch.end(), well) == (failing != 0));
}

TEST_CASE("commit__lost_to_another__busy_and_what_was_staged_of_a_pack_goes") {
  Batch place;
  place.add_of_pack(file("a", 1), "1");
  place.add_pieces(file("b", 1), "1");
  place.owner->lost.store(true);
  place.commit();
  for (const CommitItem& item : place.batch) {
    CHECK(item.outcome == CommitOutcome::failed);
    CHECK(item.error_number == EBUSY);
  }
  CHECK_FALSE(place.temporary.has(".ccixfer/" + place.batch[0].staged));
  CHECK(place.temporary.has(".ccixfer/" + place.batch[1].staged));
  CHECK_FALSE(place.temporary.has("a"));
}

TEST_CASE("commit__root_was_moved__stale_and_nothing_is_touched_in_either") {
  Batch place;
  place.add_of_pack(file("a", 1), "1");
  place.add_pieces(file("b", 1), "1");
  const std::string moved = place.temporary.path() + "-moved";
  std::filesystem::rename(place.temporary.path(), moved);
  std::filesystem::create_directory(place.temporary.path());
  place.commit();
  CHECK(std::filesystem::is_empty(place.temporary.path()));
  CHECK_FALSE(std::filesystem::exists(moved + "/a"));
  CHECK_FALSE(std::filesystem::exists(moved + "/b"));
  CHECK_FALSE(std::filesystem::exists(moved + "/.ccixfer/" + place.batch[0].staged));
  CHECK(std::filesystem::exists(moved + "/.ccixfer/" + place.batch[1].staged));
  for (const CommitItem& item : place.batch) {
    CHECK(item.outcome == CommitOutcome::failed);
    CHECK(item.error_number == ESTALE);
  }
  std::filesystem::remove(place.temporary.path());
  std::filesystem::rename(moved, place.temporary.path());
}

// Of a name that is not there either may be gone: what is staged, or the directory; the second is another's doing, and the next
// transfer finds what is there now.
TEST_CASE("commit__no_such_name_at_the_rename__stale_if_the_directory_is_gone_or_elsewhere") {
  struct Row {
    std::string gone, moved;  // at the rename
    int says;                 // what it says; 0: what it comes to
    int wanted;
  };
  const Row row = GENERATE(Row{"d", "", 0, ESTALE}, Row{"", "d", ENOENT, ESTALE}, Row{"staged", "", 0, ENOENT},
                           Row{"", "", ENOENT, ENOENT}, Row{"", "d", EPERM, EPERM});
  INFO(row.gone << " " << row.moved << " " << row.says);
  for (const bool of_pack : {true, false}) {
    INFO(of_pack);
    Batch place;
    std::filesystem::create_directory(place.temporary.path("d"));
    of_pack ? place.add_of_pack(file("d/f", 1), "1") : place.add_pieces(file("d/f", 1), "1");
    place.files.hook = [&](std::string_view call, std::string_view) {
      if (call != "rename_at") return 0;
      if (row.gone == "d") std::filesystem::remove_all(place.temporary.path("d"));
      if (row.gone == "staged") std::filesystem::remove(place.temporary.path(".ccixfer/" + place.batch[0].staged));
      if (row.moved == "d") std::filesystem::rename(place.temporary.path("d"), place.temporary.path("moved"));
      return -row.says;
    };
    place.commit();
    place.files.hook = nullptr;
    CHECK(place.batch[0].outcome == CommitOutcome::failed);
    CHECK(place.batch[0].error_number == row.wanted);
    CHECK_FALSE(place.temporary.has("d/f"));
    CHECK_FALSE(place.temporary.has("moved/f"));
    // What came in pieces stays for the next run; of a pack nothing does.
    const bool stays = !of_pack && row.gone != "staged";
    CHECK(place.temporary.has(".ccixfer/" + place.batch[0].staged) == stays);
  }
}

// Between the calls of a batch it is seen that it gets on, as of a slow disk each may take long.
TEST_CASE("commit__each_call_that_may_be_slow__comes_after_a_step") {
  Batch place;
  place.decide({directory("d"), directory("e")});
  place.add_pieces(file("d/a", 1), "1");
  place.add_pieces(file("e/b", 1), "1");
  std::map<std::string, std::vector<uint64_t>> steps;  // at each call
  place.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "fsync" || call == "rename_at") steps[std::string(call)].push_back(place.owner->steps.load());
    return 0;
  };
  const uint64_t before = place.owner->steps.load();
  place.commit();
  place.files.hook = nullptr;
  for (auto& [call, numbers] : steps) {
    for (uint64_t& number : numbers) number -= before;
  }
  CHECK(steps["rename_at"] == std::vector<uint64_t>{3, 4});    // both were finished before
  CHECK(steps["fsync"] == std::vector<uint64_t>{1, 2, 5, 6});  // the files, and then their directories
}

TEST_CASE("commit__without_times__what_was_placed_is_remembered_by_what_it_is") {
  Batch place(session::option_recursive);
  place.add_of_pack(file("a", 1), "1");
  place.add_pieces(file("b", 1), "2");
  place.add_pieces(file("c", size_unknown), "3");
  place.commit();
  for (const std::string name : {"a", "b"}) {
    const auto found = place.root->opened()->deliveries->find(path_key(name), 5);
    REQUIRE(found);
    const struct stat stat = place.stat_of(name);
    CHECK(found->placed == Deliveries::Placed{1, {stat.st_mtim.tv_sec, static_cast<uint32_t>(stat.st_mtim.tv_nsec)}, stat.st_ino});
  }
  CHECK_FALSE(place.root->opened()->deliveries->find(path_key("c"), 5).has_value());  // it is always sent
  Batch by_content(session::option_recursive | session::option_checksum);
  by_content.add_of_pack(file("a", 1), "1");
  by_content.commit();
  CHECK(by_content.root->opened()->deliveries->empty());
}

namespace {

// The directory of `f` is on another file system.
struct Across : Batch {
  explicit Across(uint32_t options = archive_options) : Batch(options) {
    std::filesystem::create_directory(temporary.path("d"));
    temporary.write("d/f", "old");
    add_pieces(file("d/f", 3, 0640), "abc");
    const std::string beside = staged_beside_name(batch[0].task->key);
    temporary.write("d/" + beside, "of a run that was killed");
    files.hook = [this](std::string_view call, std::string_view name) {
      if (call == "rename_at" && !std::exchange(refused, true)) return -EXDEV;
      return refused && call == failing && (failing_name.empty() || name == failing_name) ? -EIO : 0;
    };
  }
  void run() {
    const CommitItem& item = batch[0];
    commit();
    files.hook = nullptr;
    const bool is_placed = failing.empty();
    CHECK(item.outcome == (is_placed ? CommitOutcome::ok : CommitOutcome::failed));
    CHECK(item.error_number == (is_placed ? 0 : EIO));
    CHECK(temporary.read("d/f") == (is_placed ? "abc" : "old"));
    CHECK(names_in("d") == 1);
    CHECK(temporary.has(".ccixfer/" + item.staged) == !is_placed);
  }
  bool refused = false;
  std::string_view failing;
  std::string failing_name;
};

}  // namespace

// Both would make the copy under the same name, and the first one's rename would give the name to the second one's unfinished copy.
TEST_CASE("commit__another_session_asks_for_the_path_during_a_copy__has_it_when_the_file_is_placed") {
  Across place;
  Claims& claims = place.root->opened()->claims;
  claims.set_patience(std::chrono::milliseconds(0));
  const auto next = std::make_shared<Owner>();
  const Hash128 key = place.batch[0].task->key;
  bool is_asked = false;
  place.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "rename_at" && !std::exchange(place.refused, true)) return -EXDEV;
    if (!place.refused || call != "pwrite") return 0;
    place.owner->link_dead.store(true);
    CHECK_FALSE(std::async(std::launch::async, [&] { return claims.take(key, next); }).get());
    is_asked = true;
    return 0;
  };
  place.run();
  CHECK(is_asked);
  CHECK(claims.take(key, next));
}

TEST_CASE("commit__across_file_systems__a_whole_copy_or_the_old_file") {
  Across place;
  SECTION("all goes well") {
    place.run();
    CHECK((place.stat_of("d/f").st_mode & 07777u) == 0640);
    CHECK(place.stat_of("d/f").st_mtim.tv_nsec == 123'456'789);
  }
  SECTION("short reads") {
    place.files.read_max = 2;
    place.run();
  }
  SECTION("reading fails") {
    place.failing = "pread";
    place.run();
  }
  SECTION("writing fails") {
    place.failing = "pwrite";
    place.run();
  }
  SECTION("looking at it fails") {
    place.failing = "fstat";
    place.run();
  }
  SECTION("its mode fails") {
    place.failing = "set_mode";
    place.run();
  }
  SECTION("its sync fails") {
    place.failing = "fsync";
    place.run();
  }
  SECTION("the rename fails") {
    place.failing = "rename_at";
    place.run();
  }
}

TEST_CASE("commit__across_file_systems__an_empty_directory_makes_room_and_one_with_content_stays") {
  const bool of_pack = GENERATE(true, false);
  const bool is_filled = GENERATE(true, false);
  Batch place;
  std::filesystem::create_directories(place.temporary.path("d/f"));
  of_pack ? place.add_of_pack(file("d/f", 3), "abc") : place.add_pieces(file("d/f", 3), "abc");
  if (is_filled) place.temporary.write("d/f/meanwhile", "x");
  bool refused = false;
  place.files.hook = [&](std::string_view call, std::string_view) {
    return call == "rename_at" && !std::exchange(refused, true) ? -EXDEV : 0;
  };
  place.commit();
  place.files.hook = nullptr;
  CHECK(place.batch[0].outcome == (is_filled ? CommitOutcome::failed : CommitOutcome::ok));
  CHECK(place.batch[0].error_number == (is_filled ? ENOTEMPTY : 0));
  if (is_filled) CHECK(place.temporary.read("d/f/meanwhile") == "x");
  if (!is_filled) CHECK(place.temporary.read("d/f") == "abc");
  CHECK(place.names_in("d") == 1);
}

TEST_CASE("commit__across_file_systems__what_cannot_be_opened_has_failed") {
  Across place;
  place.failing = "open";
  SECTION("what is staged") { place.failing_name = place.batch[0].staged; }
  SECTION("the copy") {
    // what stood in its place goes first
    place.failing_name = staged_beside_name(place.batch[0].task->key);
  }
  place.commit();
  place.files.hook = nullptr;
  CHECK(place.batch[0].outcome == CommitOutcome::failed);
  CHECK(place.batch[0].error_number == EIO);
  CHECK(place.temporary.read("d/f") == "old");
  CHECK(place.temporary.has(".ccixfer/" + place.batch[0].staged));
}

TEST_CASE("commit__across_file_systems__modes_and_times_as_asked_for_and_refusals_told") {
  SECTION("without modes it has what open makes of it there") {
    Across place(archive_options & ~session::option_permissions);
    place.run();
    CHECK((place.stat_of("d/f").st_mode & 07777u) == (0640u & ~place.policy.umask));
    CHECK(place.stat_of("d/f").st_mtim.tv_nsec == 123'456'789);
  }
  SECTION("refused there") {
    Across place;
    auto before = place.files.hook;
    place.files.hook = [&, before](std::string_view call, std::string_view name) {
      return place.refused && call == "set_mtime" ? -EPERM : before(call, name);
    };
    place.commit();
    place.files.hook = nullptr;
    CHECK(place.batch[0].outcome == CommitOutcome::ok);
    CHECK(place.batch[0].attributes_refused);
    CHECK(place.temporary.read("d/f") == "abc");
  }
}

}  // namespace ccixfer::recv

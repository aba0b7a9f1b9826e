// The table of a file's pieces, its staged file, and what is read back of it.
#include "app/recv/pieces.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "app/session/holes.h"
#include "tests/unit/recv/not_root.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv {

using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;

std::vector<std::byte> some_data(size_t size_bytes, uint8_t seed) {
  std::vector<std::byte> data(size_bytes);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7 + i / 251 + seed);
  return data;
}

struct Staged : Place {
  explicit Staged(uint64_t size_bytes = 10, uint32_t mode = 0644) {
    task.index = 3;
    task.path = "f";
    task.key = path_key("f");
    task.size_bytes = size_bytes;
    task.version = 5;
    task.attributes.mode = mode;
  }
  [[nodiscard]] std::unique_ptr<StagedFile> file(bool resumed = false) const {
    return std::make_unique<StagedFile>(*root->opened(), task, resumed);
  }
  [[nodiscard]] std::string name() const { return ".ccixfer/" + staged_name(task.key, task.version); }
  HeldFileRef open(StagedFile& staged) {
    HeldFileRef held;
    REQUIRE(staged.open(held) == 0);
    return held;
  }
  FileTask task;
};

}  // namespace

TEST_CASE("staged_file__in_place__of_another_file_than_the_verdict_saw__is_stale") {
  Staged test;
  const std::string path = test.temporary.path("f");
  std::ofstream(path) << "old";
  const struct stat seen = test.stat_of("f");
  test.task.in_place = true;
  test.task.device = seen.st_dev;
  test.task.inode = seen.st_ino;
  StagedFile staged(*test.root->opened(), test.task, false, test.directories.get(), test.owner.get());
  HeldFileRef held;
  CHECK(staged.open(held) == 0);
  held.reset();
  staged.let_go();
  std::ofstream(test.temporary.path("g")) << "another";
  std::filesystem::rename(test.temporary.path("g"), path);
  CHECK(staged.open(held) == -ESTALE);
  // Where numbers do not last, it may be the same file.
  test.files.tells = [](ports::SpaceInfo& space) { space.lasting_identity = false; };
  CHECK(staged.open(held) == 0);
  test.files.tells = nullptr;
}

TEST_CASE("piece_table__states_in_any_order__counts_what_is_written_and_knows_the_end") {
  PieceTable table;
  CHECK(table.state(0) == PieceState::absent);
  CHECK(table.written() == 0);
  CHECK(table.end() == 0);
  uint64_t count = 0;
  for (const uint64_t number : {255u, 0u, 256u, 1000u}) {
    CHECK(table.state(number) == PieceState::absent);
    table.set_state(number, PieceState::writing);
    CHECK(table.written() == count);
    table.set_state(number, PieceState::written);
    CHECK(table.state(number) == PieceState::written);
    CHECK(table.written() == ++count);
    table.set_state(number, PieceState::durable);
    CHECK(table.written() == count);
  }
  CHECK(table.end() == 1001);
  table.set_state(1000, PieceState::absent);
  table.set_state(255, PieceState::writing);
  CHECK(table.written() == 2);
  CHECK(table.state(1000) == PieceState::absent);
  CHECK(table.state(1001) == PieceState::absent);
  CHECK(table.state(100'000) == PieceState::absent);
  CHECK(table.end() == 1001);
}

TEST_CASE("piece_table__runs_of_holes__are_written_pieces_of_zeros_and_cost_nothing") {
  const Hash128 zeros = session::hash_of_zeros(session::piece_bytes);
  PieceTable table;
  REQUIRE(table.expect(1000, Hash128{1, 2}));
  CHECK(table.unknown(0, 5000) == 1000);
  CHECK(table.unknown(1000, 5000) == 0);
  CHECK(table.unknown(1001, 5000) == 3999);
  table.add_holes(10, 90);
  table.add_holes(200, 100);
  CHECK(table.written() == 190);
  CHECK(table.end() == 300);
  CHECK(table.unknown(5, 5000) == 5);
  CHECK(table.unknown(100, 5000) == 100);
  CHECK(table.unknown(150, 180) == 30);
  table.add_holes(100, 100);  // between both
  table.add_holes(9, 1);
  CHECK(table.written() == 291);
  CHECK(table.unknown(9, 5000) == 0);
  CHECK(table.unknown(300, 5000) == 700);
  for (const uint64_t number : {uint64_t{9}, uint64_t{150}, uint64_t{299}}) {
    CHECK(table.state(number) == PieceState::durable);
    CHECK(table.hash(number) == zeros);
    CHECK(table.expect(number, zeros));
    CHECK_FALSE(table.expect(number, Hash128{1, 2}));
  }
  CHECK(table.state(8) == PieceState::absent);
  CHECK(table.state(300) == PieceState::absent);
  table.add_holes(uint64_t{1} << 20, uint64_t{1} << 24);  // 64 TiB
  CHECK(table.written() == 291 + (uint64_t{1} << 24));
}

TEST_CASE("piece_table__digest_with_holes__is_that_of_all_hashes") {
  PieceTable table;
  table.add_holes(1, 600);
  std::vector<Hash128> hashes(602, session::hash_of_zeros(session::piece_bytes));
  for (const uint64_t number : {uint64_t{0}, uint64_t{601}}) {
    hashes[number] = Hash128{number + 3, 4};
    REQUIRE(table.expect(number, hashes[number]));
    table.set_state(number, PieceState::durable);
  }
  CHECK(table.digest(602) == session::file_digest(hashes));
}

TEST_CASE("piece_table__the_hash_of_the_first_segment__counts_for_all_that_come_later") {
  PieceTable table;
  const Hash128 first{1, 2};
  const Hash128 other{1, 3};
  for (const uint64_t number : {0u, 1u, 256u}) {
    CHECK(table.expect(number, first));
    CHECK(table.expect(number, first));
    CHECK_FALSE(table.expect(number, other));
    CHECK(table.hash(number) == first);
  }
  CHECK(table.expect(2, other));
  CHECK(table.digest(3) == session::file_digest({first, first, other}));
  CHECK(table.digest(0) == session::file_digest({}));
}

TEST_CASE("pieces__numbers_and_lengths__cover_the_file") {
  for (const uint64_t size_bytes : {uint64_t{0}, uint64_t{1}, piece - 1, piece, piece + 1, 3 * piece}) {
    uint64_t sum = 0;
    for (uint64_t number = 0; number < piece_count(size_bytes); ++number) {
      CHECK(piece_length(size_bytes, number) > 0);
      sum += piece_length(size_bytes, number);
    }
    CHECK(sum == size_bytes);
  }
}

TEST_CASE("pieces__missing_ranges__between_and_behind_what_is_there") {
  const auto ranges = [](const std::vector<uint64_t>& present, uint64_t count) {
    std::vector<Ledger::Piece> pieces;
    for (const uint64_t number : present) pieces.push_back({number, {}});
    std::vector<std::pair<uint64_t, uint64_t>> found;
    for (const auto& range : missing_ranges(pieces, count)) found.emplace_back(range.first, range.count);
    return found;
  };
  using Found = std::vector<std::pair<uint64_t, uint64_t>>;
  CHECK(ranges({}, 0).empty());
  CHECK(ranges({}, 3) == Found{{0, 3}});
  CHECK(ranges({0, 1, 2}, 3).empty());
  CHECK(ranges({1}, 3) == Found{{0, 1}, {2, 1}});
  CHECK(ranges({0, 3, 4}, 9) == Found{{1, 2}, {5, 4}});
}

TEST_CASE("staged_file__made_once__opened_again_it_keeps_what_it_has") {
  Staged place(10, 0444);
  const auto staged = place.file();
  HeldFileRef held = place.open(*staged);
  CHECK((place.stat_of(place.name()).st_mode & 0777u) == (0644u & ~place.policy.umask));  // ours to write
  REQUIRE(staged->write(*held, as_bytes("abc"), 2) == 0);
  CHECK(place.open(*staged) == held);
  REQUIRE(staged->sync() == 0);
  CHECK(place.open(*staged) == held);
  held.reset();
  staged->let_go();
  held = place.open(*staged);
  REQUIRE(staged->write(*held, as_bytes("d"), 5) == 0);
  CHECK(place.temporary.read(place.name()) == std::string("\0\0abcd", 6));
}

TEST_CASE("staged_file__of_an_earlier_run__is_not_made_anew_nor_cut") {
  Staged place;
  HeldFileRef held;
  CHECK(place.file(true)->open(held) == -ENOENT);
  CHECK_FALSE(place.temporary.has(place.name()));
  place.temporary.write(place.name(), "abc");
  place.open(*place.file(true));
  CHECK(place.temporary.read(place.name()) == "abc");
  place.open(*place.file(false));  // of this run: whatever stands there is worthless
  CHECK(place.temporary.read(place.name()).empty());
}

TEST_CASE("staged_file__removed__its_name_is_free_and_another_write_makes_it_anew") {
  Staged place;
  const auto staged = place.file();
  place.temporary.write(place.name(), "foreign");
  staged->remove();  // it made none
  CHECK(place.temporary.has(place.name()));
  HeldFileRef held = place.open(*staged);
  REQUIRE(staged->write(*held, as_bytes("abc"), 0) == 0);
  staged->remove();
  CHECK_FALSE(place.temporary.has(place.name()));
  held = place.open(*staged);
  CHECK(place.temporary.has(place.name()));
  CHECK(place.temporary.read(place.name()).empty());
}

// It has its final mode, but a sync failed and its pieces are void: the next run begins it anew.
TEST_CASE("staged_file__one_that_lets_nobody_write_is_in_the_way__it_goes") {
  const NotRoot account;
  const mode_t mode = GENERATE(0444u, 0400u, 0u);
  Staged place(10, 0600);
  place.temporary.write(place.name(), "abc");
  REQUIRE(::chmod(place.temporary.path(place.name()).c_str(), mode) == 0);
  HeldFileRef held;
  const auto staged = place.file(false);
  REQUIRE(staged->open(held) == 0);
  REQUIRE(staged->write(*held, as_bytes("d"), 0) == 0);
  CHECK(place.temporary.read(place.name()) == "d");
}

// The run before gave it its final mode, which lets nobody write.
TEST_CASE("staged_file__read_only_since_the_run_before__is_made_writable_first") {
  Staged place;
  place.temporary.write(place.name(), "abc");
  place.files.given.clear();
  int openings = 0;
  place.files.hook = [&](std::string_view call, std::string_view name) {
    const bool is_staged = call == "open" && name == staged_name(place.task.key, place.task.version);
    return is_staged && ++openings == 1 ? -EACCES : 0;
  };
  HeldFileRef held;
  SECTION("of an earlier run") {
    CHECK(place.file(true)->open(held) == 0);
    CHECK(place.files.given == std::vector<std::string>{"mode 600"});
    CHECK((place.stat_of(place.name()).st_mode & 0777u) == 0600);
    CHECK(openings == 3);  // in vain, to change its mode, and to write
  }
  SECTION("of this run: there is none yet") {
    std::filesystem::remove(place.temporary.path(place.name()));
    CHECK(place.file(false)->open(held) == -EACCES);
    CHECK(place.files.given.empty());
  }
  SECTION("its mode cannot be changed") {
    place.files.hook = [](std::string_view call, std::string_view name) {
      return call == "set_mode" || (call == "open" && name.ends_with(session::part_suffix)) ? -EACCES : 0;
    };
    CHECK(place.file(true)->open(held) == -EACCES);
    CHECK(place.files.given.empty());  // it could not even be opened
  }
  SECTION("nor is it ours") {
    place.files.hook = [&](std::string_view call, std::string_view name) {
      if (call == "set_mode") return -EPERM;
      return call == "open" && name.ends_with(session::part_suffix) && ++openings == 1 ? -EACCES : 0;
    };
    CHECK(place.file(true)->open(held) == -EACCES);
    CHECK(openings == 2);
  }
  place.files.hook = nullptr;
}

TEST_CASE("staged_file__sync_fails__its_descriptor_is_used_no_more") {
  Staged place;
  const auto staged = place.file();
  const HeldFileRef before = place.open(*staged);
  REQUIRE(staged->write(*before, as_bytes("abc"), 0) == 0);
  place.files.hook = [](std::string_view call, std::string_view) { return call == "fsync" ? -EIO : 0; };
  CHECK(staged->sync() == -EIO);
  place.files.hook = nullptr;
  const HeldFileRef after = place.open(*staged);
  CHECK(after != before);
  CHECK(staged->sync() == 0);
  CHECK(place.temporary.read(place.name()) == "abc");
}

TEST_CASE("staged_file__sync_fails__what_the_page_cache_still_shows_of_it_is_dropped") {
  Staged place;
  const auto staged = place.file();
  const HeldFileRef held = place.open(*staged);
  REQUIRE(staged->write(*held, as_bytes("abc"), 0) == 0);
  std::vector<std::string> calls;
  bool fails = true;
  place.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "fsync" || call == "drop_cached") calls.emplace_back(call);
    return fails && call == "fsync" ? -ENOSPC : 0;
  };
  CHECK(staged->sync() == -ENOSPC);
  CHECK(calls == std::vector<std::string>{"fsync", "drop_cached"});
  calls.clear();
  fails = false;
  CHECK(staged->sync() == 0);
  CHECK(calls == std::vector<std::string>{"fsync"});
  place.files.hook = nullptr;
}

TEST_CASE("find_damaged__a_sparse_file__what_was_left_out_at_its_end_is_no_damage") {
  Staged place(3 * piece);
  place.task.sparse = true;
  const auto staged = place.file();
  const HeldFileRef held = place.open(*staged);
  REQUIRE(staged->write(*held, some_data(10, 1), piece) == 0);
  REQUIRE(staged->write(*held, std::vector<std::byte>(piece), 2 * piece) == 0);  // left out
  REQUIRE(staged->sync() == 0);
  CHECK(place.stat_of(place.name()).st_size == static_cast<off_t>(piece + 10));
  Xxh3Blocks zeros;
  zeros.update(std::vector<std::byte>(piece));
  std::vector<uint64_t> damaged;
  CHECK(find_damaged(*place.root->opened(), *place.owner, *staged, {{2, zeros.digest()}}, damaged) == 0);
  CHECK(damaged.empty());
}

TEST_CASE("find_damaged__the_file_is_shorter_on_the_disk_than_it_should_be__what_lacks_is_damage") {
  const bool is_cut_within = GENERATE(true, false);
  Staged place(2 * piece);
  const auto staged = place.file();
  const HeldFileRef held = place.open(*staged);
  const std::vector<std::byte> data = some_data(piece, 1);
  REQUIRE(staged->write(*held, data, 0) == 0);
  REQUIRE(staged->write(*held, data, piece) == 0);
  REQUIRE(staged->sync() == 0);
  REQUIRE(place.files.truncate(held->fd(), is_cut_within ? piece + 5000 : piece) == 0);
  std::vector<uint64_t> damaged;
  const std::vector<Ledger::Piece> pieces{{0, xxh3_128(data)}, {1, xxh3_128(data)}};
  CHECK(find_damaged(*place.root->opened(), *place.owner, *staged, pieces, damaged) == 0);
  CHECK(damaged == std::vector<uint64_t>{1});
}

// Nobody knows its length yet, and what is left out at its end is none of the file's.
TEST_CASE("find_damaged__a_sparse_stream_that_ends_in_zeros__is_no_damage") {
  Staged place(size_unknown);
  place.task.sparse = true;
  const auto staged = place.file();
  std::vector<Ledger::Piece> pieces;
  for (uint64_t number = 0; number < 2; ++number) {
    std::vector<std::byte> data = some_data(number == 0 ? piece : 30'000, 1);
    std::fill(data.end() - 20'000, data.end(), std::byte{0});
    session::SegmentHeader header;
    header.sequence = number;
    header.data_bytes = static_cast<uint32_t>(data.size());
    header.hash = xxh3_128(data);
    pieces.push_back({number, header.hash});
    const PieceWritten written = write_piece(*staged, data, header, nullptr);
    REQUIRE((written.error_number == 0 && !written.is_damaged));
  }
  REQUIRE(staged->sync() == 0);
  CHECK(place.stat_of(place.name()).st_size < static_cast<off_t>(piece + 30'000));
  std::vector<uint64_t> damaged;
  CHECK(find_damaged(*place.root->opened(), *place.owner, *staged, pieces, damaged) == 0);
  CHECK(damaged.empty());
  CHECK(place.stat_of(place.name()).st_size == static_cast<off_t>(piece + 30'000));
}

TEST_CASE("staged_file__cannot_be_opened_or_written__the_error") {
  Staged place;
  const auto staged = place.file();
  const HeldFileRef held = place.open(*staged);
  place.files.hook = [](std::string_view call, std::string_view) { return call == "pwrite" ? -ENXIO : 0; };
  CHECK(staged->write(*held, as_bytes("abc"), 0) == -ENXIO);
  place.files.hook = [](std::string_view call, std::string_view) { return call == "open" ? -EMFILE : 0; };
  HeldFileRef none;
  const auto other = place.file();
  CHECK(other->open(none) == -EMFILE);
  CHECK(none == nullptr);
  CHECK(other->sync() == -EMFILE);
  place.files.hook = nullptr;
}

// Only a file that may not be written is made writable and opened again.
TEST_CASE("staged_file__opening_fails_once_by_the_disk__the_error_and_no_second_try") {
  Staged place;
  { const HeldFileRef held = place.open(*place.file()); }  // it exists
  int openings = 0;
  place.files.hook = [&openings](std::string_view call, std::string_view name) {
    return call == "open" && name.ends_with(session::part_suffix) && ++openings == 1 ? -EIO : 0;
  };
  HeldFileRef held;
  CHECK(place.file(true)->open(held) == -EIO);
  CHECK(openings == 1);
  place.files.hook = nullptr;
}

TEST_CASE("staged_file__staging_is_gone__stale") {
  Staged place;
  std::filesystem::remove_all(place.temporary.path(".ccixfer"));
  HeldFileRef held;
  CHECK(place.file()->open(held) == -ESTALE);
}

TEST_CASE("write_all__a_write_of_nothing__is_no_space") {
  Staged place;
  const HeldFileRef held = place.open(*place.file());
  CHECK(write_all(place.files, held->fd(), {}, 0) == 0);
  place.files.write_max = 0;
  CHECK(write_all(place.files, held->fd(), as_bytes("abc"), 0) == -ENOSPC);
  place.files.write_max = 2;
  CHECK(write_all(place.files, held->fd(), as_bytes("abcde"), 1) == 0);
  CHECK(place.temporary.read(place.name()) == std::string("\0abcde", 6));
}

namespace {

// Two files with a piece each, in one batch.
struct Batch : Staged {
  Batch() : Staged(3) {
    files_of.resize(2);
    for (size_t i = 0; i < 2; ++i) {
      auto of = std::make_shared<FileTask>(task);
      of->path = i == 0 ? "f" : "g";
      of->key = path_key(of->path);
      files_of[i].task = of;
      files_of[i].staged = std::make_shared<StagedFile>(*root->opened(), *of, false);
      files_of[i].pieces = {{0, {i, i}}};
      const HeldFileRef held = open(*files_of[i].staged);
      REQUIRE(files_of[i].staged->write(*held, as_bytes("abc"), 0) == 0);
    }
  }
  std::vector<std::string> known() {
    std::vector<std::string> paths;
    for (const SyncFile& file : files_of) {
      if (!root->opened()->ledger->pieces(file.task->ledger_file()).value().empty()) paths.push_back(file.task->path);
    }
    return paths;
  }
  std::vector<SyncFile> files_of;
};

}  // namespace

TEST_CASE("sync_pieces__one_file_fails__the_others_are_in_the_ledger") {
  Batch batch;
  int syncs = 0;
  batch.files.hook = [&](std::string_view call, std::string_view) { return call == "fsync" && ++syncs == 1 ? -EIO : 0; };
  CHECK_FALSE(sync_pieces(*batch.root->opened(), Owner{}, batch.files_of).has_value());
  batch.files.hook = nullptr;
  CHECK(batch.files_of[0].error_number == EIO);
  CHECK(batch.files_of[1].error_number == 0);
  CHECK(syncs == 3);  // and staging
  CHECK(batch.known() == std::vector<std::string>{"g"});
}

// A batch may be long and the disk slow: that it gets on is seen between the calls, whether or not they go well.
TEST_CASE("sync_pieces__each_file__is_a_step_before_its_sync") {
  Batch batch;
  const bool fails = GENERATE(false, true);
  const Owner owner{};
  std::vector<uint64_t> steps;  // at each sync
  batch.files.hook = [&](std::string_view call, std::string_view) {
    if (call == "fsync") steps.push_back(owner.steps.load());
    return call == "fsync" && fails ? -ENXIO : 0;
  };
  CHECK_FALSE(sync_pieces(*batch.root->opened(), owner, batch.files_of).has_value());
  batch.files.hook = nullptr;
  CHECK(steps == std::vector<uint64_t>{1, 2, 2});  // the last is of the directory that has their names
  for (const SyncFile& file : batch.files_of) CHECK(file.error_number == (fails ? ENXIO : 0));
  CHECK(batch.known().size() == (fails ? 0u : 2u));
}

TEST_CASE("sync_pieces__no_file__names_are_synced_all_the_same_and_no_row_is_made") {
  Batch batch;
  std::vector<SyncFile> none;
  int syncs = 0;
  batch.files.hook = [&](std::string_view call, std::string_view) {
    syncs += call == "fsync" ? 1 : 0;
    return 0;
  };
  const Owner owner{};
  CHECK_FALSE(sync_pieces(*batch.root->opened(), owner, none).has_value());
  CHECK(syncs == 1);
  CHECK(owner.steps == 0);
  CHECK(batch.root->opened()->ledger->empty());
}

TEST_CASE("sync_pieces__names_are_not_durable__no_row_points_to_them") {
  Batch batch;
  int syncs = 0;
  const bool one_failed_itself = GENERATE(false, true);
  batch.files.hook = [&](std::string_view call, std::string_view) {
    if (call != "fsync") return 0;
    ++syncs;
    return syncs == 3 ? -ENXIO : syncs == 1 && one_failed_itself ? -EIO : 0;
  };
  CHECK_FALSE(sync_pieces(*batch.root->opened(), Owner{}, batch.files_of).has_value());
  batch.files.hook = nullptr;
  CHECK(batch.files_of[0].error_number == (one_failed_itself ? EIO : ENXIO));
  CHECK(batch.files_of[1].error_number == ENXIO);
  CHECK(batch.known().empty());
}

TEST_CASE("sync_pieces__root_was_moved__interrupted") {
  Batch batch;
  const std::string moved = batch.temporary.path() + "-moved";
  std::filesystem::rename(batch.temporary.path(), moved);
  const auto failure = sync_pieces(*batch.root->opened(), Owner{}, batch.files_of);
  std::filesystem::rename(moved, batch.temporary.path());
  REQUIRE(failure);
  CHECK(failure->kind == ErrorKind::interrupted);
  CHECK(batch.known().empty());
}

TEST_CASE("sync_pieces__nobody_writes__the_file_is_closed_if_it_may_be") {
  Batch batch;
  const bool nobody_writes = GENERATE(true, false);
  for (SyncFile& file : batch.files_of) file.let_go = nobody_writes;
  int closed = 0;
  batch.files.hook = [&](std::string_view call, std::string_view) {
    closed += call == "close" ? 1 : 0;
    return 0;
  };
  CHECK_FALSE(sync_pieces(*batch.root->opened(), Owner{}, batch.files_of).has_value());
  CHECK(closed == (nobody_writes ? 2 : 0));
  batch.files.hook = nullptr;
  CHECK(batch.known() == std::vector<std::string>{"f", "g"});
}

TEST_CASE("read_back__only_what_the_ledger_names_and_the_disk_has__counts") {
  Staged place(2 * piece + 100);
  const auto data = some_data(static_cast<size_t>(place.task.size_bytes), 1);
  const auto part = [&](uint64_t number) {
    return Bytes(data).subspan(static_cast<size_t>(number * piece), static_cast<size_t>(piece_length(data.size(), number)));
  };
  const Owner reader{};
  CHECK(read_back(*place.root->opened(), place.task, reader).empty());
  REQUIRE(place.root->opened()->ledger->add(
      {{place.task.ledger_file(), "f", {{0, xxh3_128(part(0))}, {1, {1, 2}}, {2, xxh3_128(part(2))}, {3, {3, 4}}}}}));
  CHECK(read_back(*place.root->opened(), place.task, reader).empty());  // the rows alone are nothing
  CHECK(reader.steps == 0);
  const auto staged = place.file();
  HeldFileRef held = place.open(*staged);
  REQUIRE(staged->write(*held, data, 0) == 0);
  const auto numbers = [&] {
    std::vector<uint64_t> found;
    for (const Ledger::Piece& good : read_back(*place.root->opened(), place.task, reader)) found.push_back(good.number);
    return found;
  };
  CHECK(numbers() == std::vector<uint64_t>{0, 2});
  CHECK(reader.steps == 3);  // one of them is behind the end of the file
  place.files.read_max = piece / 3 + 1;
  CHECK(numbers() == std::vector<uint64_t>{0, 2});
  place.files.read_max = ~size_t{0};
  REQUIRE(place.files.truncate(held->fd(), data.size() - 1) == 0);
  CHECK(numbers() == std::vector<uint64_t>{0});
  place.files.hook = [](std::string_view call, std::string_view) { return call == "pread" ? -EIO : 0; };
  CHECK(numbers().empty());
  place.files.hook = nullptr;
}

TEST_CASE("digest_of__whole_files_only__a_step_each_piece") {
  Staged place;
  const auto data = some_data(static_cast<size_t>(piece + 5), 2);
  const auto staged = place.file();
  const HeldFileRef held = place.open(*staged);
  REQUIRE(staged->write(*held, data, 0) == 0);
  const Hash128 wanted = session::file_digest({xxh3_128(Bytes(data).first(piece)), xxh3_128(Bytes(data).subspan(piece))});
  const Owner reader{};
  CHECK(digest_of(place.files, held->fd(), data.size(), reader) == wanted);
  CHECK(reader.steps == 2);
  place.files.read_max = 1'000'003;
  CHECK(digest_of(place.files, held->fd(), data.size(), reader) == wanted);
  CHECK(digest_of(place.files, held->fd(), 5, reader) == session::file_digest({xxh3_128(Bytes(data).first(5))}));
  CHECK_FALSE(digest_of(place.files, held->fd(), data.size() + 1, reader).has_value());
  CHECK(digest_of(place.files, held->fd(), 0, reader) == session::file_digest({}));
  place.files.hook = [](std::string_view call, std::string_view) { return call == "pread" ? -EIO : 0; };
  CHECK_FALSE(digest_of(place.files, held->fd(), data.size(), reader).has_value());
  place.files.hook = nullptr;
}

}  // namespace ccixfer::recv

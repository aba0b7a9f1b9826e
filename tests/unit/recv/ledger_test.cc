// The ledger of durable pieces: reopening, damage, older formats and other processes.
#include "app/recv/ledger.h"

#include <sqlite3.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "app/recv/names.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::recv {

using test::FaultyFiles;
using test::TemporaryDirectory;

namespace {

// Makes of a database one of the format before it had notes for people.
constexpr const char* without_notes =
    "ALTER TABLE file DROP COLUMN size; ALTER TABLE file DROP COLUMN peer; ALTER TABLE file DROP COLUMN since; ";

struct Place {
  Place() : directory(files.open(ports::FileSystem::no_directory, temporary.path(), {.directory = true}, 0)) {}
  ~Place() { files.close(directory); }
  Result<std::unique_ptr<Ledger>> open() { return Ledger::open(files, directory, temporary.path(), nullptr); }
  TemporaryDirectory temporary;
  FaultyFiles files;
  int directory;
};

const Ledger::File file_a{path_key("a"), 7};
const Ledger::File file_b{path_key("b"), 1};

}  // namespace

TEST_CASE("ledger__reopened__has_what_was_added") {
  Place place;
  {
    auto ledger = place.open().value();
    REQUIRE(ledger->empty());
    REQUIRE(ledger->add({{file_a, "a", {{3, {1, 2}}, {1, {3, 4}}}}, {file_b, "b", {{0, {5, 6}}}}}));
    REQUIRE(ledger->add({{file_a, "a", {{3, {8, 9}}}}}));
  }
  auto ledger = place.open().value();
  CHECK_FALSE(ledger->moved_aside());
  const auto pieces = ledger->pieces(file_a).value();
  REQUIRE(pieces.size() == 2);
  CHECK(pieces[0].number == 1);
  CHECK((pieces[1].hash == Hash128{8, 9}));
  CHECK(ledger->versions(file_a.key).value() == std::vector<uint64_t>{7});
  CHECK(ledger->pieces({file_a.key, 8}).value().empty());
}

TEST_CASE("ledger__removed__is_gone_after_reopen") {
  Place place;
  {
    auto ledger = place.open().value();
    REQUIRE(ledger->add({{file_a, "a", {{3, {1, 2}}}}, {file_b, "b", {{0, {5, 6}}}}}));
    REQUIRE(ledger->remove({file_a, {path_key("unknown"), 1}}));
    CHECK(ledger->pieces(file_a).value().empty());
  }
  auto ledger = place.open().value();
  CHECK(ledger->all().value() == std::vector<Ledger::File>{file_b});
  REQUIRE(ledger->remove({file_b}));
  CHECK(ledger->empty());
}

TEST_CASE("ledger__second_opener__is_told") {
  Place place;
  auto ledger = place.open().value();
  const auto second = place.open();
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::file_io);
  CHECK(second.error().message.find("another ccixfer") != std::string::npos);
}

TEST_CASE("ledger__cannot_be_opened__file_io_with_its_name") {
  Place place;
  place.temporary.write("ledger.db/in-the-way", "x");
  const auto ledger = place.open();
  REQUIRE_FALSE(ledger);
  CHECK(ledger.error().kind == ErrorKind::file_io);
  CHECK(ledger.error().message.find("ledger.db") != std::string::npos);
  CHECK(place.temporary.has("ledger.db/in-the-way"));
}

TEST_CASE("ledger__of_the_format_before__begins_empty_in_its_place") {
  Place place;
  {
    auto ledger = place.open().value();
    REQUIRE(ledger->add({{file_a, "a", {{3, {1, 2}}}}}));
  }
  {
    sqlite3* raw = nullptr;
    REQUIRE(sqlite3_open((place.temporary.path() + "/" + std::string(ledger_name)).c_str(), &raw) == SQLITE_OK);
    REQUIRE(sqlite3_exec(raw, (std::string(without_notes) + "PRAGMA user_version=1").c_str(), nullptr, nullptr, nullptr) ==
            SQLITE_OK);
    REQUIRE(sqlite3_close(raw) == SQLITE_OK);
  }
  for (int i = 0; i < 2; ++i) {
    auto ledger = place.open().value();
    CHECK_FALSE(ledger->moved_aside());
    CHECK(ledger->versions(file_a.key).value().empty() == (i == 0));
    REQUIRE(ledger->add({{file_a, "a", {{4, {1, 2}}}}}));
    CHECK(ledger->pieces(file_a).value().size() == 1);
  }
}

TEST_CASE("ledger__foreign_or_torn__moved_aside_and_begun_anew") {
  Place place;
  SECTION("not a database") { place.temporary.write("ledger.db", std::string(8192, 'x')); }
  SECTION("short") { place.temporary.write("ledger.db", "SQLite format 3"); }
  SECTION("torn") {
    {
      auto ledger = place.open().value();
      std::vector<Ledger::Piece> pieces;
      for (uint64_t i = 0; i < 2000; ++i) pieces.push_back({i, {i, i}});
      REQUIRE(ledger->add({{file_a, "a", pieces}}));
    }
    std::string content = place.temporary.read("ledger.db");
    REQUIRE(content.size() > 16384);
    for (size_t i = 4096; i < content.size(); ++i) content[i] = static_cast<char>(content[i] ^ 0x5a);
    place.temporary.write("ledger.db", content);
  }
  auto ledger = place.open().value();
  CHECK(ledger->moved_aside());
  CHECK(ledger->empty());
  CHECK(place.temporary.has("ledger.db.damaged-1"));
  REQUIRE(ledger->add({{file_a, "a", {{0, {1, 2}}}}}));
}

TEST_CASE("ledger__copied_while_open__the_copy_is_consistent") {
  // What a crash leaves: the files as they are at that moment, WAL included.
  Place place;
  auto ledger = place.open().value();
  TemporaryDirectory copy;
  for (uint64_t i = 0; i < 20; ++i) REQUIRE(ledger->add({{file_a, "a", {{i, {i, i}}}}}));
  for (const char* name : {"ledger.db", "ledger.db-wal"}) {
    if (place.temporary.has(name)) copy.write(name, place.temporary.read(name));
  }
  FaultyFiles files;
  const int directory = files.open(ports::FileSystem::no_directory, copy.path(), {.directory = true}, 0);
  {
    auto survivor = Ledger::open(files, directory, copy.path(), nullptr).value();
    CHECK(survivor->pieces(file_a).value().size() == 20);
  }
  files.close(directory);
}

TEST_CASE("ledger__one_file_twice_in_a_transaction__is_one_file_and_another_version_another") {
  Place place;
  const Ledger::File newer{file_a.key, 8};
  {
    auto ledger = place.open().value();
    REQUIRE(ledger->add({}));
    CHECK(ledger->empty());
    REQUIRE(ledger->add({{file_a, "a", {{0, {1, 2}}}},
                         {newer, "a", {{7, {1, 2}}}},
                         {file_b, "b", {{9, {1, 2}}}},
                         {file_a, "a", {{1, {3, 4}}, {0, {5, 6}}}}}));
    CHECK(ledger->all().value().size() == 3);
    CHECK_FALSE(ledger->empty());
  }
  auto ledger = place.open().value();
  CHECK(ledger->all().value().size() == 3);
  const auto pieces = ledger->pieces(file_a).value();
  REQUIRE(pieces.size() == 2);
  CHECK((pieces[0].hash == Hash128{5, 6}));
  CHECK((pieces[1].hash == Hash128{3, 4}));
  CHECK(ledger->pieces(newer).value().at(0).number == 7);
  std::vector<uint64_t> versions = ledger->versions(file_a.key).value();
  std::sort(versions.begin(), versions.end());
  CHECK(versions == std::vector<uint64_t>{7, 8});
  REQUIRE(ledger->remove({}));
  REQUIRE(ledger->remove({newer, file_b}));
  CHECK(ledger->all().value() == std::vector<Ledger::File>{file_a});
  CHECK(ledger->pieces(file_a).value().size() == 2);
  CHECK(ledger->pieces(newer).value().empty());
}

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    text += "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
    text += "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
  }
  return text;
}

// The first column of each row, of a ledger that is closed.
std::vector<std::string> read_all(const Place& place, const char* sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(place.temporary.path(std::string(ledger_name)).c_str(), &raw) == SQLITE_OK);
  std::vector<std::string> found;
  const auto take = [](void* into, int, char** values, char**) {
    static_cast<std::vector<std::string>*>(into)->emplace_back(values[0]);
    return 0;
  };
  REQUIRE(sqlite3_exec(raw, sql, take, &found, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_close(raw) == SQLITE_OK);
  return found;
}

void change(const Place& place, const char* sql) {
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open((place.temporary.path() + "/" + std::string(ledger_name)).c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_close(raw) == SQLITE_OK);
}

}  // namespace

// What an administrator finds in it, and what later versions find of this one.
TEST_CASE("ledger__its_rows__have_the_path_as_it_is_and_its_marks_say_whose_it_is") {
  Place place;
  const std::string path("d/new\nline \xff\0end", 16);
  const Ledger::File file{path_key(path), ~uint64_t{0}};  // a version is any 64 bits
  REQUIRE(place.open().value()->add({{file, path, {{0, {0x0102030405060708, 0xf1f2f3f4f5f6f7f8}}, {2, {1, 2}}}}}));
  CHECK(read_all(place, "SELECT hex(path) FROM file") == std::vector<std::string>{hex(path)});
  CHECK(read_all(place, "SELECT version FROM file") == std::vector<std::string>{"-1"});
  CHECK(read_all(place, "SELECT length(key) FROM file") == std::vector<std::string>{"16"});
  CHECK(read_all(place, "SELECT number FROM piece ORDER BY number") == std::vector<std::string>{"0", "2"});
  // The low half first, each from its lowest byte on.
  CHECK(read_all(place, "SELECT hex(hash) FROM piece WHERE number = 0") ==
        std::vector<std::string>{"0807060504030201F8F7F6F5F4F3F2F1"});
  CHECK(read_all(place, "PRAGMA application_id") == std::vector<std::string>{std::to_string(0x63636c67)});
  CHECK(read_all(place, "PRAGMA user_version") == std::vector<std::string>{"3"});
  CHECK(read_all(place, "PRAGMA journal_mode") == std::vector<std::string>{"wal"});
  auto ledger = place.open().value();
  CHECK(ledger->versions(file.key).value() == std::vector<uint64_t>{~uint64_t{0}});
  CHECK(ledger->pieces(file).value().size() == 2);
  REQUIRE(ledger->remove({file}));
  ledger.reset();
  CHECK(read_all(place, "SELECT count(*) FROM file") == std::vector<std::string>{"0"});
  CHECK(read_all(place, "SELECT count(*) FROM piece") == std::vector<std::string>{"0"});
}

// Rows of the format before are of no use, and must not stay behind under a number that a file of now gets.
TEST_CASE("ledger__of_the_format_before__neither_files_nor_pieces_are_left") {
  Place place;
  REQUIRE(place.open().value()->add({{file_a, "a", {{3, {1, 2}}}}, {file_b, "b", {{4, {1, 2}}}}}));
  change(place, (std::string(without_notes) + "PRAGMA user_version=1").c_str());
  CHECK(place.open().value()->empty());
  CHECK(read_all(place, "SELECT count(*) FROM file") == std::vector<std::string>{"0"});
  CHECK(read_all(place, "SELECT count(*) FROM piece") == std::vector<std::string>{"0"});
  CHECK(read_all(place, "PRAGMA user_version") == std::vector<std::string>{"3"});
  CHECK_FALSE(place.temporary.has("ledger.db.damaged-1"));
}

// The format before the one with notes: what is durable stays so, and who brought it nobody knows.
TEST_CASE("ledger__without_notes__they_are_added_and_the_pieces_stay") {
  Place place;
  REQUIRE(place.open().value()->add({{file_a, "a", {{3, {1, 2}}}}}));
  change(place, (std::string(without_notes) + "PRAGMA user_version=2").c_str());
  {
    auto ledger = place.open().value();
    CHECK_FALSE(ledger->moved_aside());
    CHECK(ledger->pieces(file_a).value().size() == 1);
    Ledger::Addition addition{file_b, "b", {{0, {5, 6}}}};
    addition.size_bytes = 7;
    addition.peer = "alice";
    addition.now_s = 9;
    REQUIRE(ledger->add({addition}));
  }
  CHECK(read_all(place, "SELECT size || ' ' || CAST(peer AS TEXT) || ' ' || since FROM file ORDER BY id") ==
        std::vector<std::string>{"0  0", "7 alice 9"});
  CHECK(read_all(place, "PRAGMA user_version") == std::vector<std::string>{"3"});
}

TEST_CASE("ledger__damaged__what_stood_beside_it_goes_with_it") {
  Place place;
  place.temporary.write("ledger.db", std::string(8192, 'x'));
  for (const char* suffix : {"-wal", "-shm", "-journal"}) place.temporary.write(std::string("ledger.db") + suffix, "rubbish");
  {
    auto ledger = place.open().value();
    CHECK(ledger->moved_aside());
    REQUIRE(ledger->add({{file_a, "a", {{3, {1, 2}}}}}));
    CHECK_FALSE(place.temporary.has("ledger.db-shm"));  // one process alone has it open, without shared memory
    CHECK_FALSE(place.temporary.has("ledger.db-journal"));
  }
  CHECK(place.open().value()->all().value() == std::vector<Ledger::File>{file_a});
  CHECK(place.temporary.read("ledger.db.damaged-1") == std::string(8192, 'x'));
}

TEST_CASE("ledger__while_it_is_open__a_second_opener_hears_which_file_and_what_to_do") {
  Place place;
  const auto ledger = place.open().value();
  CHECK(place.open().error().message == "another ccixfer is writing below this root: " + place.temporary.path("ledger.db") +
                                            " is locked: wait until it ends, or give another directory");
}

TEST_CASE("ledger__of_another_program_or_a_later_one__moved_aside_whole") {
  Place place;
  REQUIRE(place.open().value()->add({{file_a, "a", {{3, {1, 2}}}}}));
  const std::string sql =
      GENERATE(as<std::string>(), "PRAGMA user_version=4", "PRAGMA user_version=0", "PRAGMA application_id=7",
               "PRAGMA user_version=1; PRAGMA application_id=7", "DROP TABLE piece", "ALTER TABLE file RENAME key TO k",
               "UPDATE file SET key = x'00'", "UPDATE file SET key = zeroblob(17)");
  INFO(sql);
  change(place, sql.c_str());
  const std::string content = place.temporary.read(std::string(ledger_name));
  auto ledger = place.open().value();
  CHECK(ledger->moved_aside());
  CHECK(ledger->empty());
  CHECK(place.temporary.read("ledger.db.damaged-1") == content);
  REQUIRE(ledger->add({{file_b, "b", {{3, {1, 2}}}}}));
  CHECK(ledger->all().value() == std::vector<Ledger::File>{file_b});
}

TEST_CASE("ledger__hash_of_an_impossible_length__that_piece_is_not_there") {
  Place place;
  REQUIRE(place.open().value()->add({{file_a, "a", {{3, {1, 2}}, {4, {0x0102030405060708, 0xf1f2f3f4f5f6f7f8}}}}}));
  change(place, "UPDATE piece SET hash = x'00' WHERE number = 3");
  auto ledger = place.open().value();
  const auto pieces = ledger->pieces(file_a).value();
  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].number == 4);
  CHECK((pieces[0].hash == Hash128{0x0102030405060708, 0xf1f2f3f4f5f6f7f8}));
}

TEST_CASE("ledger__damaged_again_and_again__sixteen_copies_are_kept") {
  Place place;
  for (int i = 1; i <= 18; ++i) {
    place.temporary.write("ledger.db", "rubbish " + std::to_string(i) + std::string(1000, 'x'));
    place.temporary.write("ledger.db-wal", "rubbish");
    CHECK(place.open().value()->moved_aside());
  }
  for (int i = 1; i <= 15; ++i) {
    const std::string copy = place.temporary.read("ledger.db.damaged-" + std::to_string(i));
    CHECK(copy.starts_with("rubbish " + std::to_string(i) + "x"));
  }
  CHECK(place.temporary.read("ledger.db.damaged-16").starts_with("rubbish 18x"));
  CHECK_FALSE(place.temporary.has("ledger.db.damaged-17"));
}

// Its schema and its first page are good: only a look at all of it tells.
TEST_CASE("ledger__damaged_in_its_middle__moved_aside_and_begun_anew") {
  Place place;
  Ledger::Addition large{file_a, "a", {}};
  for (uint64_t number = 0; number < 5'000; ++number) large.pieces.push_back({number, {number, 1}});
  REQUIRE(place.open().value()->add({large}));
  const std::string path = place.temporary.path("ledger.db");
  std::string bytes = place.temporary.read("ledger.db");
  REQUIRE(bytes.size() > 20 * 4096);
  bytes.replace(10 * 4096, 4096, 4096, '\xee');
  place.temporary.write("ledger.db", bytes);
  const auto ledger = place.open().value();
  CHECK(ledger->moved_aside());
  CHECK(ledger->empty());
  CHECK(place.temporary.has("ledger.db.damaged-1"));
}

TEST_CASE("ledger__damaged_and_cannot_be_moved__file_io_and_it_stays") {
  Place place;
  const std::string content(8192, 'x');
  place.temporary.write("ledger.db", content);
  place.files.hook = [](std::string_view call, std::string_view) { return call == "rename_at" ? -EPERM : 0; };
  const auto ledger = place.open();
  REQUIRE_FALSE(ledger);
  CHECK(ledger.error().kind == ErrorKind::file_io);
  CHECK(place.temporary.read("ledger.db") == content);
}

}  // namespace ccixfer::recv

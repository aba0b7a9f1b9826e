// --verify: what the disk damages below the page cache is found before it counts as durable, and is fetched again.
#include "app/recv/at_rest.h"

#include <catch2/catch.hpp>

#include "tests/unit/recv/sim_disk_rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

constexpr uint64_t piece = session::piece_bytes;
constexpr uint32_t verifying = archive | session::option_verify;

struct Rig : SimDiskRig {
  using SimDiskRig::SimDiskRig;
  void begin(uint32_t options, const std::vector<session::Entry>& entries) {
    SimDiskRig::begin(options);
    announce(entries);
  }
  void put_pack(const std::map<uint64_t, std::string>& content) {
    REQUIRE(session->run([&] { return session->source.has_credit(); }));
    session->source.put_pack(content);
  }
  bool run_until_resends(size_t count) {
    return session->run([&] { return session->source.resends.size() == count; });
  }
  bool run_until_aborted() {
    return session->run([&] { return session->source.aborted != nullptr; });
  }
  // What stands there once nothing is in memory any more.
  [[nodiscard]] std::optional<std::string> on_disk(const std::string& path) {
    session.reset();
    files.crash();
    files.mount();
    return files.get(path);
  }
};

std::vector<sim::FileSystemOptions> disks() {
  return {{}, {.has_direct = false}, {.syncfs_tells = false}, {.short_io_chance = 0.5, .has_direct = false}};
}

}  // namespace

TEST_CASE("verify__disk_damages_a_piece__it_comes_again_and_no_row_is_made_before") {
  for (const sim::FileSystemOptions& disk : disks()) {
    Rig rig(disk);
    const std::string data = pattern(2 * piece - 77, 'a');
    rig.begin(verifying, {file_entry("f", data.size())});
    rig.files.set_decay_chance(1);
    rig.put_piece(1, part(data, 1));
    REQUIRE(rig.run_until_resends(1));
    CHECK(rig.asked_again() == std::vector<uint64_t>{1});
    CHECK(rig.root->opened()->ledger->empty());
    CHECK(rig.session->source.durable.bytes == 0);
    CHECK(rig.session->notes.warnings.size() == 1);
    rig.files.set_decay_chance(0);
    rig.put_piece(0, part(data, 0));
    rig.put_piece(1, part(data, 1));
    rig.post_end();
    REQUIRE(rig.run_until_result());
    CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
    CHECK(rig.session->source.durable.bytes == data.size());
    CHECK((rig.on_disk("/root/f") == data));
  }
}

TEST_CASE("verify__file_is_complete_before_its_first_sync__damage_is_found_before_the_rename") {
  for (const sim::FileSystemOptions& disk : disks()) {
    Rig rig(disk);
    const std::string data = pattern(2 * piece - 77, 'a');
    rig.files.put("/root/f", "old");
    rig.begin(verifying, {file_entry("f", data.size())});
    rig.files.set_decay_chance(1);
    rig.put_piece(0, part(data, 0));
    rig.put_piece(1, part(data, 1));
    rig.post_end();
    REQUIRE(rig.run_until_resends(2));
    CHECK(rig.asked_again() == std::vector<uint64_t>{0, 1});
    CHECK(rig.files.get("/root/f") == "old");
    rig.files.set_decay_chance(0);
    rig.put_piece(0, part(data, 0));
    rig.put_piece(1, part(data, 1));
    REQUIRE(rig.run_until_result());
    CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
    CHECK((rig.on_disk("/root/f") == data));
  }
}

TEST_CASE("verify__disk_damages_a_small_file__that_one_comes_again_and_the_others_are_placed") {
  for (const sim::FileSystemOptions& disk : disks()) {
    for (const uint32_t mode : {0600u, 0200u}) {  // what its owner may not read is read back in time
      Rig rig(disk);
      std::vector<session::Entry> entries{file_entry("a", 5000), file_entry("b", 5000), file_entry("empty", 0)};
      for (session::Entry& entry : entries) entry.mode = mode;
      const std::string data = pattern(5000, 'a');
      rig.begin(verifying, entries);
      rig.put_pack({{1, data}, {2, ""}});
      REQUIRE(rig.session->run([&] { return rig.session->source.results.size() == 2; }));
      rig.files.set_decay_chance(1);
      rig.put_pack({{0, data}});
      REQUIRE(rig.run_until_resends(1));
      CHECK(rig.asked_again() == std::vector<uint64_t>{session::Resend::whole});
      CHECK_FALSE(rig.files.get("/root/a").has_value());
      rig.files.set_decay_chance(0);
      rig.put_pack({{0, data}});
      REQUIRE(rig.run_until_result());
      CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
      CHECK((rig.on_disk("/root/a") == data));
      CHECK((rig.files.get("/root/b") == data));
      CHECK((rig.files.get("/root/empty") == ""));
    }
  }
}

TEST_CASE("verify__the_same_place_is_damaged_again__the_session_ends_and_says_whose_fault_it_is") {
  Rig rig;
  const std::string data = pattern(2 * piece, 'a');
  rig.files.set_decay_chance(1);
  SECTION("a piece") {
    rig.begin(verifying, {file_entry("f", data.size())});
    rig.put_piece(1, part(data, 1));
    REQUIRE(rig.run_until_resends(1));
    rig.put_piece(1, part(data, 1));
  }
  SECTION("a small file") {
    rig.begin(verifying, {file_entry("f", 100)});
    rig.put_pack({{0, pattern(100, 'a')}});
    REQUIRE(rig.run_until_resends(1));
    rig.put_pack({{0, pattern(100, 'a')}});
  }
  REQUIRE(rig.run_until_aborted());
  CHECK(rig.session->source.aborted->kind == ErrorKind::integrity);
  CHECK(rig.session->source.aborted->message.find("the receiver's disk damages") != std::string::npos);
  CHECK_FALSE(rig.files.get("/root/f").has_value());
}

// Else the next run would take what is damaged for the source's.
TEST_CASE("verify__in_place__a_damaged_file_has_not_the_time_that_says_that_it_is_the_sources") {
  const bool is_a_pack = GENERATE(true, false);
  Rig rig;
  const std::string data = pattern(is_a_pack ? 5000 : 2 * piece - 77, 'a');
  rig.files.put("/root/f", std::string(data.size(), 'o'), 0644, ports::FileTime{5, 0});
  const std::vector<session::Entry> entries{file_entry("f", data.size())};
  rig.begin(verifying | session::option_inplace, entries);
  rig.files.set_decay_chance(1);
  if (is_a_pack) {
    rig.put_pack({{0, data}});
  } else {
    rig.put_piece(0, part(data, 0));
    rig.put_piece(1, part(data, 1));
    rig.post_end();
  }
  REQUIRE(rig.session->run([&] { return rig.session->source.resends.size() == (is_a_pack ? 1u : 2u); }));
  rig.files.set_decay_chance(0);
  rig.begin(verifying | session::option_inplace, entries);
  CHECK(rig.session->source.verdicts[0] != Verdict::unchanged);
}

TEST_CASE("verify__in_place__over_a_longer_file__its_old_end_is_no_damage") {
  const bool is_a_stream = GENERATE(true, false);
  Rig rig;
  const std::string data = pattern(2 * piece - 77, 'a');
  rig.files.put("/root/f", std::string(3 * piece, 'o'), 0644, ports::FileTime{5, 0});
  rig.begin(verifying | session::option_inplace, {file_entry("f", is_a_stream ? size_unknown : data.size())});
  rig.put_piece(1, part(data, 1));
  rig.session->settle();  // it is synced and read back alone
  rig.put_piece(0, part(data, 0));
  session::FileEnd end;
  end.size_bytes = data.size();
  rig.session->source_link->post(end);
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.resends.empty());
  CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
  CHECK((rig.on_disk("/root/f") == data));
}

// What makes the tests above worth something: nobody else sees it.
TEST_CASE("verify__not_asked_for__damage_is_published") {
  Rig rig;
  const std::string data = pattern(2 * piece - 77, 'a');
  rig.begin(archive, {file_entry("f", data.size())});
  rig.files.set_decay_chance(1);
  rig.put_piece(0, part(data, 0));
  rig.put_piece(1, part(data, 1));
  rig.post_end();
  REQUIRE(rig.run_until_result());
  CHECK(rig.session->source.resends.empty());
  CHECK(rig.session->source.results[0].kind == ErrorKind::ok);
  CHECK((rig.files.get("/root/f") == data));  // as memory has it
  const auto there = rig.on_disk("/root/f");
  REQUIRE(there.has_value());
  CHECK(there->size() == data.size());
  CHECK((*there != data));
}

TEST_CASE("verify__resumed__pieces_in_the_ledger_are_read_from_the_disk_and_not_from_memory") {
  for (const bool has_direct : {true, false}) {
    for (const uint32_t options : {archive, verifying}) {
      Rig rig({.has_direct = has_direct});
      const std::string data = pattern(2 * piece, 'a');
      rig.begin(options, {file_entry("f", data.size())});
      rig.put_piece(0, part(data, 0));
      rig.put_piece(1, part(data, 1));
      REQUIRE(rig.session->run([&] { return rig.session->source.durable.bytes == data.size(); }));
      rig.session.reset();
      REQUIRE(rig.files.decay("/root/.ccixfer/" + staged_name(path_key("f"), 5), piece + 5));
      rig.begin(options, {file_entry("f", data.size())});
      REQUIRE(rig.session->source.verdicts[0] == Verdict::pieces);
      const bool is_found = !rig.session->source.wants[0].empty();
      CHECK(is_found == (options == verifying));
      if (is_found) CHECK(rig.session->source.wants[0][0].first == 1);
    }
  }
}

TEST_CASE("disk_reader__cannot_read__said_to_be_damage_or_why") {
  Rig rig;
  const std::string data = pattern(3u << 20, 'a');
  rig.files.put("/root/f", data);
  const Hash128 hash = xxh3_128(as_bytes(data));
  int error = 0;
  rig.files.set_hook([&error](std::string_view call, std::string_view) { return call == "pread" ? error : 0; });
  DiskReader reader(rig.files);
  reader.begin(rig.root->opened()->fd, "f", -1);
  CHECK(reader.compare(0, data.size(), hash) == AtRest::same);
  CHECK(reader.compare(0, data.size(), {}) == AtRest::damaged);
  CHECK(reader.compare(0, data.size() + 1, hash) == AtRest::damaged);
  CHECK(reader.compare(0, data.size() - 1, xxh3_128(as_bytes(data).first(data.size() - 1))) == AtRest::same);
  error = -EIO;
  CHECK(reader.compare(0, data.size(), hash) == AtRest::damaged);
  error = -ESTALE;
  CHECK(reader.compare(0, data.size(), hash) == AtRest::unreadable);
  CHECK(reader.error_number() == ESTALE);
  reader.begin(rig.root->opened()->fd, "nothing", -1);
  CHECK(reader.compare(0, 1, hash) == AtRest::unreadable);
  CHECK(reader.error_number() == ENOENT);
}

}  // namespace ccixfer::recv

// Large files that have an older version here: what the source is told of it, and what becomes of its answers.
#include "app/recv/piece_comparer.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <optional>

#include "tests/unit/recv/destination_rig.h"

namespace ccixfer::recv {

using session::Verdict;
using namespace test;

namespace {

std::string text_of(Bytes data) { return {reinterpret_cast<const char*>(data.data()), data.size()}; }

DestinationOptions with_options(uint32_t options, const std::string& path) {
  DestinationOptions all;
  all.options = options;
  all.path = path;
  return all;
}

struct CompareRig : Rig {
  explicit CompareRig(const std::vector<std::byte>& old, uint32_t with = archive) : Rig(with_options(with, "")) {
    temporary.write("f", text_of(old));
  }
  // Until the source knows of so many pieces.
  bool run_until_told(uint64_t pieces, uint64_t index = 0) {
    return session->run([&] { return told(index) >= pieces; });
  }
  [[nodiscard]] uint64_t told(uint64_t index = 0) const {
    uint64_t count = 0;
    for (const session::Compare& one : source().compares) count += one.index == index ? one.count : 0;
    return count;
  }
  [[nodiscard]] std::optional<Hash128> hash_of(uint64_t number) const {
    for (const session::Compare& one : source().compares) {
      if (number >= one.first && number < one.first + one.count && !one.hashes.empty()) return one.hashes[number - one.first];
    }
    return std::nullopt;
  }
  void say_same(uint64_t number, uint64_t count = 1) { session->source_link->post(session::Same{0, {{number, count}}}); }
  void end_and_check(const std::vector<std::byte>& data) {
    session->source_link->post(end_of(0));
    REQUIRE(run_until_result(0));
    CHECK(source().results[0].kind == ErrorKind::ok);
    CHECK((temporary.read("f") == text_of(data)));
    finish(announced);
  }
};

Bytes part(const std::vector<std::byte>& data, uint64_t number) {
  return Bytes(data).subspan(number * piece, std::min<size_t>(piece, data.size() - number * piece));
}

}  // namespace

TEST_CASE("piece_comparer__older_file_of_mostly_holes__is_sent_and_its_holes_are_not_read") {
  CompareRig rig(pattern(100, 1));
  REQUIRE(::truncate(rig.temporary.path("f").c_str(), off_t{100} * piece) == 0);
  rig.announce({file_entry("f", 100 * piece)});
  CHECK(rig.source().verdicts[0] == Verdict::send);
}

TEST_CASE("piece_comparer__some_pieces_differ__only_those_have_to_come") {
  const auto old = pattern(3 * piece + 100, 1);
  auto data = old;
  data[piece + 7] ^= std::byte{1};
  data.resize(3 * piece + 60);  // the last piece is the beginning of the old one
  CompareRig rig(old);
  rig.announce({file_entry("f", data.size())});
  CHECK(rig.source().verdicts[0] == Verdict::compare);
  CHECK_FALSE(rig.source().wants.contains(0));
  REQUIRE(rig.run_until_told(4));
  for (uint64_t number = 0; number < 4; ++number) CHECK((rig.hash_of(number) == xxh3_128(part(data, number))) == (number != 1));
  rig.say_same(0);
  rig.say_same(2, 2);
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == 2 * piece + 60; }));  // and they count as any other
  CHECK((rig.temporary.read("f") == text_of(old)));
  rig.put_piece(0, 1, part(data, 1));
  rig.end_and_check(data);
}

TEST_CASE("piece_comparer__an_appended_file__what_lies_behind_the_old_end_comes_without_a_look") {
  const auto data = pattern(4 * piece, 1);
  CompareRig rig({data.begin(), data.begin() + piece + 5});
  rig.announce({file_entry("f", data.size())});
  REQUIRE(rig.run_until_told(4));
  CHECK(rig.hash_of(0) == xxh3_128(part(data, 0)));
  for (uint64_t number = 1; number < 4; ++number) CHECK_FALSE(rig.hash_of(number));
  rig.say_same(0);
  for (uint64_t number = 1; number < 4; ++number) rig.put_piece(0, number, part(data, number));
  rig.end_and_check(data);
}

TEST_CASE("piece_comparer__nothing_to_compare__sent_as_ever") {
  const auto old = pattern(2 * piece, 1);
  const auto data = pattern(2 * piece, 2);
  SECTION("--whole-file") {
    CompareRig rig(old, archive | session::option_whole_file);
    rig.announce({file_entry("f", data.size())});
    CHECK(rig.source().verdicts[0] == Verdict::send);
  }
  SECTION("one piece") {
    CompareRig rig(old);
    rig.announce({file_entry("f", piece)});
    CHECK(rig.source().verdicts[0] == Verdict::send);
  }
  SECTION("the old file is shorter than the first piece") {
    CompareRig rig({old.begin(), old.begin() + 100});
    rig.announce({file_entry("f", data.size())});
    CHECK(rig.source().verdicts[0] == Verdict::send);
  }
}

TEST_CASE("piece_comparer__the_old_file_shrinks_or_vanishes__its_pieces_are_wanted") {
  const auto old = pattern(2 * piece, 1);
  CompareRig rig(old);
  const bool vanishes = GENERATE(true, false);
  rig.files.hook = [&](std::string_view call, std::string_view name) {
    if (call == "open" && name == "f" && vanishes) std::filesystem::remove(rig.temporary.path("f"));
    if (call == "open" && name == "f" && !vanishes) std::filesystem::resize_file(rig.temporary.path("f"), piece + 9);
    return 0;
  };
  rig.announce({file_entry("f", old.size())});
  REQUIRE(rig.run_until_told(2));
  CHECK(rig.hash_of(0).has_value() == !vanishes);
  CHECK_FALSE(rig.hash_of(1));
  vanishes ? rig.put_piece(0, 0, part(old, 0)) : rig.say_same(0);
  rig.put_piece(0, 1, part(old, 1));
  rig.end_and_check(old);
}

TEST_CASE("piece_comparer__it_changes_after_the_look__what_was_hashed_is_what_was_copied") {
  const auto old = pattern(2 * piece, 1);
  CompareRig rig(old);
  rig.announce({file_entry("f", old.size())});
  REQUIRE(rig.run_until_told(2));
  rig.temporary.write("f", text_of(pattern(2 * piece, 9)));
  rig.say_same(0, 2);
  rig.end_and_check(old);
}

TEST_CASE("piece_comparer__a_sync_fails_before_the_answer__what_was_copied_comes_again") {
  const auto old = pattern(2 * piece, 1);
  auto data = old;
  data[0] ^= std::byte{1};
  CompareRig rig(old);
  rig.announce({file_entry("f", data.size())});
  REQUIRE(rig.run_until_told(2));
  bool has_failed = false;
  rig.files.hook = [&](std::string_view call, std::string_view) {
    if (call != "fsync" || has_failed) return 0;
    has_failed = true;
    return -EIO;
  };
  rig.put_piece(0, 0, part(data, 0));
  REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 1; }));
  rig.say_same(1);
  REQUIRE(rig.session->run([&] { return rig.source().resends.size() == 2; }));
  CHECK(rig.source().resends[1].piece == 1);
  rig.put_piece(0, 0, part(data, 0));
  rig.put_piece(0, 1, part(data, 1));
  rig.end_and_check(data);
}

TEST_CASE("piece_comparer__an_interrupted_run__its_durable_pieces_are_not_compared_again") {
  const auto old = pattern(3 * piece, 1);
  CompareRig rig(old);
  rig.announce({file_entry("f", old.size())});
  REQUIRE(rig.run_until_told(3));
  rig.say_same(1);
  REQUIRE(rig.session->run([&] { return rig.source().durable.bytes == piece; }));
  rig.again();
  rig.announce({file_entry("f", old.size())});
  CHECK(rig.source().verdicts[0] == Verdict::compare);
  REQUIRE(rig.source().wants[0].size() == 2);
  REQUIRE(rig.run_until_told(2));
  rig.session->settle();
  CHECK(rig.told() == 2);
  rig.say_same(0);
  rig.say_same(2);
  rig.end_and_check(old);
}

TEST_CASE("piece_comparer__answers_that_make_no_sense__are_rejected") {
  const auto old = pattern(2 * piece, 1);
  CompareRig rig(old);
  rig.announce({file_entry("f", old.size())});
  REQUIRE(rig.run_until_told(2));
  const auto rejected = [&] { return rig.session->counters().get(Counter::session_rejected); };
  const uint64_t before = rejected();
  SECTION("a piece that there is not") { rig.say_same(2); }
  SECTION("a file that was not announced") { rig.session->source_link->post(session::Same{7, {{0, 1}}}); }
  SECTION("twice") {
    rig.say_same(0);
    rig.say_same(0);
  }
  SECTION("all pieces that a file can have") { rig.say_same(0, uint64_t{1} << 41); }
  rig.session->settle();
  CHECK(rejected() == before + 1);
}

TEST_CASE("piece_comparer__the_source_gives_the_file_up__nothing_of_it_stays") {
  CompareRig rig(pattern(2 * piece, 1));
  rig.announce({file_entry("f", 2 * piece)});
  REQUIRE(rig.run_until_told(1));
  rig.session->source_link->post(end_of(0, session::SourceOutcome::changed));
  REQUIRE(rig.run_until_result(0));
  CHECK(rig.source().results[0].kind == ErrorKind::vanished);
  CHECK((rig.temporary.read("f") == text_of(pattern(2 * piece, 1))));
  rig.finish(1);
}

TEST_CASE("piece_comparer__an_older_tree_has_another_version__it_serves_as_well") {
  const auto old = pattern(2 * piece, 1);
  DestinationOptions options = with_options(archive, "new");
  options.aside.older = {SidePlace{.path = "old"}};
  Rig rig(options);
  std::filesystem::create_directory(rig.temporary.path("old"));
  rig.temporary.write("old/f", text_of(old));
  rig.announce({directory_entry(""), file_entry("f", old.size())});
  CHECK(rig.source().verdicts[1] == Verdict::compare);
  REQUIRE(rig.session->run([&] { return rig.source().compares.size() == 2; }));
  rig.session->source_link->post(session::Same{1, {{0, 2}}});
  rig.session->source_link->post(end_of(1));
  REQUIRE(rig.run_until_result(1));
  CHECK((rig.temporary.read("new/f") == text_of(old)));
}

}  // namespace ccixfer::recv

// The names of a list: cleaned, in the order of a walk, asked one directory after the other, and as bytes.
#include "app/filter/path_list.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::filter;

namespace {

PathList list_of(const std::vector<std::string>& names, bool whole = false) {
  PathList list(whole);
  for (const std::string& name : names) list.add(name);
  list.close();
  return list;
}

// What a walk meets: `+` is listed, `/` with its content.
std::string walked(const PathList& list, PathList::Range range, const std::string& directory = "") {
  std::string text;
  while (!range.empty()) {
    const PathList::Child child = list.take(range, directory);
    text += std::string(child.name) + (child.listed ? "+" : "") + (child.content ? "/" : "");
    const std::string path = directory.empty() ? std::string(child.name) : directory + "/" + std::string(child.name);
    if (!child.below.empty()) text += "(" + walked(list, child.below, path) + ")";
    text += " ";
  }
  return text;
}

}  // namespace

TEST_CASE("path_list__names_as_typed__are_cleaned_and_in_the_order_of_a_walk") {
  const PathList list = list_of({"b", "a-b", "a/c/d", "./a//b/", "/a/c", "x/../b", "a/b", "../y"});
  CHECK(walked(list, list.all()) == "a(b+/ c+(d+ ) ) a-b+ b+ y+ ");
  CHECK_FALSE(list.has_top());
  const PathList top = list_of({"a", "."});
  CHECK(top.has_top());
  CHECK(walked(top, top.all()) == "a+ ");
  CHECK(top.names_top());
}

// As with rsync: `./` in front means the directory itself too, but nothing in it.
TEST_CASE("path_list__dot_and_slash_in_front__the_top_has_an_entry") {
  for (const bool whole : {false, true}) {
    const PathList list = list_of({"a/b", "./c"}, whole);
    CHECK_FALSE(list.has_top());
    CHECK(list.names_top());
    CHECK(list.allows("", true));
    CHECK_FALSE(list.allows("d", false));
    const auto again = PathList::decode(list.encode());
    REQUIRE(again);
    CHECK(again->names_top());
  }
  CHECK_FALSE(list_of({"a/./b", "c/"}).names_top());
  CHECK(list_of({"./"}).has_top());
}

TEST_CASE("path_list__lines__end_as_they_are_told_and_comments_are_none") {
  PathList list;
  REQUIRE(list.add_lines("a\n\n#b\n;c\r\nd e\n", false));
  list.close();
  CHECK(walked(list, list.all()) == "a+ d e+ ");
  PathList zeros;
  REQUIRE(zeros.add_lines(std::string_view("a\nb\0c\0", 6), true));
  zeros.close();
  CHECK(walked(zeros, zeros.all()) == "a\nb+ c+ ");
  PathList wrong;
  CHECK_FALSE(wrong.add_lines(std::string_view("a\0b", 3), false));
}

TEST_CASE("path_list__what_a_peer_may_send__is_what_is_listed_and_the_way_there") {
  const PathList list = list_of({"a/b/c", "d/", "e"});
  CHECK(list.allows("a", true));
  CHECK_FALSE(list.allows("a", false));
  CHECK(list.allows("a/b", true));
  CHECK(list.allows("a/b/c", false));
  CHECK_FALSE(list.allows("a/b/c/x", false));
  CHECK_FALSE(list.allows("a/x", false));
  CHECK(list.allows("d/x", false));
  CHECK_FALSE(list.allows("d/x/y", false));
  CHECK(list.allows("e", false));
  CHECK_FALSE(list.allows("f", true));
  const PathList whole = list_of({"a/b"}, true);
  CHECK(whole.allows("a/b/c/d", false));
  CHECK_FALSE(whole.allows("a/c", false));
  const PathList top = list_of({"."});
  CHECK(top.allows("x", false));
  CHECK_FALSE(top.allows("x/y", false));
}

TEST_CASE("path_list__as_bytes__comes_back_and_a_peers_own_are_refused") {
  using namespace std::string_view_literals;
  const PathList list = list_of({"a/b", "c/", "."});
  const auto there = PathList::decode(list.encode());
  REQUIRE(there);
  CHECK(walked(*there, there->all()) == walked(list, list.all()));
  CHECK(there->has_top());
  const auto is_fine = [](std::string_view bytes) { return PathList::decode(as_bytes(bytes)).has_value(); };
  CHECK(is_fine("\1\0\1\0a"sv));
  CHECK_FALSE(is_fine(""sv));
  CHECK_FALSE(is_fine("\4"sv));
  CHECK_FALSE(is_fine("\0\2\1\0a"sv));
  CHECK_FALSE(is_fine("\0\0\2\0a"sv));
  CHECK_FALSE(is_fine("\0\0\2\0a\0"sv));
  CHECK_FALSE(is_fine("\0\0\4\0../a"sv));
  CHECK_FALSE(is_fine("\0\0\2\0/a"sv));
}

TEST_CASE("path_list__what_the_other_side_would_not_take__is_refused_before_it_travels") {
  CHECK(list_of({std::string(4096, 'n')}).check_travel());
  CHECK(PathList::decode(list_of({std::string(4096, 'n')}).encode()));
  const auto name = list_of({"a", std::string(4097, 'n')}).check_travel();
  REQUIRE_FALSE(name);
  CHECK(name.error().kind == ErrorKind::usage);
  CHECK(name.error().message == "a name of the list is too long: " + std::string(40, 'n') + "...: a path has at most 4096 bytes");
  CHECK_FALSE(PathList::decode(list_of({std::string(4097, 'n')}).encode()));
  std::vector<std::string> names;
  for (const char letter : std::string_view("abcdefghi")) names.emplace_back(4000, letter);
  const auto many = list_of(names).check_travel();
  REQUIRE_FALSE(many);
  CHECK(many.error().message.starts_with("too many names: "));
}

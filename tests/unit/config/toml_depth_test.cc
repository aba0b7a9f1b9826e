// How deeply a text is nested, whatever stands in its strings and comments.
#include "app/config/toml_depth.h"

#include <catch2/catch.hpp>

using namespace ccixfer::program;

namespace {

std::string times(const std::string& what, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += what;
  return all;
}
bool good(const std::string& text) { return !toml_depth_error("f.toml", text); }

}  // namespace

TEST_CASE("toml_depth__as_deep_as_allowed__and_one_level_more") {
  for (const std::string bracket : {"[", "{"}) {
    CHECK(good("a = " + times(bracket, toml_depth_max)));
    CHECK_FALSE(good("a = " + times(bracket, toml_depth_max + 1)));
  }
  CHECK(good("a" + times(".a", toml_depth_max - 1) + " = 1"));
  CHECK_FALSE(good("a" + times(".a", toml_depth_max) + " = 1"));
  CHECK(good(times("a = [{b = 1}]\n", 100)));  // what is closed counts no more
  CHECK(good(times("]", 100) + "a = " + times("[", toml_depth_max)));
  CHECK_FALSE(good(times("]", 100) + "a = " + times("[", toml_depth_max + 1)));
  for (const std::string end : {"=", ",", "[", "]", "{", "}", "\n"}) CHECK(good(times("a.b.c.d.e.f" + end, 3)));
  for (const std::string end : {"=", ",", "]", "\n"}) CHECK(good(times("a" + times(".b", toml_depth_max - 1) + end, 3)));
}

TEST_CASE("toml_depth__strings_and_comments__count_for_nothing_and_end_where_they_end") {
  const std::string deep = times("[", toml_depth_max + 1);
  for (const std::string quote : {"\"", "'", "\"\"\"", "'''"}) {
    INFO(quote);
    CHECK(good("a = " + quote + deep + quote));
    CHECK_FALSE(good("a = " + quote + "x" + quote + deep));
    CHECK_FALSE(good("a = " + quote + quote + deep));
  }
  CHECK(good("# " + deep));
  CHECK_FALSE(good("# x\n" + deep));
  CHECK(good(R"(a = "\")" + deep + "\""));         // an escaped quote does not end it
  CHECK_FALSE(good(R"(a = '\')" + deep + "'"));    // in a literal nothing is escaped
  CHECK_FALSE(good("a = \"x\n" + deep));           // not closed: it ends with its line
  CHECK(good("a = \"\"\"x\n" + deep + "\"\"\""));  // a long one goes on
  CHECK(good("a = \"\"\"x\"" + deep + "\"\"\""));  // over a single quote too
  CHECK(good("a = \"\"\"x\"\" " + deep + "\"\"\""));
  CHECK(good("a = \"\"\"" + deep));  // and to the end of the text
  CHECK_FALSE(good("a = \"\"\"x\"\"\"" + deep));
}

TEST_CASE("toml_depth__the_place__is_the_line_of_the_first_level_too_many") {
  const auto error = toml_depth_error("f.toml", "a = 1\n\nb = " + times("[\n", toml_depth_max) + "[");
  REQUIRE(error);
  CHECK(error->starts_with("f.toml:" + std::to_string(3 + toml_depth_max) + ": nested more than 32 levels"));
}

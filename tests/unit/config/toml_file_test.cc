// How a mistake in a file is told.
#include "app/config/toml_file.h"

#include <catch2/catch.hpp>
#include <string>
#include <toml.hpp>

#include "app/config/toml_error.h"

namespace ccixfer::program {

TEST_CASE("toml_error__what_the_parser_says__in_one_line_with_the_place") {
  CHECK(toml_error("f", 3, "[error] toml::parse_value: bad number\n --> f\n", "a = 1x") == "f:3: a: bad number: correct the TOML");
  CHECK(toml_error("f", 3, "bad number", "  a  = 1x") == "f:3:   a: bad number: correct the TOML");
  CHECK(toml_error("f\n", 3, "bad\x01number", "a\x1b") == "f%0A:3: a%1B: bad%01number: correct the TOML");
  // Without words of its own, or with no more than that the line is bad, the remark below counts.
  for (const char* head : {"[error] toml::parse_line:", "[error] toml::parse_line: ", "[error] toml::x: invalid line format", "",
                           "invalid line format"}) {
    INFO(head);
    CHECK(toml_error("f", 1, std::string(head) + "\n 1 | a\n   | ^----- expected '='\n", "a") ==
          "f:1: a: expected '=': correct the TOML");
    CHECK(toml_error("f", 1, std::string(head) + "\n   | ^--- the next token is not a number\nmore", "a") ==
          "f:1: a: this is no value, and text stands in quotes: correct the TOML");
  }
  CHECK(toml_error("f", 1, "", "a") == "f:1: a: it cannot be read: correct the TOML");
  CHECK(toml_error("f", 1, "invalid line format", "") == "f:1: : invalid line format: correct the TOML");
  CHECK(toml_error("f\x1b", "two\nlines") == "f%1B:1: two lines: correct the TOML");
}

TEST_CASE("parse_toml__what_is_no_text__the_line_and_its_beginning") {
  const auto error = [](const std::string& text) {
    const auto parsed = parse_toml("f.toml", text);
    REQUIRE_FALSE(parsed.has_value());
    CHECK(parsed.error().kind == ErrorKind::usage);
    return parsed.error().message;
  };
  CHECK(error("\xFF") == "f.toml:1: %FF: is not UTF-8: save the file as UTF-8");
  CHECK(error("a = 1\n\nb = \"\xC3\"\nc = 2\n") == "f.toml:3: b = \"%C3\": is not UTF-8: save the file as UTF-8");
  CHECK(error("a = 1\nb = \xC3") == "f.toml:2: b = %C3: is not UTF-8: save the file as UTF-8");
  CHECK(error(std::string(200, 'x') + "\xFF") == "f.toml:1: " + std::string(80, 'x') + ": is not UTF-8: save the file as UTF-8");
  CHECK(error("a = 1\nb 2\n").starts_with("f.toml:2: b 2: "));
  CHECK(error("a = 1\na = 2\n").starts_with("f.toml:"));
  const auto good = parse_toml("f.toml", "a = 1\nb = \"\xC3\xA9\"\n");
  REQUIRE(good.has_value());
  CHECK(toml::find<int>(*good, "a") == 1);
  CHECK(parse_toml("f.toml", "").has_value());
}

}  // namespace ccixfer::program

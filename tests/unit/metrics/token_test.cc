// The token of the metrics, as a header says it and as its file has it.
#include "app/metrics/token.h"

#include <catch2/catch.hpp>

#include "core/trust/signature.h"

using namespace ccixfer;
using namespace ccixfer::metrics;

namespace {

const std::string secret = "0123456789abcdef0123";

Token token() {
  auto made = Token::parse(secret + "\n");
  REQUIRE(made);
  return *made;
}
std::string basic(const std::string& pair) { return "Basic " + trust::base64(pair); }

}  // namespace

TEST_CASE("token__said_as_a_bearer_or_as_a_password__is_known") {
  for (const std::string& said : {"Bearer " + secret, "bearer   " + secret, "BEARER " + secret, basic("any name:" + secret),
                                  "basic " + trust::base64(":" + secret)}) {
    INFO(said);
    CHECK(token().is_in(said));
  }
}

TEST_CASE("token__anything_else__is_not") {
  for (const std::string& said : std::initializer_list<std::string>{"",
                                                                    secret,
                                                                    "Bearer",
                                                                    "Bearer ",
                                                                    "Bearer" + secret,
                                                                    "Bearer " + secret + "x",
                                                                    "Bearer " + secret.substr(1),
                                                                    "Bearer " + secret.substr(0, 19),
                                                                    "Bearer " + secret + " ",
                                                                    "Token " + secret,
                                                                    "Basic " + secret,
                                                                    "Basic ====",
                                                                    "Basic =",
                                                                    basic(secret),
                                                                    basic(secret + ":"),
                                                                    basic("a:b:" + secret),
                                                                    basic("a:" + secret + "\n"),
                                                                    "Basic " + std::string(100'000, 'A'),
                                                                    "Basic " + std::string(4096, '='),
                                                                    basic("a:")}) {
    INFO(said.substr(0, 60));
    CHECK_FALSE(token().is_in(said));
  }
}

TEST_CASE("token__a_file__has_one_line_that_nobody_guesses") {
  CHECK(Token::parse(secret));
  CHECK(Token::parse(secret + "\r\n")->is_in("Bearer " + secret));
  CHECK(Token::parse(std::string(token_bytes_max, 'x')));
  for (const std::string& text : {std::string(), secret.substr(1), std::string(token_bytes_max + 1, 'x'), secret + "\n" + secret,
                                  " " + secret, secret + " ", secret + ":x", secret + "\t", secret + "\xc3\xa9", secret + "\n\n"}) {
    const auto made = Token::parse(text);
    REQUIRE_FALSE(made);
    CHECK(made.error().kind == ErrorKind::usage);
    CHECK(made.error().message.find(secret.substr(1)) == std::string::npos);
  }
}

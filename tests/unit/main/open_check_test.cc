// Whether what a dialler asks for can be granted to anybody.
#include "app/main/open_check.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::program;

TEST_CASE("open_check__a_second_receiver__helps_and_takes_no_transfer_and_others_do_not_help") {
  session::Open transfer, help;
  help.is_second = true;
  CHECK(check_second(transfer, false));
  CHECK(check_second(help, true));
  const auto asked_for_a_transfer = check_second(transfer, true);
  REQUIRE_FALSE(asked_for_a_transfer);
  CHECK(asked_for_a_transfer.error().kind == ErrorKind::usage);
  CHECK(asked_for_a_transfer.error().message.find("name that one first") != std::string::npos);
  const auto asked_for_help = check_second(help, false);
  REQUIRE_FALSE(asked_for_help);
  CHECK(asked_for_help.error().kind == ErrorKind::usage);
  CHECK(asked_for_help.error().message.find("--shares-root") != std::string::npos);
}

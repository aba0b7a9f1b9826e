// What `ccixfer verify` says of a tree beside its receipt.
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "tests/unit/main/running.h"
#include "tests/unit/recv/not_root.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// A tree that is delivered and verified by an account that is not root, for which root/v/a has that mode by then.
std::string said_of(mode_t mode_of_directory) {
  std::optional<TemporaryDirectory> place;
  {
    const recv::test::NotRoot account;  // a place that it reaches
    place.emplace();
  }
  const TemporaryDirectory& here = *place;
  for (const char* file : {"from/a/1", "from/a/b/2", "from/a.c", "from/gone"}) here.write(file, "x");
  here.write("root/there", "");
  {
    Running receiving_side(receiving(receiver(here.path("root"))));
    SendCommand push = send_of({here.path("from/")}, receiving_side.uri() + "/v/");
    push.transfer.receipt = here.path("receipt");
    REQUIRE(Ran(sending(push)).end.error.kind == ErrorKind::ok);
  }
  REQUIRE(::unlink(here.path("root/v/gone").c_str()) == 0);
  REQUIRE(::chmod(here.path("root/v/a").c_str(), mode_of_directory) == 0);
  REQUIRE(::chmod(here.path("receipt").c_str(), 0644) == 0);
  const recv::test::NotRoot account;
  VerifyCommand command;
  command.common = insecure();
  command.receipt = here.path("receipt");
  command.directory = here.path("root/v");
  const Error error = Ran([&](const Process& process) { return run_verify(process, command); }).end.error;
  CHECK(error.kind == ErrorKind::integrity);
  return error.message;
}

}  // namespace

TEST_CASE("verify__a_directory_that_cannot_be_read__is_told_with_all_that_is_in_it") {
  CHECK(said_of(0).ends_with("0 altered, 1 missing, 0 extra, 4 unreadable"));  // a, a/1, a/b, a/b/2
}

TEST_CASE("verify__a_directory_that_cannot_be_entered__all_that_is_in_it_is_unreadable") {
  CHECK(said_of(0444).ends_with("0 altered, 1 missing, 0 extra, 3 unreadable"));  // a/1, a/b, a/b/2
}

// `send a DEST/b`: the sender's receipt has the name of the source.
TEST_CASE("verify__one_file_that_was_sent_under_another_name__is_found_by_it") {
  const TemporaryDirectory here;
  here.write("from/a", "x");
  here.write("root/there", "");
  {
    Running receiving_side(receiving(receiver(here.path("root"))));
    const std::string uri = receiving_side.uri();
    SendCommand push = send_of({here.path("from/a")}, uri + "/v/b");
    push.transfer.receipt = here.path("receipt");
    REQUIRE(Ran(sending(send_of({here.path("from/a")}, uri + "/v/other"))).end.error.kind == ErrorKind::ok);
    REQUIRE(Ran(sending(push)).end.error.kind == ErrorKind::ok);
  }
  const auto verify = [&](const char* place, bool ignore_extra) {
    VerifyCommand command;
    command.common = insecure();
    command.receipt = here.path("receipt");
    command.directory = here.path(place);
    command.ignore_extra = ignore_extra;
    return Ran([&](const Process& process) { return run_verify(process, command); }).end.error;
  };
  CHECK(verify("root/v/b", false).kind == ErrorKind::ok);
  CHECK(verify("root/v", true).kind == ErrorKind::ok);
  CHECK(verify("root/v", false).message.ends_with("0 altered, 0 missing, 1 extra, 0 unreadable"));
  CHECK(verify("from/a", false).kind == ErrorKind::ok);
  here.write("root/v/b", "y");
  CHECK(verify("root/v/b", false).message.ends_with("root/v/b: 1 altered, 0 missing, 0 extra, 0 unreadable"));
  CHECK(verify("root/v", true).message.ends_with("1 altered, 0 missing, 0 extra, 0 unreadable"));
  CHECK(verify("root", true).message.ends_with("0 altered, 1 missing, 0 extra, 0 unreadable"));
}

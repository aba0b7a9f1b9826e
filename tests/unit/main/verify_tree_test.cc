// What `ccixfer verify` says of a tree beside its receipt.
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

#include "tests/unit/main/running.h"
#include "tests/unit/recv/not_root.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

TEST_CASE("verify__a_directory_that_cannot_be_read__is_told_and_nothing_in_it_is_missing") {
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
  REQUIRE(::chmod(here.path("root/v/a").c_str(), 0) == 0);
  REQUIRE(::chmod(here.path("receipt").c_str(), 0644) == 0);
  const recv::test::NotRoot account;
  VerifyCommand command;
  command.common = insecure();
  command.receipt = here.path("receipt");
  command.directory = here.path("root/v");
  const Error error = Ran([&](const Process& process) { return run_verify(process, command); }).end.error;
  CHECK(error.kind == ErrorKind::integrity);
  CHECK(error.message.ends_with("0 altered, 1 missing, 0 extra, 1 unreadable"));
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

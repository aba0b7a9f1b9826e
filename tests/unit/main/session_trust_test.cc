// What a place of the command line stands for.
#include "app/main/session_trust.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "tests/unit/recv/faulty_files.h"
#include "transports/verbs/verbs.h"

using namespace ccixfer;
using namespace ccixfer::program;

namespace {

std::string ticket_of(const std::vector<std::string>& addresses) {
  trust::Ticket ticket;
  ticket.listener = trust::Identity::generate().value().id();
  ticket.expires_s = wall_time_s() + 3600;
  ticket.addresses = addresses;
  return trust::to_text(ticket);
}

}  // namespace

TEST_CASE("find_place__a_ticket__the_addresses_of_the_transports_that_this_program_has") {
  const auto place = find_place(ticket_of({"verbs://h:1", "tcp://h:2", "gm://h:3", "eth://02:00:00:00:00:01:7"}) + "/a/b", {});
  REQUIRE(place);
  std::vector<std::string> expected = {"tcp://h:2", "eth://02:00:00:00:00:01:7"};
  if (verbs::is_built_in()) expected.insert(expected.begin(), "verbs://h:1");
  std::vector<std::string> found;
  for (const Target& target : place->targets) {
    found.push_back(target.address);
    CHECK(target.path == "a/b");
  }
  CHECK(found == expected);
  const auto none = find_place(ticket_of({"gm://h:1"}), {});
  REQUIRE_FALSE(none);
  CHECK(none.error().kind == ErrorKind::usage);
  CHECK(none.error().message == "the ticket has no address that this version can dial: ask for another one");
}

// A file without a line feed may be as long as a disk, or have no end.
TEST_CASE("find_place__a_file_of_a_ticket__is_read_no_further_than_a_ticket_is_long") {
  const recv::test::TemporaryDirectory here;
  const std::string pipe = here.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  auto* const before = std::signal(SIGPIPE, SIG_IGN);
  constexpr size_t much = 16u << 20;
  size_t taken = 0;
  std::thread writer([&] {
    const int fd = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);
    const std::string block(64u << 10, 'x');
    while (fd >= 0 && taken < much) {
      const ssize_t wrote = ::write(fd, block.data(), block.size());
      if (wrote <= 0) break;
      taken += static_cast<size_t>(wrote);
    }
    if (fd >= 0) ::close(fd);
  });
  const auto place = find_place("@" + pipe, {});
  writer.join();
  std::signal(SIGPIPE, before);
  CHECK(taken < much);
  REQUIRE_FALSE(place);
  CHECK(place.error().kind == ErrorKind::usage);
  CHECK(place.error().message.starts_with("cannot read the ticket: " + pipe));
  const std::string ticket = ticket_of({"tcp://h:2"});
  for (const char* end : {"", "\n", "\nand more"}) {
    here.write("ticket", ticket + end);
    CHECK(find_place("@" + here.path("ticket"), {}));
  }
  CHECK_FALSE(find_place("@" + here.path("nothing"), {}));
  here.write("ticket", "");
  CHECK(find_place("@" + here.path("ticket"), {}).error().message.starts_with("cannot read the ticket: "));
}

TEST_CASE("find_place__a_file_of_a_ticket_with_a_path_behind_it__the_path_is_behind_that_of_the_file") {
  const recv::test::TemporaryDirectory here;
  const std::string ticket = ticket_of({"tcp://h:2"});
  const auto path = [&](const std::string& text, const std::string& behind) {
    here.write("keys/ticket", text);
    const auto place = find_place("@" + here.path("keys/ticket") + behind, {});
    return place ? place->targets.front().path : "? " + place.error().message;
  };
  CHECK(path(ticket, "").empty());
  CHECK(path(ticket, "/").empty());
  CHECK(path(ticket, "/sub/") == "sub/");
  CHECK(path(ticket, "/sub/dir") == "sub/dir");
  CHECK(path(ticket + "/top", "/sub/") == "top/sub/");
  CHECK(path(ticket + "/top/\n", "/sub/") == "top/sub/");
  CHECK(path(ticket + "/top/", "") == "top/");
  CHECK(path(ticket + "/top", "/") == "top/");  // a directory, as behind any other DEST
  CHECK(path(ticket + "/top/", "/") == "top/");
  CHECK(path("\n\n" + ticket + "\n", "/sub") == "sub");  // blank lines in front
  CHECK(path("\n\n", "").starts_with("? cannot read the ticket: "));
  CHECK(path(std::string(1u << 20, '\n') + ticket, "").starts_with("? cannot read the ticket: "));
  const auto none = find_place("@" + here.path("keys/none/sub"), {});
  REQUIRE_FALSE(none);
  CHECK(none.error().message.starts_with("cannot read the ticket: " + here.path("keys/none/sub")));
}

TEST_CASE("find_place__a_ticket_of_standard_input__may_have_a_path_behind_it") {
  const recv::test::TemporaryDirectory here;
  const auto before = std::filesystem::current_path();
  const int input = ::dup(STDIN_FILENO);
  std::filesystem::current_path(here.path());
  here.write("-/sub", "no ticket");  // @- is standard input, whatever files have that name
  here.write("ticket", ticket_of({"tcp://h:2"}) + "/top\n");
  for (const auto& [text, path] : {std::pair("-", "top"), std::pair("@-", "top"), std::pair("@-/", "top/"),
                                   std::pair("@-/sub", "top/sub"), std::pair("@-/sub/", "top/sub/")}) {
    INFO(text);
    const int fd = ::open("ticket", O_RDONLY | O_CLOEXEC);
    REQUIRE(::dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    ::close(fd);
    const auto place = find_place(text, {});
    REQUIRE(place);
    CHECK(place->targets.front().path == path);
  }
  if (input >= 0) {
    ::dup2(input, STDIN_FILENO);
    ::close(input);
  } else {
    ::close(STDIN_FILENO);
  }
  std::filesystem::current_path(before);
}

// What asks a peer for a longer one would be a bug of ours (session::encode).
TEST_CASE("find_place__a_path_of_more_bytes_than_a_path_may_have__is_refused") {
  const std::string longest(4096, 'p');
  for (const std::string& address : {std::string("tcp://h:1"), ticket_of({"tcp://h:2"})}) {
    const auto fits = find_place(address + "/" + longest, {});
    REQUIRE(fits);
    CHECK(fits->targets.front().path == longest);
    const auto longer = find_place(address + "/" + longest + "/", {});
    REQUIRE_FALSE(longer);
    CHECK(longer.error().kind == ErrorKind::usage);
    CHECK(longer.error().message == "bad address: its path has 4097 bytes: a path has at most 4096 bytes");
  }
}

// What commands do with descriptors and files that only the kernel can tell.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "app/main/uri_file.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// How many sockets this process waits for, as a router waits for its devices' listeners.
size_t watched_sockets() {
  const auto kind = [](const std::string& fd) {
    std::error_code gone;
    return std::filesystem::read_symlink("/proc/self/fd/" + fd, gone).string();
  };
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    if (kind(entry.path().filename()) != "anon_inode:[eventpoll]") continue;
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) {
      if (line.rfind("tfd:", 0) != 0) continue;
      const size_t at = line.find_first_not_of(' ', 4);
      count += kind(line.substr(at, line.find(' ', at) - at)).starts_with("socket:") ? 1u : 0u;
    }
  }
  return count;
}

std::string device(const std::string& name, int subnet) {
  return "[device." + name + "]\nip = \"127.0.0.1\"\nas = 1\nsubnet = " + std::to_string(subnet) + "\nrouter = []\n";
}

// No file grows beyond so many bytes.
class Bound {
 public:
  explicit Bound(rlim_t bytes) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit now{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &now) == 0);
  }
  ~Bound() { setrlimit(RLIMIT_FSIZE, &before_); }
  Bound(const Bound&) = delete;
  Bound& operator=(const Bound&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

// Without, it would be heard of at the router's next deadline only.
TEST_CASE("descriptors__a_device_that_a_reload_brought__is_waited_for_as_the_first_ones_are") {
  TemporaryDirectory here;
  here.write("router.toml", device("a", 1) + device("b", 2));
  RouteCommand command;
  command.common = insecure();
  const size_t before = watched_sockets();
  Running routing([command](const Process& process) { return run_route(process, command); },
                  load_config(here.path("router.toml")).value());
  static_cast<void>(routing.uri());
  CHECK(watched_sockets() == before + 2);
  here.write("router.toml", device("a", 1) + device("b", 2) + device("c", 3) + device("d", 4));
  routing.signal(SIGHUP);
  CHECK(member(routing.said.await("reloaded"), "devices") == "4");
  CHECK(watched_sockets() == before + 4);
  CHECK(routing.stop().error.kind == ErrorKind::ok);
}

TEST_CASE("descriptors__a_uri_file_that_does_not_fit__says_why_and_leaves_nothing") {
  TemporaryDirectory here;
  TurnLoop loop;  // the signal of a file's bound is ignored from now on
  UriFile file(loop);
  Result<void> written;
  {
    const Bound bound(4);
    errno = 0;
    written = file.write(here.path("uris"), {"tcp://127.0.0.1:1"});
  }
  REQUIRE_FALSE(written);
  CHECK(written.error().kind == ErrorKind::usage);
  CHECK(written.error().message ==
        "cannot write the uri file: " + here.path("uris") + ": File too large: give --uri-file a writable place");
  CHECK(std::filesystem::is_empty(here.path()));
}

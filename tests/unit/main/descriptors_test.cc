// What commands do with descriptors and files that only the kernel can tell.
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "app/main/node.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

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

TEST_CASE("descriptors__a_uri_file_that_does_not_fit__says_why_and_leaves_nothing") {
  TemporaryDirectory here;
  Driver driver;  // the signal of a file's bound is ignored from now on
  UriFile file(driver);
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

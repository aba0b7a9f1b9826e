// Directories whose modes do not let their owner in, at a receiver that is not root: it writes into them all the same.
#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/unit/recv/destination_rig.h"
#include "tests/unit/recv/not_root.h"

namespace ccixfer::recv {

using namespace test;

namespace {

const DestinationOptions archive_options{.options = archive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0};

uint32_t mode_of(const Rig& rig, const std::string& path) {
  struct stat stat {};
  REQUIRE(::lstat(rig.temporary.path(path).c_str(), &stat) == 0);
  return stat.st_mode & 07777u;
}

// d/ with a file, and maybe a directory with a file in it.
void deliver(Rig& rig, uint32_t mode, bool has_inner, const std::string& content) {
  std::vector<session::Entry> entries{directory_entry(""), directory_entry("d"), file_entry("d/f", content.size())};
  entries[1].mode = mode;
  if (has_inner) {
    entries.push_back(directory_entry("d/inner"));
    entries.push_back(file_entry("d/inner/f", content.size()));
    entries.push_back(directory_entry("d/inner", session::EntryType::leave));
  }
  entries.push_back(directory_entry("d", session::EntryType::leave));
  entries.push_back(directory_entry("", session::EntryType::leave));
  rig.announce(entries);
  std::vector<uint64_t> files{2};
  if (has_inner) files.push_back(4);
  for (const uint64_t index : files) {
    REQUIRE(rig.source().verdicts[index] == session::Verdict::send);
    rig.source().put_pack({{index, content}});
    REQUIRE(rig.run_until_result(index));
    CHECK(rig.source().results[index].kind == ErrorKind::ok);
  }
  rig.finish(entries.size());
  CHECK(rig.source().summary->files_failed == 0);
  CHECK(mode_of(rig, "d") == mode);
}

}  // namespace

// With descriptors to keep directories open, and without: then each is opened anew, and known by its generation.
TEST_CASE("directories__locked_by_their_modes__each_run_of_an_ordinary_account_writes_into_them") {
  const NotRoot account;
  const uint32_t mode = GENERATE(0311u, 0300u, 0600u, 0555u, 0u);
  const bool has_inner = GENERATE(true, false);
  INFO("mode " << mode << (has_inner ? ", with a directory in it" : ""));
  Rig rig(archive_options, 1, "", GENERATE(size_t{1024}, size_t{0}));
  deliver(rig, mode, has_inner, "one");
  rig.again();
  deliver(rig, mode, has_inner, "second");
  REQUIRE(::chmod(rig.temporary.path("d").c_str(), 0700) == 0);
  CHECK(rig.temporary.read("d/f") == "second");
  if (has_inner) CHECK(rig.temporary.read("d/inner/f") == "second");
}

}  // namespace ccixfer::recv

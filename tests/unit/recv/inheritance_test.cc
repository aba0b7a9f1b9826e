// What a file gets from the directory that it is put in, against what open(2) gives there; and file systems that refuse modes.
#include "app/recv/inheritance.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <catch2/catch.hpp>

#include "tests/unit/recv/rig.h"

namespace ccixfer::recv {

using session::EntryType;
using namespace test;

namespace {

constexpr const char* acl_default = "system.posix_acl_default";
constexpr const char* acl_access = "system.posix_acl_access";
const DestinationOptions plain_options{.options = session::option_recursive, .path = "", .rate_bytes_per_s = 0, .buffers_max = 0};

std::string acl_of(const std::vector<std::array<uint32_t, 3>>& entries) {
  std::string acl{2, 0, 0, 0};
  for (const auto& [tag, permissions, id] : entries) {
    for (const auto& [value, bytes] : {std::pair{tag, 2}, std::pair{permissions, 2}, std::pair{id, 4}}) {
      for (int i = 0; i < bytes; ++i) acl.push_back(static_cast<char>(value >> (8 * i) & 0xffu));
    }
  }
  return acl;
}
constexpr uint32_t nobody = ~uint32_t{0};
const std::string with_a_user = acl_of({{1, 7, nobody}, {2, 7, 1234}, {4, 5, nobody}, {16, 7, nobody}, {32, 5, nobody}});
const std::string no_more_than_a_mode = acl_of({{1, 7, nobody}, {4, 7, nobody}, {32, 0, nobody}});

std::string attribute(const std::string& path, const char* name) {
  std::array<char, 1024> value{};
  const ssize_t bytes = ::getxattr(path.c_str(), name, value.data(), value.size());
  return {value.data(), bytes < 0 ? 0 : static_cast<size_t>(bytes)};
}
struct Has {
  uint32_t mode = 0;
  uint32_t gid = 0;
  std::string acl, default_acl;
  friend bool operator==(const Has&, const Has&) = default;
};
Has look(const std::string& path) {
  struct stat stat {};
  REQUIRE(::lstat(path.c_str(), &stat) == 0);
  return {stat.st_mode & 07777u, stat.st_gid, attribute(path, acl_access), attribute(path, acl_default)};
}

// Directories that give something, made below the root; false: the file system has no such thing.
bool make_giving(const std::string& path, const std::string& what) {
  REQUIRE(::mkdir(path.c_str(), 0777) == 0);
  if (what == "group") return ::chown(path.c_str(), ~uid_t{0}, 4321) == 0 && ::chmod(path.c_str(), 02775) == 0;
  const std::string& acl = what == "acl" ? with_a_user : no_more_than_a_mode;
  return ::setxattr(path.c_str(), acl_default, acl.data(), acl.size(), 0) == 0;
}

}  // namespace

TEST_CASE("inheritance__files_and_directories__have_what_open_and_mkdir_give_there") {
  const std::string what = GENERATE(as<std::string>(), "group", "acl", "mode");
  const bool may_not_give = GENERATE(false, true);
  const uint32_t mode = GENERATE(0644u, 0600u, 0444u, 0777u);
  INFO(what << " " << may_not_give << " " << mode);
  Rig rig(plain_options);
  const std::string directory = rig.temporary.path("run");
  if (!make_giving(directory, what)) {
    WARN("this file system, or this user, has no " << what);
    return;
  }
  if (may_not_give) {
    rig.files.hook = [](std::string_view call, std::string_view) { return call == "set_owner" || call == "set_acl" ? -EPERM : 0; };
  }
  // The oracle: what the kernel gives.
  const int fd = ::open((directory + "/oracle").c_str(), O_CREAT | O_WRONLY, mode);
  REQUIRE(fd >= 0);
  ::close(fd);
  REQUIRE(::mkdir((directory + "/oracle-d").c_str(), 0755) == 0);
  const auto data = pattern(piece + 5, 3);
  std::vector<session::Entry> entries{directory_entry(""),
                                      directory_entry("run"),
                                      directory_entry("run/d"),
                                      directory_entry("run/d", EntryType::leave),
                                      file_entry("run/large", data.size()),
                                      file_entry("run/small", 3),
                                      directory_entry("run", EntryType::leave),
                                      directory_entry("", EntryType::leave)};
  for (session::Entry& entry : entries) {
    if (entry.type == EntryType::file) entry.mode = mode;
  }
  rig.announce(entries);
  rig.put_piece(4, 0, Bytes(data).first(piece));
  rig.put_piece(4, 1, Bytes(data).subspan(piece));
  rig.session->source_link->post(end_of(4));
  rig.source().put_pack({{5, "abc"}});
  REQUIRE(rig.run_until_result(4));
  REQUIRE(rig.run_until_result(5));
  rig.finish(entries.size());
  CHECK((look(directory + "/large") == look(directory + "/oracle")));
  CHECK((look(directory + "/small") == look(directory + "/oracle")));
  CHECK((look(directory + "/d") == look(directory + "/oracle-d")));
  CHECK((rig.temporary.read("run/large") == hex_free(data)));
  CHECK(std::distance(std::filesystem::directory_iterator(directory), {}) == 5);
}

TEST_CASE("inheritance__the_root_gives_something__it_stays_out_of_other_directories") {
  TemporaryDirectory temporary;
  FaultyFiles files;
  const std::string path = temporary.path("root");
  if (!make_giving(path, "acl") || ::chmod(path.c_str(), 02775) != 0 || ::chown(path.c_str(), ~uid_t{0}, 4321) != 0) return;
  REQUIRE(::chmod(path.c_str(), 02775) == 0);
  auto root = Root::open(files, path).value();
  const Has staging = look(path + "/.ccixfer");
  CHECK(staging.mode == 0700);
  CHECK(staging.default_acl.empty());
}

TEST_CASE("inheritance__a_default_list_that_makes_no_sense__an_error_and_nothing_is_given") {
  TemporaryDirectory temporary;
  temporary.write("f", "x");
  REQUIRE(::chmod(temporary.path("f").c_str(), 0600) == 0);
  FaultyFiles files;
  files.told_acl = "what is this";
  const int directory = ::open(temporary.path().c_str(), O_RDONLY | O_DIRECTORY);
  const int file = ::open(temporary.path("f").c_str(), O_RDWR);
  Inheritance inheritance;
  CHECK(inheritance.read(files, directory) == 0);
  CHECK(inheritance.give(files, file, 0644) == -EINVAL);
  CHECK(look(temporary.path("f")).mode == 0600);
  ::close(file);
  ::close(directory);
}

TEST_CASE("inheritance__default_lists__as_the_kernel_applies_them") {
  const auto more = inherited_acl(with_a_user, 0640);
  REQUIRE(more);
  CHECK((more->acl == acl_of({{1, 6, nobody}, {2, 7, 1234}, {4, 5, nobody}, {16, 4, nobody}, {32, 0, nobody}})));
  CHECK(more->mode == 0640);
  const auto equivalent = inherited_acl(no_more_than_a_mode, 0666);
  REQUIRE(equivalent);
  CHECK(equivalent->acl.empty());
  CHECK(equivalent->mode == 0660);
  CHECK_FALSE(inherited_acl("", 0666));
  CHECK_FALSE(inherited_acl(with_a_user.substr(1), 0666));
  CHECK_FALSE(inherited_acl("\3" + with_a_user.substr(1), 0666));
  CHECK_FALSE(inherited_acl(acl_of({{1, 7, nobody}}), 0666));
}

TEST_CASE("attributes__file_system_without_modes__files_arrive_and_only_archives_count_it") {
  const bool archives = GENERATE(false, true);
  const int refusal = GENERATE(-EPERM, -ENOTSUP);
  DestinationOptions options = plain_options;
  if (archives) options.options = archive;
  Rig rig(options);
  rig.files.hook = [refusal](std::string_view call, std::string_view) { return call == "set_mode" ? refusal : 0; };
  const auto data = pattern(piece + 5, 3);
  std::vector<session::Entry> entries{directory_entry(""), file_entry("large", data.size()), file_entry("small", 3),
                                      directory_entry("", EntryType::leave)};
  for (session::Entry& entry : entries) {
    if (entry.type == EntryType::file) entry.mode = 0464;  // has to be set, whatever the umask
  }
  entries[0].mode = entries[3].mode = 0755;
  rig.announce(entries);
  rig.put_piece(1, 0, Bytes(data).first(piece));
  rig.put_piece(1, 1, Bytes(data).subspan(piece));
  rig.session->source_link->post(end_of(1));
  rig.source().put_pack({{2, "abc"}});
  REQUIRE(rig.run_until_result(1));
  REQUIRE(rig.run_until_result(2));
  CHECK(rig.source().results[1].kind == ErrorKind::ok);
  CHECK(rig.source().results[2].kind == ErrorKind::ok);
  rig.finish(entries.size());
  CHECK((rig.temporary.read("large") == hex_free(data)));
  CHECK(rig.temporary.read("small") == "abc");
  CHECK(rig.source().summary->files_ok == 2);
  CHECK(rig.source().summary->files_failed == (archives ? 3 : 0));  // in pieces, in a pack, the directory
  CHECK(rig.session->notes.failures.size() == (archives ? 1 : 0));
  if (!archives) return;
  // Run again: nothing is sent, and it is said again that the modes are others.
  rig.again();
  rig.announce(entries);
  CHECK(rig.source().verdicts[1] == session::Verdict::unchanged);
  CHECK(rig.source().verdicts[2] == session::Verdict::unchanged);
  rig.finish(entries.size());
  CHECK(rig.source().summary->files_failed > 0);
}

}  // namespace ccixfer::recv

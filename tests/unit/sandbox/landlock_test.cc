// Files and TCP: what is reached by a confined process, and what is not, with each ABI that this kernel can stand in for.
#include "core/sandbox/landlock.h"

#include <arpa/inet.h>
#include <linux/landlock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <filesystem>

#include "tests/unit/sandbox/child.h"

namespace ccixfer::sandbox {

using namespace test;

namespace {

Plan places(std::vector<Place> list) {
  Plan plan;
  plan.places = std::move(list);
  return plan;
}

bool mentions(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

// A listening socket of this host, and what a connect to it says.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address_), sizeof address_) == 0);
    REQUIRE(listen(fd_, 1) == 0);
    socklen_t size = sizeof address_;
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &size) == 0);
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] int dial() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return error_of(connect(fd, reinterpret_cast<const sockaddr*>(&address_), sizeof address_));
  }

 private:
  const int fd_;
  sockaddr_in address_{};
};

int try_bind() {
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  return error_of(bind(fd, reinterpret_cast<const sockaddr*>(&any), sizeof any));
}

}  // namespace

TEST_CASE("landlock__each_abi__handles_what_it_knows_and_names_what_it_lacks") {
  const Plan plan;
  CHECK((handled_by(plan, 1).files & LANDLOCK_ACCESS_FS_REFER) == 0);
  CHECK((handled_by(plan, 2).files & LANDLOCK_ACCESS_FS_REFER) != 0);
  CHECK((handled_by(plan, 2).files >> 14) == 0);
  CHECK((handled_by(plan, 3).files >> 14) == 1);
  CHECK((handled_by(plan, 4).files >> 14) == 1);
  CHECK((handled_by(plan, 5).files >> 14) == 3);
  CHECK(handled_by(plan, 3).tcp == 0);
  CHECK(handled_by(plan, 4).tcp == 3);
  CHECK(handled_by(plan, 5).scoped == 0);
  CHECK(handled_by(plan, 6).scoped == 3);
  CHECK(handled_by(plan, 99).files == handled_by(plan, 6).files);
  CHECK(lacks_of_abi(2) == "cutting files short, TCP ports, orders to devices, signals, abstract sockets");
  CHECK(lacks_of_abi(5) == "signals, abstract sockets");
  CHECK(lacks_of_abi(6).empty());
  CHECK(lacks_of_abi(99).empty());
}

TEST_CASE("landlock__plan__what_is_needed_is_not_handled") {
  Plan plan;
  plan.dials = true;
  CHECK(handled_by(plan, 7).tcp == 1);
  plan.listens = true;
  CHECK(handled_by(plan, 7).tcp == 0);
  CHECK(handled_by(plan, 7).scoped == 3);
  plan.shares_memory = true;
  CHECK(handled_by(plan, 7).scoped == 2);  // signals
  CHECK((handled_by(plan, 7).files & LANDLOCK_ACCESS_FS_EXECUTE) != 0);
  plan.executes = true;
  CHECK((handled_by(plan, 7).files & LANDLOCK_ACCESS_FS_EXECUTE) == 0);
  CHECK((handled_by(plan, 7).files & LANDLOCK_ACCESS_FS_READ_FILE) != 0);
  plan.reads_everything = true;
  CHECK((handled_by(plan, 7).files & (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)) == 0);
}

TEST_CASE("landlock__rule__allows_nothing_that_is_not_handled_and_of_a_file_nothing_of_directories") {
  const Handled all = handled_by({}, 7);
  for (const Access access : {Access::read, Access::change, Access::write, Access::files, Access::remove}) {
    CHECK((allowed_at(access, true, all) & LANDLOCK_ACCESS_FS_EXECUTE) == 0);
    const uint64_t special = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SOCK;
    CHECK((allowed_at(access, true, all) & special) == (access == Access::write ? special : 0));
    CHECK((allowed_at(access, true, handled_by({}, 1)) & ~handled_by({}, 1).files) == 0);
    CHECK((allowed_at(access, false, all) & (LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                             LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_REFER)) == 0);
  }
  CHECK((allowed_at(Access::files, true, all) & LANDLOCK_ACCESS_FS_READ_FILE) == 0);
  CHECK(allowed_at(Access::remove, false, all) == 0);
}

TEST_CASE("landlock__outside_the_places__nothing_is_read_or_written") {
  if (!has_landlock(2)) return;
  const TempDir mine, other;
  write_file(other.path() + "/secret", "secret");
  const Access access = GENERATE(Access::read, Access::change, Access::write, Access::files, Access::remove);
  const Plan plan = places({{mine.path(), access}});
  CHECK(confined(plan, [&] { return try_open(other.path() + "/secret", O_RDONLY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open(other.path() + "/secret", O_WRONLY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open(other.path() + "/new", O_WRONLY | O_CREAT); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open(other.path(), O_RDONLY | O_DIRECTORY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(unlink((other.path() + "/secret").c_str())); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(mkdir((other.path() + "/d").c_str(), 0700)); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open("/etc/shadow", O_RDONLY); }).answer == EACCES);
}

TEST_CASE("landlock__read_place__is_read_and_not_changed") {
  if (!has_landlock()) return;
  const TempDir directory;
  std::filesystem::create_directory(directory.path() + "/below");
  write_file(directory.path() + "/below/file", "text");
  const Plan plan = places({{directory.path(), Access::read}});
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/below/file", O_RDONLY); }).answer == 0);
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/below", O_RDONLY | O_DIRECTORY); }).answer == 0);
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/below/file", O_WRONLY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/new", O_WRONLY | O_CREAT); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(unlink((directory.path() + "/below/file").c_str())); }).answer == EACCES);
  CHECK(confined(plan, [&] {
          return error_of(rename((directory.path() + "/below").c_str(), (directory.path() + "/b").c_str()));
        }).answer == EACCES);
}

TEST_CASE("landlock__one_file_is_the_place__read_and_its_neighbour_not") {
  if (!has_landlock()) return;
  const TempDir directory;
  write_file(directory.path() + "/mine", "text");
  write_file(directory.path() + "/other", "text");
  const Plan plan = places({{directory.path() + "/mine", Access::read}});
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/mine", O_RDONLY); }).answer == 0);
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/other", O_RDONLY); }).answer == EACCES);
}

TEST_CASE("landlock__change_place__a_file_is_written_and_none_is_made") {
  if (!has_landlock()) return;
  const TempDir directory;
  const std::string root = directory.path();
  write_file(root + "/file", "text");
  const std::string place = GENERATE(as<std::string>(), "", "/file");
  const Plan plan = places({{root + place, Access::change}});
  CHECK(confined(plan, [&] { return try_open(root + "/file", O_RDWR | O_APPEND); }).answer == 0);
  CHECK(confined(plan, [&] { return try_open(root + "/new", O_WRONLY | O_CREAT); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(unlink((root + "/file").c_str())); }).answer == EACCES);
  // It moves nothing, so that Landlock's first ABI serves it too.
  CHECK(confined(plan, [&] { return try_open(root + "/new", O_WRONLY | O_CREAT); }, {1, true}).answer == EACCES);
}

TEST_CASE("landlock__write_place__all_that_a_receiver_does_works_on_every_abi") {
  if (!has_landlock(2)) return;
  for (int abi = 2; abi <= offers_of_kernel().landlock_abi; ++abi) {
    const TempDir directory;
    const std::string root = directory.path();
    const Ended ended =
        confined(places({{root, Access::write}}),
                 [&] {
                   const auto at = [&](const char* name) { return root + name; };
                   int step = 1;
                   for (const int error :
                        {error_of(mkdir(at("/a").c_str(), 0700)), error_of(mkdir(at("/b").c_str(), 0700)),
                         try_open(at("/a/f"), O_RDWR | O_CREAT), error_of(truncate(at("/a/f").c_str(), 10)),
                         error_of(rename(at("/a/f").c_str(), at("/b/f").c_str())),
                         error_of(link(at("/b/f").c_str(), at("/a/l").c_str())), error_of(symlink("nowhere", at("/a/s").c_str())),
                         error_of(rename(at("/b").c_str(), at("/a/b").c_str())), error_of(chmod(at("/a/l").c_str(), 0640)),
                         try_open(at("/a/b/f"), O_RDWR | O_TRUNC), error_of(unlink(at("/a/s").c_str())),
                         error_of(unlink(at("/a/b/f").c_str())), error_of(rmdir(at("/a/b").c_str()))}) {
                     if (error != 0) return step;
                     ++step;
                   }
                   return 0;
                 },
                 {abi, true});
    INFO("ABI " << abi);
    CHECK(ended.answer == 0);
  }
}

TEST_CASE("landlock__write_place__nothing_comes_in_from_outside_or_leaves") {
  if (!has_landlock(2)) return;
  const TempDir mine, other;
  write_file(mine.path() + "/f", "text");
  write_file(other.path() + "/f", "text");
  const Plan plan = places({{mine.path(), Access::write}});
  const auto moved = [&](const std::string& from, const std::string& to) {
    return confined(plan, [&] { return error_of(rename((from + "/f").c_str(), (to + "/g").c_str())); }).answer;
  };
  CHECK(moved(mine.path(), other.path()) == EACCES);
  CHECK(moved(other.path(), mine.path()) == EACCES);
  CHECK(confined(plan, [&] { return error_of(link((other.path() + "/f").c_str(), (mine.path() + "/g").c_str())); }).answer != 0);
}

TEST_CASE("landlock__files_place__files_are_made_and_replaced_and_no_directory") {
  if (!has_landlock(2)) return;
  const TempDir directory;
  const std::string root = directory.path();
  write_file(root + "/old", "text");
  const Plan plan = places({{root, Access::files}});
  CHECK(confined(plan, [&] { return try_open(root + "/new", O_WRONLY | O_CREAT | O_TRUNC); }).answer == 0);
  CHECK(confined(plan, [&] { return error_of(rename((root + "/new").c_str(), (root + "/old").c_str())); }).answer == 0);
  CHECK(confined(plan, [&] { return try_open(root + "/old", O_RDONLY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(mkdir((root + "/d").c_str(), 0700)); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(unlink((root + "/old").c_str())); }).answer == 0);
}

TEST_CASE("landlock__remove_place__names_go_and_none_come") {
  if (!has_landlock(2)) return;
  const TempDir directory;
  const std::string root = directory.path();
  write_file(root + "/file", "text");
  std::filesystem::create_directory(root + "/empty");
  const Plan plan = places({{root, Access::remove}});
  CHECK(confined(plan, [&] { return try_open(root + "/file", O_WRONLY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open(root + "/new", O_WRONLY | O_CREAT); }).answer == EACCES);
  CHECK(confined(plan, [&] { return error_of(unlink((root + "/file").c_str())); }).answer == 0);
  CHECK(confined(plan, [&] { return error_of(rmdir((root + "/empty").c_str())); }).answer == 0);
}

TEST_CASE("landlock__reads_everything__only_writing_is_confined") {
  if (!has_landlock()) return;
  const TempDir mine, other;
  write_file(other.path() + "/file", "text");
  Plan plan = places({{mine.path(), Access::files}});
  plan.reads_everything = true;
  CHECK(confined(plan, [&] { return try_open(other.path() + "/file", O_RDONLY); }).answer == 0);
  CHECK(confined(plan, [&] { return try_open(other.path() + "/file", O_WRONLY); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_open(mine.path() + "/new", O_WRONLY | O_CREAT); }).answer == 0);
}

TEST_CASE("landlock__place_that_is_replaced__is_another_one") {
  if (!has_landlock(2)) return;
  const TempDir directory;
  const std::string root = directory.path() + "/root";
  std::filesystem::create_directory(root);
  int entered[2], replaced[2];
  REQUIRE(pipe2(entered, O_CLOEXEC) == 0);
  REQUIRE(pipe2(replaced, O_CLOEXEC) == 0);
  char byte = 0;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (!enter(places({{root, Access::write}})) || write(entered[1], &byte, 1) != 1 || read(replaced[0], &byte, 1) != 1)
      _exit(not_confined);
    _exit(try_open(root + "/new", O_WRONLY | O_CREAT));
  }
  close(entered[1]);
  REQUIRE(read(entered[0], &byte, 1) == 1);
  std::filesystem::rename(root, directory.path() + "/archive");
  std::filesystem::create_directory(root);
  REQUIRE(write(replaced[1], &byte, 1) == 1);
  CHECK(await(child).answer == EACCES);
  for (const int fd : {entered[0], replaced[0], replaced[1]}) close(fd);
}

TEST_CASE("landlock__place_that_is_not_there__is_left_out") {
  const TempDir directory;
  const Plan plan = places({{directory.path() + "/absent", Access::write}, {"", Access::read}, {"/dev/stdin", Access::read}});
  CHECK(confined(plan, [&] { return try_open(directory.path() + "/absent/file", O_WRONLY | O_CREAT); }).answer == ENOENT);
}

TEST_CASE("landlock__abi_1__a_process_that_moves_files_is_not_confined_and_says_so") {
  if (!has_landlock()) return;
  const TempDir mine, other;
  const auto told = [&](const Plan& plan) {
    return confined(plan, [&] { return try_open(other.path() + "/new", O_WRONLY | O_CREAT); }, {1, true}).answer;
  };
  CHECK(told(places({{mine.path(), Access::write}})) == 0);
  CHECK(told(places({{mine.path(), Access::read}})) == EACCES);
  const pid_t child = fork();
  if (child == 0) {
    const auto report = enter(places({{mine.path(), Access::write}}), {1, true});
    _exit(report && !report->confines_files && mentions(report->missing, "ABI 1") ? 0 : 1);
  }
  CHECK(await(child).answer == 0);
}

TEST_CASE("landlock__kernel_without_it__said_and_no_error") {
  const TempDir other;
  const pid_t child = fork();
  if (child == 0) {
    const auto report = enter({}, {0, true});
    const bool said = report && !report->confines_files && mentions(report->missing, "Landlock");
    _exit(said ? try_open(other.path() + "/new", O_WRONLY | O_CREAT) : 100);
  }
  CHECK(await(child).answer == 0);
}

TEST_CASE("landlock__no_descriptor_left__an_error_and_not_a_smaller_list") {
  if (!has_landlock()) return;
  const TempDir directory;
  const int left = GENERATE(0, 1);  // without any there is no ruleset, with one no place for it
  const pid_t child = fork();
  if (child == 0) {
    int last = -1;
    for (int fd = 0; fd >= 0; fd = dup(STDOUT_FILENO)) last = fd;
    if (left == 1) close(last);
    const auto report = enter(places({{directory.path(), Access::read}}));
    _exit(!report && report.error().kind == ErrorKind::file_io ? 0 : 1);
  }
  CHECK(await(child).answer == 0);
}

TEST_CASE("landlock__tcp__neither_dialled_nor_bound_unless_the_plan_says_so") {
  if (!has_landlock(4)) return;
  const Listener listener;
  Plan plan;
  CHECK(confined(plan, [&] { return listener.dial(); }).answer == EACCES);
  CHECK(confined(plan, [&] { return try_bind(); }).answer == EACCES);
  plan.dials = true;
  CHECK(confined(plan, [&] { return listener.dial(); }).answer == 0);
  CHECK(confined(plan, [&] { return try_bind(); }).answer == EACCES);
  plan.listens = true;
  CHECK(confined(plan, [&] { return try_bind(); }).answer == 0);
}

TEST_CASE("landlock__abstract_socket_of_another_process__is_not_reached") {
  if (!has_landlock(6)) return;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("ccixfer-unit-{}", getpid());
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  REQUIRE(bind(listener, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener, 2) == 0);
  const auto dial = [&] {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return error_of(connect(fd, reinterpret_cast<const sockaddr*>(&address), size));
  };
  CHECK(confined({}, dial).answer == EPERM);
  CHECK(confined({}, dial, {5, true}).answer == 0);
  close(listener);
}

TEST_CASE("landlock__devices_and_sockets__are_not_made_where_files_are") {
  if (!has_landlock(2)) return;
  const TempDir directory;
  const Plan plan = places({{directory.path(), Access::files}});
  CHECK(confined(plan, [&] { return error_of(mkfifo((directory.path() + "/fifo").c_str(), 0600)); }).answer != 0);
  CHECK(confined(plan, [&] { return error_of(mknod((directory.path() + "/null").c_str(), S_IFCHR | 0600, 0x103)); }).answer != 0);
  CHECK_FALSE(std::filesystem::exists(directory.path() + "/fifo"));
}

}  // namespace ccixfer::sandbox

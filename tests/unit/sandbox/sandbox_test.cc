// The process as a whole: no new privileges, its memory, its threads, and a user namespace.
#include "core/sandbox/sandbox.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "tests/unit/sandbox/child.h"

namespace ccixfer::sandbox {

using namespace test;

namespace {

constexpr uid_t other_account = 65534;
constexpr int no_namespace = 201;

// Of one account, and without a capability: as two services of it would be.
int become_other_account() {
  if (geteuid() != 0) return 0;
  return error_of(setgid(other_account)) | error_of(setuid(other_account)) | error_of(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

// What another process of the same account gets when it opens this one's memory: 0 or an errno.
int open_memory_of(bool is_confined) {
  int ready[2], over[2];
  REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
  REQUIRE(pipe2(over, O_CLOEXEC) == 0);
  const pid_t owner = fork();
  if (owner == 0) {
    close(over[1]);
    char byte = 0;
    if (become_other_account() != 0 || (is_confined && !enter({}))) _exit(1);
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    static_cast<void>(!read(over[0], &byte, 1));
    _exit(0);
  }
  close(ready[1]);
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  const pid_t other = fork();
  if (other == 0) {
    if (become_other_account() != 0) _exit(100);
    _exit(try_open("/proc/" + std::to_string(owner) + "/mem", O_RDONLY));
  }
  const int answer = await(other).answer;
  for (const int fd : {ready[0], over[0], over[1]}) close(fd);
  CHECK(await(owner).answer == 0);
  return answer;
}

bool write_once(const char* path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  return file.good();
}

// Root of a user namespace of its own, as in a container without root outside.
int enter_user_namespace() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return no_namespace;
  static_cast<void>(write_once("/proc/self/setgroups", "deny"));
  return write_once("/proc/self/uid_map", fmt::format("0 {} 1", uid)) &&
                 write_once("/proc/self/gid_map", fmt::format("0 {} 1", gid))
             ? 0
             : no_namespace;
}

}  // namespace

TEST_CASE("sandbox__entered__there_are_no_new_privileges_and_no_core_dump") {
  Plan plan;
  plan.places = {{"/proc", Access::read}};
  CHECK(confined(plan, [] { return status_of_self("NoNewPrivs") == "1" ? 0 : 1; }).answer == 0);
  CHECK(confined(plan, [] { return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0); }).answer == 0);
  CHECK(confined(plan, [] {
          rlimit limit{1, 1};
          return error_of(getrlimit(RLIMIT_CORE, &limit)) != 0 || limit.rlim_cur != 0 || limit.rlim_max != 0 ? 1 : 0;
        }).answer == 0);
}

TEST_CASE("sandbox__another_process_of_the_account__does_not_open_the_memory") {
  if (open_memory_of(false) != 0) {
    WARN("nobody may look at processes of the same account here anyway");
    return;
  }
  CHECK(open_memory_of(true) == EACCES);
}

TEST_CASE("sandbox__entered__says_what_is_in_force") {
  const pid_t child = fork();
  if (child == 0) {
    const auto report = enter({});
    _exit(report && report->in_force.size() + report->missing.size() >= 4 ? 0 : 1);
  }
  CHECK(await(child).answer == 0);
}

TEST_CASE("sandbox__second_thread__is_a_bug_that_is_told") {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    std::thread([] { pause(); }).detach();
    static_cast<void>(!freopen("/dev/null", "w", stderr));
    static_cast<void>(enter({}));
    _exit(0);
  }
  CHECK(await(child).signal == SIGABRT);
}

TEST_CASE("sandbox__root_of_a_user_namespace__is_confined_as_any_other") {
  const TempDir mine, other;
  Plan plan;
  plan.places = {{mine.path(), Access::write}, {"/proc", Access::read}};
  plan.file_rights = FileRights::write_all_with_owners;
  const auto in_namespace = [&](const std::function<int()>& body) {
    return confined(plan, body, offers_of_kernel(), enter_user_namespace);
  };
  if (in_namespace([] { return 0; }).answer == no_namespace) {
    WARN("no user namespaces here");
    return;
  }
  CHECK(in_namespace([&] { return try_open(mine.path() + "/new", O_WRONLY | O_CREAT); }).answer == 0);
  CHECK(in_namespace([] { return status_of_self("CapBnd") == "0000000000000000" ? 0 : 1; }).answer == 0);
  CHECK(in_namespace([] { return status_of_self("Seccomp") == "2" ? 0 : 1; }).answer == 0);
  if (!has_landlock(2)) return;
  CHECK(in_namespace([&] { return try_open(other.path() + "/new", O_WRONLY | O_CREAT); }).answer == EACCES);
}

TEST_CASE("sandbox__who_uses_rdma_cards__keeps_its_rights_and_says_so") {
  Plan plan;
  plan.uses_cards = true;
  const std::string before = status_of_self("CapBnd");
  const TempDir elsewhere;
  const pid_t child = fork();
  if (child == 0) {
    const auto report = enter(plan);
    const auto about = [](const std::string& line) { return line.starts_with("files and capabilities are not restricted: "); };
    const bool is_said = report && !report->confines_files && std::any_of(report->missing.begin(), report->missing.end(), about);
    const bool has_all = status_of_self("CapBnd") == before && try_open(elsewhere.path() + "/new", O_CREAT | O_WRONLY) == 0;
    _exit(is_said && has_all && status_of_self("NoNewPrivs") == "1" && status_of_self("Seccomp") == "2" ? 0 : 1);
  }
  CHECK(await(child).answer == 0);
}

}  // namespace ccixfer::sandbox

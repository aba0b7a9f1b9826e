// Capabilities: which are kept for whom. What only root can try is tried by root only.
#include "core/sandbox/capabilities.h"

#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <sys/prctl.h>

#include "tests/unit/sandbox/child.h"

namespace ccixfer::sandbox {

using namespace test;

namespace {

constexpr uid_t other_account = 65534;

Plan plan_with(FileRights rights, const std::string& place) {
  Plan plan;
  plan.file_rights = rights;
  plan.places = {{place, Access::write}, {"/proc", Access::read}};
  return plan;
}

std::string effective(uint64_t capabilities) { return fmt::format("{:016x}", capabilities); }

bool is_root() {
  if (geteuid() == 0) return true;
  WARN("only root has capabilities to lose");
  return false;
}

}  // namespace

TEST_CASE("capabilities__of_each_right__are_those_of_files_only") {
  CHECK(kept_capabilities(FileRights::own) == 0);
  CHECK(kept_capabilities(FileRights::read_all) == 1u << CAP_DAC_READ_SEARCH);
  CHECK(kept_capabilities(FileRights::write_all) == (1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER));
  CHECK(kept_capabilities(FileRights::write_all_with_owners) ==
        (1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_CHOWN | 1u << CAP_FSETID | 1u << CAP_MKNOD | 1u << CAP_SETFCAP));
}

TEST_CASE("capabilities__every_set__holds_what_is_kept_and_no_more") {
  const FileRights rights = GENERATE(FileRights::own, FileRights::read_all, FileRights::write_all_with_owners);
  const TempDir directory;
  const std::string kept = effective(geteuid() == 0 ? kept_capabilities(rights) : 0);
  for (const char* set : {"CapEff", "CapPrm"})
    CHECK(confined(plan_with(rights, directory.path()), [&] { return status_of_self(set) == kept ? 0 : 1; }).answer == 0);
  for (const char* set : {"CapInh", "CapAmb"})
    CHECK(confined(plan_with(rights, directory.path()), [&] { return status_of_self(set) == effective(0) ? 0 : 1; }).answer == 0);
  if (geteuid() != 0) return;
  CHECK(confined(plan_with(rights, directory.path()), [&] { return status_of_self("CapBnd") == effective(0) ? 0 : 1; }).answer ==
        0);
}

TEST_CASE("capabilities__account_without_any__keeps_none_and_is_confined_all_the_same") {
  if (!is_root()) return;
  const TempDir directory;
  const Ended ended = confined(
      plan_with(FileRights::write_all_with_owners, directory.path()),
      [] { return status_of_self("CapEff") == effective(0) && status_of_self("NoNewPrivs") == "1" ? 0 : 1; }, offers_of_kernel(),
      [] { return error_of(setgroups(0, nullptr)) | error_of(setgid(other_account)) | error_of(setuid(other_account)); });
  CHECK(ended.answer == 0);
}

TEST_CASE("capabilities__list_of_a_service_manager_without_capset__is_no_error") {
  const TempDir directory;
  const auto refuse_capset = [] {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(capset), 0) | seccomp_load(filter);
  };
  const Plan plan = plan_with(FileRights::own, directory.path());
  const auto told = [&](const std::function<int()>& before) {
    const pid_t child = fork();
    if (child == 0) {
      if (before() != 0) _exit(100);
      const auto report = enter(plan);
      _exit(!report ? not_confined : static_cast<int>(report->missing.size()));
    }
    return await(child).answer;
  };
  const int otherwise = told([] { return 0; });  // what this kernel lacks
  CHECK(told([&] { return refuse_capset(); }) == otherwise + (geteuid() == 0 ? 1 : 0));
  if (!is_root()) return;
  CHECK(told([&] {
          return error_of(setgroups(0, nullptr)) | error_of(setgid(other_account)) | error_of(setuid(other_account)) |
                 error_of(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) | refuse_capset();
        }) == otherwise);
}

TEST_CASE("capabilities__root__does_to_files_of_others_what_its_right_says") {
  if (!is_root()) return;
  const TempDir directory;
  const std::string theirs = directory.path() + "/theirs", file = theirs + "/file", mine = directory.path() + "/mine";
  REQUIRE(mkdir(theirs.c_str(), 0700) == 0);
  write_file(file, "text");
  write_file(mine, "text");
  REQUIRE(chmod(file.c_str(), 0600) == 0);
  REQUIRE(chown(file.c_str(), other_account, other_account) == 0);
  REQUIRE(chown(theirs.c_str(), other_account, other_account) == 0);
  const auto reads = [&](FileRights rights) {
    return confined(plan_with(rights, directory.path()), [&] { return try_open(file, O_RDONLY); });
  };
  const auto writes = [&](FileRights rights) {
    return confined(plan_with(rights, directory.path()), [&] { return try_open(file, O_WRONLY); });
  };
  const auto gives = [&](FileRights rights) {
    return confined(plan_with(rights, directory.path()), [&] { return error_of(chown(mine.c_str(), 1234, 1234)); });
  };
  CHECK(reads(FileRights::own).answer == EACCES);
  CHECK(reads(FileRights::read_all).answer == 0);
  CHECK(writes(FileRights::read_all).answer == EACCES);
  CHECK(writes(FileRights::write_all).answer == 0);
  CHECK(gives(FileRights::read_all).answer == EPERM);
  CHECK(gives(FileRights::write_all).answer == EPERM);
  CHECK(gives(FileRights::write_all_with_owners).answer == 0);
}

}  // namespace ccixfer::sandbox

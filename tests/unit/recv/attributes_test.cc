// Owner, mode and times: which calls are made in which order, and what a refusal or a failure of each means.
#include "app/recv/attributes.h"

#include <catch2/catch.hpp>
#include <map>

#include "app/session/extended.h"
#include "tests/unit/recv/faulty_files.h"

namespace ccixfer::recv {

using test::FaultyFiles;

namespace {

constexpr uint32_t all = session::option_permissions | session::option_times | session::option_owner;
constexpr uint32_t somebody = 1000;

struct Given {
  int result = 0;
  std::vector<std::string> calls;
};

// No call is made; each goes well but those in `failing`.
Given give(const Policy& policy, const Current& current, const Attributes& wanted, const std::map<std::string, int>& failing = {}) {
  FaultyFiles files;
  files.hook = [&](std::string_view call, std::string_view) {
    const auto at = failing.find(std::string(call));
    return at != failing.end() ? -at->second : 1;
  };
  Given given;
  given.result = apply_attributes(files, -1, policy, current, wanted);
  given.calls = files.given;
  return given;
}

using Calls = std::vector<std::string>;

}  // namespace

TEST_CASE("attributes__all_differ__owner_then_mode_then_time") {
  const Given given = give({all, 022, 0, 0}, {0644, 0, 0}, {0755, 5, 6, {1, 2}});
  CHECK(given.result == 0);
  CHECK(given.calls == Calls{"owner 5 6", "mode 755", "time 1.000000002"});
}

TEST_CASE("attributes__what_is_so_already__is_not_called") {
  const Policy policy{all, 022, 0, 0};
  const Attributes wanted{0644, 5, 6, {1, 2}};
  CHECK(give(policy, {0644, 5, 6}, wanted).calls == Calls{"time 1.000000002"});
  CHECK(give(policy, {0600, 5, 6}, wanted).calls == Calls{"mode 644", "time 1.000000002"});
  CHECK(give(policy, {0644, 4, 6}, wanted).calls == Calls{"owner 5 6", "time 1.000000002"});
  CHECK(give(policy, {0644, 5, 4}, wanted).calls == Calls{"owner 5 6", "time 1.000000002"});
  CHECK(give(policy, {0644, 5, 6, ports::FileTime{1, 2}}, wanted).calls.empty());
  CHECK(give(policy, {0644, 5, 6, ports::FileTime{1, 3}}, wanted).calls == Calls{"time 1.000000002"});
  CHECK(give(policy, {0600, 5, 6, ports::FileTime{1, 2}}, wanted).calls == Calls{"mode 644"});
}

// Of a directory that inherited set-group-ID from the one that it is in, chown(2) takes nothing away.
TEST_CASE("attributes__owner_of_what_is_setgid__the_mode_is_given_even_if_chown_may_have_made_it") {
  CHECK(give({all, 022, 0, 0}, {02750, 0, 0}, {0750, 5, 6, {1, 2}}).calls == Calls{"owner 5 6", "mode 750", "time 1.000000002"});
}

TEST_CASE("attributes__what_was_not_asked_for__is_not_given") {
  const Current current{0640, 0, 0};
  const Attributes wanted{06755, 5, 6, {1, 2}};
  CHECK(give({session::option_permissions, 022, 0, 0}, current, {0755, 5, 6, {1, 2}}).calls == Calls{"mode 755"});
  CHECK(give({session::option_times, 022, 0, 0}, {0755, 0, 0}, wanted).calls == Calls{"time 1.000000002"});
  CHECK(give({session::option_owner, 022, 0, 0}, {0755, 0, 0}, wanted).calls == Calls{"owner 5 6"});
  CHECK(give({0, 022, 0, 0}, {0755, 0, 0}, wanted).calls.empty());
}

TEST_CASE("attributes__not_root__the_group_alone_is_given_and_only_if_it_differs") {
  const Policy policy{all, 022, somebody, somebody};
  CHECK(give(policy, {0644, somebody, somebody}, {0644, 5, 6, {1, 2}}).calls == Calls{"owner -1 6", "time 1.000000002"});
  CHECK(give(policy, {0644, somebody, 6}, {0644, 5, 6, {1, 2}}).calls == Calls{"time 1.000000002"});
}

// The bits mean the owner and group that the file has at last.
TEST_CASE("attributes__setuid_and_setgid__only_with_the_owner_and_group_they_are_of") {
  const Attributes wanted{06755, 5, 6, {1, 2}};
  // chown takes them away: they are given again
  CHECK(give({all, 022, 0, 0}, {06755, 0, 0}, wanted).calls == Calls{"owner 5 6", "mode 6755", "time 1.000000002"});
  CHECK(give({all, 022, 0, 0}, {06755, 5, 6}, wanted).calls == Calls{"time 1.000000002"});
  // the owner is not ours to give
  CHECK(give({all, 022, somebody, 7}, {0755, somebody, 7}, wanted).calls == Calls{"owner -1 6", "mode 2755", "time 1.000000002"});
  // nor the group
  CHECK(give({all, 022, somebody, 7}, {06755, somebody, 7}, wanted, {{"set_owner", EPERM}}).calls ==
        Calls{"owner -1 6", "mode 755", "time 1.000000002"});
  CHECK(give({all, 022, 0, 0}, {0755, 5, 7}, wanted, {{"set_owner", EPERM}}).calls ==
        Calls{"owner 5 6", "mode 4755", "time 1.000000002"});
}

// ext4 says of one file that it has no room for more attributes as others say of the whole disk.
TEST_CASE("attributes__no_space_for_a_list__of_a_full_disk_a_failure_and_else_a_refusal") {
  const bool is_full = GENERATE(true, false);
  const test::TemporaryDirectory temporary;
  FaultyFiles files;
  const int fd = files.open(ports::FileSystem::no_directory, temporary.path(), {.directory = true}, 0);
  REQUIRE(fd >= 0);
  int error = -ENOSPC;
  files.hook = [&error](std::string_view call, std::string_view) { return call == "set_acl" ? error : 0; };
  files.tells = [is_full](ports::SpaceInfo& space) { space.free_bytes = is_full ? 4096 : 1u << 20; };
  Attributes wanted;
  wanted.extended = std::make_shared<std::vector<session::ExtendedAttribute>>(
      std::vector<session::ExtendedAttribute>{{std::string(session::access_acl_name), "a list"}});
  const Policy policy{session::option_acls, 022, somebody, somebody};
  CHECK(apply_extended(files, fd, policy, wanted) == (is_full ? -ENOSPC : attributes_refused));
  error = -EDQUOT;
  CHECK(apply_extended(files, fd, policy, wanted) == -EDQUOT);
  error = -ENOTSUP;
  CHECK(apply_extended(files, fd, policy, wanted) == attributes_refused);
  files.hook = nullptr;
  files.close(fd);
}

TEST_CASE("attributes__refused_by_the_file_system__the_rest_is_set_the_refusal_is_told") {
  const int refusal = GENERATE(EPERM, EINVAL, EACCES, ENOTSUP, ENOSYS);
  const Current current{0644, 0, 0};
  const Attributes wanted{0755, 5, 6, {1, 2}};
  const Calls every{"owner 5 6", "mode 755", "time 1.000000002"};
  const Policy policy{all, 022, 0, 0};
  const Given owner = give(policy, current, wanted, {{"set_owner", refusal}});
  CHECK(owner.result == 0);  // as rsync does: whose it is, is no matter of the file system
  CHECK(owner.calls == every);
  const Given mode = give(policy, current, wanted, {{"set_mode", refusal}});
  CHECK(mode.result == attributes_refused);
  CHECK(mode.calls == every);
  CHECK(give(policy, current, wanted, {{"set_mtime", refusal}}).result == attributes_refused);
  CHECK(give(policy, current, wanted, {{"set_mode", refusal}, {"set_mtime", refusal}}).result == attributes_refused);
  // nobody asked for that mode
  CHECK(give({session::option_times, 022, 0, 0}, {0600, 0, 0}, wanted, {{"set_mode", refusal}}).result == 0);
}

TEST_CASE("attributes__a_call_fails__its_error_and_no_call_more") {
  const Policy policy{all, 022, 0, 0};
  const Current current{0644, 0, 0};
  const Attributes wanted{0755, 5, 6, {1, 2}};
  CHECK(give(policy, current, wanted, {{"set_owner", EIO}}).result == -EIO);
  CHECK(give(policy, current, wanted, {{"set_owner", EIO}}).calls == Calls{"owner 5 6"});
  CHECK(give(policy, current, wanted, {{"set_mode", ENOSPC}}).result == -ENOSPC);
  CHECK(give(policy, current, wanted, {{"set_mode", ENOSPC}}).calls == Calls{"owner 5 6", "mode 755"});
  CHECK(give(policy, current, wanted, {{"set_mtime", EROFS}}).result == -EROFS);
}

TEST_CASE("attributes__wanted_mode__as_listed_or_as_open_makes_it") {
  const Policy kept{session::option_permissions, 022, 0, 0};
  CHECK(wanted_mode(kept, {0, 5, 6}, {0177777, 5, 6, {}}) == 07777);
  CHECK(wanted_mode(kept, {0, 4, 6}, {07777, 5, 6, {}}) == 03777);
  CHECK(wanted_mode(kept, {0, 5, 4}, {07777, 5, 6, {}}) == 05777);
  const Policy made{0, 027, 0, 0};
  CHECK(wanted_mode(made, {0600, 5, 6}, {06777, 5, 6, {}}) == 0750);
  CHECK(wanted_mode(made, {02700, 5, 6}, {0777, 5, 6, {}}) == 02750);  // inherited: stays
  CHECK(made.created_mode({06766, 0, 0, {}}) == 0740);
}

}  // namespace ccixfer::recv

// What a Team works with in its tests: files in work, a root, jobs that end when they are told to, and an end of a network.
#pragma once
#include <memory>

#include "app/recv/team.h"
#include "tests/unit/recv/no_team_handler.h"
#include "tests/unit/recv/parts.h"
#include "tests/unit/recv/place.h"

namespace ccixfer::recv::test {

struct WithTeamParts {
  TemporaryDirectory temporary;
  FaultyFiles files;
  std::unique_ptr<Root> root = Root::open(files, temporary.path()).value();
  SessionRoot session_root{*root, archive_options, {}};
  JobRig jobs;
  FakeFiles known;
  FakeSession session;
  NoHandler handler;
  session::fake::Net net;
  session::fake::Side side{net, "fake://leader", 3};
};

}  // namespace ccixfer::recv::test

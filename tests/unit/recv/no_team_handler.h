// Who is told of what helpers bring, and does nothing with it.
#pragma once
#include "app/recv/team.h"

namespace ccixfer::recv::test {

class NoHandler final : public TeamHandler {
 public:
  void receive_from(Helper&, ReceivedSegment) override {}
  void helpers_have_news() override {}
  void on_file_end_of_helper(const session::FileEnd&) override {}
  void on_holes_of_helper(const session::Holes&) override {}
};

}  // namespace ccixfer::recv::test

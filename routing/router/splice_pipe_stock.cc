#include "routing/router/splice_pipe_stock.h"

#include <utility>

namespace ccixfer::routing {

std::unique_ptr<ports::SplicePipe> SplicePipeStock::lend(cci::Endpoint& in, const cci::Endpoint& out) {
  if (free_.empty() && lent_ < splice_pipes_max) {
    if (auto made = in.make_splice_pipe()) free_.push_back(std::move(made));
  }
  if (free_.empty() || !in.takes(*free_.back()) || !out.takes(*free_.back())) return nullptr;
  std::unique_ptr<ports::SplicePipe> splice_pipe = std::move(free_.back());
  free_.pop_back();
  ++lent_;
  return splice_pipe;
}

void SplicePipeStock::give(std::unique_ptr<ports::SplicePipe> splice_pipe) {
  --lent_;
  if (splice_pipe->held_bytes() == 0) free_.push_back(std::move(splice_pipe));
}

}  // namespace ccixfer::routing

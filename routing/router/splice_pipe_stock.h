// The splice pipes of a router, which bytes of a fragment may pass through instead of coming into its
// buffer (core/ports/splice_pipe.h). One that comes back empty is used again. Single-threaded. Bounds:
// splice_pipes_max.
#pragma once
#include <memory>
#include <vector>

#include "core/cci/endpoint.h"

namespace ccixfer::routing {

// Fragments that pass without coming into memory, at one time.
inline constexpr size_t splice_pipes_max = 32;

class SplicePipeStock {
 public:
  // From one network to another. nullptr: none is left, or one of the two takes none of them.
  [[nodiscard]] std::unique_ptr<ports::SplicePipe> lend(cci::Endpoint& in, const cci::Endpoint& out);
  void give(std::unique_ptr<ports::SplicePipe> splice_pipe);

 private:
  std::vector<std::unique_ptr<ports::SplicePipe>> free_;
  size_t lent_ = 0;
};

}  // namespace ccixfer::routing

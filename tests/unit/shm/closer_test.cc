// Threads that close what may block, without holding up others.
#include "transports/shm/closer.h"

#include <unistd.h>

#include <vector>

#include "tests/unit/shm/lingering.h"

namespace ccixfer::shm {
namespace {

struct Ends {
  host::Descriptor read, write;
  Ends() {
    int ends[2] = {-1, -1};
    REQUIRE(pipe(ends) == 0);
    read.reset(ends[0]);
    write.reset(ends[1]);
  }
  void wait_for_the_end() const {
    char byte = 0;
    CHECK(::read(read.get(), &byte, 1) == 0);
  }
};

TEST_CASE("closer__what_it_is_given__is_closed") {
  Closer closer;
  for (int i = 0; i < 20; ++i) {
    Ends ends;
    closer.close(std::move(ends.write));
    ends.wait_for_the_end();
  }
}

TEST_CASE("closer__some_that_wait__hold_up_nobody_else") {
  Closer closer;
  std::vector<LingeringSocket> stuck(Closer::threads_max - 1);
  for (LingeringSocket& socket : stuck) closer.close(socket.take());
  Ends ends;
  closer.close(std::move(ends.write));
  HeldUp held_up([&] {
    for (LingeringSocket& socket : stuck) socket.let_go();
  });
  ends.wait_for_the_end();
  CHECK_FALSE(held_up.end());
}

TEST_CASE("closer__all_threads_wait__the_rest_is_closed_when_one_is_done") {
  Ends ends;
  std::vector<LingeringSocket> stuck(Closer::threads_max);
  {
    Closer closer;
    for (LingeringSocket& socket : stuck) closer.close(socket.take());
    CHECK_FALSE(closer.is_full());
    closer.close(std::move(ends.write));
    for (size_t i = 0; i < Closer::threads_max + Closer::waiting_max; ++i) closer.close(host::Descriptor(dup(ends.read.get())));
    CHECK(closer.is_full());
  }
  stuck.front().let_go();
  ends.wait_for_the_end();
  for (LingeringSocket& socket : stuck) socket.let_go();
}

}  // namespace
}  // namespace ccixfer::shm

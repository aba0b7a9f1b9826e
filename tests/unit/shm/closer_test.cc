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

TEST_CASE("closer__all_threads_wait__what_comes_then_ends_that") {
  Closer closer;
  std::vector<LingeringSocket> stuck(3 * Closer::threads_max);
  for (LingeringSocket& socket : stuck) closer.close(socket.take());
  Ends ends;
  closer.close(std::move(ends.write));
  HeldUp held_up([&] {
    for (LingeringSocket& socket : stuck) socket.let_go();
  });
  ends.wait_for_the_end();
  CHECK_FALSE(held_up.end());
  CHECK_FALSE(closer.is_full());
}

TEST_CASE("closer__goes_while_some_wait__the_rest_is_closed") {
  Ends ends;
  std::vector<LingeringSocket> stuck(Closer::threads_max);
  {
    Closer closer;
    for (LingeringSocket& socket : stuck) closer.close(socket.take());
    closer.close(std::move(ends.write));
  }
  stuck.front().let_go();
  ends.wait_for_the_end();
  for (LingeringSocket& socket : stuck) socket.let_go();
}

TEST_CASE("closer__nothing_gets_closed__is_full_from_some_on") {
  Ends ends;
  Closer closer(0);
  for (size_t i = 0; i < Closer::waiting_max; ++i) {
    CHECK_FALSE(closer.is_full());
    closer.close(host::Descriptor(dup(ends.read.get())));
  }
  CHECK(closer.is_full());
}

}  // namespace
}  // namespace ccixfer::shm

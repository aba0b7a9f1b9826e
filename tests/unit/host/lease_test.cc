// Opening a file under a lease waits for whoever holds the lease.
#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <thread>

#include "core/host/file_system.h"
#include "tests/unit/host/temp_dir.h"

using namespace ccixfer;
using testing::TempDir;

// A file server has leases on what its clients have open: whoever opens such a file waits until the holder has let go.
TEST_CASE("file_system__open_of_a_file_under_a_lease__waits_for_its_holder") {
  const TempDir dir;
  const int holder = ::openat(dir.fd(), "leased", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(holder >= 0);
  sigset_t asked;
  sigemptyset(&asked);
  sigaddset(&asked, SIGRTMIN + 3);
  sigset_t before;
  REQUIRE(pthread_sigmask(SIG_BLOCK, &asked, &before) == 0);  // before the thread is made, which inherits it
  REQUIRE(::fcntl(holder, F_SETSIG, SIGRTMIN + 3) == 0);
  REQUIRE(::fcntl(holder, F_SETLEASE, F_WRLCK) == 0);
  std::thread lets_go([&] {
    int signal = 0;
    sigwait(&asked, &signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it writes back what its client has, say
    ::fcntl(holder, F_SETLEASE, F_UNLCK);
  });
  host::PosixFileSystem files;
  std::atomic<uint64_t> pauses{0};
  const int fd = files.open(dir.fd(), "leased", {.pauses = &pauses}, 0);
  CHECK(fd >= 0);
  CHECK(pauses > 0);
  lets_go.join();
  ::close(holder);
  files.close(fd);
  CHECK(pthread_sigmask(SIG_SETMASK, &before, nullptr) == 0);
}

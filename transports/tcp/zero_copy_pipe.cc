#include "transports/tcp/zero_copy_pipe.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/base/check.h"

namespace ccixfer::tcp {
namespace {

// A short chunk at any alignment, with room to spare; a longer one takes several rounds. Who is granted much less (the pipes of a
// user are bounded) does better with copies.
constexpr int pipe_bytes = 512 << 10;
constexpr int pipe_bytes_min = 128 << 10;

}  // namespace

bool ZeroCopyPipe::open() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  out_.reset(ends[0]);
  in_.reset(ends[1]);
  static_cast<void>(fcntl(in_.get(), F_SETPIPE_SZ, pipe_bytes));
  if (fcntl(in_.get(), F_GETPIPE_SZ) >= pipe_bytes_min) return true;
  out_.reset();
  in_.reset();
  return false;  // too short to be worth it
}

size_t ZeroCopyPipe::fill(Bytes memory) {
  CHECK(empty());
  if (refused_) return 0;
  if (!in_ && !open()) {
    refused_ = true;
    return 0;
  }
  const iovec span{const_cast<std::byte*>(memory.data()), memory.size()};
  for (;;) {
    const ssize_t taken = vmsplice(in_.get(), &span, 1, SPLICE_F_NONBLOCK);
    if (taken > 0) {
      held_bytes_ = static_cast<size_t>(taken);
      return held_bytes_;
    }
    if (taken < 0 && errno == EINTR) continue;
    refused_ = errno != EFAULT;  // EFAULT: pages of a file that are not there any more; others are
    return 0;
  }
}

bool ZeroCopyPipe::flush(int socket, bool more) {
  const unsigned flags = SPLICE_F_NONBLOCK | SPLICE_F_MOVE | (more ? SPLICE_F_MORE : 0u);
  while (held_bytes_ > 0) {
    const ssize_t moved = splice(out_.get(), nullptr, socket, nullptr, held_bytes_, flags);
    if (moved > 0) {
      CHECK(static_cast<size_t>(moved) <= held_bytes_);
      held_bytes_ -= static_cast<size_t>(moved);
      continue;
    }
    if (moved < 0 && errno == EINTR) continue;
    if (moved == 0) errno = EPIPE;
    return false;
  }
  return true;
}

}  // namespace ccixfer::tcp

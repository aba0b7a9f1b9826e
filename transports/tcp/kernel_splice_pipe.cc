#include "transports/tcp/kernel_splice_pipe.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "core/base/check.h"
#include "transports/stream/stream_net.h"

namespace ccixfer::tcp {
namespace {

// What anybody may have (fs.pipe-max-size). It is counted in pieces, not bytes: of a network with small packets it holds less.
constexpr int pipe_bytes = 1 << 20;
constexpr int pipe_bytes_min = 256 << 10;

}  // namespace

std::unique_ptr<KernelSplicePipe> KernelSplicePipe::create() {
  auto splice_pipe = std::make_unique<KernelSplicePipe>();
  return open(splice_pipe->pipes_[0]) ? std::move(splice_pipe) : nullptr;
}

bool KernelSplicePipe::open(Pipe& pipe) {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
  pipe.out.reset(ends[0]);
  pipe.in.reset(ends[1]);
  if (fcntl(pipe.in.get(), F_SETPIPE_SZ, pipe_bytes) >= pipe_bytes_min) return true;
  pipe = {};
  return false;
}

KernelSplicePipe::Pipe& KernelSplicePipe::first() {
  if (pipes_[flushing_].held_bytes == 0) flushing_ = filled_;
  return pipes_[flushing_];
}

// For what comes next; the one that was filled until now is full.
bool KernelSplicePipe::take_other() {
  Pipe& other = pipes_[1 - filled_];
  if (other.held_bytes > 0 || (!other.in && !open(other))) return false;
  static_cast<void>(first());
  filled_ = 1 - filled_;
  return true;
}

void KernelSplicePipe::unload(MutableBytes memory) {
  CHECK(memory.size() >= held_bytes());
  while (held_bytes() > 0) {
    Pipe& pipe = first();
    const ssize_t n = read(pipe.out.get(), memory.data(), pipe.held_bytes);
    if (n < 0 && errno == EINTR) continue;
    CHECK(n > 0);  // they are there, and nobody else reads them
    pipe.held_bytes -= static_cast<size_t>(n);
    memory = memory.subspan(static_cast<size_t>(n));
  }
}

int64_t KernelSplicePipe::fill(int socket, size_t size) {
  for (;;) {
    Pipe& pipe = pipes_[filled_];
    const ssize_t n = splice(socket, nullptr, pipe.in.get(), nullptr, size, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0) {
      pipe.held_bytes += static_cast<size_t>(n);
      return n;
    }
    if (n == 0) return stream::io_closed;
    if (errno == EINTR) continue;
    if (errno == EINVAL || errno == ENOSYS || errno == ENOMEM) return stream::io_full;
    if (errno != EAGAIN) return stream::io_error;
    // Of two reasons: the socket has nothing, or the pipe has no room.
    int unread_bytes = 0;
    if (pipe.held_bytes == 0 || ioctl(socket, SIOCINQ, &unread_bytes) != 0 || unread_bytes == 0) return stream::io_again;
    if (!take_other()) return stream::io_full;
  }
}

size_t KernelSplicePipe::flush(int socket, size_t size, bool more) {
  CHECK(size <= held_bytes());
  size_t done = 0;
  while (done < size) {
    Pipe& pipe = first();
    const size_t wanted = std::min(size - done, pipe.held_bytes);
    const unsigned follow = more || done + wanted < size ? SPLICE_F_MORE : 0u;
    const ssize_t n = splice(pipe.out.get(), nullptr, socket, nullptr, wanted, SPLICE_F_NONBLOCK | SPLICE_F_MOVE | follow);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = EPIPE;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
    pipe.held_bytes -= static_cast<size_t>(n);
  }
  return done;
}

}  // namespace ccixfer::tcp

// Bytes from one socket to another through pipes of the kernel (splice): their pages change hands, and no processor copies them.
// A pipe holds a number of pieces, which may be pages or less (of what was spliced once before, they are), so a second one takes
// what the first has no room for. The host decides how large a pipe may be; small ones are no use, and there is no splice pipe
// then. Private to this room. Source: Linux splice(2), pipe(7).
#pragma once
#include <array>
#include <cstdint>
#include <memory>

#include "core/ports/splice_pipe.h"
#include "transports/tcp/socket.h"

namespace ccixfer::tcp {

class KernelSplicePipe final : public ports::SplicePipe {
 public:
  [[nodiscard]] static std::unique_ptr<KernelSplicePipe> create();  // nullptr: not on this host, or not now
  [[nodiscard]] size_t held_bytes() const override { return pipes_[0].held_bytes + pipes_[1].held_bytes; }
  void unload(MutableBytes memory) override;

  // At most `size` bytes from the socket, nonblocking: bytes > 0, or stream::io_* (io_full: there is no room).
  [[nodiscard]] int64_t fill(int socket, size_t size);
  // The first `size` bytes into the socket, as far as it takes them: bytes > 0; or 0 and errno. `more`: further bytes follow at
  // once.
  [[nodiscard]] size_t flush(int socket, size_t size, bool more);

 private:
  struct Pipe {
    Descriptor in, out;
    size_t held_bytes = 0;
  };
  [[nodiscard]] static bool open(Pipe& pipe);
  [[nodiscard]] Pipe& first();  // that holds bytes, if one does
  [[nodiscard]] bool take_other();

  std::array<Pipe, 2> pipes_;
  size_t filled_ = 0, flushing_ = 0;  // which one
};

}  // namespace ccixfer::tcp

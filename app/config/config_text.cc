#include "app/config/config_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "app/config/config.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

constexpr size_t read_bytes = 1u << 16;

class Closing {
 public:
  explicit Closing(int fd) : fd_(fd) {}
  ~Closing() { ::close(fd_); }
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;

 private:
  const int fd_;
};

auto cannot_read(const std::string& file, const char* what_to_do) {
  return fail(ErrorKind::usage, fmt::format("cannot read the configuration: {}: {}", printable(file), what_to_do));
}

}  // namespace

Result<std::string> read_config_text(const std::string& file, std::chrono::milliseconds wait) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return cannot_read(file, "give a file that exists and is readable");
  const Closing closing(fd);
  const auto until = std::chrono::steady_clock::now() + wait;
  std::string text;
  for (;;) {
    const size_t at = text.size();
    text.resize(at + read_bytes);
    const ssize_t got = ::read(fd, text.data() + at, read_bytes);
    text.resize(at + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (text.size() > config_bytes_max) {
      return fail(ErrorKind::usage,
                  fmt::format("the configuration is too long: {}: at most {} bytes", printable(file), config_bytes_max));
    }
    if (got == 0) return text;
    if (got > 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return cannot_read(file, "give a regular file");
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0)
      return cannot_read(file, "nothing came out of this pipe: give a regular file");
  }
}

}  // namespace ccixfer::program

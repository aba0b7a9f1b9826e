#include "app/trust/journal.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

namespace ccixfer::policy {

std::string journal_datagram(const JournalFields& fields) {
  std::string datagram;
  for (const auto& [name, value] : fields) {
    datagram += name + "\n";
    for (unsigned shift = 0; shift < 64; shift += 8) datagram += static_cast<char>(static_cast<uint64_t>(value.size()) >> shift);
    datagram += value + "\n";
  }
  return datagram;
}

bool is_journal(const char* stream, int fd) {
  struct stat stat {};
  if (stream == nullptr || ::fstat(fd, &stat) != 0) return false;
  return fmt::format("{}:{}", stat.st_dev, stat.st_ino) == stream;
}

int Journal::send(const JournalFields& fields) {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (socket_.size() >= sizeof to.sun_path) return ENAMETOOLONG;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (!fd_) fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd_) return errno;
  const std::string datagram = journal_datagram(fields);
  const ssize_t n =
      ::sendto(fd_.get(), datagram.data(), datagram.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to), sizeof to);
  return n < 0 ? errno : 0;
}

}  // namespace ccixfer::policy

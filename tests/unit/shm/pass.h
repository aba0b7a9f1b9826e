// A peer by hand that says something and passes descriptors with it.
#pragma once
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <string_view>
#include <vector>

namespace ccixfer::shm {

inline bool pass(int socket, std::string_view bytes, const std::vector<int>& descriptors, int flags = 0) {
  iovec span{const_cast<char*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) std::array<char, 256> control{};
  msghdr message{};
  message.msg_iov = &span;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | flags) == static_cast<ssize_t>(bytes.size());
}

}  // namespace ccixfer::shm

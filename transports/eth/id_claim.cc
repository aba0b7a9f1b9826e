#include "transports/eth/id_claim.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "core/base/check.h"

namespace ccixfer::eth {

Result<std::optional<IdClaim>> IdClaim::take(uint32_t interface_index, uint16_t id) {
  CHECK(id != 0);
  const auto cannot = [] {
    return fail(ErrorKind::network, fmt::format("cannot claim an id: {}", std::generic_category().message(errno)));
  };
  // It never listens, so nobody can connect to it or leave anything in it.
  host::Descriptor held(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!held) return cannot();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("ccixfer/eth/{}/{}", interface_index, id);
  CHECK(name.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the first byte is 0: the abstract namespace
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(held.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    if (errno == EADDRINUSE) return std::nullopt;
    return cannot();
  }
  return IdClaim(std::move(held), id);
}

Result<std::optional<IdClaim>> IdClaim::take_any(uint32_t interface_index, ports::Entropy& entropy) {
  constexpr uint32_t count = 65536 - any_id_min;
  const auto first = static_cast<uint32_t>(entropy.next_u64() % count);
  for (uint32_t i = 0; i < count; ++i) {
    auto claim = take(interface_index, static_cast<uint16_t>(any_id_min + (first + i) % count));
    if (!claim || *claim) return claim;
  }
  return std::nullopt;
}

}  // namespace ccixfer::eth

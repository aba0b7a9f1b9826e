// The Unix socket of a stream: how two processes meet under a name, what the kernel says of the other one, how the acceptor passes
// the memory, and how a sleeping peer is woken (a byte: it "rings the bell"). The kernel closes the socket of a process that ends,
// however it ends, so the peer is told.
// Names are abstract sockets: they end with their process, and no file is left behind. Shared by all of one network namespace.
// Everything is nonblocking, whatever the peer does with its end. Bytes of a peer only wake. Descriptors that come with them are
// never taken, nor thrown away: the kernel would close them within our call, for as long as the peer likes. Errors: listen:
// network, in one line; others by errno. Source: unix(7).
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/host/descriptor.h"
#include "transports/shm/closer.h"
#include "transports/shm/segment.h"

namespace ccixfer::shm {

inline constexpr size_t name_bytes_max = 64;

// NAME of shm://NAME: 1 to 64 letters, digits, '.', '_' and '-'.
[[nodiscard]] bool is_name(std::string_view name);
[[nodiscard]] Result<std::string> parse_uri(std::string_view uri);  // usage
[[nodiscard]] std::string format_uri(std::string_view name);

[[nodiscard]] Result<host::Descriptor> listen_at(const std::string& name, int backlog);
// Empty: errno says why. ECONNREFUSED: nobody listens. EAGAIN: too many wait to be accepted.
[[nodiscard]] host::Descriptor dial_name(const std::string& name);

// Empty: errno says why.
[[nodiscard]] host::Descriptor accept_at(int listener);

struct PeerProcess {
  uid_t user = 0;
  pid_t process = 0;
};
// Whoever dialled, or began to listen. nullopt: it cannot be known.
[[nodiscard]] std::optional<PeerProcess> peer_of(int socket);

// The acceptor's first words: the size of the rings, and their memory. False: errno says why.
[[nodiscard]] bool pass_segment(int socket, const Segment& segment);
// nullopt: not here yet. A descriptor that is no shared memory goes to `closer`.
[[nodiscard]] std::optional<Result<Segment>> take_segment(int socket, Closer& closer);

void ring(int socket);
// Forgets what rang until now. False: descriptors came with it, which no honest peer passes.
[[nodiscard]] bool silence(int socket);
// Nothing comes or goes any more, and the peer is told. False: it passed something that is left in the socket, and closing that may
// take as long as the peer likes.
[[nodiscard]] bool end(int socket);

}  // namespace ccixfer::shm

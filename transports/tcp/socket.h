// The few socket calls that TcpNet needs. Private to this room.
#pragma once
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/base/status.h"
#include "core/host/descriptor.h"
#include "core/wire/connection_frames.h"
#include "transports/inet/address.h"

namespace ccixfer::tcp {

using host::Descriptor;
using inet::Address;

[[nodiscard]] Status status_of_connect_errno(int error_number);  // refused, timed_out, unreachable, disconnected
void set_stream_options(int fd);
// Of a connected socket that leaves this host: the system's congestion control, where open_socket chose another.
void space_packets(int fd);
// Nonblocking. `interface_name` may be empty. On failure -1 and errno. Where the system's congestion control spaces packets out
// (bbr) it has one that does not: a connection within this host has nothing to be congested, and a timer a packet costs more than
// the packet; and a socket that was spaced out once stays so, whatever it is told later.
[[nodiscard]] Descriptor open_socket(int family, const std::string& interface_name);
// `host` "*": every address of this host, of both families where it has both.
// Of a socket that listens already a duplicate, nonblocking as all that share it. usage: it does not listen at TCP.
[[nodiscard]] Result<Descriptor> take_listener(int fd);
[[nodiscard]] Result<Descriptor> open_listener(const std::string& host, uint16_t port, const std::string& interface_name,
                                               int backlog);
[[nodiscard]] bool peer_is_this_host(int fd);  // of a connected socket: both ends have one address, or it stays on the loopback
// Of the kernel that runs: its boot's number (random(4)), and when that was by the wall clock, as some containers (LXC, nspawn) are
// shown a number of their own. The number is in a file, which a process may not read any more once it is confined. 0: not known.
[[nodiscard]] uint64_t number_of_boot();
[[nodiscard]] wire::HostIdentity this_machine(uint64_t number_of_boot);

}  // namespace ccixfer::tcp

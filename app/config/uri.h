// Places as people type them, cut into the address that an endpoint dials and the path below the peer's directory.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::program {

// How addresses are written, for messages. A host of verbs is an address of an RDMA device.
inline constexpr std::string_view native_forms = "tcp://HOST:PORT, udp://HOST:PORT, verbs://HOST:PORT, shm://NAME, eth://MAC:ID";
[[nodiscard]] std::string address_forms();  // of native_forms, and of routed ones

// What to do about a bad NAME of shm://NAME.
inline constexpr std::string_view shm_name_hint = "write shm://NAME, of at most 64 letters, digits, '.', '_' and '-'";

struct Target {
  bool routed = false;  // cci://
  std::string scheme;   // "tcp", "udp", "verbs", "shm", "eth", "cci"
  std::string address;  // one of address_forms(), without a path
  std::string path;     // after the first '/', without it: "" means the peer's directory itself; a trailing '/' is kept
};

// usage: no address. sock:// becomes udp://.
[[nodiscard]] Result<Target> split_target(std::string_view uri);

struct HostPort {
  std::string host;   // without brackets; of eth: the MAC
  uint16_t port = 0;  // of eth: the id
};
[[nodiscard]] Result<HostPort> split_host_port(std::string_view text);  // HOST:PORT, [V6]:PORT; usage

// Where to listen, as --listen says: HOST:PORT, or one of native_forms.
struct ListenPlace {
  std::string scheme;  // "": none was given
  HostPort at;         // shm: the host is the name; "": any
};
[[nodiscard]] Result<ListenPlace> split_listen(std::string_view text);  // usage

// A path as a Destination takes it: without slashes at the ends. `directory`: it ended in '/', or is empty.
struct PeerPath {
  std::string path;
  bool directory = false;
};
[[nodiscard]] PeerPath peer_path(std::string_view path);

}  // namespace ccixfer::program

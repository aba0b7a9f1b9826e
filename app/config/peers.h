// The tables [identity] and [peer.NAME] of the configuration: who we are, and what each peer may do. Plain structs; what they mean
// for a handshake or a transfer is decided in app/trust.
// Errors: usage, one line `FILE:LINE: KEY: what is wrong: what to do`. An unknown key here is an error, since a grant with a
// mistyped limit would be a grant without it.
// Bounds: peers_max peers, peer_list_max entries in each of their lists.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/config/toml_file.h"
#include "core/trust/peer_id.h"

namespace ccixfer::program {

inline constexpr size_t peers_max = 100'000;
inline constexpr size_t peer_list_max = 1'000;  // addresses, or paths, of one peer

// Names of files. A relative one counts from the directory of the configuration file. "": not given.
struct IdentityConfig {
  std::string certificate;  // PEM, with the chain behind it; only together with key
  std::string key;          // PEM
  std::string ca;           // PEM: the authority whose certificates we believe
  std::string crl;          // PEM: what it revoked; only together with ca
};

// A peer is known by its id, or by a name in a certificate of our authority: exactly one of them is given.
struct PeerConfig {
  std::string name;  // of the table
  std::optional<trust::PeerId> id;
  std::string certified_name;          // in lower case; "": it is known by id
  std::vector<std::string> addresses;  // where it is dialled: URIs without a path, in lower case

  // Where it may write and read: paths below the root, as the components stand, without slashes at the ends. "": all of it.
  std::vector<std::string> write, read;
  // Of each of its transfers. none: no limit. Zero is a limit too: nothing.
  std::optional<uint64_t> quota_bytes, rate_bytes_per_s, entries_max;
  bool devices = false;  // device files, sockets and pipes
  bool setid = false;    // set-user-ID and set-group-ID bits

  bool route = false;          // may use this router
  bool router = false;         // is a router that we exchange records with
  std::optional<uint32_t> as;  // of that router; none: ours
  bool admin = false;          // may ask a running router for its map
};

// The value of the key `identity`. `file`: of the configuration. Throws TomlMistake.
[[nodiscard]] IdentityConfig read_identity(const std::string& file, const TomlValue& value);
// The value of the key `peer`; in the order of their names. Throws TomlMistake.
[[nodiscard]] std::vector<PeerConfig> read_peers(const std::string& file, const TomlValue& value);

}  // namespace ccixfer::program

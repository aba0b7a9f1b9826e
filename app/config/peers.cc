#include "app/config/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <toml.hpp>

#include "app/config/toml_reader.h"
#include "app/config/uri.h"
#include "core/base/lower_case.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

using Value = TomlValue;

class IdentityReader : TomlReader {
 public:
  explicit IdentityReader(const std::string& file) : TomlReader(file) {
    if (const size_t slash = file.rfind('/'); slash != std::string::npos) directory_ = file.substr(0, slash + 1);
  }

  IdentityConfig read(const Value& values) {
    IdentityConfig identity;
    for (const auto& [key, value] : table("identity", values)) {
      const std::string full = "identity." + key;
      if (key == "certificate") {
        identity.certificate = name_of_file(full, value);
      } else if (key == "key") {
        identity.key = name_of_file(full, value);
      } else if (key == "ca") {
        identity.ca = name_of_file(full, value);
      } else if (key == "crl") {
        identity.crl = name_of_file(full, value);
      } else {
        bad(value, full, "unknown key", "certificate, key, ca and crl are known");
      }
    }
    if (!identity.certificate.empty() && identity.key.empty())
      bad(values.at("certificate"), "identity.certificate", "its key is missing", "give key too");
    if (!identity.crl.empty() && identity.ca.empty())
      bad(values.at("crl"), "identity.crl", "the authority that it is of is missing", "give ca too");
    return identity;
  }

 private:
  std::string name_of_file(std::string_view key, const Value& value) const {
    std::string name = text(key, value, "\"/etc/ccixfer/host.pem\"");
    if (name.empty() || name.find('\0') != std::string::npos) bad(value, key, "names no file", "give the name of a PEM file");
    return name.front() == '/' ? name : directory_ + name;
  }

  std::string directory_;  // of the configuration, with a slash at its end; "": this one
};

class PeersReader : TomlReader {
 public:
  using TomlReader::TomlReader;

  std::vector<PeerConfig> read(const Value& values) {
    for (const auto& [name, peer] : table("peer", values)) {
      if (peers_.size() == peers_max) bad(peer, "peer." + name, "one peer too many", fmt::format("at most {}", peers_max));
      read_peer(name, peer);
    }
    return std::move(peers_);
  }

 private:
  void read_peer(const std::string& name, const Value& values) {
    PeerConfig peer;
    peer.name = name;
    const std::string whole_key = "peer." + name;
    for (const auto& [key, value] : table(whole_key, values)) read_key(peer, key, whole_key + "." + key, value);
    if (peer.id && !peer.certified_name.empty())
      bad(values.at("name"), whole_key + ".name", "id is given too", "leave one of them out");
    if (!peer.id && peer.certified_name.empty())
      bad(values, whole_key, "says not who it is", "give id, as `ccixfer id` prints it there, or the name in its certificate");
    if (peer.as && !peer.router)
      bad(values.at("as"), whole_key + ".as", "the peer is no router", "set router = true or leave as out");
    check_alone(peer, values);
    peers_.push_back(std::move(peer));
  }

  void read_key(PeerConfig& peer, const std::string& key, const std::string& full, const Value& value) {
    if (key == "id") {
      peer.id = peer_id(full, value);
    } else if (key == "name") {
      peer.certified_name = certified_name(full, value);
    } else if (key == "address") {
      peer.addresses = addresses(full, value);
    } else if (key == "write") {
      peer.write = prefixes(full, value);
    } else if (key == "read") {
      peer.read = prefixes(full, value);
    } else if (key == "quota") {
      peer.quota_bytes = size_bytes(full, value, 0, UINT64_MAX);
    } else if (key == "rate") {
      peer.rate_bytes_per_s = rate_bits_per_s(full, value, 8) / 8;
    } else if (key == "entries") {
      peer.entries_max = whole(full, value, 0, INT64_MAX);
    } else if (key == "devices") {
      peer.devices = boolean(full, value);
    } else if (key == "setid") {
      peer.setid = boolean(full, value);
    } else if (key == "route") {
      peer.route = boolean(full, value);
    } else if (key == "router") {
      peer.router = boolean(full, value);
    } else if (key == "as") {
      peer.as = TomlReader::id(full, value);
    } else if (key == "admin") {
      peer.admin = boolean(full, value);
    } else {
      bad(value, full, "unknown key",
          "id, name, address, write, read, quota, rate, entries, devices, setid, route, router, as and admin are known");
    }
  }

  trust::PeerId peer_id(std::string_view key, const Value& value) const {
    const std::string given = text(key, value, "\"cx1-...\"");
    const auto id = trust::parse_peer_id(given);
    if (!id) bad(value, key, fmt::format("'{}' is no id", printable(given)), "give what `ccixfer id` prints there, cx1-...");
    return *id;
  }
  std::string certified_name(std::string_view key, const Value& value) const {
    std::string name = lower_case(text(key, value, "\"dtn1.lab-east.example\""));
    const auto odd = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; };
    if (name.empty() || std::any_of(name.begin(), name.end(), odd))
      bad(value, key, "is no name of a certificate", "give a host name or an IP address");
    return name;
  }

  // A string, or a list of them.
  std::vector<const Value*> items(std::string_view key, const Value& value) const {
    if (!value.is_array()) return {&value};
    std::vector<const Value*> all;
    for (const Value& item : list(key, value)) all.push_back(&item);
    if (all.size() > peer_list_max) bad(value, key, "is too long", fmt::format("at most {} entries", peer_list_max));
    return all;
  }
  std::vector<std::string> addresses(std::string_view key, const Value& value) const {
    std::vector<std::string> uris;
    for (const Value* item : items(key, value)) {
      const std::string uri = text(key, *item, "\"tcp://192.0.2.1:7000\"");
      const auto target = split_target(uri);
      if (!target || !target->path.empty()) {
        bad(*item, key, fmt::format("'{}' is no address", printable(uri)), fmt::format("give {}, without a path", address_forms()));
      }
      uris.push_back(lower_case(target->address));
    }
    return uris;
  }
  std::vector<std::string> prefixes(std::string_view key, const Value& value) const {
    std::vector<std::string> paths;
    for (const Value* item : items(key, value)) {
      const std::string given = text(key, *item, "[\"incoming/\"]");
      // A value that a script left empty, and not a wish to grant all.
      if (given.empty()) bad(*item, key, "is empty", "give a path; \".\" is all of the root");
      std::string path = given == "/" ? "" : given;
      if (path.starts_with('/') || path.find('\0') != std::string::npos)
        bad(*item, key, fmt::format("'{}' does not count from the root", printable(given)),
            "write \"incoming/\"; \".\" is all of it");
      path = peer_path(path).path;
      if (("/" + path + "/").find("/../") != std::string::npos)
        bad(*item, key, fmt::format("'{}' leads out of the root", printable(given)), "leave .. out");
      paths.push_back(std::move(path));
    }
    return paths;
  }

  // Two tables for one peer would leave open which of them counts.
  void check_alone(const PeerConfig& peer, const Value& values) {
    const auto taken = [&](std::map<std::string, std::string>& by, const std::string& what, std::string_view key) {
      const auto [place, is_new] = by.emplace(what, peer.name);
      if (!is_new && place->second != peer.name) {
        bad(values.at(std::string(key)), fmt::format("peer.{}.{}", peer.name, key),
            fmt::format("peer {} has it too", printable(place->second)), "one table a peer: put both together");
      }
    };
    if (peer.id) taken(ids_, trust::to_string(*peer.id), "id");
    if (!peer.certified_name.empty()) taken(names_, peer.certified_name, "name");
    for (const std::string& address : peer.addresses) taken(addresses_, address, "address");
  }

  std::vector<PeerConfig> peers_;
  std::map<std::string, std::string> ids_, names_, addresses_;  // to the name of the table
};

}  // namespace

IdentityConfig read_identity(const std::string& file, const TomlValue& value) { return IdentityReader(file).read(value); }

std::vector<PeerConfig> read_peers(const std::string& file, const TomlValue& value) { return PeersReader(file).read(value); }

}  // namespace ccixfer::program

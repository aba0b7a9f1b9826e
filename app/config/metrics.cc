#include "app/config/metrics.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <charconv>
#include <cstring>
#include <toml.hpp>

#include "app/config/toml_reader.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

using Value = TomlValue;

class MetricsReader : TomlReader {
 public:
  explicit MetricsReader(const std::string& file) : TomlReader(file) {
    if (const size_t slash = file.rfind('/'); slash != std::string::npos) directory_ = file.substr(0, slash + 1);
  }

  MetricsConfig read(const Value& values) {
    MetricsConfig config;
    MetricsGuardConfig guard;
    std::optional<bool> names;
    const TomlTable& keys = table("metrics", values);
    for (const auto& [key, value] : keys) {
      const std::string full = "metrics." + key;
      if (key == "listen") {
        config.listen = text(full, value, "\"127.0.0.1:9464\"");
      } else if (key == "names") {
        names = boolean(full, value);
      } else if (key == "certificate") {
        guard.certificate = file(full, value);
      } else if (key == "key") {
        guard.key = file(full, value);
      } else if (key == "token") {
        guard.token = file(full, value);
      } else {
        bad(value, full, "unknown key", "listen, names, certificate, key and token are known");
      }
    }
    if (const auto listen = keys.find("listen"); listen != keys.end()) check_place(listen->second, config.listen, keys);
    check_whole(keys);
    if (keys.contains("token")) config.guard = std::move(guard);
    // Whoever has an account on this host reaches a port of the loopback; a socket has an owner and a group, and a token who knows
    // it.
    config.names = names.value_or(config.guard.has_value() || config.listen.starts_with(unix_prefix));
    return config;
  }

 private:
  static constexpr std::array guards{"certificate", "key", "token"};

  MetricsFile file(std::string_view key, const Value& value) const {
    const std::string name = text(key, value, "\"/etc/ccixfer/metrics.token\"");
    if (name.empty() || name.find('\0') != std::string::npos) bad(value, key, "names no file", "give the name of a file");
    return {name.front() == '/' ? name : directory_ + name, place(value, key)};
  }

  void check_place(const Value& at, const std::string& listen, const TomlTable& keys) const {
    if (listen.empty()) bad(at, "metrics.listen", "is empty", "write listen = \"127.0.0.1:9464\", or leave it out");
    const auto where = parse_metrics_place(listen);
    if (!where) {
      bad(at, "metrics.listen", fmt::format("'{}' is no address with a port, and no socket", printable(listen)),
          "write \"127.0.0.1:9464\" or \"unix:/run/ccixfer/metrics.sock\"");
    }
    for (const char* key : guards) {
      const std::string full = fmt::format("metrics.{}", key);
      if (!where->is_local && !keys.contains(key)) {
        bad(at, "metrics.listen", fmt::format("'{}' is not of this host alone, and {} is missing", printable(listen), key),
            "give certificate, key and token, or listen at \"127.0.0.1:9464\"");
      }
      if (!where->path.empty() && keys.contains(key))
        bad(keys.at(key), full, "a Unix socket has an owner and a group instead", "leave it out");
    }
  }
  void check_whole(const TomlTable& keys) const {
    for (const char* given : guards) {
      if (!keys.contains(given)) continue;
      for (const char* other : guards) {
        if (!keys.contains(other))
          bad(keys.at(given), fmt::format("metrics.{}", given), fmt::format("{} is missing", other),
              "certificate, key and token go together");
      }
    }
  }

  std::string directory_;  // of the configuration, with a slash at its end; "": this one
};

bool is_loopback(const in_addr& address) { return (ntohl(address.s_addr) >> 24) == 127; }

std::optional<uint16_t> parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [at, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (problem != std::errc() || at != text.data() + text.size()) return std::nullopt;
  return port;
}

}  // namespace

std::optional<MetricsPlace> parse_metrics_place(const std::string& text) {
  MetricsPlace place;
  if (text.starts_with(unix_prefix)) {
    auto& address = reinterpret_cast<sockaddr_un&>(place.address);
    place.path = text.substr(unix_prefix.size());
    const bool fits = place.path.size() < sizeof address.sun_path && place.path.find('\0') == std::string::npos;
    if (!place.path.starts_with('/') || !fits) return std::nullopt;
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, place.path.c_str(), place.path.size() + 1);
    place.size = sizeof address;
    return place;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto port = parse_port(std::string_view(text).substr(colon + 1));
  const std::string host = text.substr(0, colon);
  if (!port || host.find('\0') != std::string::npos) return std::nullopt;
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    auto& six = reinterpret_cast<sockaddr_in6&>(place.address);
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr) != 1) return std::nullopt;
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(*port);
    place.size = sizeof six;
    place.is_local = IN6_IS_ADDR_LOOPBACK(&six.sin6_addr);
    return place;
  }
  auto& four = reinterpret_cast<sockaddr_in&>(place.address);
  if (::inet_pton(AF_INET, (host == "localhost" ? "127.0.0.1" : host).c_str(), &four.sin_addr) != 1) return std::nullopt;
  four.sin_family = AF_INET;
  four.sin_port = htons(*port);
  place.size = sizeof four;
  place.is_local = is_loopback(four.sin_addr);
  return place;
}

MetricsConfig read_metrics(const std::string& file, const TomlValue& value) { return MetricsReader(file).read(value); }

}  // namespace ccixfer::program

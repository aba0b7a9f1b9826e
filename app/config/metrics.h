// The table [metrics] of the configuration: where a process answers who asks for its metrics and its status page, and to whom.
// Errors: usage, one line `FILE:LINE: KEY: what is wrong: what to do`. A place that others than this host reach is refused without
// certificate, key and token.
#pragma once
#include <sys/socket.h>

#include <optional>
#include <string>
#include <string_view>

#include "app/config/toml_file.h"

namespace ccixfer::program {

inline constexpr std::string_view unix_prefix = "unix:";

// An address with a port, or a Unix socket.
struct MetricsPlace {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string path = {};  // of a Unix socket; "": it is an address
  bool is_local = true;   // nobody on a network reaches it
};
// "127.0.0.1:9464", "localhost:9464", "[::]:9464", "unix:/PATH". Nothing: it is none of these.
[[nodiscard]] std::optional<MetricsPlace> parse_metrics_place(const std::string& text);

// A file that the table names. A relative name counts from the directory of the configuration.
struct MetricsFile {
  std::string name;
  std::string at;  // "FILE:LINE: KEY", for whoever cannot use it
};

// Whoever asks has to say the token, over TLS.
struct MetricsGuardConfig {
  MetricsFile certificate;  // PEM, with the chain behind it
  MetricsFile key;          // PEM
  MetricsFile token;
};

struct MetricsConfig {
  std::string listen;                       // "": nobody may ask
  std::optional<MetricsGuardConfig> guard;  // none: anybody who reaches the place, which is local
  bool names = false;                       // the status page has them
};

// The value of the key `metrics`. `file`: of the configuration. Throws TomlMistake.
[[nodiscard]] MetricsConfig read_metrics(const std::string& file, const TomlValue& value);

}  // namespace ccixfer::program

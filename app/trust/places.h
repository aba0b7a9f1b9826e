// Where this account keeps what trust needs: its key, the peers that it knows, the tickets that it issued.
// Source: XDG Base Directory Specification; systemd.exec(5), STATE_DIRECTORY.
#pragma once
#include <string>

namespace ccixfer::policy {

struct Places {
  std::string configuration;  // the account's directory: $XDG_CONFIG_HOME/ccixfer, or ~/.config/ccixfer; "": the account has none
  std::string state;          // $STATE_DIRECTORY of a service, $XDG_STATE_HOME/ccixfer, or ~/.local/state/ccixfer; "": none
  std::string system_key;     // of services that run as root: /etc/ccixfer/identity.key; "": not for this account

  [[nodiscard]] std::string key() const { return in(configuration, "identity.key"); }
  [[nodiscard]] std::string known_peers() const { return in(configuration, "known_peers"); }
  [[nodiscard]] std::string paths() const { return in(state, "paths"); }  // app/main/path_file.h
  [[nodiscard]] std::string tickets() const { return in(state, "tickets"); }

 private:
  static std::string in(const std::string& directory, const char* name) { return directory.empty() ? "" : directory + "/" + name; }
};

// `environment` is getenv, or a test's. Relative paths in it are ignored, as XDG has it.
[[nodiscard]] Places find_places(const char* (*environment)(const char*), bool is_root);
[[nodiscard]] Places places_of_process();

}  // namespace ccixfer::policy

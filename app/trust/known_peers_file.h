// The file known_peers of this account: which identity each address had when a person said yes to it. core/trust/known_peers has
// its format; this reads and appends it. Others may read the file; if they could write it, it is refused. A peer that is remembered
// is appended by one synced write, so two processes may do so at a time, and what a person wrote there stays as it is. Errors:
// usage (the file, with its line), file_io and no_space (appending).
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/trust/known_peers.h"

namespace ccixfer::policy {

class KnownPeersFile {
 public:
  // A file that is missing is empty. "": the account has no directory; it is empty and nothing can be remembered.
  [[nodiscard]] static Result<KnownPeersFile> load(std::string file);

  struct Found {
    trust::PeerId id;
    size_t line = 0;  // its number, for people
  };
  [[nodiscard]] std::optional<Found> find(std::string_view address) const;
  // In the file and here.
  [[nodiscard]] Result<void> remember(std::string_view address, const trust::PeerId& id);
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  KnownPeersFile(std::string file, std::string text, trust::KnownPeers peers)
      : file_(std::move(file)), text_(std::move(text)), peers_(std::move(peers)) {}
  std::string file_;
  std::string text_;  // as it was read, and what we appended
  trust::KnownPeers peers_;
};

}  // namespace ccixfer::policy

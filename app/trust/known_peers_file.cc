#include "app/trust/known_peers_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/trust/private_file.h"
#include "core/base/lower_case.h"
#include "core/base/units.h"

namespace ccixfer::policy {
namespace {

// The last line whose address this is: the one that counts. 0: none.
size_t line_of(std::string_view text, std::string_view address) {
  size_t found = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (lower_case(line.substr(0, line.find(' '))) == address) found = number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return found;
}

}  // namespace

Result<KnownPeersFile> KnownPeersFile::load(std::string file) {
  std::string text;
  if (!file.empty()) {
    auto content = read_trusted(file, Others::may_read, trust::known_peers_bytes_max);
    if (!content) return tl::unexpected(content.error());
    if (*content) text = std::move(**content);
  }
  auto peers = trust::KnownPeers::parse(text, file);
  if (!peers) return tl::unexpected(peers.error());
  return KnownPeersFile(std::move(file), std::move(text), std::move(*peers));
}

std::optional<KnownPeersFile::Found> KnownPeersFile::find(std::string_view address) const {
  const auto id = peers_.find(address);
  if (!id) return std::nullopt;
  return Found{*id, line_of(text_, address)};
}

Result<void> KnownPeersFile::remember(std::string_view address, const trust::PeerId& id) {
  if (file_.empty()) {
    return fail(ErrorKind::usage,
                "cannot remember the peer: this account has no home: set HOME, or add the peer to the configuration ([peer.NAME])");
  }
  if (!std::all_of(address.begin(), address.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    return fail(ErrorKind::usage,
                fmt::format("cannot remember the peer: {}: add it to the configuration ([peer.NAME])", printable(address)));
  }
  if (auto made = make_directory_of(file_); !made) return made;
  const std::string line = trust::KnownPeers::line(address, id);
  // A person may have left the last line without its end.
  const std::string added = text_.empty() || text_.ends_with('\n') ? line : "\n" + line;
  if (auto appended = append_private(file_, added); !appended) return appended;
  auto peers = trust::KnownPeers::parse(text_ + added, file_);
  if (!peers) return tl::unexpected(peers.error());
  text_ += added;
  peers_ = std::move(*peers);
  return {};
}

}  // namespace ccixfer::policy

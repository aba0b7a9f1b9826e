#include "app/main/standard_streams.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "app/main/option_values.h"

namespace ccixfer::program {

std::string_view file_of(const RuleWord& word) {
  const std::string_view text = word.text;
  if (word.kind == RuleWord::Kind::exclude_from || word.kind == RuleWord::Kind::include_from) return text;
  if (word.kind != RuleWord::Kind::filter || !(text.starts_with('.') || text.starts_with("merge"))) return "";
  const size_t gap = text.find_first_of(" _");
  return gap == std::string_view::npos ? "" : text.substr(gap + 1);
}

namespace {

// Of the sources of a push `-` is what is sent. Of peers `-`, `@-` and `@-/PATH` read a ticket (session_trust.h).
Result<void> check_input(const TransferOptions& transfer, const std::vector<std::string>& sources,
                         const std::vector<std::string>& peers) {
  std::vector<std::string> readers;
  for (const RuleWord& word : transfer.rules) {
    if (file_of(word) == "-") readers.emplace_back(name_of(word));
  }
  if (transfer.sync.files_from == "-") readers.emplace_back("--files-from");
  for (const std::string& source : sources) {
    if (source == "-") readers.push_back(source);
  }
  for (const std::string& peer : peers) {
    if (peer == "-" || peer == "@-" || peer.starts_with("@-/")) readers.push_back(peer);
  }
  if (readers.size() < 2) return {};
  return usage("bad command line", fmt::format("{} and {}", readers[0], readers[1]),
               "both read standard input: give one of them a file");
}

Result<void> check_output(const ReceiveCommand& pull) {
  if (pull.directory != "-") return {};
  const TransferOptions& asked = pull.transfer;
  const bool says_lines = !pull.common.json;
  const char* const also = says_lines && asked.sync.itemize ? "--itemize-changes"
                           : says_lines && asked.dry_run    ? "--dry-run"
                                                            : nullptr;
  if (also != nullptr)
    return usage("bad command line", fmt::format("{} with -", also), "standard output carries the file: leave one of them out");
  const char* const idle = asked.sync.deletes              ? "--delete"
                           : asked.sync.update             ? "--update"
                           : asked.sync.keeps_backups()    ? "--backup"
                           : !asked.sync.link_dest.empty() ? "--link-dest"
                                                           : nullptr;
  if (idle == nullptr) return {};
  return usage("bad command line", fmt::format("{} with -", idle), "standard output has no older files: leave one of them out");
}

}  // namespace

Result<void> check_standard_streams(const SendCommand& push) {
  std::vector<std::string> peers{push.destination};
  peers.insert(peers.end(), push.more_destinations.begin(), push.more_destinations.end());
  return check_input(push.transfer, push.sources, peers);
}

Result<void> check_standard_streams(const ReceiveCommand& pull) {
  if (auto fits = check_input(pull.transfer, {}, pull.uris); !fits) return fits;
  return check_output(pull);
}

}  // namespace ccixfer::program

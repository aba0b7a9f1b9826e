#include "app/trust/grants.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/units.h"

namespace ccixfer::policy {
namespace {

// As it stands between quotes in TOML.
std::string in_toml(std::string_view path) {
  std::string text;
  for (const char c : path.empty() ? std::string(".") : printable(path)) {
    if (c == '"' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

constexpr size_t prefixes_told_max = 4;

// What is granted, as a list of words.
std::string in_words(const std::vector<std::string>& prefixes) {
  std::string words;
  for (size_t i = 0; i < prefixes.size() && i < prefixes_told_max; ++i) {
    if (i > 0) words += ", ";
    words += prefixes[i].empty() ? "the whole root" : printable(prefixes[i]);
  }
  return prefixes.size() > prefixes_told_max ? words + " and others" : words;
}

}  // namespace

std::string_view name_of(Direction direction) { return direction == Direction::write ? "write" : "read"; }

bool covers(std::string_view prefix, std::string_view path) {
  return prefix.empty() || (path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/'));
}

bool covers(const Grant& grant, std::string_view path) {
  return std::any_of(grant.prefixes.begin(), grant.prefixes.end(), [&](const std::string& prefix) { return covers(prefix, path); });
}

Result<Grant> authorise(const trust::ProvedPeer& peer, const program::PeerConfig* table, Direction direction,
                        std::string_view path) {
  const std::string_view verb = name_of(direction);
  const std::string_view side = direction == Direction::write ? "receiver" : "server";
  const std::string what = fmt::format("not authorised: {} may not {} {}", trust::to_string(peer.id), verb,
                                       path.empty() ? "the whole root" : printable(path));
  if (table == nullptr) {
    return fail(ErrorKind::not_authorised, fmt::format("{}: add to the {}'s configuration: [peer.NAME] id = \"{}\" {} = [\"{}\"]",
                                                       what, side, trust::to_string(peer.id), verb, in_toml(path)));
  }
  Grant grant;
  grant.prefixes = direction == Direction::write ? table->write : table->read;
  if (!covers(grant, path) && grant.prefixes.empty()) {
    return fail(ErrorKind::not_authorised, fmt::format("{}: add to [peer.{}] of the {}'s configuration: {} = [\"{}\"]", what,
                                                       printable(table->name), side, verb, in_toml(path)));
  }
  if (!covers(grant, path)) {  // a second key of that name would be wrong
    return fail(ErrorKind::not_authorised,
                fmt::format("{}: it may {} {}: put \"{}\" into the list {} of [peer.{}] of the {}'s configuration", what, verb,
                            in_words(grant.prefixes), in_toml(path), verb, printable(table->name), side));
  }
  grant.name = table->name;
  grant.quota_bytes = table->quota_bytes;
  grant.rate_bytes_per_s = table->rate_bytes_per_s;
  grant.entries_max = table->entries_max;
  grant.devices = table->devices;
  grant.setid = table->setid;
  return grant;
}

}  // namespace ccixfer::policy

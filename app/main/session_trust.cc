#include "app/main/session_trust.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/main/standard_io.h"
#include "app/session/limits.h"
#include "core/base/log.h"
#include "core/base/units.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::program {
namespace {

// The one line of a file, which is as secret as a password. No more is read than a ticket has: the file may have no end.
Result<std::string> read_ticket(const std::string& file) {
  constexpr size_t bytes_max = trust::ticket_text_bytes_max + session::path_bytes_max;
  auto line = read_text(file, bytes_max, '\n');
  if (!line && line.error().kind != ErrorKind::usage) return line;
  if (!line || line->empty()) {
    return fail(ErrorKind::usage, fmt::format("cannot read the ticket: {}: give a file with the one line that the peer printed",
                                              file == "-" ? "standard input" : printable(file)));
  }
  return line;
}

// Of "FILE" or "FILE/PATH": nothing is below a file, so only one beginning of it can be one.
struct FileAndPath {
  std::string file, path;
  bool names_directory = false;  // a slash stood behind the file
};
FileAndPath file_and_path(const std::string& given) {
  if (given == "-" || given.starts_with("-/")) return {"-", given.size() > 1 ? given.substr(2) : "", given.size() > 1};
  for (size_t end = given.size(); end != std::string::npos && end > 0; end = given.rfind('/', end - 1)) {
    const std::string file = given.substr(0, end);
    std::error_code problem;
    const auto status = std::filesystem::status(file, problem);
    if (!std::filesystem::exists(status) || std::filesystem::is_directory(status)) continue;
    return {file, end < given.size() ? given.substr(end + 1) : std::string(), end < given.size()};
  }
  return {given, {}};
}

}  // namespace

int64_t wall_time_s() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Result<void> judge_peer(Security& security, const trust::ProvedPeer& peer, const std::string& address,
                        const std::optional<trust::PeerId>& expected, policy::Person person) {
  const Result<policy::Verdict> verdict = security.judge.judge(peer, address, expected, person);
  if (!verdict) return tl::unexpected(verdict.error());
  if (verdict->kind == policy::Verdict::Kind::accepted) return {};
  const bool says_yes = person_says_yes(verdict->words);
  ++security.answers;
  if (!says_yes) {
    security.judge.decline(address, peer.id);
    return tl::unexpected(policy::declined(address, peer.id));
  }
  // As with ssh: the person has answered, and is asked again the next time.
  if (auto kept = security.judge.remember(address, peer.id); !kept)
    log(LogLevel::warning, "the peer is accepted this time only: {}", kept.error().message);
  return {};
}

session::SealSetup seal_setup(const Security& security) {
  return {security.identity.identity, security.identity.authority, wall_time_s};
}

Result<void> check_path(const std::string& path) {
  if (path.size() <= session::path_bytes_max) return {};
  return fail(ErrorKind::usage,
              fmt::format("bad address: its path has {} bytes: a path has at most {} bytes", path.size(), session::path_bytes_max));
}

Result<Place> find_place(const std::string& text, const CommonOptions& common) {
  const bool in_file = text == "-" || text.starts_with('@');
  if (!in_file && !trust::looks_like_ticket(text)) {
    auto target = split_target(text);
    if (!target) return tl::unexpected(target.error());
    if (auto fits = check_path(target->path); !fits) return tl::unexpected(fits.error());
    return Place{{std::move(*target)}, std::nullopt};
  }
  const FileAndPath given = in_file ? file_and_path(text == "-" ? text : text.substr(1)) : FileAndPath{};
  auto written = in_file ? read_ticket(given.file) : Result<std::string>(text);
  if (!written) return tl::unexpected(written.error());
  const size_t slash = written->find('/');
  std::string path = slash == std::string::npos ? std::string() : written->substr(slash + 1);
  if (given.names_directory && !path.empty() && !path.ends_with('/')) path += '/';
  path += given.path;
  auto ticket = trust::parse_ticket(std::string_view(*written).substr(0, slash));
  trust::wipe({reinterpret_cast<uint8_t*>(written->data()), written->size()});
  if (!ticket) return tl::unexpected(ticket.error());
  if (common.insecure) return fail(ErrorKind::authentication, "a ticket is for an encrypted transfer: leave --insecure out");
  if (ticket->expires_s <= wall_time_s()) {
    return fail(ErrorKind::authentication, "the ticket has expired: ask the peer for a new one, or check this host's clock");
  }
  if (auto fits = check_path(path); !fits) return tl::unexpected(fits.error());
  Place place;
  for (const std::string& address : ticket->addresses) {
    auto target = split_target(address + (path.empty() ? "" : "/" + path));
    // Else of a transport that we do not have.
    if (target && (target->scheme != "verbs" || verbs::is_built_in())) place.targets.push_back(std::move(*target));
  }
  if (place.targets.empty())
    return fail(ErrorKind::usage, "the ticket has no address that this version can dial: ask for another one");
  place.ticket = std::move(*ticket);
  return place;
}

void secure_plan(DialPlan& plan, Security& security, const Place& place) {
  plan.hello.sealed = true;
  plan.seal = seal_setup(security);
  plan.ticket = place.ticket;
  for (const Target& target : place.targets) plan.uris.push_back(target.address);
  const std::optional<trust::PeerId> expected = place.ticket ? std::optional(place.ticket->listener) : std::nullopt;
  plan.judge_peer = [&security, expected](const trust::ProvedPeer& peer, const std::string& address) {
    return judge_peer(security, peer, address, expected);
  };
  plan.answers = [&security] { return security.answers; };
}

}  // namespace ccixfer::program

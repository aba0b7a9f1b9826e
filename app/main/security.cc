#include "app/main/security.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "app/main/session_trust.h"
#include "app/main/standard_io.h"
#include "core/base/lower_case.h"
#include "core/base/units.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {
namespace {

host::Descriptor terminal() { return host::Descriptor(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)); }

void say(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(to, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// A line without its end; none: there is no more to read, or nobody waits for it any more.
std::optional<std::string> read_line(int from) {
  constexpr size_t bytes_max = 1000;  // of an answer; more is none
  std::string line;
  for (char c = 0;;) {
    if (!wait_until_ready(from, POLLIN)) return std::nullopt;
    const ssize_t n = ::read(from, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || line.size() > bytes_max) return std::nullopt;
    if (c == '\n') return line;
    if (c != '\r' && c != ' ' && c != '\t') line += c;
  }
}

// "": the dates of our certificate hold, or nobody looks at them.
std::string words_of_dates(const Config& config, const policy::LocalIdentity& identity) {
  const std::string words = identity.identity.out_of_date(wall_time_s());
  if (words.empty()) return {};
  return fmt::format("{}: our certificate {}: peers that check it refuse us: renew it, or check the clock",
                     printable(config.identity.value_or(IdentityConfig{}).certificate), words);
}

}  // namespace

Result<Security> make_security(const Config& config, policy::Places places, policy::WithoutIdentity without) {
  auto identity = policy::load_local_identity(config.identity, places, without);
  if (!identity) return tl::unexpected(identity.error());
  auto known = policy::KnownPeersFile::load(places.known_peers());
  if (!known) return tl::unexpected(known.error());
  return Security{std::move(*identity), policy::DialledPeerJudge(policy::Peers(config.peers), std::move(*known)),
                  std::move(places)};
}

Result<std::optional<Security>> security_of_process(const Process& process, const CommonOptions& common,
                                                    policy::WithoutIdentity without) {
  if (common.insecure) {
    warn_insecure(process);
    return std::optional<Security>();
  }
  auto security = make_security(process.config, policy::places_of_process(), without);
  if (!security) return tl::unexpected(security.error());
  if (security->identity.made)
    process.reporter.info("made an identity: " + trust::to_string(security->identity.identity.id()) + " in " +
                          security->identity.file);
  return std::optional(std::move(*security));
}

void warn_of_dates(const Process& process, const std::optional<Security>& security) {
  const std::string words = security ? words_of_dates(process.config, security->identity) : "";
  if (!words.empty()) process.reporter.warn(words);
}

Result<TrustNews> read_again(const Security& security, const Config& config) {
  auto identity = policy::load_local_identity(config.identity, security.places, policy::WithoutIdentity::refuse);
  if (!identity) return tl::unexpected(identity.error());
  // What is in force may hold: another one is not taken in its place to be refused by every peer.
  if (const std::string words = words_of_dates(config, *identity); !words.empty()) return fail(ErrorKind::usage, words);
  return TrustNews{std::move(*identity), policy::Peers(config.peers)};
}

TrustNews take(Security& security, TrustNews news) {
  TrustNews before{std::exchange(security.identity, std::move(news.identity)), security.peers()};
  security.judge.set_peers(std::move(news.peers));
  return before;
}

policy::Person person_at_terminal() {
  return isatty(STDERR_FILENO) == 1 && terminal() ? policy::Person::present : policy::Person::absent;
}

bool person_says_yes(const std::string& question) {
  const host::Descriptor tty = terminal();
  return tty && says_yes(tty.get(), tty.get(), question);
}

bool says_yes(int from, int to, const std::string& question) {
  say(to, question);
  for (;;) {
    const auto answer = read_line(from);
    if (!answer) return false;
    const std::string word = lower_case(*answer);
    if (word == "yes") return true;
    if (word == "no") return false;
    say(to, "Please write yes or no: ");
  }
}

}  // namespace ccixfer::program

#include "app/main/metrics_guard.h"

#include <fmt/format.h>

#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/metrics/server.h"
#include "app/trust/private_file.h"
#include "core/base/units.h"
#include "core/trust/secret.h"

namespace ccixfer::program {
namespace {

constexpr size_t pem_bytes_max = 1u << 20;

// Wiped when it goes: it may be a key.
struct Content {
  std::string text;
  Content() = default;
  ~Content() { trust::wipe({reinterpret_cast<uint8_t*>(text.data()), text.size()}); }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;
};

tl::unexpected<Error> at(const MetricsFile& file, const Error& why) {
  return fail(why.kind, fmt::format("{}: {}", file.at, why.message));
}

Result<void> read(const MetricsFile& file, policy::Others others, size_t bytes_max, Content& into) {
  auto content = policy::read_trusted(file.name, others, bytes_max);
  if (!content) return at(file, content.error());
  if (!*content)
    return at(file, {ErrorKind::usage, fmt::format("{}: there is no such file: name one that exists", printable(file.name))});
  into.text = std::move(**content);
  return {};
}

}  // namespace

Result<std::optional<metrics::Guard>> guard_of(const MetricsConfig& config) {
  if (!config.guard) return std::optional<metrics::Guard>();
  const MetricsGuardConfig& files = *config.guard;
  Content certificate, key, secret;
  if (auto got = read(files.certificate, policy::Others::may_read, pem_bytes_max, certificate); !got)
    return tl::unexpected(got.error());
  if (auto got = read(files.key, policy::Others::get_nothing, pem_bytes_max, key); !got) return tl::unexpected(got.error());
  if (auto got = read(files.token, policy::Others::get_nothing, 2 * metrics::token_bytes_max, secret); !got)
    return tl::unexpected(got.error());
  auto tls = trust::WebIdentity::from_pem(certificate.text, printable(files.certificate.name), key.text, printable(files.key.name));
  if (!tls) return at(files.certificate, tls.error());
  auto token = metrics::Token::parse(secret.text);
  if (!token) return at(files.token, {ErrorKind::usage, fmt::format("{}: {}", printable(files.token.name), token.error().message)});
  return std::optional(metrics::Guard{std::move(*tls), *token});
}

Result<std::function<void()>> read_guard_again(const Process& process, const Config& config) {
  if (process.metrics == nullptr || !process.metrics->has_guard()) return [] {};
  auto guard = guard_of(config.metrics);
  if (!guard) return tl::unexpected(guard.error());
  if (!*guard)
    return fail(ErrorKind::usage, "metrics: certificate, key and token cannot be taken away while it runs: start it again");
  return [server = process.metrics, next = std::move(**guard)] { server->renew(next); };
}

void add_guard(sandbox::Plan& plan, const MetricsConfig& config) {
  if (config.listen.starts_with(unix_prefix))  // the socket goes at the end
    plan.places.push_back({directory_of(config.listen.substr(unix_prefix.size())), sandbox::Access::remove});
  if (!config.guard) return;
  for (const MetricsFile& file : {config.guard->certificate, config.guard->key, config.guard->token}) {
    for (const std::string& directory : directories_to(file.name)) plan.places.push_back({directory, sandbox::Access::read});
  }
}

}  // namespace ccixfer::program

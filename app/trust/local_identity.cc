#include "app/trust/local_identity.h"

#include <fmt/format.h>

#include "app/trust/private_file.h"
#include "core/base/units.h"
#include "core/trust/secret.h"

namespace ccixfer::policy {
namespace {

constexpr size_t pem_bytes_max = 1u << 20;
constexpr size_t crl_bytes_max = 64u << 20;  // an authority's list grows for years

// The text of a key, wiped when it goes.
struct SecretText {
  std::string text;
  SecretText() = default;
  explicit SecretText(std::string given) : text(std::move(given)) {}
  ~SecretText() { trust::wipe({reinterpret_cast<uint8_t*>(text.data()), text.size()}); }
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
};

// A file that somebody named: it must exist.
Result<void> read_named(const std::string& file, Others others, size_t bytes_max, std::string& into) {
  auto content = read_trusted(file, others, bytes_max);
  if (!content) return tl::unexpected(content.error());
  if (!*content) return fail(ErrorKind::usage, fmt::format("{}: there is no such file: name one that exists", printable(file)));
  into = std::move(**content);
  return {};
}

Result<std::optional<trust::Identity>> load_key(const std::string& file) {
  if (file.empty()) return std::optional<trust::Identity>();
  auto content = read_trusted(file, Others::get_nothing, pem_bytes_max);
  if (!content) return tl::unexpected(content.error());
  if (!*content) return std::optional<trust::Identity>();
  const SecretText key(std::move(**content));
  auto identity = trust::Identity::from_key(key.text, file);
  if (!identity) return tl::unexpected(identity.error());
  return std::optional(std::move(*identity));
}

Result<std::optional<trust::Authority>> load_authority(const program::IdentityConfig& config) {
  if (config.ca.empty()) return std::optional<trust::Authority>();
  std::string ca, crl;
  if (auto read = read_named(config.ca, Others::may_read, pem_bytes_max, ca); !read) return tl::unexpected(read.error());
  if (!config.crl.empty()) {
    if (auto read = read_named(config.crl, Others::may_read, crl_bytes_max, crl); !read) return tl::unexpected(read.error());
  }
  auto authority = trust::Authority::from_pem(ca, config.ca, crl, config.crl);
  if (!authority) return tl::unexpected(authority.error());
  return std::optional(std::move(*authority));
}

// Of the key that the configuration names, with or without a certificate.
Result<trust::Identity> load_configured(const program::IdentityConfig& config) {
  SecretText key;
  if (auto read = read_named(config.key, Others::get_nothing, pem_bytes_max, key.text); !read) return tl::unexpected(read.error());
  if (config.certificate.empty()) return trust::Identity::from_key(key.text, config.key);
  std::string certificate;
  if (auto read = read_named(config.certificate, Others::may_read, pem_bytes_max, certificate); !read)
    return tl::unexpected(read.error());
  return trust::Identity::from_certificate(certificate, config.certificate, key.text, config.key);
}

Result<LocalIdentity> make_for(const Places& places, WithoutIdentity without) {
  if (without == WithoutIdentity::make_for_this_process) {
    auto identity = trust::Identity::generate();
    if (!identity) return tl::unexpected(identity.error());
    return LocalIdentity{std::move(*identity), {}, "", false};
  }
  const std::string file = places.key();
  if (file.empty()) {
    return fail(
        ErrorKind::authentication,
        "no identity: this process has no home to look in: set HOME to the account's (an absolute path), or name a key in the "
        "configuration ([identity] key), or use --insecure on a trusted network");
  }
  if (without == WithoutIdentity::refuse) {
    return fail(ErrorKind::authentication, "no identity: run `ccixfer keygen`, or use --insecure on a trusted network");
  }
  if (auto directory = make_directory_of(file); !directory) return tl::unexpected(directory.error());
  auto made = make_key(file, false);
  if (made) return LocalIdentity{std::move(*made), {}, file, true};
  // Another process may have been first.
  auto theirs = load_key(file);
  if (!theirs || !*theirs) return tl::unexpected(theirs ? made.error() : theirs.error());
  return LocalIdentity{std::move(**theirs), {}, file, false};
}

}  // namespace

Result<LocalIdentity> load_local_identity(const std::optional<program::IdentityConfig>& config, const Places& places,
                                          WithoutIdentity without) {
  const program::IdentityConfig given = config.value_or(program::IdentityConfig{});
  auto authority = load_authority(given);
  if (!authority) return tl::unexpected(authority.error());
  if (!given.key.empty()) {
    auto identity = load_configured(given);
    if (!identity) return tl::unexpected(identity.error());
    return LocalIdentity{std::move(*identity), std::move(*authority), given.key, false};
  }
  for (const std::string& file : {places.key(), places.system_key}) {
    auto identity = load_key(file);
    if (!identity) return tl::unexpected(identity.error());
    if (*identity) return LocalIdentity{std::move(**identity), std::move(*authority), file, false};
  }
  auto made = make_for(places, without);
  if (made) made->authority = std::move(*authority);
  return made;
}

Result<trust::Identity> make_key(const std::string& file, bool force) {
  auto identity = trust::Identity::generate();
  if (!identity) return identity;
  const SecretText key(identity->key_pem());
  const auto written = write_private(file, key.text, force ? Existing::replace : Existing::keep);
  if (!written) return tl::unexpected(written.error());
  if (!*written) {
    return fail(ErrorKind::usage,
                fmt::format("{}: there is a key already: give --force to replace it; peers that know it will refuse the new one",
                            printable(file)));
  }
  return identity;
}

}  // namespace ccixfer::policy

#include "core/trust/sha256.h"

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {
namespace {

using DigestPtr = std::unique_ptr<EVP_MD, FreedBy<EVP_MD_free>>;
using DigestCtxPtr = std::unique_ptr<EVP_MD_CTX, FreedBy<EVP_MD_CTX_free>>;

// To find an algorithm by its name costs more than the digest of a small file.
const EVP_MD* algorithm() {
  static const DigestPtr sha256(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  return sha256.get();
}

int value_of(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

}  // namespace

struct Sha256::State {
  DigestCtxPtr context{EVP_MD_CTX_new()};
  void begin() const { CHECK(EVP_DigestInit_ex2(context.get(), algorithm(), nullptr) == 1); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  const CleanErrors clean;
  state_->begin();
}
Sha256::~Sha256() = default;

void Sha256::update(Bytes block) { CHECK(EVP_DigestUpdate(state_->context.get(), block.data(), block.size()) == 1); }

Sha256Digest Sha256::digest() {
  Sha256Digest digest{};
  unsigned length = 0;
  CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length) == 1 && length == digest.size());
  state_->begin();
  return digest;
}

std::string to_hex(const Sha256Digest& digest) {
  std::string text;
  for (const uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::optional<Sha256Digest> sha256_from_hex(std::string_view text) {
  Sha256Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (size_t i = 0; i < digest.size(); ++i) {
    const int high = value_of(text[2 * i]), low = value_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest[i] = static_cast<uint8_t>(high * 16 + low);
  }
  return digest;
}

}  // namespace ccixfer::trust

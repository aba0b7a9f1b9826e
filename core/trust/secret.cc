#include "core/trust/secret.h"

#include <openssl/crypto.h>

#include <algorithm>

namespace ccixfer::trust {

void wipe(std::span<uint8_t> memory) { OPENSSL_cleanse(memory.data(), memory.size()); }

Secret::Secret(std::span<const uint8_t, secret_bytes> bytes) { std::copy(bytes.begin(), bytes.end(), bytes_.begin()); }

bool Secret::equals(std::span<const uint8_t> other) const {
  return other.size() == bytes_.size() && CRYPTO_memcmp(bytes_.data(), other.data(), bytes_.size()) == 0;
}

}  // namespace ccixfer::trust

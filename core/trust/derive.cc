#include "core/trust/derive.h"

#include <openssl/core_names.h>
#include <openssl/hmac.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <vector>

#include "core/base/check.h"
#include "core/trust/hmac.h"
#include "core/trust/openssl_objects.h"
#include "core/wire/cursor.h"

namespace ccixfer::trust {

Secret derive(const Secret& from, std::string_view label, Bytes context) {
  const CleanErrors clean;
  // To find the algorithm by its name costs more than to run it.
  static const KdfPtr hkdf(EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr));
  CHECK(hkdf != nullptr);
  std::vector<std::byte> info;
  wire::Writer out(info);
  out.text16(label);
  out.bytes32(context);
  CHECK(out.ok());

  // OpenSSL's parameters take pointers to what is not const, and only read there.
  std::array<uint8_t, secret_bytes> key{};
  std::copy(from.bytes().begin(), from.bytes().end(), key.begin());
  char sha256[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, sha256, 0),
                                   OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, key.data(), key.size()),
                                   OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
                                   OSSL_PARAM_construct_end()};
  const KdfCtxPtr context_of_kdf(EVP_KDF_CTX_new(hkdf.get()));
  Secret derived;
  const bool good = EVP_KDF_derive(context_of_kdf.get(), derived.writable().data(), secret_bytes, parameters) == 1;
  wipe(key);
  CHECK(good);
  return derived;
}

Mac hmac_sha256(std::span<const uint8_t> key, Bytes data) {
  const CleanErrors clean;
  Mac result{};
  unsigned length = 0;
  const uint8_t* answer = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                               reinterpret_cast<const uint8_t*>(data.data()), data.size(), result.data(), &length);
  CHECK(answer != nullptr && length == result.size());
  return result;
}

Mac mac(const Secret& key, Bytes data) { return hmac_sha256(key.bytes(), data); }

bool equal(const Mac& a, Bytes b) { return b.size() == a.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

void random_bytes(std::span<uint8_t> into) {
  const CleanErrors clean;
  CHECK(into.size() <= INT32_MAX);
  CHECK(RAND_priv_bytes(into.data(), static_cast<int>(into.size())) == 1);
}

}  // namespace ccixfer::trust

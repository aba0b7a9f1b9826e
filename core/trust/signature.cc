#include "core/trust/signature.h"

#include <vector>

#include "core/base/check.h"
#include "core/trust/identity_impl.h"
#include "core/trust/key_kinds.h"
#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {
namespace {

using DigestCtxPtr = std::unique_ptr<EVP_MD_CTX, FreedBy<EVP_MD_CTX_free>>;

// Ed25519 has its own hash; the others get SHA-256.
const char* hash_of(const EVP_PKEY* key) { return EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : "SHA256"; }

std::vector<unsigned char> message(std::string_view purpose, Bytes data) {
  std::vector<unsigned char> bytes(purpose.begin(), purpose.end());
  bytes.push_back(0);
  const auto* at = reinterpret_cast<const unsigned char*>(data.data());
  bytes.insert(bytes.end(), at, at + data.size());
  return bytes;
}

const unsigned char* raw(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::string der_of(const EVP_PKEY* key) {
  unsigned char* der = nullptr;
  const int der_bytes = i2d_PUBKEY(key, &der);
  const std::unique_ptr<unsigned char, FreedMemory> owner(der);
  return der_bytes > 0 ? std::string(reinterpret_cast<const char*>(der), static_cast<size_t>(der_bytes)) : std::string();
}

tl::unexpected<Error> not_proved(const char* why) { return fail(ErrorKind::authentication, why); }

}  // namespace

Signature sign(const Identity& identity, std::string_view purpose, Bytes data) {
  const CleanErrors clean;
  const Identity::Impl& impl = identity.impl();
  const std::vector<unsigned char> bytes = message(purpose, data);
  const DigestCtxPtr context(EVP_MD_CTX_new());
  EVP_PKEY* key = impl.key.get();
  CHECK(EVP_DigestSignInit_ex(context.get(), nullptr, hash_of(key), nullptr, nullptr, key, nullptr) == 1);
  size_t length = 0;
  CHECK(EVP_DigestSign(context.get(), nullptr, &length, bytes.data(), bytes.size()) == 1);
  std::vector<unsigned char> value(length);
  CHECK(EVP_DigestSign(context.get(), value.data(), &length, bytes.data(), bytes.size()) == 1);
  Signature signature;
  signature.value.assign(reinterpret_cast<const char*>(value.data()), length);
  signature.public_key = der_of(key);
  return signature;
}

Result<PeerId> check_signature(const Signature& signature, std::string_view purpose, Bytes data) {
  const CleanErrors clean;
  if (signature.public_key.size() > public_key_bytes_max || signature.value.size() > signature_bytes_max)
    return not_proved("the signature is too long");
  const unsigned char* at = raw(signature.public_key);
  const PkeyPtr owned(d2i_PUBKEY(nullptr, &at, static_cast<long>(signature.public_key.size())));
  EVP_PKEY* key = owned.get();
  if (key == nullptr || der_of(key) != signature.public_key) return not_proved("the signer's key is damaged");
  if (!why_key_is_refused(key).empty()) return not_proved("the signer's key is of a kind that is not taken");
  const std::vector<unsigned char> bytes = message(purpose, data);
  const DigestCtxPtr context(EVP_MD_CTX_new());
  if (EVP_DigestVerifyInit_ex(context.get(), nullptr, hash_of(key), nullptr, nullptr, key, nullptr) != 1 ||
      EVP_DigestVerify(context.get(), raw(signature.value), signature.value.size(), bytes.data(), bytes.size()) != 1) {
    return not_proved("the signature is not of these bytes");
  }
  return peer_id_of(as_bytes(signature.public_key));
}

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), raw(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

Result<std::string> from_base64(std::string_view text) {
  const CleanErrors clean;
  if (text.size() % 4 != 0 || text.size() > (1u << 20)) return not_proved("it is no base64");
  std::string bytes(text.size() / 4 * 3 + 1, '\0');
  const int length = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()), raw(text), static_cast<int>(text.size()));
  if (length < 0) return not_proved("it is no base64");
  bytes.resize(static_cast<size_t>(length));
  // OpenSSL counts what stands for the padding as zeros.
  for (size_t i = text.size(); i > 0 && text[i - 1] == '=' && text.size() - i < 2; --i) bytes.pop_back();
  return base64(bytes) == text ? Result<std::string>(bytes) : not_proved("it is no base64");
}

}  // namespace ccixfer::trust

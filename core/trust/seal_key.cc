#include "core/trust/seal_key.h"

#include <openssl/core_names.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>

#include "core/base/check.h"
#include "core/trust/openssl_objects.h"
#include "core/wire/cursor.h"

namespace ccixfer::trust {
namespace {

constexpr size_t nonce_bytes = 12;
constexpr size_t piece_bytes_max = 1u << 30;  // OpenSSL counts in int

const EVP_CIPHER* algorithm(Cipher cipher) {
  // To find an algorithm by its name costs more than a short seal.
  static const CipherPtr aes(EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr));
  static const CipherPtr chacha(EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr));
  return cipher == Cipher::aes_256_gcm ? aes.get() : chacha.get();
}

// The tag as OpenSSL asks for it. Its older way, by control numbers, makes one of these each time.
std::array<OSSL_PARAM, 2> tag_of(Tag& tag) {
  return {OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag.data(), tag.size()), OSSL_PARAM_construct_end()};
}

uint8_t* raw(MutableBytes bytes) { return reinterpret_cast<uint8_t*>(bytes.data()); }
const uint8_t* raw(Bytes bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }

}  // namespace

struct SealKey::Impl {
  void make_context() {
    const CleanErrors clean;
    context.reset(EVP_CIPHER_CTX_new());
    CHECK(EVP_CipherInit_ex2(context.get(), algorithm(cipher), key.bytes().data(), nullptr, use == Use::seal ? 1 : 0, nullptr) ==
          1);
    CHECK(static_cast<size_t>(EVP_CIPHER_CTX_get_iv_length(context.get())) == nonce_bytes);
  }
  CipherCtxPtr context;  // nullptr: it rests
  Secret key;
  Cipher cipher = Cipher::aes_256_gcm;
  Use use = Use::seal;
  bool begun = false;
};

SealKey::SealKey(Cipher cipher, const Secret& key, Use use) : impl_(std::make_unique<Impl>()) {
  impl_->key = key;
  impl_->cipher = cipher;
  impl_->use = use;
  impl_->make_context();
}

SealKey::SealKey(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SealKey::~SealKey() = default;
SealKey::SealKey(SealKey&&) noexcept = default;
SealKey& SealKey::operator=(SealKey&&) noexcept = default;

SealKey SealKey::copy() const {
  const CleanErrors clean;
  CHECK(!impl_->begun);
  if (impl_->context == nullptr) return {impl_->cipher, impl_->key, impl_->use};
  auto copied = std::make_unique<Impl>();
  copied->key = impl_->key;
  copied->cipher = impl_->cipher;
  copied->use = impl_->use;
  copied->context.reset(EVP_CIPHER_CTX_new());
  CHECK(EVP_CIPHER_CTX_copy(copied->context.get(), impl_->context.get()) == 1);
  return SealKey(std::move(copied));
}

void SealKey::rest() {
  CHECK(!impl_->begun);
  impl_->context.reset();
}

void SealKey::begin(uint64_t number, Bytes associated) {
  if (impl_->context == nullptr) impl_->make_context();
  std::array<std::byte, nonce_bytes> nonce{};  // 4 zeros, then the number
  wire::store_little(nonce.data() + nonce_bytes - sizeof number, number);
  EVP_CIPHER_CTX* context = impl_->context.get();
  CHECK(EVP_CipherInit_ex2(context, nullptr, nullptr, raw(Bytes(nonce)), -1, nullptr) == 1);
  impl_->begun = true;
  while (!associated.empty()) {
    const Bytes piece = associated.first(std::min(associated.size(), piece_bytes_max));
    int length = 0;
    CHECK(EVP_CipherUpdate(context, nullptr, &length, raw(piece), static_cast<int>(piece.size())) == 1);
    associated = associated.subspan(piece.size());
  }
}

void SealKey::update(MutableBytes text) {
  CHECK(impl_->begun);
  while (!text.empty()) {
    const MutableBytes piece = text.first(std::min(text.size(), piece_bytes_max));
    int length = 0;
    CHECK(EVP_CipherUpdate(impl_->context.get(), raw(piece), &length, raw(piece), static_cast<int>(piece.size())) == 1);
    CHECK(static_cast<size_t>(length) == piece.size());
    text = text.subspan(piece.size());
  }
}

Tag SealKey::finish() {
  CHECK(impl_->begun && impl_->use == Use::seal);
  impl_->begun = false;
  Tag tag{};
  std::array<uint8_t, tag_bytes> nothing{};
  int length = 0;
  CHECK(EVP_CipherFinal_ex(impl_->context.get(), nothing.data(), &length) == 1 && length == 0);
  std::array<OSSL_PARAM, 2> wanted = tag_of(tag);
  CHECK(EVP_CIPHER_CTX_get_params(impl_->context.get(), wanted.data()) == 1);
  return tag;
}

bool SealKey::finish(const Tag& tag) {
  CHECK(impl_->begun && impl_->use == Use::open);
  impl_->begun = false;
  Tag expected = tag;  // OpenSSL takes a pointer to what is not const
  std::array<OSSL_PARAM, 2> given = tag_of(expected);
  std::array<uint8_t, tag_bytes> nothing{};
  int length = 0;
  CHECK(EVP_CIPHER_CTX_set_params(impl_->context.get(), given.data()) == 1);
  if (EVP_CipherFinal_ex(impl_->context.get(), nothing.data(), &length) == 1) return true;
  const CleanErrors clean;  // only now: to clear them costs half of what a short open does
  return false;
}

Tag SealKey::seal(uint64_t number, Bytes associated, MutableBytes text) {
  begin(number, associated);
  update(text);
  return finish();
}

bool SealKey::open(uint64_t number, Bytes associated, MutableBytes text, const Tag& tag) {
  begin(number, associated);
  update(text);
  return finish(tag);
}

}  // namespace ccixfer::trust

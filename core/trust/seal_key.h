// Authenticated encryption with one key: AES-256-GCM or ChaCha20-Poly1305, with a tag of 16 bytes. The nonce is the number of what
// is sealed (4 zeros and the number, little-endian), so under one key a number may be sealed once only: whoever owns the key
// counts. Associated data is authenticated and not encrypted; with an empty text the seal is a keyed check (GMAC).
//
// A SealKey is expensive to make (some microseconds) and cheap to use. It is not thread-safe: copy() gives each job one of its own.
// Source: NIST SP 800-38D; RFC 8439. core/trust/README.md 'Keys and seals'.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/bytes.h"
#include "core/trust/handshake.h"
#include "core/trust/secret.h"

namespace ccixfer::trust {

inline constexpr size_t tag_bytes = 16;
using Tag = std::array<uint8_t, tag_bytes>;

class SealKey {
 public:
  enum class Use : uint8_t { seal, open };  // one key is used in one direction
  SealKey(Cipher cipher, const Secret& key, Use use);
  ~SealKey();
  SealKey(SealKey&&) noexcept;
  SealKey& operator=(SealKey&&) noexcept;
  [[nodiscard]] SealKey copy() const;
  // Gives back what OpenSSL has made of the key, some 1.3 KB; the next use makes it again. Not between begin() and finish().
  void rest();

  // In pieces: begin, any number of update (in place), then finish. What update() decrypted counts only when finish() says so.
  void begin(uint64_t number, Bytes associated);
  void update(MutableBytes text);
  [[nodiscard]] Tag finish();                 // use: seal
  [[nodiscard]] bool finish(const Tag& tag);  // use: open. False: something was changed

  // At once, in place.
  [[nodiscard]] Tag seal(uint64_t number, Bytes associated, MutableBytes text);
  [[nodiscard]] bool open(uint64_t number, Bytes associated, MutableBytes text, const Tag& tag);

 private:
  struct Impl;
  explicit SealKey(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::trust

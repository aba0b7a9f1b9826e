// Proof that a dialler receives at the address from which it says hello, without remembering it: a cookie is the instant of its
// issue and a keyed hash (SipHash-2-4, under 128 random bits of this process) of that instant, the address, and the dialler's index
// and key. Valid for cookie_life. Source: RFC 9000 §8.1.2; Aumasson, Bernstein, 'SipHash: a fast short-input PRF'.
#pragma once
#include <array>

#include "core/ports/entropy.h"
#include "transports/datagram/datagram_net.h"
#include "transports/datagram/packets.h"

namespace ccixfer::datagram {

[[nodiscard]] uint64_t siphash_2_4(uint64_t key_low, uint64_t key_high, Bytes bytes);

class CookieJar {
 public:
  explicit CookieJar(ports::Entropy& entropy) : low_(entropy.next_u64()), high_(entropy.next_u64()) {}
  [[nodiscard]] Cookie bake(const Address& from, uint32_t source, uint64_t key, Instant now) const;
  [[nodiscard]] bool holds(const Cookie& cookie, const Address& from, uint32_t source, uint64_t key, Instant now) const;

  // In place of a dialler's address, index and key, in a few bytes. It is no cookie's proof.
  [[nodiscard]] uint64_t name(const Address& from, uint32_t source, uint64_t key) const {
    return proof(UINT64_MAX, from, source, key);
  }
  // Of a connection with this key, which its peer knows. It never leaves the process.
  [[nodiscard]] uint64_t secret(uint64_t key) const { return proof(UINT64_MAX - 1, {}, 0, key); }

 private:
  [[nodiscard]] uint64_t proof(uint64_t issued_at_ns, const Address& from, uint32_t source, uint64_t key) const;
  uint64_t low_;
  uint64_t high_;
};

}  // namespace ccixfer::datagram

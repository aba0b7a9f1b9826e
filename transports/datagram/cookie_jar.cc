#include "transports/datagram/cookie_jar.h"

#include <bit>

#include "transports/datagram/limits.h"

namespace ccixfer::datagram {
namespace {

struct Sip {
  uint64_t v0, v1, v2, v3;
  void round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void word(uint64_t m) {
    v3 ^= m;
    round();
    round();
    v0 ^= m;
  }
};

}  // namespace

uint64_t siphash_2_4(uint64_t key_low, uint64_t key_high, Bytes bytes) {
  Sip sip{key_low ^ 0x736f6d6570736575, key_high ^ 0x646f72616e646f6d, key_low ^ 0x6c7967656e657261, key_high ^ 0x7465646279746573};
  wire::Reader in(bytes);
  while (in.remaining() >= 8) sip.word(in.u64());
  uint64_t last = uint64_t{bytes.size() & 0xff} << 56;
  for (unsigned shift = 0; in.remaining() > 0; shift += 8) last |= uint64_t{in.u8()} << shift;
  sip.word(last);
  sip.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) sip.round();
  return sip.v0 ^ sip.v1 ^ sip.v2 ^ sip.v3;
}

uint64_t CookieJar::proof(uint64_t issued_at_ns, const Address& from, uint32_t source, uint64_t key) const {
  std::array<std::byte, 8 * 6> bytes{};
  wire::Writer out(bytes);
  out.u64(issued_at_ns);
  out.u64(from.high);
  out.u64(from.low);
  out.u32(from.port);
  out.u32(from.scope);
  out.u64(key);
  out.u32(source);
  return siphash_2_4(low_, high_, out.since(0));
}

Cookie CookieJar::bake(const Address& from, uint32_t source, uint64_t key, Instant now) const {
  const auto issued = static_cast<uint64_t>(now.time_since_epoch().count());
  return {issued, proof(issued, from, source, key)};
}

bool CookieJar::holds(const Cookie& cookie, const Address& from, uint32_t source, uint64_t key, Instant now) const {
  const auto now_ns = static_cast<uint64_t>(now.time_since_epoch().count());
  if (cookie.issued_at_ns > now_ns || now_ns - cookie.issued_at_ns > static_cast<uint64_t>(cookie_life.count())) return false;
  return cookie.proof == proof(cookie.issued_at_ns, from, source, key);
}

}  // namespace ccixfer::datagram

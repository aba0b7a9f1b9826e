#include "core/trust/key_kinds.h"

#include <fmt/format.h>
#include <openssl/obj_mac.h>

#include <array>

namespace ccixfer::trust {
namespace {

constexpr int rsa_bits_min = 2048;

std::string why_curve_is_refused(const EVP_PKEY* key) {
  std::array<char, 64> name{};
  size_t length = 0;
  // A key that describes its curve by numbers has no name.
  if (EVP_PKEY_get_group_name(key, name.data(), name.size(), &length) != 1) return "EC without the name of a curve";
  const std::string_view curve(name.data(), length);
  if (curve == SN_X9_62_prime256v1 || curve == SN_secp384r1 || curve == SN_secp521r1) return {};
  return fmt::format("EC on the curve {}", curve);
}

}  // namespace

std::string why_key_is_refused(const EVP_PKEY* key) {
  const CleanErrors clean;
  if (key == nullptr) return "of an unknown kind";
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS:
      if (const int bits = EVP_PKEY_get_bits(key); bits < rsa_bits_min) return fmt::format("RSA of {} bits", bits);
      return {};
    case EVP_PKEY_EC:
      return why_curve_is_refused(key);
    case EVP_PKEY_ED25519:
      return {};
    default:
      break;
  }
  const char* name = EVP_PKEY_get0_type_name(key);
  return fmt::format("of the kind {}", name == nullptr ? "unknown" : name);
}

}  // namespace ccixfer::trust

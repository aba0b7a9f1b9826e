// SHA-256 of a sequence of blocks, by OpenSSL, and its text: 64 hexadecimal digits in lower case, as sha256sum prints it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/bytes.h"

namespace ccixfer::trust {

using Sha256Digest = std::array<uint8_t, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void update(Bytes block);
  [[nodiscard]] Sha256Digest digest();  // once; then it begins anew

 private:
  struct State;
  std::unique_ptr<State> state_;
};

[[nodiscard]] std::string to_hex(const Sha256Digest& digest);
[[nodiscard]] std::optional<Sha256Digest> sha256_from_hex(std::string_view text);  // nothing: it is none

}  // namespace ccixfer::trust

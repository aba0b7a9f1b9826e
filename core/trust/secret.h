// A secret of 32 bytes: a key, or what keys are derived from. It is wiped when it goes. It is never logged, and nothing here turns
// it into text.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ccixfer::trust {

inline constexpr size_t secret_bytes = 32;

// Overwrites memory in a way that the compiler does not leave out.
void wipe(std::span<uint8_t> memory);

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::span<const uint8_t, secret_bytes> bytes);
  ~Secret() { wipe(bytes_); }
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;

  [[nodiscard]] std::span<const uint8_t, secret_bytes> bytes() const { return bytes_; }
  [[nodiscard]] std::span<uint8_t, secret_bytes> writable() { return bytes_; }
  // In a time that does not depend on the content.
  [[nodiscard]] bool equals(std::span<const uint8_t> other) const;

 private:
  std::array<uint8_t, secret_bytes> bytes_{};
};

}  // namespace ccixfer::trust

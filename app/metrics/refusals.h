// Who was not answered, by reason: counted in the metrics' thread, read by any. Values of a fixed list.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace ccixfer::metrics {

enum class Refused : uint8_t {
  no_token,  // a browser's first request too
  wrong_token,
  no_tls,    // what came was no handshake of TLS 1.3, or did not end in time
  no_place,  // hung up on, for whoever came later, or since too many came at once
  count_,
};

class Refusals {
 public:
  void add(Refused why) { counts_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] uint64_t of(Refused why) const { return counts_[static_cast<size_t>(why)].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<uint64_t>, static_cast<size_t>(Refused::count_)> counts_{};
};

[[nodiscard]] constexpr std::string_view to_string(Refused why) {
  constexpr std::array<std::string_view, static_cast<size_t>(Refused::count_)> names{"no_token", "wrong_token", "no_tls",
                                                                                     "no_place"};
  return names[static_cast<size_t>(why)];
}

}  // namespace ccixfer::metrics

// What a router forwarded, by the device on which it came and went and by how many routers it had crossed, and the connections that
// it did not let through, by reason. Its workers count, any
// thread may read; the first worker adds the devices, which have the same index in all of them. Devices keep their index and name
// for the life of the router. Bounds: devices_max, classes_max.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "routing/map/record.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

// Why a connection did not come about here.
enum class RefusedAs : uint8_t {
  draining,       // the router stops
  full,           // it has too many connections, or routers next to it
  not_permitted,  // who asked may not, or claimed an address that is not its own
  too_far,        // more than eight routers
  no_way,         // no route, or each router on it that could be tried said no_route
  no_answer,      // whoever is next did not answer in time, or cannot be reached
  beyond,         // the destination, or a router on the way, refused it
  malformed,      // what was said made no sense, or nothing was said in time
  count_,
};
[[nodiscard]] constexpr std::string_view to_string(RefusedAs why) {
  constexpr std::array<std::string_view, static_cast<size_t>(RefusedAs::count_)> names{
      "draining", "full", "not_permitted", "too_far", "no_way", "no_answer", "beyond", "malformed"};
  return names[static_cast<size_t>(why)];
}

class Traffic {
 public:
  void add_device(const std::string& name) {
    const uint32_t device = count_.load(std::memory_order_relaxed);
    if (device >= devices_max) return;
    names_[device] = name;
    count_.store(device + 1, std::memory_order_release);  // who sees the count sees the name
  }
  void add(uint32_t from, uint32_t to, uint64_t bytes) {
    if (from < devices_max) add(received_[from], bytes);
    if (to < devices_max) add(sent_[to], bytes);
  }
  void add_fragment(uint8_t data_class, uint64_t bytes) {
    add(by_class_[data_class < classes_max ? data_class : classes_max - 1], bytes);
  }

  void add_refused(RefusedAs why) { add(refused_[static_cast<size_t>(why)], 1); }

  [[nodiscard]] uint32_t devices() const { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] const std::string& name(uint32_t device) const { return names_[device]; }
  [[nodiscard]] uint64_t received_bytes(uint32_t device) const { return get(received_[device]); }
  [[nodiscard]] uint64_t sent_bytes(uint32_t device) const { return get(sent_[device]); }
  [[nodiscard]] uint64_t fragment_bytes(uint8_t data_class) const { return get(by_class_[data_class]); }
  [[nodiscard]] uint64_t refused(RefusedAs why) const { return get(refused_[static_cast<size_t>(why)]); }

 private:
  using Count = std::atomic<uint64_t>;
  static void add(Count& count, uint64_t amount) { count.fetch_add(amount, std::memory_order_relaxed); }
  static uint64_t get(const Count& count) { return count.load(std::memory_order_relaxed); }
  std::array<std::string, devices_max> names_;
  std::atomic<uint32_t> count_{0};
  std::array<Count, devices_max> received_{}, sent_{};
  std::array<Count, classes_max> by_class_{};
  std::array<Count, static_cast<size_t>(RefusedAs::count_)> refused_{};
};

}  // namespace ccixfer::routing

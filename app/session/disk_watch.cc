#include "app/session/disk_watch.h"

#include <fmt/core.h>

#include <algorithm>

namespace ccixfer::session {
namespace {

constexpr uint64_t silent_ms_max = uint64_t{1} << 40;  // a peer's number: no duration overflows

}  // namespace

bool PeersDisk::heard(const Alive& alive, Duration patience) {
  const bool moved = alive.steps != steps_;
  steps_ = alive.steps;
  silent_ = std::chrono::milliseconds(std::min(alive.silent_ms, silent_ms_max));
  return moved || silent_ < patience;
}

uint64_t milliseconds_of(Duration duration) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

std::string stuck_disk(Duration ours, Duration peers, Duration patience, std::string_view whose) {
  const auto seconds = [](Duration duration) { return std::chrono::duration_cast<std::chrono::seconds>(duration).count(); };
  if (peers >= patience) return fmt::format("{} disk has not answered for {} s", whose, seconds(peers));
  if (ours >= patience) return fmt::format("the disk here has not answered for {} s", seconds(ours));
  return {};
}

}  // namespace ccixfer::session

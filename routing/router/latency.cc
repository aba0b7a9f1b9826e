// The latency metric: what a message takes from router to router on each device's subnet, told in our own record. Measured only
// when the metrics ask for it. Hysteresis: what is told changes when the measurement differs by a quarter and by latency_step_min,
// so that noise neither floods records nor makes routes flap. Source: routing §VI.B.
#include <algorithm>

#include "routing/router/router_impl.h"

namespace ccixfer::routing {
namespace {

constexpr Duration probe_interval = std::chrono::seconds(5);
constexpr uint64_t latency_step_min_ns = 100'000;
constexpr uint64_t smoothing = 4;  // a measurement counts for a quarter

}  // namespace

bool Router::Impl::measures_latency() const { return std::find(metric.begin(), metric.end(), Metric::latency) != metric.end(); }

void Router::Impl::probe_latency() {
  if (now < next_probe) return;
  next_probe = after(now, probe_interval);
  links.for_each([&](Link& link) {
    if (link.phase != LinkPhase::open || link.probed_at != never || !link.out.empty()) return;
    link.probed_at = now;
    std::vector<std::byte> message;
    encode_plain(MessageKind::keepalive, message);
    post(link, std::move(message));
  });
}

void Router::Impl::on_latency_answer(Link& link) {
  if (link.probed_at == never) return;  // an answer to nothing
  const auto one_way_ns = std::max<uint64_t>(1, static_cast<uint64_t>((now - link.probed_at).count()) / 2);
  link.probed_at = never;
  link.latency_ns = link.latency_ns == 0 ? one_way_ns : (link.latency_ns * (smoothing - 1) + one_way_ns) / smoothing;
  // A subnet is as far as its farthest pair that we see.
  uint64_t worst_ns = 0;
  links.for_each([&](const Link& other) {
    if (other.device == link.device && other.phase == LinkPhase::open) worst_ns = std::max(worst_ns, other.latency_ns);
  });
  uint64_t& told_ns = devices[link.device].latency_ns;
  const uint64_t difference_ns = worst_ns > told_ns ? worst_ns - told_ns : told_ns - worst_ns;
  if (told_ns != 0 && (difference_ns < latency_step_min_ns || difference_ns < told_ns / 4)) return;
  told_ns = worst_ns;
  tell_anew();
}

}  // namespace ccixfer::routing

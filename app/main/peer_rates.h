// The caps of peers that have one in their grant, each shared by all sessions of that peer and below the cap of the process. Gone
// with the last session. A grant whose rate was changed (SIGHUP) has a new cap, for the sessions that begin from then on.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "app/trust/grants.h"

namespace ccixfer::program {

// `Cap`: recv::RateAllowance or send::RateCap.
template <typename Cap>
class PeerRates {
 public:
  explicit PeerRates(std::shared_ptr<Cap> process) : process_(std::move(process)) {}
  // Zero is a cap too: one byte a second, which ends the transfer by its timeout.
  [[nodiscard]] std::shared_ptr<Cap> of(const std::string& peer, uint64_t rate_bytes_per_s) {
    std::erase_if(caps_, [](const auto& item) { return item.second.cap.expired(); });
    Entry& entry = caps_[peer];
    std::shared_ptr<Cap> cap = entry.cap.lock();
    if (!cap || entry.rate_bytes_per_s != rate_bytes_per_s) {
      cap = std::make_shared<Cap>(rate_bytes_per_s == 0 ? 1 : rate_bytes_per_s, process_);
      entry = {cap, rate_bytes_per_s};
    }
    return cap;
  }
  // Of a session's peer, which may have none; no grant: --insecure.
  [[nodiscard]] std::shared_ptr<Cap> of(const std::optional<policy::Grant>& grant) {
    return grant && grant->rate_bytes_per_s ? of(grant->name, *grant->rate_bytes_per_s) : process_;
  }
  [[nodiscard]] const std::shared_ptr<Cap>& process() const { return process_; }

 private:
  struct Entry {
    std::weak_ptr<Cap> cap;
    uint64_t rate_bytes_per_s = 0;  // as it was asked for
  };
  const std::shared_ptr<Cap> process_;
  std::map<std::string, Entry> caps_;
};

}  // namespace ccixfer::program

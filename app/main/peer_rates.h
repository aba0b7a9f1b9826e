// The caps of peers that have one in their grant, each shared by all sessions of that peer and below the cap of the process. Gone
// with the last session.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace ccixfer::program {

// `Cap`: recv::RateAllowance or send::RateCap.
template <typename Cap>
class PeerRates {
 public:
  explicit PeerRates(std::shared_ptr<Cap> process) : process_(std::move(process)) {}
  // Zero is a cap too: one byte a second, which ends the transfer by its timeout.
  [[nodiscard]] std::shared_ptr<Cap> of(const std::string& peer, uint64_t rate_bytes_per_s) {
    std::erase_if(caps_, [](const auto& item) { return item.second.expired(); });
    std::shared_ptr<Cap> cap = caps_[peer].lock();
    if (!cap) caps_[peer] = cap = std::make_shared<Cap>(rate_bytes_per_s == 0 ? 1 : rate_bytes_per_s, process_);
    return cap;
  }
  [[nodiscard]] const std::shared_ptr<Cap>& process() const { return process_; }

 private:
  const std::shared_ptr<Cap> process_;
  std::map<std::string, std::weak_ptr<Cap>> caps_;
};

}  // namespace ccixfer::program

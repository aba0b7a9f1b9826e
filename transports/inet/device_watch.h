// Whether the address that a net is bound to is still one of this host: the kernel tells of changes (rtnetlink), and what is true
// then is looked up. Errors: none; where the kernel does not tell, nothing is ever lost.
#pragma once
#include "core/host/descriptor.h"
#include "transports/inet/address.h"

namespace ccixfer::inet {

class DeviceWatch {
 public:
  // Of every address, or one of the loopback, there is nothing to watch: it stays closed.
  void open(const Address& bound);
  [[nodiscard]] explicit operator bool() const { return static_cast<bool>(told_); }
  [[nodiscard]] int descriptor() const { return told_.get(); }
  // After the descriptor became readable. True: it was there when last asked, and is on no interface that is up now.
  [[nodiscard]] bool lost_now();

 private:
  [[nodiscard]] bool present() const;
  host::Descriptor told_;
  std::string host_;
  int family_ = 0;
  bool was_present_ = true;
};

}  // namespace ccixfer::inet

// The right of one process to an id on an interface. The kernel gives the frames of an ethertype to every socket that asks for
// them, so it does not keep two processes from taking the same id; this does. The claim is the name of a Unix socket in the
// abstract namespace: it ends with the process, however that ends, and is of the network namespace, as the interface is. It is an
// agreement among processes of ccixfer. Somebody else on this host can take the name first, as any account can take a TCP port
// above 1023 first: then the id is refused, and nobody gets another's frames by it, because reading frames takes CAP_NET_RAW.
#pragma once
#include <cstdint>
#include <optional>

#include "core/base/result.h"
#include "core/host/descriptor.h"
#include "core/ports/entropy.h"

namespace ccixfer::eth {

inline constexpr uint16_t any_id_min = 32768;  // of ends that do not ask for an id

class IdClaim {
 public:
  // nullopt: another process has it. network: no descriptors.
  [[nodiscard]] static Result<std::optional<IdClaim>> take(uint32_t interface_index, uint16_t id);
  // A free one from any_id_min to 65535, beginning anywhere among them. nullopt: all are taken.
  [[nodiscard]] static Result<std::optional<IdClaim>> take_any(uint32_t interface_index, ports::Entropy& entropy);
  [[nodiscard]] uint16_t id() const { return id_; }

 private:
  IdClaim(host::Descriptor held, uint16_t id) : held_(std::move(held)), id_(id) {}
  host::Descriptor held_;
  uint16_t id_ = 0;
};

}  // namespace ccixfer::eth

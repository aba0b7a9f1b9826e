// The networks with which the memory of a table is registered, one for each endpoint that shares it, and the keys that each gave.
// Memory is registered once with each network. In a process whose networks need no keys nothing is kept.
// Errors: no_memory, when a network takes no more memory. Single-threaded. Internal to core/cci.
#pragma once
#include <memory>
#include <vector>

#include "core/ports/transport.h"

namespace ccixfer::cci {

// Of one region: what each network gave for it, by the network's index.
struct Registered {
  ports::MemoryKey key;
  bool refused = false;  // the network came later, and takes no more memory
};
using Keys = std::unique_ptr<std::vector<Registered>>;  // nullptr: no network needs any

class Registrations {
 public:
  void attach(uint32_t index, ports::Transport& transport);
  void detach(uint32_t index);  // the transport is gone, and its keys with it
  // With all networks, or with none.
  [[nodiscard]] Status add(MutableBytes memory, ports::MemoryAccess access, Keys& keys);
  // A network that was attached after the memory was registered with the others.
  void add_to(uint32_t index, MutableBytes memory, ports::MemoryAccess access, Keys& keys);
  // When it returns, no network reads or writes the memory any more.
  void remove(Keys& keys);
  [[nodiscard]] static Registered find(const Keys& keys, uint32_t index);
  [[nodiscard]] bool any() const { return any_; }  // a network has ever given a key, or refused memory

 private:
  [[nodiscard]] Status add_one(uint32_t index, MutableBytes memory, ports::MemoryAccess access, Keys& keys);
  std::vector<ports::Transport*> transports_;  // by index; nullptr: gone
  bool any_ = false;
};

}  // namespace ccixfer::cci

// What events refer to, kept for as long as one of them is held, also after the endpoint: receive buffers, and connect requests
// until they are decided. Internal to core/cci. Single-threaded.
// Bounds: the endpoint's receive buffers; requests_max.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/slot_table.h"
#include "core/ports/transport.h"

namespace ccixfer::cci {

inline constexpr size_t requests_max = 4096;  // a transport bounds them closer: pending_requests_max

class EventStore {
 public:
  EventStore(uint32_t buffer_bytes, uint32_t buffers) : buffer_bytes_(buffer_bytes), buffers_max_(buffers) {}

  // Receive buffers: mapped to memory when first taken, the last returned is taken first.
  [[nodiscard]] std::optional<uint32_t> take_buffer();  // none: the application holds them all
  void return_buffer(uint32_t index) { buffers_.release(index); }
  void set_buffers_max(uint32_t buffers) { buffers_max_ = buffers; }
  [[nodiscard]] bool buffers_out() const { return buffers_.in_use() >= buffers_max_; }
  [[nodiscard]] MutableBytes buffer(uint32_t index) { return {buffers_[index].get(), buffer_bytes_}; }

  struct Request {
    ports::ConnectionId connection;
    std::vector<std::byte> data;
    bool decided = false;
    bool gone = false;  // the peer, before a decision
  };
  [[nodiscard]] std::optional<uint64_t> add_request(ports::ConnectionId connection, Bytes data);  // none: requests_max
  [[nodiscard]] Request* request(uint64_t id);
  void decide(Request& request);
  // Lets go of it; undecided: the endpoint, if it still lives, is told to reject it.
  void end_request(uint64_t id);
  // The peer of an undecided request has gone: nothing is left to decide.
  void withdraw(ports::ConnectionId connection);

  std::function<void(ports::ConnectionId)> reject;  // empty once the endpoint is gone

 private:
  uint32_t buffer_bytes_;
  uint32_t buffers_max_;
  SlotVector<std::unique_ptr<std::byte[]>> buffers_;  // of new: aligned for whatever fits in
  std::unordered_map<uint64_t, Request> requests_;
  std::unordered_map<uint64_t, uint64_t> undecided_;  // connection -> request
  uint64_t next_request_ = 1;
};

}  // namespace ccixfer::cci

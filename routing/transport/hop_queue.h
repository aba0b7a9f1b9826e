// A routed connection's connection to the next hop, and the routing messages for which that had no
// room yet, in order.
// Errors: none of its own. A message that the lower endpoint fails to send is followed by the end
// of the lower connection.
// Single-threaded. Bounds: by the caller, who looks at size().
#pragma once
#include <utility>
#include <vector>

#include "core/base/ring_buffer.h"
#include "core/cci/endpoint.h"

namespace ccixfer::routing {

class HopQueue {
 public:
  void attach(cci::Connection connection) {
    connection_ = connection;
    live_ = true;
  }
  void detach() {
    connection_ = {};
    live_ = false;
  }
  // We left the lower connection. It keeps its name, for events that still come.
  void lose() { live_ = false; }
  [[nodiscard]] cci::Connection connection() const { return connection_; }
  [[nodiscard]] bool is_live() const { return live_; }

  void push(std::vector<std::byte> message) { waiting_.push_back({std::move(message), false, 0}); }
  // A message of the application, in this flight of its sender.
  void push_message(std::vector<std::byte> message, uint64_t flight) { waiting_.push_back({std::move(message), true, flight}); }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] size_t size() const { return waiting_.size(); }

  // As much as there is room for below. `send(connection, bytes)` gives the status of one message,
  // and `sent(flight)` hears of each of the application's that is out.
  template <typename Send, typename Sent>
  void flush(const Send& send, const Sent& sent) {
    while (!waiting_.empty() && live_) {
      const Status status = send(connection_, Bytes(waiting_.front().bytes));
      if (status == Status::no_buffers || status == Status::again) return;
      if (waiting_.front().is_message) sent(waiting_.front().flight);
      waiting_.drop_front();
    }
  }

 private:
  struct Outbound {
    std::vector<std::byte> bytes;
    bool is_message = false;
    uint64_t flight = 0;
  };
  cci::Connection connection_;
  bool live_ = false;
  RingBuffer<Outbound> waiting_;
};

}  // namespace ccixfer::routing

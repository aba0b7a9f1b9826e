// What comes in over a stream: straight into the memory that it is for. Only headers, and what happened to be behind them, pass
// through the staging buffer that all connections share. Work is bounded by receive_budget_bytes for each connection and turn.
// A peer's bytes never abort: a frame that may not come, is damaged or contradicts another ends its connection with a reason.
// Private to this room; single-threaded.
#pragma once
#include <vector>

#include "transports/stream/engine.h"
#include "transports/stream/handshake.h"
#include "transports/stream/lent_memory.h"

namespace ccixfer::stream {

class FrameReader {
 public:
  FrameReader(Engine& engine, StreamNet& net, Handshake& handshake, LentMemory& lent);

  void receive(Connection& c);

 private:
  [[nodiscard]] bool receive_through(Connection& c, size_t& budget);
  [[nodiscard]] bool received(Connection& c, int64_t n);
  [[nodiscard]] static ports::FillProgress* fill_through(Connection& c);
  void consume(Connection& c, MutableBytes bytes);
  // Each answers how many of the bytes it took; 0: what begins there is not all here, or the connection ends.
  [[nodiscard]] size_t take_payload(Connection& c, Bytes bytes);
  [[nodiscard]] size_t take_frame(Connection& c, Bytes bytes);
  [[nodiscard]] size_t take_record(Connection& c, MutableBytes bytes);
  void consume_text(Connection& c, Bytes text);
  void damaged(Connection& c, std::string_view reason);
  void on_frame(Connection& c, const wire::FramePrefix& prefix, Bytes header);
  void on_message(Connection& c, uint32_t payload_bytes, Bytes header);
  void on_message_ack(Connection& c, Bytes header);
  void acknowledged(Connection& c, uint64_t next, Status status);
  void on_rma_write(Connection& c, const wire::FramePrefix& prefix, Bytes header);
  void on_rma_write_ack(Connection& c, Bytes header);
  void on_rma_read(Connection& c, Bytes header);
  void on_rma_read_data(Connection& c, const wire::FramePrefix& prefix, Bytes header);
  void on_rma_read_end(Connection& c, Bytes header);
  void on_mailbox_hint(Connection& c, Bytes header);
  [[nodiscard]] MutableBytes payload_memory(Connection& c);
  void payload_arrived(Connection& c, size_t bytes);
  void stream_ended(Connection& c);
  [[nodiscard]] static bool parsing(const Connection& c) { return c.state != State::lingering && c.state != State::gone; }

  Engine& engine_;
  StreamNet& net_;
  Handshake& handshake_;
  LentMemory& lent_;
  std::vector<std::byte> staging_;
  std::vector<std::byte> discarded_;  // bytes that nobody wants
};

}  // namespace ccixfer::stream

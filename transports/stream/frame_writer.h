// What goes out over a stream: answers first, then messages, then chunks, the connection's operations in turn. Payloads go from
// where they are. Frames are put together in a batch, which one call gives to the network; a connection has a batch only while it
// has something to send. Work is bounded by send_budget_bytes for each connection and turn. Private to this room; single-threaded.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "core/wire/message_frames.h"
#include "transports/stream/engine.h"

namespace ccixfer::stream {

class FrameWriter {
 public:
  FrameWriter(Engine& engine, StreamNet& net);

  void transmit(Connection& c);
  void send_at_once(Connection& c);  // a message was pushed
  [[nodiscard]] static bool hold_acknowledgement(Connection& c);
  [[nodiscard]] static bool wants_to_send(const Connection& c);
  void keep_batch(std::unique_ptr<OutBatch> batch);  // for another connection
  // Frames as the peer of this connection takes them: of a secured one, in a record.
  [[nodiscard]] static std::vector<std::byte> as_sent(Connection& c, Bytes frames);

 private:
  [[nodiscard]] static bool bulk_to_send(const Connection& c);
  void refill(Connection& c);
  [[nodiscard]] static uint64_t chunk_bytes(const Connection& c);
  [[nodiscard]] static bool wants_control(const Connection& c);
  [[nodiscard]] static bool acknowledges_alone(const Connection& c);
  void add_control(Connection& c);
  static void add_handshake(Connection& c);
  static void add_answers(Connection& c, wire::Writer& out);
  [[nodiscard]] bool add_message(Connection& c);
  [[nodiscard]] static reliability::MessageBytes sealed_message(Connection& c, const wire::Message& frame, Bytes payload);
  [[nodiscard]] static MutableBytes room_for_header(const Connection& c, OutItem& item);
  static void finish_header(Connection& c, OutItem& item, const wire::Writer& header);
  [[nodiscard]] bool add_chunk(Connection& c);
  [[nodiscard]] bool add_write_chunk(Connection& c);
  void add_write_chunk(Connection& c, uint32_t slot, uint32_t size);  // 0: the end of one that is given up
  [[nodiscard]] bool add_read_chunk(Connection& c);
  [[nodiscard]] bool continues(Connection& c) const;
  [[nodiscard]] size_t gather(Connection& c, std::span<ConstIoSpan> into);
  void sent(Connection& c, size_t bytes);
  static void note_lent(Connection& c, const OutItem& item);
  void item_sent(Connection& c, const OutItem& item);

  Engine& engine_;
  StreamNet& net_;
  std::array<ConstIoSpan, 3 * batch_items_max> spans_;  // of the call that sends
  std::vector<std::byte> zeros_;                        // in the place of memory that was withdrawn
  std::vector<std::unique_ptr<OutBatch>> spare_batches_;
};

}  // namespace ccixfer::stream

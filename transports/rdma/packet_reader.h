// What comes in a packet, to whom it concerns. Private to this room; single-threaded.
#pragma once
#include "core/wire/message_frames.h"
#include "core/wire/rma_frames.h"
#include "transports/rdma/handshake.h"
#include "transports/rdma/packets.h"

namespace ccixfer::rdma {

class PacketReader {
 public:
  PacketReader(Engine& engine, Handshake& handshake) : engine_(engine), handshake_(handshake) {}

  void read(Connection& c, Bytes packet);

 private:
  // The records of a packet, decrypted where it is sealed. nullopt: the connection has ended.
  [[nodiscard]] std::optional<Bytes> opened(Connection& c, const PacketHeader& header, Bytes packet);
  void damaged(Connection& c, std::string_view reason);
  // How many bytes of it were one record; 0: the peer broke the protocol.
  [[nodiscard]] size_t take_record(Connection& c, Bytes bytes);
  [[nodiscard]] size_t take_frame(Connection& c, Bytes bytes);
  void on_frame(Connection& c, wire::Kind kind, const wire::FramePrefix& prefix, Bytes header, Bytes payload);
  void on_message(Connection& c, Bytes header, Bytes payload);
  void on_message_ack(Connection& c, Bytes header);
  void acknowledged(Connection& c, uint64_t next, Status status);
  void on_announced(Connection& c, Bytes record, bool write);
  void on_progress(Connection& c, Bytes record);
  void on_rma_write(Connection& c, const wire::FramePrefix& prefix, Bytes header, Bytes payload);
  void on_rma_read(Connection& c, Bytes header);
  void on_rma_read_data(Connection& c, const wire::FramePrefix& prefix, Bytes header, Bytes payload);
  void on_rma_end(Connection& c, Bytes header, bool write);
  void on_mailbox_hint(Connection& c, Bytes header);
  // So much of an operation of ours has been moved.
  void advance(Connection& c, RmaInitiator::Operation& operation, uint64_t done_bytes);

  Engine& engine_;
  Handshake& handshake_;
  std::vector<std::byte> text_;  // of the sealed packet that is being read
};

}  // namespace ccixfer::rdma

// Who is above a routing endpoint, and keeps what it is told of its connections.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/ports/transport.h"

namespace ccixfer::routing {

struct Recorder final : ports::TransportSink {
  void on_connect_request(ports::ConnectionId request, ports::Role, ports::Attribute, Bytes) override { asked.push_back(request); }
  void on_connected(ports::ConnectionId, Status status, ports::ConnectionLimits l, std::string_view reason) override {
    connected = status;
    words = reason;
    limits = l;
  }
  void on_accepted(ports::ConnectionId, Status status, ports::ConnectionLimits l) override {
    accepted = status;
    limits = l;
  }
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t length_bytes) override {
    if (!has_buffer) return {};
    message.resize(length_bytes);
    return MutableBytes(message);
  }
  void on_message_end(ports::ConnectionId, bool complete) override { messages.push_back(complete ? message : Message{}); }
  void on_completion(ports::ConnectionId, uint64_t token, ports::OperationResult ending) override {
    completed.push_back(token);
    endings.push_back(ending);
  }
  void on_local_completion(ports::ConnectionId, uint64_t token) override { free.push_back(token); }
  void on_disconnected(ports::ConnectionId, Status, std::string_view reason) override { lost.emplace_back(reason); }
  void on_keepalive_timeout(ports::ConnectionId) override { ++silent; }

  using Message = std::vector<std::byte>;
  bool has_buffer = false;  // for messages that come
  Message message;          // the latest
  std::vector<Message> messages;
  std::optional<Status> connected, accepted;
  std::string words;  // of the latest `connected`
  ports::ConnectionLimits limits;
  std::vector<ports::ConnectionId> asked;
  std::vector<uint64_t> completed;
  std::vector<ports::OperationResult> endings;
  std::vector<uint64_t> free;
  std::vector<std::string> lost;
  int silent = 0;
};

}  // namespace ccixfer::routing

// Who is above a routing endpoint, and keeps what it is told of its connections.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/ports/transport.h"

namespace ccixfer::routing {

struct Recorder final : ports::TransportSink {
  void on_connect_request(ports::ConnectionId request, ports::Role, ports::Attribute, Bytes) override { asked.push_back(request); }
  void on_connected(ports::ConnectionId, Status status, ports::ConnectionLimits, std::string_view) override { connected = status; }
  void on_accepted(ports::ConnectionId, Status, ports::ConnectionLimits) override {}
  MutableBytes on_message_begin(ports::ConnectionId, uint32_t) override { return {}; }
  void on_message_end(ports::ConnectionId, bool) override {}
  void on_completion(ports::ConnectionId, uint64_t token, ports::OperationResult) override { completed.push_back(token); }
  void on_disconnected(ports::ConnectionId, Status, std::string_view words) override { lost.emplace_back(words); }
  void on_keepalive_timeout(ports::ConnectionId) override {}
  std::optional<Status> connected;
  std::vector<ports::ConnectionId> asked;
  std::vector<uint64_t> completed;
  std::vector<std::string> lost;
};

}  // namespace ccixfer::routing

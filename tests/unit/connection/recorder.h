// A sink that writes down all that a transport tells it, and takes each message into memory of its own.
#pragma once
#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/transport.h"

namespace ccixfer::testing {

using ports::ConnectionId;
using Buffer = std::vector<std::byte>;

struct Recorder final : ports::TransportSink {
  struct Ended {
    ConnectionId id;
    Status status;
    std::string reason;
  };
  struct Completion {
    uint64_t token;
    Status status;
  };
  std::vector<ConnectionId> requests;
  std::vector<Ended> connected, accepted, disconnected;
  std::deque<Buffer> messages;
  std::vector<Completion> completions;
  std::vector<std::pair<uint64_t, uint64_t>> hints;  // mailbox, epoch
  size_t buffers = SIZE_MAX;
  size_t keepalives = 0;
  size_t devices_failed = 0;
  std::optional<Buffer> open;
  size_t open_bytes = 0;

  void on_connect_request(ConnectionId request, ports::Role, ports::Attribute, Bytes) override { requests.push_back(request); }
  void on_connected(ConnectionId id, Status status, ports::ConnectionLimits, std::string_view reason) override {
    connected.push_back({id, status, std::string(reason)});
  }
  void on_accepted(ConnectionId id, Status status, ports::ConnectionLimits) override { accepted.push_back({id, status, {}}); }
  MutableBytes on_message_begin(ConnectionId, uint32_t length) override {
    REQUIRE_FALSE(open);
    if (buffers == 0) return {};
    --buffers;
    open.emplace(length + 1);  // never null, also for a message of no bytes
    open_bytes = length;
    return MutableBytes(*open).first(length);
  }
  void on_message_end(ConnectionId, bool complete) override {
    REQUIRE(open);
    REQUIRE(complete);
    messages.emplace_back(open->begin(), open->begin() + static_cast<std::ptrdiff_t>(open_bytes));
    open.reset();
  }
  void on_completion(ConnectionId, uint64_t token, ports::OperationResult ending) override {
    completions.push_back({token, ending.status});
  }
  void on_mailbox_ready(ConnectionId, uint64_t mailbox, uint64_t epoch) override { hints.emplace_back(mailbox, epoch); }
  void on_disconnected(ConnectionId id, Status status, std::string_view reason) override {
    disconnected.push_back({id, status, std::string(reason)});
  }
  void on_keepalive_timeout(ConnectionId) override { ++keepalives; }
  void on_device_failed(std::string_view) override { ++devices_failed; }
};

}  // namespace ccixfer::testing

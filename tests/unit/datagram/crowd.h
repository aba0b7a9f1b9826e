// Ends of thousands of connections: one of them listens and sends each message back, the others dial it. The sink keeps nothing for
// a connection but a name in lists that are as long as they have to be from the start, so what an end takes from the heap is the
// transport's.
#pragma once
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/counters.h"
#include "core/cci/memory_table.h"
#include "transports/datagram/datagram_transport.h"

namespace ccixfer::datagram::testing {

using ports::ConnectionId;

class CrowdEnd final : public ports::TransportSink {
 public:
  // At most `most` connections.
  CrowdEnd(const DatagramOptions& options, std::unique_ptr<DatagramNet> net, ports::Entropy& entropy, size_t most,
           std::shared_ptr<connection::HopTrust> trust = nullptr)
      : memory_(entropy, counters),
        transport(std::make_unique<DatagramTransport>(options, std::move(net), entropy, counters, std::move(trust))) {
    for (auto* list : {&requests_, &open, &to_answer_}) list->reserve(most);
    transport->bind(*this, memory_);
  }

  // Asks for connections until there are `count` of them or of dials that have not ended; `at_once` of those at most.
  void dial(const std::string& uri, size_t count, size_t at_once) {
    while (open.size() + dialling_ < count && dialling_ < at_once) {
      ports::DialRequest request;
      request.uri = uri;
      request.attribute = attribute;
      REQUIRE(transport->dial(request));
      ++dialling_;
    }
  }
  void say(ConnectionId id) {
    constexpr std::array<std::byte, 100> words{};
    const Bytes part(words);
    REQUIRE(transport->send(id, {&part, 1}, 1) == Status::success);
  }
  void turn(Instant now) {
    transport->turn(now);
    for (const ConnectionId id : requests_) REQUIRE(transport->accept(id) == Status::success);
    for (const ConnectionId id : to_answer_) say(id);
    requests_.clear();
    to_answer_.clear();
  }

  void on_connect_request(ConnectionId request, ports::Role, ports::Attribute, Bytes) override { requests_.push_back(request); }
  void on_connected(ConnectionId id, Status status, ports::ConnectionLimits, std::string_view) override {
    REQUIRE(status == Status::success);
    --dialling_;
    open.push_back(id);
  }
  void on_accepted(ConnectionId id, Status status, ports::ConnectionLimits) override {
    REQUIRE(status == Status::success);
    open.push_back(id);
  }
  MutableBytes on_message_begin(ConnectionId, uint32_t length) override { return MutableBytes(place_).first(length); }
  void on_message_end(ConnectionId id, bool) override {
    ++messages;
    if (answers) to_answer_.push_back(id);
  }
  void on_completion(ConnectionId, uint64_t, ports::OperationResult ending) override { ++(ending.good() ? sent : failed); }
  void on_mailbox_ready(ConnectionId, uint64_t, uint64_t) override {}
  void on_disconnected(ConnectionId, Status, std::string_view) override { ++lost; }
  void on_keepalive_timeout(ConnectionId) override { ++lost; }
  void on_device_failed(std::string_view) override { ++lost; }

  Counters counters;
  ports::Attribute attribute = ports::Attribute::reliable_ordered;
  bool answers = false;
  std::vector<ConnectionId> open;
  size_t messages = 0;
  size_t sent = 0;
  size_t failed = 0;
  size_t lost = 0;

 private:
  cci::MemoryTable memory_;
  std::array<std::byte, 9000> place_{};
  std::vector<ConnectionId> requests_;
  std::vector<ConnectionId> to_answer_;
  size_t dialling_ = 0;

 public:
  std::unique_ptr<DatagramTransport> transport;  // ends first
};

}  // namespace ccixfer::datagram::testing

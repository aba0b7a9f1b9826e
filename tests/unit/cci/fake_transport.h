// A Transport that does what the test says: calls are written down, what is planned happens in the next turn.
#pragma once
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/cci/endpoint.h"
#include "core/ports/transport.h"

namespace ccixfer::cci {

class CountingEntropy final : public ports::Entropy {
 public:
  uint64_t next_u64() override { return 0x9e3779b97f4a7c15ull * ++count_; }

 private:
  uint64_t count_ = 0;
};

class FakeTransport final : public ports::Transport {
 public:
  struct Operation {
    ports::ConnectionId connection;
    uint64_t token = 0;
    std::string bytes;
    ports::RmaRequest rma;
    std::string completion_message;
  };
  // Outlives the transport, so that a test can look at it after the endpoint is gone.
  struct Log {
    std::vector<Operation> sends;
    std::vector<Operation> rmas;
    std::vector<ports::ConnectionId> accepted, disconnected;
    std::vector<std::pair<ports::ConnectionId, std::string>> rejected;
    std::vector<std::string> dialled;
    std::vector<ports::Hint> hints;
    std::vector<Instant> armed;
    Instant deadline{Duration{42}};
    Status answer = Status::success;  // what send, rma, accept answer
    ports::PeerIdentity peer;         // of every connection
    // A network that needs keys, and how many regions it takes. What is registered with it, by key.
    size_t regions_max = 0;
    std::map<uint64_t, std::pair<MutableBytes, ports::MemoryAccess>> registered;
    uint64_t next_key = 1;
    bool supports_cut_through = false;
    bool destroyed = false;
  };

  explicit FakeTransport(std::shared_ptr<Log> log, uint32_t max_send_bytes = 4096)
      : log_(std::move(log)), max_send_bytes_(max_send_bytes) {}
  ~FakeTransport() override { log_->destroyed = true; }

  void plan(std::function<void(ports::TransportSink&)> step) { planned_.push_back(std::move(step)); }
  ports::RmaTarget& target() { return *target_; }

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override {
    sink_ = &sink;
    target_ = &target;
  }
  std::string uri() const override { return "fake://1"; }
  uint32_t max_send_bytes() const override { return max_send_bytes_; }
  Result<ports::ConnectionId> dial(const ports::DialRequest& request) override {
    if (request.uri == "nonsense") return fail(ErrorKind::usage, "not a URI");
    log_->dialled.emplace_back(request.uri);
    return ports::ConnectionId{next_++, 1};
  }
  Status accept(ports::ConnectionId request) override {
    log_->accepted.push_back(request);
    return log_->answer;
  }
  Status reject(ports::ConnectionId request, std::string_view reason) override {
    log_->rejected.emplace_back(request, reason);
    return Status::success;
  }
  void disconnect(ports::ConnectionId connection) override { log_->disconnected.push_back(connection); }
  Status send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override {
    if (log_->answer != Status::success) return log_->answer;
    Operation& operation = log_->sends.emplace_back();
    operation.connection = connection;
    operation.token = token;
    for (const Bytes part : parts) operation.bytes += as_text(part);
    return Status::success;
  }
  Status rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override {
    if (log_->answer != Status::success) return log_->answer;
    Operation& operation = log_->rmas.emplace_back();
    operation.connection = connection;
    operation.token = token;
    operation.rma = request;
    operation.completion_message = as_text(request.completion_message);
    return Status::success;
  }
  Status register_memory(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) override {
    if (log_->regions_max == 0) return Status::success;
    if (log_->registered.size() >= log_->regions_max) return Status::no_memory;
    key.value = log_->next_key++;
    log_->registered.emplace(key.value, std::pair(memory, access));
    return Status::success;
  }
  void deregister_memory(ports::MemoryKey key) override {
    if (log_->registered.erase(key.value) == 0) throw std::logic_error("no such key");
  }
  bool supports_cut_through() const override { return log_->supports_cut_through; }
  void hint(ports::ConnectionId connection, uint64_t mailbox, uint64_t epoch) override {
    log_->hints.push_back({connection.packed(), mailbox, epoch});
  }
  void arm(Instant when) override { log_->armed.push_back(when); }
  void set_send_timeout(ports::ConnectionId, Duration) override {}
  void set_keepalive(ports::ConnectionId, Duration) override {}
  ports::PeerIdentity peer(ports::ConnectionId) const override { return log_->peer; }
  std::vector<ports::HopInfo> hops(ports::ConnectionId) const override { return {ports::HopInfo{}}; }
  void turn(Instant) override {
    for (auto& step : std::exchange(planned_, {})) step(*sink_);
  }
  Instant next_deadline() const override { return log_->deadline; }
  int os_handle() const override { return 17; }

 private:
  std::shared_ptr<Log> log_;
  uint32_t max_send_bytes_;
  uint32_t next_ = 100;
  ports::TransportSink* sink_ = nullptr;
  ports::RmaTarget* target_ = nullptr;
  std::deque<std::function<void(ports::TransportSink&)>> planned_;
};

inline bool deliver(ports::TransportSink& sink, ports::ConnectionId connection, std::string_view text, bool complete = true) {
  const MutableBytes into = sink.on_message_begin(connection, static_cast<uint32_t>(text.size()));
  if (into.data() == nullptr) return false;
  if (!text.empty()) std::memcpy(into.data(), text.data(), text.size());
  sink.on_message_end(connection, complete);
  return true;
}

}  // namespace ccixfer::cci

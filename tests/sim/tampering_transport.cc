#include "tests/sim/tampering_transport.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "app/session/message_seal.h"
#include "app/session/messages.h"

namespace ccixfer::testing {
namespace {

using ports::ConnectionId;
using ports::OperationResult;
using Buffer = std::vector<std::byte>;

constexpr uint64_t own_token = ~uint64_t{0};  // of what the router does not know of

// In place of a routed session message.
Buffer forged(const Buffer& whole) {
  const auto routed = routing::decode_message(whole);
  if (!routed) return whole;
  const auto head = session::sealed_head(routed->payload);
  const Result<session::Decoded> plain = session::decode(routed->payload);
  if (!head && !plain) return whole;
  Buffer message;
  routing::encode_message_header(routed->id, message);
  const Buffer part = session::encode(session::HandshakePart{"made up"}, head ? head->number : plain->sequence);
  message.insert(message.end(), part.begin(), part.end());
  return message;
}

class TamperingTransport final : public ports::Transport, private ports::TransportSink {
 public:
  TamperingTransport(std::unique_ptr<ports::Transport> inner, size_t device, Tampering& tampering)
      : inner_(std::move(inner)), device_(device), tampering_(tampering) {}

  void bind(TransportSink& sink, ports::RmaTarget& target) override {
    sink_ = &sink;
    inner_->bind(*this, target);
  }
  [[nodiscard]] std::string uri() const override { return inner_->uri(); }
  [[nodiscard]] uint32_t max_send_bytes() const override { return inner_->max_send_bytes(); }
  [[nodiscard]] Result<ConnectionId> dial(const ports::DialRequest& request) override { return inner_->dial(request); }
  [[nodiscard]] Status accept(ConnectionId request) override { return inner_->accept(request); }
  [[nodiscard]] Status reject(ConnectionId request, std::string_view reason) override { return inner_->reject(request, reason); }
  void disconnect(ConnectionId connection) override { inner_->disconnect(connection); }
  void abort(ConnectionId connection) override { inner_->abort(connection); }
  [[nodiscard]] Status register_memory(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key) override {
    return inner_->register_memory(memory, access, key);
  }
  void deregister_memory(ports::MemoryKey key) override { inner_->deregister_memory(key); }
  void resume(ConnectionId connection) override { inner_->resume(connection); }
  void hint(ConnectionId connection, uint64_t mailbox, uint64_t epoch) override { inner_->hint(connection, mailbox, epoch); }
  void set_send_timeout(ConnectionId connection, Duration timeout) override { inner_->set_send_timeout(connection, timeout); }
  void set_keepalive(ConnectionId connection, Duration timeout) override { inner_->set_keepalive(connection, timeout); }
  [[nodiscard]] std::vector<ports::HopInfo> hops(ConnectionId connection) const override { return inner_->hops(connection); }
  [[nodiscard]] ports::PeerIdentity peer(ConnectionId connection) const override { return inner_->peer(connection); }
  [[nodiscard]] std::optional<uint64_t> delivered_bytes(ConnectionId connection) const override {
    return inner_->delivered_bytes(connection);
  }
  [[nodiscard]] std::optional<uint64_t> received_bytes(ConnectionId connection) const override {
    return inner_->received_bytes(connection);
  }
  [[nodiscard]] Instant next_deadline() const override { return made_up_.empty() ? inner_->next_deadline() : Instant{}; }
  [[nodiscard]] int os_handle() const override { return inner_->os_handle(); }
  void arm(Instant when) override { inner_->arm(when); }
  void turn(Instant now) override {
    inner_->turn(now);
    for (const auto& [connection, token] : std::exchange(made_up_, {})) {
      sink_->on_completion(connection, token, OperationResult{Status::success});
    }
  }

  [[nodiscard]] Status send(ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override {
    Buffer whole;
    for (const Bytes& part : parts) whole.insert(whole.end(), part.begin(), part.end());
    const auto kind = routing::kind_of(whole);
    const auto harm = tampering_.sees({device_, kind ? static_cast<Kind>(*kind) : Kind{0}}, whole);
    const auto pass = [&](const Buffer& bytes, uint64_t as) {
      const Bytes one(bytes);
      return inner_->send(connection, std::span(&one, 1), as);
    };
    if (!held_message_.empty() && held_connection_ == connection) {
      const Buffer held = std::exchange(held_message_, {});
      const Status status = pass(whole, token);
      static_cast<void>(pass(held, own_token));
      return status;
    }
    if (!harm) return pass(whole, token);
    switch (*harm) {
      case Harm::flip:
        tampering_.flip(whole);
        break;
      case Harm::cut:
        whole.resize(tampering_.below(whole.size()));
        break;
      case Harm::drop:
        return pretend(connection, token);
      case Harm::swap:
        held_message_ = std::move(whole);
        held_connection_ = connection;
        return pretend(connection, token);
      case Harm::twice:
        static_cast<void>(pass(whole, own_token));
        break;
      case Harm::make_up: {
        Buffer other = whole;
        if (other.size() > 4) tampering_.fill(MutableBytes(other).subspan(4));  // of that kind, and nonsense
        static_cast<void>(pass(other, own_token));
        break;
      }
      case Harm::forge:
        return pass(forged(whole), token);
    }
    return pass(whole, token);
  }

  [[nodiscard]] Status rma(ConnectionId connection, const ports::RmaRequest& asked, uint64_t token) override {
    ports::RmaRequest request = asked;
    request.fill = nullptr;
    if (!request.write) return read(connection, request, token);
    const auto harm = tampering_.sees({device_, pushed_fragment}, request.source);
    if (held_write_ && held_connection_ == connection) {
      const Status status = inner_->rma(connection, request, token);
      static_cast<void>(inner_->rma(connection, *std::exchange(held_write_, std::nullopt), own_token));
      return status;
    }
    if (!harm) return inner_->rma(connection, request, token);
    request.source = keep(request.source);  // the router's buffer may serve another fragment meanwhile
    switch (*harm) {
      case Harm::flip:
        tampering_.flip(kept_.back());
        break;
      case Harm::cut:
        request.source = request.source.first(tampering_.below(request.source.size()));
        break;
      case Harm::drop:
        return pretend(connection, token);
      case Harm::swap:
        held_write_ = request;
        held_connection_ = connection;
        return pretend(connection, token);
      case Harm::twice:
        static_cast<void>(inner_->rma(connection, request, own_token));
        break;
      case Harm::make_up:
      case Harm::forge: {
        ports::RmaRequest other = request;
        other.source = keep(request.source);
        tampering_.fill(kept_.back());
        static_cast<void>(inner_->rma(connection, other, own_token));
        break;
      }
    }
    return inner_->rma(connection, request, token);
  }

 private:
  struct Read {
    MutableBytes destination;
    std::optional<Harm> harm;
  };
  // What is pulled is harmed when it is there: changed, or replaced by what the router had before, by zeros or by nonsense.
  Status read(ConnectionId connection, const ports::RmaRequest& request, uint64_t token) {
    const Status status = inner_->rma(connection, request, token);
    if (status == Status::success) reads_[{connection.packed(), token}] = {request.destination, std::nullopt};
    return status;
  }
  void on_read(const Read& read) {
    const auto harm = tampering_.sees({device_, pulled_fragment}, read.destination);
    if (harm) harm_pulled(*harm, read.destination);
    if (read.destination.size() > 1000) last_pulled_.assign(read.destination.begin(), read.destination.end());
  }
  void harm_pulled(Harm harm, MutableBytes bytes) {
    switch (harm) {
      case Harm::flip:
        tampering_.flip(bytes);
        break;
      case Harm::cut:
        std::ranges::fill(bytes.subspan(bytes.size() / 2), std::byte{0});
        break;
      case Harm::drop:
        std::ranges::fill(bytes, std::byte{0});
        break;
      case Harm::make_up:
      case Harm::forge:
        tampering_.fill(bytes);
        break;
      case Harm::swap:  // two halves
        std::ranges::rotate(bytes, bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2));
        break;
      case Harm::twice:  // the one before, again
        std::copy_n(last_pulled_.begin(), std::min(bytes.size(), last_pulled_.size()), bytes.begin());
        break;
    }
  }
  Bytes keep(Bytes bytes) { return kept_.emplace_back(bytes.begin(), bytes.end()); }
  // The router hears that it is done.
  Status pretend(ConnectionId connection, uint64_t token) {
    made_up_.emplace_back(connection, token);
    return Status::success;
  }

  void on_connect_request(ConnectionId request, ports::Role role, ports::Attribute attribute, Bytes data) override {
    tampering_.records(data);
    sink_->on_connect_request(request, role, attribute, data);
  }
  void on_connected(ConnectionId connection, Status status, ports::ConnectionLimits limits, std::string_view reason) override {
    sink_->on_connected(connection, status, limits, reason);
  }
  void on_accepted(ConnectionId connection, Status status, ports::ConnectionLimits limits) override {
    sink_->on_accepted(connection, status, limits);
  }
  MutableBytes on_message_begin(ConnectionId connection, uint32_t length_bytes) override {
    return sink_->on_message_begin(connection, length_bytes);
  }
  void on_message_end(ConnectionId connection, bool complete) override { sink_->on_message_end(connection, complete); }
  void on_completion(ConnectionId connection, uint64_t token, OperationResult ending) override {
    if (token == own_token) return;
    if (const auto found = reads_.find({connection.packed(), token}); found != reads_.end()) {
      const Read read = found->second;
      reads_.erase(found);
      if (ending.status == Status::success) on_read(read);
    }
    sink_->on_completion(connection, token, ending);
  }
  void on_local_completion(ConnectionId connection, uint64_t token) override {
    if (token != own_token) sink_->on_local_completion(connection, token);
  }
  void on_mailbox_ready(ConnectionId connection, uint64_t mailbox, uint64_t epoch) override {
    sink_->on_mailbox_ready(connection, mailbox, epoch);
  }
  void on_disconnected(ConnectionId connection, Status status, std::string_view reason) override {
    const auto its =
        std::stable_partition(made_up_.begin(), made_up_.end(), [&](const auto& one) { return one.first != connection; });
    const std::vector<std::pair<ConnectionId, uint64_t>> ended(its, made_up_.end());
    made_up_.erase(its, made_up_.end());
    for (const auto& [of, token] : ended) sink_->on_completion(of, token, OperationResult{Status::disconnected});
    sink_->on_disconnected(connection, status, reason);
  }
  void on_keepalive_timeout(ConnectionId connection) override { sink_->on_keepalive_timeout(connection); }
  void on_draining(ConnectionId connection) override { sink_->on_draining(connection); }
  void on_device_failed(std::string_view reason) override { sink_->on_device_failed(reason); }

  std::unique_ptr<ports::Transport> inner_;
  const size_t device_;
  Tampering& tampering_;
  ports::TransportSink* sink_ = nullptr;
  std::vector<std::pair<ConnectionId, uint64_t>> made_up_;  // completions of what did not happen
  std::map<std::pair<uint64_t, uint64_t>, Read> reads_;     // under way, by connection and token
  std::deque<Buffer> kept_;                                 // what writes send in place of the router's
  Buffer held_message_, last_pulled_;
  std::optional<ports::RmaRequest> held_write_;
  ConnectionId held_connection_;
};

}  // namespace

std::string_view name_of(Harm harm) {
  switch (harm) {
    case Harm::flip:
      return "flip";
    case Harm::drop:
      return "drop";
    case Harm::twice:
      return "twice";
    case Harm::swap:
      return "swap";
    case Harm::cut:
      return "cut";
    case Harm::make_up:
      return "make up";
    case Harm::forge:
      return "forge";
  }
  return "";
}

std::string name_of_kind(Kind kind) {
  if (kind == pushed_fragment) return "fragment pushed";
  if (kind == pulled_fragment) return "fragment pulled";
  return "message " + std::to_string(kind);
}

std::optional<Harm> Tampering::sees(Place place, Bytes bytes) {
  const uint64_t number = seen_[place]++;
  records(bytes);
  if (!plan_ || plan_->place != place || bytes.empty()) return std::nullopt;
  if (plan_->on ? number < plan_->number : number != plan_->number) return std::nullopt;
  ++done_;
  return plan_->harm;
}

void Tampering::records(Bytes bytes) { recording_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

void Tampering::flip(MutableBytes bytes) {
  if (!bytes.empty()) bytes[below(bytes.size())] ^= static_cast<std::byte>(1u << below(8));
}

void Tampering::fill(MutableBytes bytes) {
  for (std::byte& one : bytes) one = static_cast<std::byte>(random_.next());
}

std::unique_ptr<ports::Transport> make_tampering_transport(std::unique_ptr<ports::Transport> inner, size_t device,
                                                           Tampering& tampering) {
  return std::make_unique<TamperingTransport>(std::move(inner), device, tampering);
}

}  // namespace ccixfer::testing

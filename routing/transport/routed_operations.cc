#include "routing/transport/routed_operations.h"

#include <algorithm>
#include <utility>

namespace ccixfer::routing {

class RoutedOperations::Way final : public FragmentedRma::Way {
 public:
  Way(RoutedOperations& all, RoutedConnection& connection) : all_(all), connection_(connection) {}
  void post(std::vector<std::byte> message) override { all_.post_.post(connection_, std::move(message)); }
  Status read(const FragmentedRma::Read& read) override {
    if (!connection_.hop.is_live()) return Status::no_buffers;
    cci::RmaOptions options;
    options.write = false;
    options.local = read.local;
    options.local_offset_bytes = read.local_offset_bytes;
    options.remote.handle = read.exposed;
    options.length_bytes = read.length_bytes;
    options.context = read.cookie;
    return all_.lower_.rma(connection_.hop.connection(), options);
  }
  void source_is_free(uint64_t token) override { all_.sink_.on_local_completion(connection_.id, token); }
  void lends() override { all_.lending_.push_back(connection_.id); }
  void has_work() override { all_.connections_.activate(connection_); }
  void ended(const FragmentedRma::Ended& ended) override {
    if (ended.has_completion_message) {
      all_.messages_.announce(connection_, ended.completion_message, ended.token, ended.ending);
    } else {
      all_.sink_.on_completion(connection_.id, ended.token, ended.ending);
    }
    all_.release(connection_);
  }

 private:
  RoutedOperations& all_;
  RoutedConnection& connection_;
};

RoutedOperations::RoutedOperations(uint32_t fragments_max, cci::Endpoint& lower, cci::MemoryTable& memory,
                                   RoutedConnectionTable& connections, HopPost& post, RoutedMessages& messages, RoutedEnder& ender,
                                   ports::TransportSink& sink, Counters& counters)
    : fragments_max_(fragments_max),
      lower_(lower),
      memory_(memory),
      connections_(connections),
      post_(post),
      messages_(messages),
      ender_(ender),
      sink_(sink),
      counters_(counters) {}

// --- What the application asks ---

Status RoutedOperations::send(RoutedConnection& connection, std::span<const Bytes> parts, uint64_t token) {
  const reliability::MessageSender& sender = connection.messages.sender;
  if (connection.end.left || sender.peer_leaving()) return Status::disconnected;
  size_t total = 0;
  for (const Bytes part : parts) total += part.size();
  if (total > connection.path.limits.max_send_bytes) return Status::message_size;
  if (sender.in_queue() + connection.fenced.messages() >= messages_in_flight_max) return Status::no_buffers;
  if (connection.fenced.empty()) {
    messages_.begin(connection, parts, token);
    return Status::success;
  }
  std::vector<std::byte> message;
  for (const Bytes part : parts) message.insert(message.end(), part.begin(), part.end());
  connection.fenced.push_message(token, std::move(message));
  return Status::success;
}

Status RoutedOperations::rma(RoutedConnection& connection, const ports::RmaRequest& request, uint64_t token) {
  if (connection.end.left || connection.messages.sender.peer_leaving()) return Status::disconnected;
  if (connection.rma != nullptr && connection.rma->size() >= routed_operations_max) return Status::no_buffers;
  const size_t message_bytes = request.has_completion_message ? request.completion_message.size() : 0;
  if (message_bytes > connection.path.limits.max_send_bytes) return Status::message_size;

  if (connection.rma == nullptr) connection.rma = std::make_unique<FragmentedRma>(memory_);
  const bool must_wait = !connection.fenced.empty() || (request.fence && begun(connection) > 0);
  const uint64_t number = connection.rma->add(request, token, connection.path.fragment_bytes);
  if (number == 0) return Status::no_buffers;
  if (must_wait) {
    connection.fenced.push_operation(number, request.fence);
  } else {
    connection.rma->start(number);
    connections_.activate(connection);
  }
  return Status::success;
}

// Begun and not ended: what a fence waits for.
size_t RoutedOperations::begun(const RoutedConnection& connection) {
  const size_t operations = connection.rma == nullptr ? 0 : connection.rma->size();
  return connection.messages.begun + operations - connection.fenced.operations();
}

bool RoutedOperations::is_idle(const RoutedConnection& connection) { return begun(connection) == 0 && connection.fenced.empty(); }

void RoutedOperations::release(RoutedConnection& connection) {
  const auto all_ended = [&] { return begun(connection) == 0; };
  const auto send_message = [&](uint64_t token, const std::vector<std::byte>& message) {
    const Bytes part(message);
    messages_.begin(connection, {&part, 1}, token);
  };
  const auto start_operation = [&](uint64_t number) {
    connection.rma->start(number);
    connections_.activate(connection);
  };
  connection.fenced.release(all_ended, send_message, start_operation);
}

// --- Fragments ---

void RoutedOperations::push(RoutedConnection& connection) {
  if (connection.rma == nullptr) return;
  Way way(*this, connection);
  connection.rma->begin_reads(way);
  connection.rma->issue(fragments_max_, way);
  if (connection.rma->has_ready_reads()) connections_.activate(connection);  // no room below
}

void RoutedOperations::release_lent() {
  for (const ports::ConnectionId id : std::exchange(lending_, {})) {
    RoutedConnection* connection = connections_.find(id);
    if (connection == nullptr) continue;
    Way way(*this, *connection);
    const bool any_released = connection->rma->release_lent(way);
    if (connection->rma->has_lent() && std::ranges::find(lending_, id) == lending_.end()) lending_.push_back(id);
    if (any_released && connection->phase == Phase::leaving) connections_.activate(*connection);
  }
}

void RoutedOperations::on_fragment_released(RoutedConnection& connection, Bytes message) {
  const auto released = decode_fragment_released(message);
  if (!released) return ender_.reject(connection, "malformed fragment_released");
  Way way(*this, connection);
  const bool is_known = connection.rma != nullptr && !released->of_read &&
                        connection.rma->released(released->cookie, way) == FragmentedRma::Verdict::fine;
  if (!is_known) counters_.add(Counter::routed_rejected);
}

void RoutedOperations::on_fragment_ack(RoutedConnection& connection, Bytes message) {
  const auto ack = decode_fragment_ack(message);
  if (!ack) return ender_.reject(connection, "malformed fragment ack");
  Way way(*this, connection);
  const bool is_known = connection.rma != nullptr && connection.rma->acknowledged(*ack, way) == FragmentedRma::Verdict::fine;
  if (!is_known) counters_.add(Counter::routed_rejected);
}

void RoutedOperations::on_read_reply(RoutedConnection& connection, Bytes message) {
  const auto reply = decode_fragment(message);
  if (!reply) return ender_.reject(connection, "malformed read reply");
  Way way(*this, connection);
  const auto verdict = connection.rma == nullptr ? FragmentedRma::Verdict::unknown : connection.rma->replied(*reply, way);
  if (verdict == FragmentedRma::Verdict::unknown) counters_.add(Counter::routed_rejected);
  if (verdict == FragmentedRma::Verdict::violation) ender_.reject(connection, "a read reply of another length");
}

void RoutedOperations::on_lower_read_ended(RoutedConnection& connection, uint64_t cookie, Status status) {
  if (connection.rma == nullptr) return;
  Way way(*this, connection);
  connection.rma->read_ended(cookie, status, way);
}

// --- The end ---

void RoutedOperations::withdraw(RoutedConnection& connection) {
  if (connection.rma == nullptr) return;
  Way way(*this, connection);
  connection.rma->withdraw_all(way);
}

bool RoutedOperations::end_all(RoutedConnection& connection) {
  connection.fenced.end_all([&](uint64_t token) { sink_.on_completion(connection.id, token, Status::disconnected); });
  if (connection.rma == nullptr) return true;
  Way way(*this, connection);
  connection.rma->end_unused(way);
  return connection.rma->size() == 0;
}

}  // namespace ccixfer::routing

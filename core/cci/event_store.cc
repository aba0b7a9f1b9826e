#include "core/cci/event_store.h"

namespace ccixfer::cci {

std::optional<uint32_t> EventStore::take_buffer() {
  if (buffers_out()) return std::nullopt;
  const uint32_t index = buffers_.take();
  if (buffers_[index] == nullptr)
    buffers_[index].reset(new std::byte[buffer_bytes_]);  // not zeroed: memory is used as messages need it
  return index;
}

std::optional<uint64_t> EventStore::add_request(ports::ConnectionId connection, Bytes data) {
  if (requests_.size() >= requests_max) return std::nullopt;
  const uint64_t id = next_request_++;
  requests_.emplace(id, Request{connection, {data.begin(), data.end()}, false, false});
  undecided_[connection.packed()] = id;
  return id;
}

EventStore::Request* EventStore::request(uint64_t id) {
  const auto it = requests_.find(id);
  return it == requests_.end() ? nullptr : &it->second;
}

void EventStore::end_request(uint64_t id) {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return;
  const ports::ConnectionId connection = it->second.connection;
  const bool open = !it->second.decided && !it->second.gone;
  requests_.erase(it);
  if (!open) return;
  undecided_.erase(connection.packed());
  if (reject) reject(connection);
}

void EventStore::decide(Request& request) {
  request.decided = true;
  undecided_.erase(request.connection.packed());
}

void EventStore::withdraw(ports::ConnectionId connection) {
  const auto open = undecided_.find(connection.packed());
  if (open == undecided_.end()) return;
  requests_.at(open->second).gone = true;
  undecided_.erase(open);
}

}  // namespace ccixfer::cci

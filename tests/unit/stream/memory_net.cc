#include "tests/unit/stream/memory_net.h"

#include <algorithm>

#include "transports/stream/buffer_splice_pipe.h"

namespace ccixfer::stream::testing {

MemoryNet::~MemoryNet() {
  while (!places_.empty()) close(places_.begin()->first);
  hub_.listeners.erase(name_);
}

Result<StreamId> MemoryNet::dial(std::string_view uri) {
  if (!uri.starts_with("mem://")) return fail(ErrorKind::usage, "not a mem URI");
  const StreamId id = next_++;
  const auto found = hub_.listeners.find(std::string(uri.substr(6)));
  if (found == hub_.listeners.end()) {
    events_.push_back({StreamEventType::failed, id, Status::refused, "nobody listens"});
    return id;
  }
  MemoryNet& peer = *found->second;
  const size_t index = hub_.links.size();
  Link& link = hub_.links.emplace_back();
  const StreamId theirs = peer.next_++;
  link.ends[0] = this;
  link.ends[1] = &peer;
  link.ids[0] = id;
  link.ids[1] = theirs;
  places_[id] = {index, 0};
  peer.places_[theirs] = {index, 1};
  peer.backlog_.push_back({StreamEventType::accepted, theirs, Status::success, {}});
  events_.push_back({StreamEventType::connected, id, Status::success, {}});
  return id;
}

void MemoryNet::close(StreamId id) {
  const auto found = places_.find(id);
  if (found == places_.end()) return;
  const Place place = found->second;
  places_.erase(found);
  Link& link = hub_.links[place.link];
  link.ends[place.end] = nullptr;
  const bool unread = !link.pipes[1 - place.end].bytes.empty();
  link.pipes[place.end].ended = true;
  if (unread) link.pipes[place.end].reset = true;
  if (MemoryNet* peer = link.ends[1 - place.end]) {
    peer->events_.push_back({StreamEventType::readable, link.ids[1 - place.end], Status::success, {}});
    peer->events_.push_back({StreamEventType::writable, link.ids[1 - place.end], Status::success, {}});
  }
}

// Whoever drops it ends the stream.
struct MemoryNet::Loose final : LooseStream {
  Loose(Hub& of, Place at) : hub(of), place(at) {}
  ~Loose() override {
    if (!adopted) hub.links[place.link].pipes[place.end].ended = true;
  }
  Hub& hub;
  const Place place;
  bool adopted = false;
};

std::unique_ptr<LooseStream> MemoryNet::release(StreamId id) {
  const auto found = places_.find(id);
  if (!releases || found == places_.end()) return nullptr;
  auto loose = std::make_unique<Loose>(hub_, found->second);
  hub_.links[found->second.link].ends[found->second.end] = nullptr;
  places_.erase(found);
  return loose;
}

StreamId MemoryNet::adopt(std::unique_ptr<LooseStream> stream) {
  auto& loose = static_cast<Loose&>(*stream);
  loose.adopted = true;
  const StreamId id = next_++;
  places_[id] = loose.place;
  hub_.links[loose.place.link].ends[loose.place.end] = this;
  hub_.links[loose.place.link].ids[loose.place.end] = id;
  events_.push_back({StreamEventType::readable, id, Status::success, {}});
  return id;
}

int64_t MemoryNet::recv(StreamId id, std::span<const IoSpan> into) {
  ++calls;
  const auto found = places_.find(id);
  if (found == places_.end()) return io_error;
  Link& link = hub_.links[found->second.link];
  Pipe& pipe = link.pipes[1 - found->second.end];
  if (pipe.reset) return io_error;
  if (pipe.bytes.empty()) return pipe.ended ? io_closed : io_again;
  int64_t n = 0;
  for (const IoSpan& span : into) {
    for (size_t i = 0; i < span.size && !pipe.bytes.empty() && static_cast<size_t>(n) < hub_.recv_max; ++i, ++n) {
      span.data[i] = pipe.bytes.front();
      pipe.bytes.pop_front();
    }
  }
  if (MemoryNet* peer = link.ends[1 - found->second.end]) {
    peer->events_.push_back({StreamEventType::writable, link.ids[1 - found->second.end], Status::success, {}});
  }
  return n;
}

uint64_t MemoryNet::unacknowledged_bytes(StreamId id) const {
  const auto found = places_.find(id);
  if (found == places_.end()) return 0;
  const uint64_t passed = hub_.links[found->second.link].pipes[found->second.end].passed;
  return passed - std::min(passed, acknowledged);
}

uint64_t MemoryNet::waiting_bytes(StreamId id) const {
  const auto found = places_.find(id);
  return found == places_.end() ? 0 : hub_.links[found->second.link].pipes[found->second.end].bytes.size();
}

int64_t MemoryNet::recv_to(StreamId id, ports::SplicePipe& splice_pipe, size_t size) {
  return receive_to(*this, id, static_cast<BufferSplicePipe&>(splice_pipe), size);
}

int64_t MemoryNet::send(StreamId id, std::span<const ConstIoSpan> from) {
  ++calls;
  const auto found = places_.find(id);
  if (found == places_.end()) return io_error;
  const int end = found->second.end;
  Link& link = hub_.links[found->second.link];
  Pipe& pipe = link.pipes[end];
  if (pipe.ended || pipe.reset || link.ends[1 - end] == nullptr) return io_closed;
  if (std::any_of(from.begin(), from.end(), [](const ConstIoSpan& span) { return span.lent; }))
    said_more.push_back(from.back().more);
  int64_t n = 0;
  bool full = false;
  const size_t before = pipe.bytes.size();
  for (const ConstIoSpan& span : from) {
    if (span.lent) lent_bytes += span.size;
    for (size_t i = 0; i < span.size && !full; ++i) {
      full = pipe.bytes.size() >= hub_.capacity || static_cast<size_t>(n) >= hub_.send_max;
      if (full) break;
      auto* splice_pipe = static_cast<BufferSplicePipe*>(span.splice_pipe);
      std::byte value = splice_pipe == nullptr ? span.data[i] : *splice_pipe->front();
      if (splice_pipe != nullptr) splice_pipe->take(1);
      if (hub_.fault != Fault::none && !hub_.happened && end == hub_.from && pipe.passed == hub_.at) {
        hub_.happened = true;
        if (hub_.fault == Fault::flip) value ^= static_cast<std::byte>(hub_.mask);
        if (hub_.fault == Fault::close) pipe.ended = true;
        if (hub_.fault == Fault::reset) {
          for (int side = 0; side < 2; ++side) {
            link.pipes[side].reset = true;
            MemoryNet* net = link.ends[side];
            net->events_.push_back({StreamEventType::readable, link.ids[side], Status::success, {}});
          }
          return io_closed;
        }
      }
      ++pipe.passed;
      ++n;
      if (!pipe.ended) pipe.bytes.push_back(value);
    }
  }
  if (n == 0) return io_again;
  if (hub_.rewrite) {
    const auto sent = pipe.bytes.begin() + static_cast<std::ptrdiff_t>(before);
    const std::vector<std::byte> arrives = hub_.rewrite(end, {sent, pipe.bytes.end()});
    pipe.bytes.erase(sent, pipe.bytes.end());
    pipe.bytes.insert(pipe.bytes.end(), arrives.begin(), arrives.end());
  }
  link.ends[1 - end]->events_.push_back({StreamEventType::readable, link.ids[1 - end], Status::success, {}});
  return n;
}

void MemoryNet::poll(Instant, const std::function<void(const StreamEvent&)>& event) {
  std::deque<StreamEvent> events;
  events.swap(events_);
  while (!accept_paused && !accept_starves() && !backlog_.empty()) {
    const StreamEvent accepted = backlog_.front();
    backlog_.pop_front();
    event(accepted);
  }
  for (const StreamEvent& one : events) event(one);
}

}  // namespace ccixfer::stream::testing

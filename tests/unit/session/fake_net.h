// A network of Transports in memory for tests of links: each frame (message, acknowledgement, put ...) is one step, and a fault can
// strike before or after any step. Nothing moves but inside turn().
#pragma once
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ports/transport.h"

namespace ccixfer::session::fake {

class Transport;

enum class Fault : uint8_t {
  none,
  cut_before,   // the connection breaks and the frame is lost
  cut_after,    // it breaks behind the frame: whatever it caused in the other direction is lost
  half_before,  // as above, but only the frame's receiver notices at once; the other end when the test says so
  half_after,
};

enum class FrameKind : uint8_t { accept, reject, accept_ack, message, message_ack, put, put_ack, bye };

constexpr uint64_t made_up_token = ~uint64_t{0};  // of a message that somebody on the way made up: nobody waits for its end

struct Frame {
  FrameKind kind = FrameKind::bye;
  uint64_t token = 0;
  Status status = Status::success;
  std::vector<std::byte> bytes;
  ports::RemoteRef remote;
};

class Net {
 public:
  std::map<std::string, Transport*> listeners;
  std::set<const Transport*> living;
  std::function<Fault(size_t step, FrameKind kind)> fault;  // asked before each frame
  // Somebody on the way, who sees each frame and may change it. `from`: the URI of who sent it; "" of a dialler. The frames that it
  // leaves in the list are delivered.
  std::function<void(std::string_view from, std::vector<Frame>& frames)> in_between;
  std::function<Status(std::string_view uri)> dial_status;  // a dial that ends with anything but success ends so
  std::string dial_reason;                                  // with these words
  std::string cut_reason = "cut";                           // why a connection that is cut has ended
  size_t steps = 0;
  size_t dials = 0;
  bool dials_ahead = false;
  size_t dialled_ahead = 0;
  size_t in_flight_max = 256;
  size_t frames_per_turn = 8;              // of one end, so that the two sides' steps interleave
  bool notice_half_open = false;           // ends of half-cut connections notice
  std::vector<ports::HopInfo> path;        // of every connection
  std::optional<uint64_t> received_bytes;  // over every connection
  std::optional<ports::PathFigures> path_figures;
};

class Transport final : public ports::Transport {
 public:
  Transport(Net& net, std::string uri) : net_(net), uri_(std::move(uri)) {
    net_.living.insert(this);
    if (!uri_.empty()) net_.listeners[uri_] = this;
  }
  ~Transport() override {
    net_.living.erase(this);
    if (!uri_.empty()) net_.listeners.erase(uri_);
    for (auto& [index, end] : ends_) {
      static_cast<void>(index);
      if (End* peer = peer_of(end)) peer->cut = true;
    }
  }

  void bind(ports::TransportSink& sink, ports::RmaTarget& target) override {
    sink_ = &sink;
    target_ = &target;
  }
  [[nodiscard]] std::string uri() const override { return uri_; }
  [[nodiscard]] uint32_t max_send_bytes() const override { return ports::max_send_bytes_floor; }

  [[nodiscard]] Result<ports::ConnectionId> dial(const ports::DialRequest& request) override {
    ++net_.dials;
    End& end = make(State::dialling);
    end.ahead = request.ahead;
    end.uri = std::string(request.uri);
    if (request.ahead) ++net_.dialled_ahead;
    end.dial_status = net_.dial_status ? net_.dial_status(request.uri) : Status::success;
    end.deadline = after(now_, request.timeout);
    if (end.dial_status == Status::success && !end.ahead) request_of(end, request.role, request.attribute, request.data);
    return end.id;
  }
  [[nodiscard]] bool dials_ahead() const override { return net_.dials_ahead; }
  [[nodiscard]] Status ask(ports::ConnectionId dialled, Bytes data) override {
    End* end = find(dialled);
    if (end == nullptr || end->left) return Status::not_found;
    if (!std::exchange(end->ahead, false)) return Status::invalid;
    request_of(*end, ports::Role::application, ports::Attribute::reliable_ordered, data);
    return Status::success;
  }
  [[nodiscard]] Status accept(ports::ConnectionId request) override {
    End* end = find(request);
    if (end == nullptr) return Status::not_found;
    if (accept_status != Status::success) {
      cut(*end, false);
      ends_.erase(request.index);
      return accept_status;
    }
    end->state = State::accepting;
    push_to_peer(*end, {FrameKind::accept, 0, Status::success, {}, {}});
    return Status::success;
  }
  [[nodiscard]] Status reject(ports::ConnectionId request, std::string_view reason) override {
    End* end = find(request);
    if (end == nullptr) return Status::not_found;
    const Bytes words = as_bytes(reason);
    push_to_peer(*end, {FrameKind::reject, 0, Status::refused, {words.begin(), words.end()}, {}});
    ends_.erase(request.index);
    return Status::success;
  }
  void disconnect(ports::ConnectionId connection) override {
    End* end = find(connection);
    if (end == nullptr || end->left) return;
    end->left = true;
    end->in.clear();
    push_to_peer(*end, {FrameKind::bye, 0, Status::disconnected, {}, {}});
  }

  [[nodiscard]] Status send(ports::ConnectionId connection, std::span<const Bytes> parts, uint64_t token) override {
    End* end = find(connection);
    if (end == nullptr || end->left) return Status::not_found;
    if (end->operations.size() >= net_.in_flight_max) return Status::no_buffers;
    Frame frame{FrameKind::message, token, Status::success, {}, {}};
    for (const Bytes part : parts) frame.bytes.insert(frame.bytes.end(), part.begin(), part.end());
    end->operations.push_back(token);
    push_to_peer(*end, std::move(frame));
    return Status::success;
  }
  [[nodiscard]] Status rma(ports::ConnectionId connection, const ports::RmaRequest& request, uint64_t token) override {
    End* end = find(connection);
    if (end == nullptr || end->left) return Status::not_found;
    if (end->operations.size() >= net_.in_flight_max) return Status::no_buffers;
    end->operations.push_back(token);
    push_to_peer(*end, {FrameKind::put, token, Status::success, {request.source.begin(), request.source.end()}, request.remote});
    return Status::success;
  }

  void set_send_timeout(ports::ConnectionId, Duration) override {}
  void set_keepalive(ports::ConnectionId, Duration) override {}
  [[nodiscard]] std::vector<ports::HopInfo> hops(ports::ConnectionId) const override { return net_.path; }
  [[nodiscard]] std::optional<uint64_t> received_bytes(ports::ConnectionId) const override { return net_.received_bytes; }
  [[nodiscard]] std::optional<ports::PathFigures> path_figures(ports::ConnectionId) const override { return net_.path_figures; }

  void turn(Instant now) override {
    now_ = now;
    std::vector<uint32_t> indices;
    for (const auto& [index, end] : ends_) {
      static_cast<void>(end);
      indices.push_back(index);
    }
    for (const uint32_t index : indices) turn_end(index);
  }
  [[nodiscard]] Instant next_deadline() const override {
    Instant deadline = never;
    for (const auto& [index, end] : ends_) {
      static_cast<void>(index);
      if (busy(end)) return now_;
      if (end.state == State::dialling) deadline = std::min(deadline, end.deadline);
    }
    return deadline;
  }
  [[nodiscard]] int os_handle() const override { return -1; }

  // Breaks every connection of this transport; both ends notice in their next turns.
  void cut_all() {
    for (auto& [index, end] : ends_) {
      static_cast<void>(index);
      cut(end, false);
    }
  }
  void hold_oldest(bool held) { ends_.begin()->second.held = held; }  // as if its peer's host hung
  void cut_newest() { cut(ends_.rbegin()->second, false); }
  // A router of every connection's path is about to stop: told in the next turn.
  void drain_all() {
    for (auto& [index, end] : ends_) {
      static_cast<void>(index);
      end.draining = end.state == State::established;
    }
  }
  [[nodiscard]] size_t connections() const { return ends_.size(); }
  Status accept_status = Status::success;  // not success: accept() ends so, as when the peer went

 private:
  enum class State : uint8_t { dialling, requested, undecided, accepting, established };
  struct End {
    ports::ConnectionId id;
    State state = State::dialling;
    Transport* peer = nullptr;
    ports::ConnectionId peer_id;
    std::deque<Frame> in;
    std::deque<uint64_t> operations;
    std::vector<std::byte> connect_data;
    ports::Role role = ports::Role::application;
    ports::Attribute attribute = ports::Attribute::reliable_ordered;
    Status dial_status = Status::success;
    std::string uri;     // dialled
    bool ahead = false;  // and not asked for anything yet
    Instant deadline = never;
    bool left = false;      // disconnected by our own side
    bool cut = false;       // broken, and noticed
    bool half = false;      // broken, and not yet noticed
    bool held = false;      // takes nothing, notices nothing
    bool draining = false;  // to be told
  };

  [[nodiscard]] static ports::ConnectionLimits limits() { return {ports::max_send_bytes_floor}; }

  End& make(State state) {
    const uint32_t index = next_index_++;
    End& end = ends_[index];
    end.id = {index, 1};
    end.state = state;
    return end;
  }
  End* find(ports::ConnectionId id) {
    const auto it = ends_.find(id.index);
    return it == ends_.end() || id.generation != 1 ? nullptr : &it->second;
  }
  void request_of(End& end, ports::Role role, ports::Attribute attribute, Bytes data) {
    const auto listener = net_.listeners.find(end.uri);
    if (listener == net_.listeners.end()) {
      end.dial_status = Status::refused;
      return;
    }
    End& other = listener->second->make(State::requested);
    other.connect_data.assign(data.begin(), data.end());
    other.role = role;
    other.attribute = attribute;
    join(end, *listener->second, other);
  }
  void join(End& a, Transport& transport, End& b) {
    a.peer = &transport;
    a.peer_id = b.id;
    b.peer = this;
    b.peer_id = a.id;
  }
  End* peer_of(End& end) {
    if (end.peer == nullptr || end.cut || end.half || net_.living.count(end.peer) == 0) return nullptr;
    return end.peer->find(end.peer_id);
  }
  void push_to_peer(End& end, Frame frame) {
    End* peer = peer_of(end);
    if (peer == nullptr || peer->left || peer->half) return;
    if (!net_.in_between) return peer->in.push_back(std::move(frame));
    std::vector<Frame> frames{std::move(frame)};
    net_.in_between(uri_, frames);
    for (Frame& one : frames) peer->in.push_back(std::move(one));
  }
  void cut(End& end, bool half) {
    End* peer = peer_of(end);
    end.cut = true;
    end.in.clear();
    if (peer == nullptr) return;
    peer->in.clear();
    (half ? peer->half : peer->cut) = true;
  }
  [[nodiscard]] bool busy(const End& end) const {
    if (end.held) return false;
    return !end.in.empty() || end.draining || end.cut || end.left || end.state == State::requested ||
           (end.half && net_.notice_half_open) || end.dial_status != Status::success;
  }

  void end_of(uint32_t index, Status status, std::string_view reason) {
    const End end = std::move(ends_.at(index));
    ends_.erase(index);
    for (const uint64_t token : end.operations) sink_->on_completion(end.id, token, Status::disconnected);
    if (end.left) return;
    if (end.state == State::dialling) return sink_->on_connected(end.id, status, {}, reason);
    if (end.state == State::accepting) return sink_->on_accepted(end.id, status, {});
    if (end.state != State::requested) sink_->on_disconnected(end.id, status, reason);
  }

  void turn_end(uint32_t index) {
    for (size_t frames = 0; frames < net_.frames_per_turn; ++frames) {
      const auto it = ends_.find(index);
      if (it == ends_.end()) return;
      End& end = it->second;
      if (end.held) return;
      if (end.left) return end_of(index, Status::disconnected, {});
      if (end.cut || (end.half && net_.notice_half_open)) return end_of(index, Status::disconnected, net_.cut_reason);
      if (end.dial_status != Status::success) return end_of(index, end.dial_status, net_.dial_reason);
      if (end.state == State::dialling && end.in.empty() && now_ >= end.deadline) return end_of(index, Status::timed_out, {});
      if (end.state == State::requested) {
        end.state = State::undecided;
        sink_->on_connect_request(end.id, end.role, end.attribute, end.connect_data);
        return;
      }
      if (std::exchange(end.draining, false)) sink_->on_draining(end.id);
      if (end.in.empty()) return;
      const Fault fault = net_.fault ? net_.fault(net_.steps, end.in.front().kind) : Fault::none;
      ++net_.steps;
      if (fault == Fault::cut_before || fault == Fault::half_before) {
        cut(end, fault == Fault::half_before);
        continue;
      }
      Frame frame = std::move(end.in.front());
      end.in.pop_front();
      if (!process(end, frame)) return;
      if (fault == Fault::cut_after || fault == Fault::half_after) cut(end, fault == Fault::half_after);
    }
  }

  // false: the end is gone.
  bool process(End& end, Frame& frame) {
    switch (frame.kind) {
      case FrameKind::accept:
        end.state = State::established;
        push_to_peer(end, {FrameKind::accept_ack, 0, Status::success, {}, {}});
        sink_->on_connected(end.id, Status::success, limits(), {});
        return true;
      case FrameKind::reject:
        end_of(end.id.index, Status::refused, as_text(frame.bytes));
        return false;
      case FrameKind::accept_ack:
        end.state = State::established;
        sink_->on_accepted(end.id, Status::success, limits());
        return true;
      case FrameKind::message: {
        const MutableBytes into = sink_->on_message_begin(end.id, static_cast<uint32_t>(frame.bytes.size()));
        const bool placed = into.size() == frame.bytes.size();
        if (placed) {
          std::memcpy(into.data(), frame.bytes.data(), frame.bytes.size());
          sink_->on_message_end(end.id, true);
        }
        if (frame.token == made_up_token) return true;
        push_to_peer(end, {FrameKind::message_ack, frame.token, placed ? Status::success : Status::receiver_not_ready, {}, {}});
        return true;
      }
      case FrameKind::put: {
        const ports::Admission admission = target_->begin_write(end.id.packed(), frame.remote, frame.bytes.size());
        Status status = admission.status;
        if (status == Status::success && !admission.already_placed) {
          const MutableBytes into = target_->write_span(admission.ticket, 0);
          std::memcpy(into.data(), frame.bytes.data(), frame.bytes.size());
          status = target_->end_write(admission.ticket, true).status;
        }
        push_to_peer(end, {FrameKind::put_ack, frame.token, status, {}, {}});
        return true;
      }
      case FrameKind::message_ack:
      case FrameKind::put_ack:
        end.operations.pop_front();  // reliable, ordered: in the order of issue
        sink_->on_completion(end.id, frame.token, frame.status);
        return true;
      case FrameKind::bye:
        end_of(end.id.index, Status::disconnected, "bye");
        return false;
    }
    return false;
  }

  Net& net_;
  std::string uri_;
  ports::TransportSink* sink_ = nullptr;
  ports::RmaTarget* target_ = nullptr;
  Instant now_{};
  uint32_t next_index_ = 0;
  std::map<uint32_t, End> ends_;
};

}  // namespace ccixfer::session::fake

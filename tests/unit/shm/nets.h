// ShmNets of a test: polled together until something happened, what happened written down; and a pair that is connected.
#pragma once
#include <poll.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "core/base/counters.h"
#include "core/host/clock.h"
#include "transports/shm/shm_net.h"

namespace ccixfer::shm {

using namespace std::chrono_literals;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

inline std::unique_ptr<ShmNet> make(ShmNetOptions options = {}) {
  auto net = ShmNet::create(options);
  REQUIRE(net);
  return std::move(*net);
}

// Polls the nets, waiting on their handles, until `done`; what happened is written down.
struct Watch {
  std::vector<ShmNet*> nets;
  std::vector<std::vector<StreamEvent>> events = {};
  host::SystemClock clock = {};

  explicit Watch(std::vector<ShmNet*> list) : nets(std::move(list)), events(nets.size()) {}
  void poll(size_t net) {
    nets[net]->poll(clock.now(), [&](const StreamEvent& event) { events[net].push_back(event); });
  }
  template <typename Done>
  bool run(Done done) {
    const Instant end = clock.now() + 20s;
    for (;;) {
      for (size_t i = 0; i < nets.size(); ++i) poll(i);
      if (done()) return true;
      if (clock.now() > end) return false;
      std::vector<pollfd> handles;
      for (ShmNet* net : nets) {
        net->set_deadline(never);
        handles.push_back({net->os_handle(), POLLIN, 0});
      }
      ::poll(handles.data(), handles.size(), 1000);
    }
  }
  [[nodiscard]] const StreamEvent* find(size_t net, StreamEventType type, StreamId id = 0) const {
    for (const StreamEvent& event : events[net]) {
      if (event.type == type && (id == 0 || event.id == id)) return &event;
    }
    return nullptr;
  }
};

// Whether somebody who waits on the handle, and armed it, would wake up.
inline bool wakes(ShmNet& net, int timeout_ms = 0) {
  pollfd handle{net.os_handle(), POLLIN, 0};
  return ::poll(&handle, 1, timeout_ms) == 1;
}

inline int64_t send_bytes(ShmNet& net, StreamId id, Bytes bytes) {
  const stream::ConstIoSpan span{bytes.data(), bytes.size()};
  return net.send(id, {&span, 1});
}
inline int64_t send_text(ShmNet& net, StreamId id, std::string_view text) { return send_bytes(net, id, as_bytes(text)); }
inline int64_t recv_some(ShmNet& net, StreamId id, std::string& text, size_t most = 4096) {
  std::vector<std::byte> memory(most);
  const stream::IoSpan span{memory.data(), memory.size()};
  const int64_t n = net.recv(id, {&span, 1});
  if (n > 0) text += as_text(Bytes(memory).first(static_cast<size_t>(n)));
  return n;
}

struct Pair {
  Counters counters;
  std::unique_ptr<ShmNet> server;
  std::unique_ptr<ShmNet> client;
  Watch watch;
  StreamId out = 0, in = 0;
  explicit Pair(size_t ring_bytes = 64u << 10)
      : server(make({.name = {}, .ring_bytes = ring_bytes, .counters = &counters})),
        client(make({.name = {}, .listen = false, .counters = &counters})),
        watch{{server.get(), client.get()}} {
    out = *client->dial(server->uri());
    REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected) && watch.find(0, StreamEventType::accepted); }));
    in = watch.find(0, StreamEventType::accepted)->id;
    for (auto& events : watch.events) events.clear();
  }
};

}  // namespace ccixfer::shm

// TcpNets of a test: polled together until something happened, what happened written down; and a pair that is connected.
#pragma once
#include <poll.h>

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/host/clock.h"
#include "transports/tcp/tcp_net.h"

namespace ccixfer::tcp {

using namespace std::chrono_literals;
using stream::StreamEvent;
using stream::StreamEventType;
using stream::StreamId;

inline std::unique_ptr<TcpNet> make(const std::string& host = "127.0.0.1", bool listen = true,
                                    ByReference by_reference = ByReference::to_other_machines,
                                    std::shared_ptr<host::Waker> waker = nullptr) {
  TcpNetOptions options;
  options.listen_host = host;
  options.listen = listen;
  options.by_reference = by_reference;
  options.waker = std::move(waker);
  auto net = TcpNet::create(options);
  REQUIRE(net);
  return std::move(*net);
}

// Polls the nets, waiting on their handles, until `done`; what happened is written down.
struct Watch {
  std::vector<TcpNet*> nets;
  std::vector<std::vector<StreamEvent>> events = {};
  host::SystemClock clock = {};
  std::vector<std::unique_ptr<TcpNet>> keep = {};

  explicit Watch(std::vector<TcpNet*> list) : nets(std::move(list)), events(nets.size()) {}
  void poll() {
    for (size_t i = 0; i < nets.size(); ++i) {
      nets[i]->poll(clock.now(), [&](const StreamEvent& event) { events[i].push_back(event); });
    }
  }
  template <typename Done>
  bool run(Done done) {
    const Instant end = clock.now() + 20s;
    for (;;) {
      poll();
      if (done()) return true;
      if (clock.now() > end) return false;
      std::vector<pollfd> handles;
      for (const TcpNet* net : nets) handles.push_back({net->os_handle(), POLLIN, 0});
      ::poll(handles.data(), handles.size(), 1000);
    }
  }
  [[nodiscard]] const StreamEvent* find(size_t net, StreamEventType type, StreamId id = 0) const {
    for (const StreamEvent& event : events[net]) {
      if (event.type == type && (id == 0 || event.id == id)) return &event;
    }
    return nullptr;
  }
  [[nodiscard]] size_t count(size_t net, StreamEventType type) const {
    size_t count = 0;
    for (const StreamEvent& event : events[net]) count += event.type == type ? 1u : 0u;
    return count;
  }
};

inline bool readable(const TcpNet& net, int timeout_ms = 0) {
  pollfd handle{net.os_handle(), POLLIN, 0};
  return ::poll(&handle, 1, timeout_ms) == 1;
}

inline int64_t send_text(TcpNet& net, StreamId id, std::string_view text) {
  const stream::ConstIoSpan span{as_bytes(text).data(), text.size()};
  return net.send(id, {&span, 1});
}
inline int64_t recv_some(TcpNet& net, StreamId id, std::string& text) {
  std::array<std::byte, 4096> memory{};
  const stream::IoSpan span{memory.data(), memory.size()};
  const int64_t n = net.recv(id, {&span, 1});
  if (n > 0) text += as_text(Bytes(memory).first(static_cast<size_t>(n)));
  return n;
}

inline std::shared_ptr<host::Waker> make_waker() {
  auto waker = host::Waker::create(host::Waits::inside);
  REQUIRE(waker);
  return std::move(*waker);
}

struct Pair {
  std::unique_ptr<TcpNet> server;
  std::unique_ptr<TcpNet> client;
  Watch watch;
  StreamId out = 0, in = 0;
  explicit Pair(ByReference by_reference, const std::shared_ptr<host::Waker>& of_server = nullptr)
      : server(make("127.0.0.1", true, ByReference::to_other_machines, of_server)),
        client(make("127.0.0.1", false, by_reference)),
        watch{{server.get(), client.get()}} {
    out = *client->dial(server->uri());
    REQUIRE(watch.run([&] { return watch.find(1, StreamEventType::connected) && watch.find(0, StreamEventType::accepted); }));
    in = watch.find(0, StreamEventType::accepted)->id;
  }
};

}  // namespace ccixfer::tcp

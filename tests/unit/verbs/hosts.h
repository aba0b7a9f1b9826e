// Nets over the RDMA device of the machine that the tests run in (tests/rdma), and what they have told.
#pragma once
#include <poll.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/host/clock.h"
#include "transports/verbs/verbs.h"

namespace ccixfer::verbs {

using rdma::PairId;
using rdma::WorkStatus;
using Memory = std::vector<std::byte>;

inline constexpr const char* device_address = "10.9.0.1";  // as tests/rdma/init says

struct Told final : rdma::RdmaEvents {
  struct Closed {
    Status status = Status::success;
    std::string reason;
  };
  struct Completed {
    uint64_t tag = 0;
    WorkStatus status = WorkStatus::success;
    friend bool operator==(const Completed&, const Completed&) = default;
  };
  // Whoever dials is accepted, unless `on_request` is given.
  void requested(PairId pair, std::string_view peer) override {
    requests.emplace_back(pair, std::string(peer));
    if (on_request) on_request(pair);
  }
  void connected(PairId pair) override {
    CHECK(closed_pairs.count(pair) == 0);
    connected_pairs.push_back(pair);
  }
  void closed(PairId pair, Status status, std::string_view reason) override {
    CHECK(closed_pairs.emplace(pair, Closed{status, std::string(reason)}).second);
  }
  void received(PairId pair, Bytes bytes) override {
    CHECK(std::count(connected_pairs.begin(), connected_pairs.end(), pair) == 1);
    CHECK(closed_pairs.count(pair) == 0);
    came[pair].emplace_back(bytes.begin(), bytes.end());
  }
  void completed(PairId pair, uint64_t tag, WorkStatus status) override {
    CHECK(closed_pairs.count(pair) == 0);
    endings[pair].push_back({tag, status});
  }
  void sendable(PairId pair) override { ++rooms[pair]; }
  void device_failed(std::string_view reason) override { failures.emplace_back(reason); }

  std::function<void(PairId)> on_request;
  std::vector<std::pair<PairId, std::string>> requests;
  std::vector<PairId> connected_pairs;
  std::map<PairId, Closed> closed_pairs;
  std::map<PairId, std::vector<Memory>> came;
  std::map<PairId, std::vector<Completed>> endings;
  std::map<PairId, int> rooms;
  std::vector<std::string> failures;
};

struct Host {
  explicit Host(VerbsNetOptions options = {}) {
    options.listen_host = device_address;
    auto opened = open_net(options);
    if (!opened) FAIL(opened.error().message);
    net = std::move(opened->net);
    told.on_request = [this](PairId pair) { net->accept(pair); };
  }
  // Waits on the handle, as a loop does. False: it was not readable in time.
  bool turn(int timeout_ms) {
    net->set_deadline(never);
    pollfd handle{net->os_handle(), POLLIN, 0};
    const bool is_ready = ::poll(&handle, 1, timeout_ms) == 1;
    if (is_ready) net->poll(host::SystemClock().now(), told);
    return is_ready;
  }
  std::unique_ptr<rdma::RdmaNet> net;
  Told told;
};

// What each host has been told, for a test that waits in vain.
inline std::string trace(std::initializer_list<Host*> hosts) {
  std::string text;
  for (const Host* host : hosts) {
    text += host->net->uri() + ":";
    for (const auto& [pair, closed] : host->told.closed_pairs) text += " closed (" + closed.reason + ")";
    for (const std::string& failure : host->told.failures) text += " device failed (" + failure + ")";
    text += " connected " + std::to_string(host->told.connected_pairs.size()) + "\n";
  }
  return text;
}

// Until `done` holds; the hosts are turned when their handles say that there is something to do, and only then.
template <typename Done>
void until(std::initializer_list<Host*> hosts, const Done& done) {
  while (!done()) {
    std::vector<pollfd> handles;
    for (Host* host : hosts) {
      host->net->set_deadline(never);
      handles.push_back({host->net->os_handle(), POLLIN, 0});
    }
    INFO(trace(hosts));
    REQUIRE(::poll(handles.data(), handles.size(), 20000) > 0);
    size_t i = 0;
    for (Host* host : hosts) {
      if (handles[i++].revents != 0) host->net->poll(host::SystemClock().now(), host->told);
    }
  }
}

struct Connected {
  PairId at_dialler = 0, at_acceptor = 0;
};

inline Connected connect(Host& dialler, Host& acceptor) {
  const size_t before = acceptor.told.connected_pairs.size();
  const auto dialled = dialler.net->dial(acceptor.net->uri());
  REQUIRE(dialled);
  const auto is_told = [](const Host& host, PairId pair) {
    const auto& pairs = host.told.connected_pairs;
    return std::find(pairs.begin(), pairs.end(), pair) != pairs.end();
  };
  until({&dialler, &acceptor}, [&] { return is_told(dialler, *dialled) && acceptor.told.connected_pairs.size() > before; });
  return {*dialled, acceptor.told.connected_pairs.back()};
}

inline Memory pattern(size_t size, unsigned seed) {
  Memory bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + (i >> 8) * 7 + seed * 101) & 0xff);
  return bytes;
}

// Without printing both when they are not.
inline bool is_same(const Memory& a, const Memory& b) { return a == b; }

inline bool send(Host& host, PairId pair, Bytes bytes) {
  const std::vector<Bytes> parts{bytes.first(bytes.size() / 2), bytes.subspan(bytes.size() / 2)};
  return host.net->post_send(pair, parts);
}

// Registered until its end, if the net lives so long.
struct Region {
  Region(Host& of, size_t size, rdma::Access access, unsigned seed = 0) : host(of), bytes(pattern(size, seed)) {
    REQUIRE(host.net->register_memory(bytes, access, keys) == Status::success);
  }
  ~Region() { deregister(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  void deregister() {
    if (keys.id != 0) host.net->deregister(std::exchange(keys.id, 0));
  }
  void fill(unsigned seed) {  // in its place, which the card knows
    const Memory other = pattern(bytes.size(), seed);
    std::copy(other.begin(), other.end(), bytes.begin());
  }
  [[nodiscard]] uint64_t address() const { return reinterpret_cast<uintptr_t>(bytes.data()); }
  Host& host;
  Memory bytes;
  rdma::Registration keys;
};

inline rdma::Work work(uint64_t tag, Region& local, const Region& remote, size_t size) {
  return {tag, MutableBytes(local.bytes).first(size), local.keys.local_key, remote.address(), remote.keys.remote_key};
}

}  // namespace ccixfer::verbs

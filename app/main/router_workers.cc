#include "app/main/router_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "app/devices/node.h"
#include "app/devices/path_table.h"
#include "app/main/router_audit.h"
#include "app/main/session_trust.h"
#include "app/main/worker_devices.h"
#include "app/main/worker_spread.h"
#include "core/base/log.h"
#include "core/base/thread_log.h"
#include "core/host/clock.h"
#include "core/host/entropy.h"
#include "core/host/inbox.h"
#include "core/host/threads.h"
#include "routing/router/map_snapshot.h"

namespace ccixfer::program {
namespace {

constexpr size_t counters_max = static_cast<size_t>(Counter::count_);
constexpr size_t lines_waiting_max = 10'000;  // of the log, until worker 0 has written some
constexpr Duration answer_interval = std::chrono::seconds(1);
constexpr Duration unwell_after = std::chrono::seconds(10);  // without an answer

}  // namespace

struct RouterWorkers::Worker {
  Worker(std::shared_ptr<host::Waker> in, size_t index)
      : number(index), waker(std::move(in)), inbox(waker), memory(std::make_shared<cci::MemoryTable>(entropy, counters)) {}

  // The thread's, once it runs.
  const size_t number;
  const std::shared_ptr<host::Waker> waker;
  host::Inbox inbox;
  host::SystemEntropy entropy;
  Counters counters;
  std::optional<Security> security;  // none: --insecure
  std::shared_ptr<ProcessTrust> trust;
  std::shared_ptr<cci::MemoryTable> memory;
  WorkerDevices devices{[this](const DeviceConfig& device) { return node_of(device); }};
  std::unique_ptr<routing::Router> router;
  size_t connections_adopted = 0;
  bool stops = false;

  // What it tells.
  std::atomic<size_t> adopted{0};  // before `open` is read
  std::atomic<size_t> open{0};
  std::atomic<uint64_t> answered{0};
  std::atomic<bool> drained{false};
  std::atomic<uint32_t> buffers_used{0};  // as it last answered

  // Worker 0's.
  std::thread thread;
  std::set<std::string> takes;  // the devices of which connections may move to it, as it last said
  bool is_current = true;       // the last reload has succeeded there
  size_t moved = 0;
  uint64_t reloads = 0;
  uint32_t buffers_count = 0;
  uint64_t asked = 0;
  Instant asked_at{};
  std::array<uint64_t, counters_max> added{};  // to the counters of the process

  [[nodiscard]] size_t load() const {
    const size_t known = adopted.load(std::memory_order_acquire);
    return open.load(std::memory_order_relaxed) + moved - known;
  }
  [[nodiscard]] Result<Node> node_of(const DeviceConfig& device);
  void adopt(const std::string& device, stream::MovedConnection connection);
  void reconfigure(WorkerSettings settings);
  void run(const std::function<void()>& on_change);
};

struct RouterWorkers::State {
  State(const Process& of, Audit to) : process(of), audit(std::move(to)), inbox(of.loop.waker()) {}
  const Process& process;
  const Audit audit;
  host::Inbox inbox;
  std::atomic<size_t> lines_waiting{0};
  std::vector<std::unique_ptr<Worker>> workers;  // 1, 2, ...
  routing::Router* router = nullptr;             // worker 0's; nullptr: not begun
  std::shared_ptr<const routing::MapSnapshot> map;
  Instant next_look{};
  WorkerSpread spread{[this](size_t number) { return number == 0 ? router->connections_open() : workers[number - 1]->load(); }};
  bool draining = false;

  [[nodiscard]] WorkerSpread::Takes who_could_take(const std::string& device) const {
    return [this, &device](size_t number) { return workers[number - 1]->takes.count(device) > 0; };
  }
  [[nodiscard]] WorkerSpread::Takes who_takes(const std::string& device) const {
    return [this, could = who_could_take(device)](size_t number) { return workers[number - 1]->is_current && could(number); };
  }
};

// ---- In the thread of a worker.

// They only dial: what they forward came to worker 0 first.
Result<Node> RouterWorkers::Worker::node_of(const DeviceConfig& device) {
  NodeOptions options;
  options.bare = true;
  options.paths = std::make_shared<PathTable>(wall_time_s);
  options.memory = memory;
  options.waker = waker;
  options.trust = trust;
  return make_node(device, options, entropy, counters);
}

void RouterWorkers::Worker::adopt(const std::string& device, stream::MovedConnection connection) {
  ++connections_adopted;
  devices.mover(device).adopt(std::move(connection));
}

void RouterWorkers::Worker::reconfigure(WorkerSettings settings) {
  settings.options.peer_grants = trust;
  const auto made = devices.change(settings.config, std::move(settings.devices), [&](std::vector<routing::RouterDevice> all) {
    return router->reconfigure(settings.options, std::move(all));
  });
  if (!made) {
    log(LogLevel::warning, "worker {}: it goes on with its old configuration and takes no further connection: {}", number,
        made.error().message);
  }
}

void RouterWorkers::Worker::run(const std::function<void()>& on_change) {
  const host::SystemClock clock;
  const std::function<Instant()> now = [&clock] { return clock.now(); };
  for (;;) {
    inbox.take();
    if (stops) break;
    router->turn(clock.now(), now);
    open.store(router->connections_open(), std::memory_order_relaxed);
    adopted.store(connections_adopted, std::memory_order_release);
    if (router->drained() != drained.load(std::memory_order_relaxed)) {
      drained.store(router->drained(), std::memory_order_release);
      on_change();
    }
    waker->wait(clock.now(), router->next_deadline());
  }
  router.reset();
}

// ---- In worker 0's.

struct RouterWorkers::Placer final : public stream::Placement {
  Placer(RouterWorkers& to, std::string of) : workers(to), device(std::move(of)) {}
  bool goes_elsewhere(ports::Role role) override { return role == ports::Role::hop && workers.take_turns(device); }
  void move(stream::MovedConnection connection) override { workers.move(device, std::move(connection)); }

  RouterWorkers& workers;
  const std::string device;
};

RouterWorkers::RouterWorkers(const Process& process, const Audit& audit) : state_(std::make_unique<State>(process, audit)) {}

RouterWorkers::~RouterWorkers() { stop(); }

Result<std::unique_ptr<RouterWorkers>> RouterWorkers::create(const Process& process, size_t count,
                                                             const std::optional<Security>& security,
                                                             const std::function<WorkerSettings()>& settings, const Audit& audit) {
  std::unique_ptr<RouterWorkers> all(new RouterWorkers(process, audit));
  for (size_t number = 1; number <= count; ++number) {
    auto waker = host::Waker::create(host::Waits::inside);
    if (!waker) return tl::unexpected(waker.error());
    auto& worker = *all->state_->workers.emplace_back(std::make_unique<Worker>(std::move(*waker), number));
    if (security) {
      auto own = make_security(process.config, security->places, policy::WithoutIdentity::refuse);
      if (!own) return tl::unexpected(own.error());
      worker.security.emplace(std::move(*own));
      worker.trust = process_trust(worker.security, ListenerKind::router);
      worker.trust->ask_nobody();
    }
    WorkerSettings wanted = settings();
    wanted.options.follows = true;
    wanted.options.peer_grants = worker.trust;
    if (audit) {
      const auto tell = [&state = *all->state_](policy::AuditRecord record) {
        state.inbox.post([&state, record = std::move(record)] { state.audit(record); });
      };
      wanted.options.observer = [tell, trust = worker.trust.get()](const routing::Admission& admission) {
        tell(RouterAudit::record_of(admission, trust));
      };
      if (worker.trust) worker.trust->tell_sent_away(tell);
    }
    const auto begin = [&](std::vector<routing::RouterDevice> devices) -> Result<void> {
      auto router = routing::Router::create(wanted.options, std::move(devices), worker.memory, worker.entropy, worker.counters);
      if (!router) return tl::unexpected(router.error());
      worker.router = std::move(*router);
      worker.buffers_count = worker.router->view().buffers_count;
      return {};
    };
    if (auto begun = worker.devices.change(wanted.config, std::move(wanted.devices), begin); !begun)
      return tl::unexpected(begun.error());
    worker.takes = worker.devices.movable();
  }
  return all;
}

std::shared_ptr<stream::Placement> RouterWorkers::placement(const std::string& device) {
  return std::make_shared<Placer>(*this, device);
}

Result<void> RouterWorkers::begin(routing::Router& router) {
  state_->router = &router;
  for (const auto& worker : state_->workers) {
    auto thread = host::begin_thread([&state = *state_, one = worker.get()] {
      redirect_log_of_thread([&state](LogLevel level, std::string_view line) {
        if (state.lines_waiting.fetch_add(1) >= lines_waiting_max) {
          state.lines_waiting.fetch_sub(1);
          return;
        }
        state.inbox.post([&state, level, text = std::string(line)] {
          state.lines_waiting.fetch_sub(1);
          log_line(level, text);
        });
      });
      one->run([&state] { state.inbox.post([] {}); });
      redirect_log_of_thread({});
    });
    if (!thread) return tl::unexpected(thread.error());
    worker->thread = std::move(*thread);
  }
  return {};
}

void RouterWorkers::turn(Instant now) {
  State& state = *state_;
  state.inbox.take();
  if (auto map = state.router->map(); map != state.map) {
    state.map = std::move(map);
    for (const auto& worker : state.workers) {
      worker->inbox.post([one = worker.get(), map = state.map] { one->router->follow(map); });
    }
  }
  if (now < state.next_look) return;
  state.next_look = after(now, answer_interval);
  add_counters();
  for (const auto& worker : state.workers) {
    if (worker->answered.load(std::memory_order_relaxed) != worker->asked) continue;
    worker->asked_at = now;
    worker->inbox.post([one = worker.get(), number = ++worker->asked] {
      one->buffers_used.store(one->router->fragments_in_use(), std::memory_order_relaxed);
      one->answered.store(number, std::memory_order_relaxed);
    });
  }
}

Instant RouterWorkers::next_deadline() const { return state_->next_look; }

bool RouterWorkers::take_turns(const std::string& device) {
  if (state_->router == nullptr || state_->draining) return false;
  return state_->spread.goes_elsewhere(state_->workers.size() + 1, state_->who_takes(device));
}

void RouterWorkers::move(const std::string& device, stream::MovedConnection connection) {
  State& state = *state_;
  const size_t number = state.spread.place(state.workers.size() + 1, state.who_takes(device), state.who_could_take(device));
  Worker& to = *state.workers[number - 1];
  ++to.moved;
  to.inbox.post([&to, device, moved = std::make_shared<stream::MovedConnection>(std::move(connection))] {
    to.adopt(device, std::move(*moved));
  });
}

void RouterWorkers::set_rate(uint64_t bytes_per_s) {
  for (const auto& worker : state_->workers)
    worker->inbox.post([one = worker.get(), bytes_per_s] { one->router->set_rate(bytes_per_s); });
}

void RouterWorkers::reconfigure(const std::optional<TrustNews>& news, const std::function<WorkerSettings()>& settings) {
  for (const auto& worker : state_->workers) {
    worker->is_current = false;  // until it says so
    worker->inbox.post([&state = *state_, one = worker.get(), reload = ++worker->reloads, news,
                        wanted = std::make_shared<WorkerSettings>(settings())] {
      if (news && one->security) take(*one->security, *news);
      one->reconfigure(std::move(*wanted));
      state.inbox.post([one, reload, takes = one->devices.movable(), is_current = one->devices.is_current()] {
        one->takes = takes;
        one->is_current = is_current && reload == one->reloads;
      });
    });
  }
}

void RouterWorkers::drain() {
  state_->draining = true;
  for (const auto& worker : state_->workers) worker->inbox.post([one = worker.get()] { one->router->drain(); });
}

bool RouterWorkers::drained() const {
  return std::all_of(state_->workers.begin(), state_->workers.end(),
                     [](const auto& worker) { return worker->drained.load(std::memory_order_acquire); });
}

void RouterWorkers::stop() {
  for (const auto& worker : state_->workers) {
    if (!worker->thread.joinable()) continue;
    worker->inbox.post([one = worker.get()] { one->stops = true; });
    worker->thread.join();
  }
  state_->inbox.take_all();
  add_counters();
}

size_t RouterWorkers::connections_open() const {
  size_t open = 0;
  for (const auto& worker : state_->workers) open += worker->load();
  return open;
}

WorkersShare RouterWorkers::share() const {
  WorkersShare share{.connections = connections_open()};
  for (const auto& worker : state_->workers) {
    share.buffers_used += worker->buffers_used.load(std::memory_order_relaxed);
    share.buffers_count += worker->buffers_count;
  }
  return share;
}

bool RouterWorkers::are_well(Instant now) const {
  return std::all_of(state_->workers.begin(), state_->workers.end(), [now](const auto& worker) {
    return worker->answered.load(std::memory_order_relaxed) == worker->asked || now - worker->asked_at < unwell_after;
  });
}

void RouterWorkers::add_counters() {
  for (const auto& worker : state_->workers) {
    for (size_t i = 0; i < counters_max; ++i) {
      const uint64_t value = worker->counters.get(static_cast<Counter>(i));
      state_->process.counters.add(static_cast<Counter>(i), value - std::exchange(worker->added[i], value));
    }
  }
}

std::vector<report::WorkerLine> RouterWorkers::lines() const {
  const auto line_of = [](size_t number, size_t open, const auto& count) {
    return report::WorkerLine{number, open, count(Counter::routed_connections), count(Counter::routed_messages),
                              count(Counter::routed_bytes)};
  };
  const auto of_process_alone = [this](Counter counter) {
    uint64_t value = state_->process.counters.get(counter);
    for (const auto& worker : state_->workers) value -= worker->added[static_cast<size_t>(counter)];
    return value;
  };
  const size_t open = state_->router == nullptr ? 0 : state_->router->connections_open();
  std::vector<report::WorkerLine> all{line_of(0, open, of_process_alone)};
  for (const auto& worker : state_->workers) {
    all.push_back(line_of(worker->number, worker->load(), [&](Counter counter) { return worker->counters.get(counter); }));
  }
  return all;
}

}  // namespace ccixfer::program

#include "core/facade/threaded_endpoint.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "core/base/ring_buffer.h"
#include "core/host/clock.h"
#include "core/host/threads.h"

namespace ccixfer::facade {

using cci::Connection;
using cci::Event;

struct Core {
  Core(std::unique_ptr<cci::Endpoint> e, int wake_fd) : endpoint(std::move(e)), wake_handle(wake_fd) {}
  ~Core() { ::close(wake_handle); }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  struct Waiter {  // a blocking call, and how what it waits for ended
    bool ended = false;
    ports::OperationResult ending;
    Connection connection;
    std::string reason;
  };

  std::mutex mutex;
  std::condition_variable events_came;
  std::condition_variable progress_made;
  std::unique_ptr<cci::Endpoint> endpoint;  // null: stopped
  RingBuffer<Event> events;
  std::unordered_map<uint64_t, Waiter> waiters;
  uint64_t next_waiter = 1;
  uint32_t waiting = 0;  // calls inside a wait
  bool polling = false;  // the progress thread waits
  bool stopping = false;
  bool stopped = false;  // the endpoint is gone: nothing touches memory of callers any more
  std::thread thread;

  void run();
  void file(Event event);
  void wake() const {  // with the lock held
    const uint64_t one = 1;
    if (polling) static_cast<void>(!::write(wake_handle, &one, sizeof one));
  }
  // With the lock held. false: it did not come within `timeout`, or the facade has stopped.
  template <typename Done>
  bool wait(std::unique_lock<std::mutex>& lock, std::condition_variable& on, Duration timeout, const Done& done) {
    ++waiting;
    bool good = false;
    const auto over = [&] { return stopped || (good = done()); };
    if (timeout >= std::chrono::hours(24 * 365)) {  // no clock of the library can count to `forever`
      on.wait(lock, over);
    } else {
      on.wait_for(lock, timeout, over);
    }
    if (--waiting == 0 && stopped) progress_made.notify_all();
    return good;
  }
  // Waits for what was begun under this number; nullopt: not within `timeout`, or stopped. Then its end is forgotten.
  std::optional<Waiter> wait_for(std::unique_lock<std::mutex>& lock, uint64_t number, Duration timeout) {
    waiters[number];
    wake();
    const bool ended = wait(lock, progress_made, timeout, [&] { return waiters.at(number).ended; });
    std::optional<Waiter> end;
    if (ended) end = std::move(waiters.at(number));
    waiters.erase(number);
    return end;
  }

  int wake_handle;
  host::SystemClock clock;
};

// [The progress thread]
void Core::run() {
  std::unique_lock<std::mutex> lock(mutex);
  while (!stopping) {
    endpoint->turn(clock.now());
    while (std::optional<Event> event = endpoint->get_event()) file(std::move(*event));
    if (waiting > 0) progress_made.notify_all();  // an end, or room for what found none
    CHECK(endpoint->arm_os_handle() == Status::success);
    const Instant deadline = endpoint->next_deadline();
    const int handle = endpoint->os_handle();
    polling = true;
    lock.unlock();
    pollfd handles[2] = {{handle, POLLIN, 0}, {wake_handle, POLLIN, 0}};
    timespec limit{};
    if (deadline != never) {
      const Duration left = std::max(deadline - clock.now(), Duration::zero());
      limit = {static_cast<time_t>(left.count() / 1'000'000'000), static_cast<long>(left.count() % 1'000'000'000)};
    }
    static_cast<void>(::ppoll(handles, 2, deadline == never ? nullptr : &limit, nullptr));
    uint64_t count = 0;
    if (handles[1].revents != 0) static_cast<void>(!::read(wake_handle, &count, sizeof count));
    lock.lock();
    polling = false;
  }
}

void Core::file(Event event) {
  if (event.waiter == 0) {
    events.push_back(std::move(event));
    events_came.notify_one();
    return;
  }
  const auto found = waiters.find(event.waiter);
  if (found == waiters.end()) return;  // a send that has given up: who dials or moves memory waits to the end
  found->second = {true, event.ending(), event.connection, std::move(event.reason)};
}

// --- Events ---

ThreadedEvent& ThreadedEvent::operator=(ThreadedEvent&& other) noexcept {
  if (this == &other) return *this;
  release();
  core_ = std::move(other.core_);
  event_ = std::move(other.event_);
  data_ = std::exchange(other.data_, {});
  return *this;
}

void ThreadedEvent::release() {
  const std::shared_ptr<Core> core = std::move(core_);
  core_.reset();
  if (core == nullptr) return;
  const std::lock_guard<std::mutex> lock(core->mutex);
  event_ = Event();
  data_ = {};
  core->wake();  // a buffer is free, or a request to be rejected
}

// --- The endpoint ---

Result<std::unique_ptr<ThreadedEndpoint>> ThreadedEndpoint::start(std::unique_ptr<cci::Endpoint> endpoint) {
  CHECK(endpoint != nullptr && endpoint->os_handle() >= 0);
  const int handle = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (handle < 0) return fail(ErrorKind::network, "the progress thread gets no descriptor");
  auto core = std::make_shared<Core>(std::move(endpoint), handle);
  auto thread = host::begin_thread([pointer = core.get()] { pointer->run(); });
  if (!thread) return tl::unexpected(thread.error());
  core->thread = std::move(*thread);
  return std::unique_ptr<ThreadedEndpoint>(new ThreadedEndpoint(std::move(core)));
}

ThreadedEndpoint::~ThreadedEndpoint() {
  {
    const std::lock_guard<std::mutex> lock(core_->mutex);
    core_->stopping = true;
    core_->wake();
  }
  core_->thread.join();
  std::unique_lock<std::mutex> lock(core_->mutex);
  core_->events.clear();
  core_->endpoint.reset();
  core_->stopped = true;
  core_->events_came.notify_all();
  core_->progress_made.notify_all();
  core_->progress_made.wait(lock, [&] { return core_->waiting == 0; });
}

std::string ThreadedEndpoint::uri() const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return core_->endpoint->uri();
}

uint32_t ThreadedEndpoint::calls_waiting() const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return core_->waiting;
}

uint32_t ThreadedEndpoint::max_send_bytes(Connection connection) const {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return core_->endpoint->max_send_bytes(connection);
}

ports::Handle ThreadedEndpoint::register_region(MutableBytes memory, uint8_t access) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return core_->endpoint->memory().register_region(memory, access);
}

Status ThreadedEndpoint::deregister_region(const ports::Handle& handle) {
  std::unique_lock<std::mutex> lock(core_->mutex);
  const Status status = core_->endpoint->memory().deregister_region(handle);
  if (status != Status::busy) return status;
  core_->wake();
  const auto free = [&] { return core_->endpoint == nullptr || !core_->endpoint->memory().in_use(handle); };
  static_cast<void>(core_->wait(lock, core_->progress_made, forever, free));
  return Status::success;
}

Result<Connection> ThreadedEndpoint::connect(std::string_view uri, const cci::ConnectOptions& options) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const Result<Connection> dialled = core_->endpoint->connect(uri, options);
  core_->wake();
  return dialled;
}

Connected ThreadedEndpoint::connect_blocking(std::string_view uri, const cci::ConnectOptions& options) {
  std::unique_lock<std::mutex> lock(core_->mutex);
  cci::ConnectOptions inner = options;
  inner.waiter = core_->next_waiter++;
  const Result<Connection> dialled = core_->endpoint->connect(uri, inner);
  if (!dialled) return {Status::invalid, {}, dialled.error().message};
  const auto end = core_->wait_for(lock, inner.waiter, forever);
  if (!end) return {Status::device_dead, {}, "the endpoint was destroyed"};
  return {end->ending.status, end->connection, end->reason};
}

Status ThreadedEndpoint::accept(ThreadedEvent& request, uint64_t context) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (request.core_ != core_) return Status::invalid;
  const Status status = core_->endpoint->accept(request.event_, context);
  core_->wake();
  return status;
}

Status ThreadedEndpoint::reject(ThreadedEvent& request, std::string_view reason) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  if (request.core_ != core_) return Status::invalid;
  const Status status = core_->endpoint->reject(request.event_, reason);
  core_->wake();
  return status;
}

void ThreadedEndpoint::disconnect(Connection connection) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  core_->endpoint->disconnect(connection);
  core_->wake();
}

Status ThreadedEndpoint::set_send_timeout(Connection connection, Duration timeout) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  return core_->endpoint->set_send_timeout(connection, timeout);
}

Status ThreadedEndpoint::set_keepalive(Connection connection, Duration timeout) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const Status status = core_->endpoint->set_keepalive(connection, timeout);
  core_->wake();
  return status;
}

Status ThreadedEndpoint::send(Connection connection, Bytes message, const cci::SendOptions& options) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const Status status = core_->endpoint->send(connection, {&message, 1}, options);
  core_->wake();
  return status;
}

Status ThreadedEndpoint::send_blocking(Connection connection, Bytes message, Duration timeout) {
  std::unique_lock<std::mutex> lock(core_->mutex);
  const host::SystemClock clock;
  const Instant end = after(clock.now(), timeout);
  const auto left = [&] { return end == never ? forever : std::max(end - clock.now(), Duration::zero()); };
  cci::SendOptions inner;
  inner.waiter = core_->next_waiter++;
  Status status = Status::no_buffers;
  const auto issued = [&] {
    status = core_->endpoint->send(connection, {&message, 1}, inner);
    return status != Status::no_buffers;
  };
  const auto late = [&] { return core_->stopped ? Status::device_dead : Status::timed_out; };
  if (!core_->wait(lock, core_->progress_made, left(), issued)) return late();
  if (status != Status::success) return status;
  const auto how = core_->wait_for(lock, inner.waiter, left());
  return how ? how->ending.status : late();
}

Status ThreadedEndpoint::rma(Connection connection, const cci::RmaOptions& options) {
  const std::lock_guard<std::mutex> lock(core_->mutex);
  const Status status = core_->endpoint->rma(connection, options);
  core_->wake();
  return status;
}

ports::OperationResult ThreadedEndpoint::rma_blocking(Connection connection, const cci::RmaOptions& options) {
  std::unique_lock<std::mutex> lock(core_->mutex);
  cci::RmaOptions inner = options;
  inner.waiter = core_->next_waiter++;
  inner.silent = inner.local_completion = false;
  Status status = Status::no_buffers;
  const auto issued = [&] {
    status = core_->endpoint->rma(connection, inner);
    return status != Status::no_buffers;
  };
  if (!core_->wait(lock, core_->progress_made, forever, issued)) return Status::device_dead;
  if (status != Status::success) return status;
  const auto how = core_->wait_for(lock, inner.waiter, forever);
  return how ? how->ending : ports::OperationResult(Status::device_dead);
}

std::optional<ThreadedEvent> ThreadedEndpoint::get_event(Duration timeout) {
  std::unique_lock<std::mutex> lock(core_->mutex);
  if (core_->events.empty() &&
      (timeout == Duration::zero() || !core_->wait(lock, core_->events_came, timeout, [&] { return !core_->events.empty(); }))) {
    return std::nullopt;
  }
  std::optional<ThreadedEvent> event(std::in_place);
  event->event_ = std::move(core_->events.front());
  core_->events.drop_front();
  event->data_ = event->event_.data();
  event->core_ = core_;
  return event;
}

}  // namespace ccixfer::facade

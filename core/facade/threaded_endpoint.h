// An endpoint for any number of threads, with BLOCKING calls. One thread of its own, the progress thread, waits for the endpoint's
// OS handle, turns it and files its events; it makes all progress, the target's side of RMA included, also while no other thread
// makes a call (CCI §III.C allows such a thread). Callers never turn the endpoint.
// Threads: every call from any thread, events may be destroyed on any thread, also after the facade. One mutex is held for the
// length of a call or of a turn, never while anybody waits. Contexts are the caller's, as without the facade.
// Blocking calls: give the status and no event (CCI §IV.C, BLOCKING). A send or a connect that does not end within its timeout
// answers timed_out: what it began goes on, and its end is forgotten; an RMA uses the caller's memory, so it is waited for without
// limit (a dead peer's connection ends it). Destroying the facade ends everything; calls that still wait then answer device_dead,
// and are let out before the destructor returns. Source: CCI §III.C, §IV.E (BLOCKING); core/README.md 'facade: many threads'.
#pragma once
#include <memory>
#include <optional>

#include "core/cci/endpoint.h"

namespace ccixfer::facade {

struct Core;

// An event of the endpoint, and the lock that its buffer needs. Move-only.
class ThreadedEvent {
 public:
  ThreadedEvent() = default;
  ThreadedEvent(ThreadedEvent&& other) noexcept { *this = std::move(other); }
  ThreadedEvent& operator=(ThreadedEvent&& other) noexcept;
  ~ThreadedEvent() { release(); }
  [[nodiscard]] cci::EventType type() const { return event_.type; }
  [[nodiscard]] Status status() const { return event_.status; }
  [[nodiscard]] cci::Connection connection() const { return event_.connection; }
  [[nodiscard]] uint64_t context() const { return event_.context; }
  [[nodiscard]] ports::OperationResult ending() const { return event_.ending(); }
  [[nodiscard]] uint64_t mailbox() const { return event_.mailbox; }
  [[nodiscard]] const std::string& reason() const { return event_.reason; }
  [[nodiscard]] Bytes data() const { return data_; }  // valid as long as the event is held

 private:
  friend class ThreadedEndpoint;
  void release();
  std::shared_ptr<Core> core_;
  cci::Event event_;
  Bytes data_;
};

struct Connected {
  Status status = Status::error;
  cci::Connection connection;  // unless success: none
  std::string reason;
};

class ThreadedEndpoint {
 public:
  // The endpoint has an OS handle. Errors: network: the progress thread gets no descriptor of its own. file_io:
  // there is no thread for it.
  [[nodiscard]] static Result<std::unique_ptr<ThreadedEndpoint>> start(std::unique_ptr<cci::Endpoint> endpoint);
  ~ThreadedEndpoint();
  ThreadedEndpoint(const ThreadedEndpoint&) = delete;
  ThreadedEndpoint& operator=(const ThreadedEndpoint&) = delete;

  [[nodiscard]] std::string uri() const;
  [[nodiscard]] uint32_t max_send_bytes(cci::Connection connection) const;
  // Registered memory is read and written by the progress thread.
  [[nodiscard]] ports::Handle register_region(MutableBytes memory, uint8_t access);
  Status deregister_region(const ports::Handle& handle);  // waits until the memory is in use no more: see cci::MemoryTable

  [[nodiscard]] Result<cci::Connection> connect(std::string_view uri, const cci::ConnectOptions& options);
  [[nodiscard]] Connected connect_blocking(std::string_view uri,
                                           const cci::ConnectOptions& options);  // its timeout is options.timeout
  [[nodiscard]] Status accept(ThreadedEvent& request, uint64_t context);
  [[nodiscard]] Status reject(ThreadedEvent& request, std::string_view reason = {});
  void disconnect(cci::Connection connection);
  Status set_send_timeout(cci::Connection connection, Duration timeout);
  Status set_keepalive(cci::Connection connection, Duration timeout);

  [[nodiscard]] Status send(cci::Connection connection, Bytes message, const cci::SendOptions& options);
  // Waits for room, too, when so many operations are in flight (no_buffers).
  [[nodiscard]] Status send_blocking(cci::Connection connection, Bytes message, Duration timeout = forever);
  [[nodiscard]] Status rma(cci::Connection connection, const cci::RmaOptions& options);
  [[nodiscard]] ports::OperationResult rma_blocking(cci::Connection connection, const cci::RmaOptions& options);

  // The oldest event; any thread may take it. Waits for one at most `timeout`; zero: does not wait.
  [[nodiscard]] std::optional<ThreadedEvent> get_event(Duration timeout = Duration::zero());

  [[nodiscard]] uint32_t calls_waiting() const;  // of other threads, in this moment

 private:
  explicit ThreadedEndpoint(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  std::shared_ptr<Core> core_;
};

}  // namespace ccixfer::facade

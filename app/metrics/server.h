// Answers who asks for metrics and for the status page over HTTP, in a thread of its own, so that nobody who asks can slow a
// transfer down. Bounds: connections_max at a time (who comes then takes the place of whoever has waited longest without an
// answer), listeners_max of them for events, request_bytes_max a request, no body, request_time_max from its first moment to the
// end of its answer, or for an event; handshakes_per_s_max handshakes of TLS a second. What is no request, or not for what is here,
// is answered so and hung up on. An address that others than this host reach takes a guard. Errors: listen: usage (no such place,
// or no guard), network (in use).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "app/metrics/board.h"
#include "app/metrics/guard.h"
#include "app/metrics/http.h"
#include "app/metrics/place.h"
#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::metrics {

inline constexpr size_t connections_max = 64;
inline constexpr size_t listeners_max = 16;

class Server {
 public:
  struct Options {
    std::function<std::string(Format)> metrics;  // called in the thread
    Board* board = nullptr;                      // of the status page, outlives the server; nullptr: there is none
    std::optional<Guard> guard = {};             // none: anybody is answered, without TLS
    Refusals* refused = nullptr;                 // outlives the server; may be
  };
  // `place`: "127.0.0.1:9464", "[::1]:0", or "unix:/run/ccixfer/metrics.sock" (0660; one that nobody answers at is replaced).
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(const std::string& place, Options options);
  ~Server();  // waits for the thread; the Unix socket goes, if it is ours still
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Of one that has a guard: for whoever comes from now on. Any thread.
  void renew(Guard guard);
  [[nodiscard]] bool has_guard() const { return guard_ != nullptr; }
  // Answers from now on: after the process was confined, since the thread has its maker's rights. file_io: no thread can be made.
  [[nodiscard]] Result<void> begin();
  [[nodiscard]] const std::string& place() const { return place_; }  // with the port that it got

 private:
  class Run;
  Server(host::Descriptor listener, host::Descriptor stop, std::string place, Options options, bool checks_host);
  [[nodiscard]] std::shared_ptr<const Guard> guard() const;
  const host::Descriptor listener_;
  const host::Descriptor stop_;
  const std::string place_;
  const std::optional<SocketFile> file_;  // none: it is no Unix socket
  const Site site_;
  Board* const board_;
  mutable std::mutex guard_lock_;       // held to copy it: with each client that comes, and by renew()
  std::shared_ptr<const Guard> guard_;  // nullptr for ever: there is none
  std::thread thread_;
};

}  // namespace ccixfer::metrics

// Answers who asks for metrics and for the status page over HTTP, in a thread of its own, so that nobody who asks can slow a
// transfer down. Bounds: connections_max at a time (who comes then is hung up on), listeners_max of them for events,
// request_bytes_max a request, no body, request_time_max from its first moment to the end of its answer, or for an event. What is
// no request, or not for what is here, is answered so and hung up on. On this host only: an address of the loopback, or a Unix
// socket. Errors: listen: usage (no such place), network (in use).
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "app/metrics/board.h"
#include "app/metrics/http.h"
#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::metrics {

inline constexpr size_t connections_max = 64;
inline constexpr size_t listeners_max = 16;

class Server {
 public:
  // `place`: "127.0.0.1:9464", "[::1]:0", or "unix:/run/ccixfer/metrics.sock" (0660; one that nobody answers at is replaced).
  // `metrics` is called in the thread. `board`: of the status page, outlives the server; nullptr: there is none.
  [[nodiscard]] static Result<std::unique_ptr<Server>> listen(const std::string& place, std::function<std::string(Format)> metrics,
                                                              Board* board = nullptr);
  ~Server();  // waits for the thread; the Unix socket goes, if that is still allowed
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void begin();  // answers from now on: after the process was confined, since the thread has its maker's rights
  [[nodiscard]] const std::string& place() const { return place_; }  // with the port that it got

 private:
  class Run;
  Server(host::Descriptor listener, host::Descriptor stop, std::string place, Site site, Board* board);
  const host::Descriptor listener_;
  const host::Descriptor stop_;
  const std::string place_;
  const Site site_;
  Board* const board_;
  std::thread thread_;
};

}  // namespace ccixfer::metrics

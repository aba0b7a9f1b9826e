// One HTTP/1.1 connection as bytes in and bytes out (Boost.Beast's parser): no socket, no clock. Single-threaded. What it cannot
// answer by itself (Next::status, Next::events) its owner answers; until then no more bytes are to be given to it. It answers one
// request at a time, so that no more than one answer is held for a client that asks on and does not read.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/metrics/page.h"
#include "app/metrics/refusals.h"
#include "app/metrics/token.h"

namespace ccixfer::metrics {

inline constexpr size_t request_bytes_max = 8192;

// What there is to be asked for.
struct Site {
  std::function<std::string(Format)> metrics;
  bool has_status = false;  // the status page, /status.json and /events
  // Of a listener that browsers reach: what the status page shows is for who asks this host by a name of its own. Else the page of
  // somebody else, whose name leads here for a moment (DNS rebinding), could read it.
  bool checks_host = false;
  Refusals* refused = nullptr;  // may be
};

enum class Next : uint8_t {
  more,    // bytes: there may be another request
  end,     // of the connection, once everything is sent
  status,  // answer_status()
  events,  // begin_events(), or refuse_busy()
};

class HttpConnection {
 public:
  // Both outlive it. `token`: nothing is given to who does not say it; nullptr: to anybody.
  explicit HttpConnection(const Site& site, const Token* token = nullptr);
  ~HttpConnection();
  HttpConnection(HttpConnection&&) noexcept;
  HttpConnection& operator=(HttpConnection&&) noexcept;

  // What came. What is to be sent is behind what was there.
  [[nodiscard]] Next received(std::string_view bytes, std::string& to_send);
  // There may be another request in what came already: once the last answer is sent, received() without bytes goes on with it.
  [[nodiscard]] bool has_waiting() const;
  [[nodiscard]] Next answer_status(std::string_view json, std::string& to_send);
  void begin_events(std::string& to_send);         // what follows is of event_of(), until somebody hangs up
  void refuse_busy(std::string& to_send);          // and the connection ends
  [[nodiscard]] bool is_between_requests() const;  // nothing of a request has come

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// `json` in one line, as a server-sent event. Source: HTML, 9.2.
[[nodiscard]] std::string event_of(std::string_view json);

}  // namespace ccixfer::metrics

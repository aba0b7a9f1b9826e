// One HTTP/1.1 connection as bytes in and bytes out (Boost.Beast's parser): no socket, no clock. Single-threaded.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "app/metrics/page.h"

namespace ccixfer::metrics {

class HttpConnection {
 public:
  explicit HttpConnection(const std::function<std::string(Format)>& text);
  ~HttpConnection();
  HttpConnection(HttpConnection&&) noexcept;
  HttpConnection& operator=(HttpConnection&&) noexcept;

  // What came. What is to be sent is behind what was there. False: the connection ends when that is sent.
  [[nodiscard]] bool received(std::string_view bytes, std::string& to_send);
  [[nodiscard]] bool is_between_requests() const;  // nothing of a request has come

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::metrics

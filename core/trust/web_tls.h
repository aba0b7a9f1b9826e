// TLS of a small web server, as bytes in and bytes out (memory BIOs): the certificate of the host, TLS 1.3 only, no resumption, no
// tickets, no early data. A client shows no certificate: who it is has to be said in what it asks. Single-threaded each; the
// identity is immutable and shared freely. Errors: from_pem: usage, as those of Identity. A client's bytes never do more than end
// the connection, with an alert for the client. Bounds: web_hello_bytes_max from a client before its handshake is done.
// Source: RFC 8446.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ccixfer::trust {

inline constexpr size_t web_hello_bytes_max = 32u << 10;

class WebIdentity {
 public:
  // `certificate_pem`: with the chain behind it. `..._what` name the files in messages.
  [[nodiscard]] static Result<WebIdentity> from_pem(std::string_view certificate_pem, std::string_view certificate_what,
                                                    std::string_view key_pem, std::string_view key_what);
  struct Impl;
  [[nodiscard]] const Impl& impl() const { return *impl_; }

 private:
  explicit WebIdentity(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

class WebTls {
 public:
  enum class State : uint8_t { handshake, open, over };

  explicit WebTls(const WebIdentity& identity);  // may go before it
  ~WebTls();
  WebTls(WebTls&&) noexcept;
  WebTls& operator=(WebTls&&) noexcept;

  // What the client sent, in any pieces. What it says is added to `plain`, and what is to be sent to `to_send`, both also when it
  // is over: then nothing more is to be given to it.
  [[nodiscard]] State received(std::string_view bytes, std::string& plain, std::string& to_send);
  void say(std::string_view plain, std::string& to_send);  // once it is open; nothing when it is over
  void end(std::string& to_send);                          // tells the client that nothing more comes

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::trust

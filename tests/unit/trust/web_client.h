// A client of a web server's TLS, made of OpenSSL alone, as bytes in and bytes out.
#pragma once
#include <string>

#include "core/trust/openssl_objects.h"

namespace ccixfer::trust {

class WebClient {
 public:
  explicit WebClient(int version = TLS1_3_VERSION) : context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_NONE, nullptr);
    ssl_.reset(SSL_new(context_.get()));
    in_ = BIO_new(BIO_s_mem());
    out_ = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in_, -1);
    SSL_set_bio(ssl_.get(), in_, out_);
    SSL_set_connect_state(ssl_.get());
  }
  // What goes to the server; what it said is added to heard().
  std::string step(const std::string& from_server) {
    if (!from_server.empty()) BIO_write(in_, from_server.data(), static_cast<int>(from_server.size()));
    const CleanErrors clean;
    if (!done()) static_cast<void>(SSL_do_handshake(ssl_.get()));
    char part[4096];
    for (int got = 0; done() && (got = SSL_read(ssl_.get(), part, sizeof part)) > 0;) heard_.append(part, static_cast<size_t>(got));
    return output();
  }
  std::string say(const std::string& text) {
    const CleanErrors clean;
    static_cast<void>(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())));
    return output();
  }
  std::string end() {
    const CleanErrors clean;
    static_cast<void>(SSL_shutdown(ssl_.get()));
    return output();
  }
  [[nodiscard]] bool done() const { return SSL_is_init_finished(ssl_.get()) == 1; }
  [[nodiscard]] bool was_told_the_end() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  [[nodiscard]] const std::string& heard() const { return heard_; }
  [[nodiscard]] SSL* ssl() { return ssl_.get(); }

 private:
  std::string output() {
    char* text = nullptr;
    const long length = BIO_get_mem_data(out_, &text);
    std::string bytes(text, static_cast<size_t>(length));
    static_cast<void>(BIO_reset(out_));
    return bytes;
  }
  SslCtxPtr context_;
  SslPtr ssl_;
  BIO *in_ = nullptr, *out_ = nullptr;
  std::string heard_;
};

}  // namespace ccixfer::trust

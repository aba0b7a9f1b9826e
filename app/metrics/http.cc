#include "app/metrics/http.h"

#include <boost/beast/http.hpp>
#include <optional>

#include "app/metrics/server.h"

namespace ccixfer::metrics {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::empty_body>;

std::string answer(http::status status, bool stays, std::string_view type, const std::string& body, bool with_body = true) {
  std::string text = "HTTP/1.1 " + std::to_string(static_cast<unsigned>(status)) + " " +
                     std::string(http::obsolete_reason(status)) + "\r\nContent-Type: " + std::string(type) +
                     "\r\nContent-Length: " + std::to_string(body.size()) +
                     "\r\nCache-Control: no-store\r\nConnection: " + (stays ? "keep-alive" : "close") + "\r\n\r\n";
  if (with_body) text += body;
  return text;
}

std::string refusal(http::status status, const char* words) { return answer(status, false, "text/plain; charset=utf-8", words); }

}  // namespace

struct HttpConnection::Impl {
  explicit Impl(const std::function<std::string(Format)>& a_text) : text(a_text) { begin(); }

  void begin() {
    parser.emplace();
    parser->header_limit(request_bytes_max);
    parser->body_limit(uint64_t{0});
    parser->eager(false);
  }

  // The answer to a request that is complete. False: it is the last one.
  bool serve(std::string& to_send) {
    const auto& request = parser->get();
    const bool stays = request.keep_alive();
    const bool is_head = request.method() == http::verb::head;
    if (!is_head && request.method() != http::verb::get) {
      to_send += refusal(http::status::method_not_allowed, "only GET and HEAD\n");
      return false;
    }
    const std::string_view target(request.target().data(), request.target().size());
    const std::string_view path = target.substr(0, target.find('?'));
    if (path != "/metrics" && path != "/") {
      to_send += refusal(http::status::not_found, "only /metrics is here\n");
      return false;
    }
    const auto accept = request[http::field::accept];
    const Format format = format_of({accept.data(), accept.size()});
    to_send += path == "/" ? answer(http::status::ok, stays, "text/plain; charset=utf-8", "ccixfer: see /metrics\n", !is_head)
                           : answer(http::status::ok, stays, content_type(format), text(format), !is_head);
    return stays;
  }

  const std::function<std::string(Format)>& text;
  std::optional<Parser> parser;
  std::string waiting;  // bytes that the parser has not taken
};

HttpConnection::HttpConnection(const std::function<std::string(Format)>& text) : impl_(std::make_unique<Impl>(text)) {}
HttpConnection::~HttpConnection() = default;
HttpConnection::HttpConnection(HttpConnection&&) noexcept = default;
HttpConnection& HttpConnection::operator=(HttpConnection&&) noexcept = default;

bool HttpConnection::is_between_requests() const { return impl_->waiting.empty() && !impl_->parser->got_some(); }

bool HttpConnection::received(std::string_view bytes, std::string& to_send) {
  Impl& impl = *impl_;
  impl.waiting += bytes;
  while (!impl.waiting.empty()) {
    boost::beast::error_code error;
    const size_t taken = impl.parser->put(boost::asio::buffer(impl.waiting), error);
    impl.waiting.erase(0, taken);
    if (error == http::error::need_more) {
      if (impl.waiting.size() <= request_bytes_max) return true;
      to_send += refusal(http::status::request_header_fields_too_large, "a request is shorter\n");
      return false;
    }
    if (error == http::error::header_limit) {
      to_send += refusal(http::status::request_header_fields_too_large, "a request is shorter\n");
      return false;
    }
    if (error == http::error::body_limit) {
      to_send += refusal(http::status::payload_too_large, "a request has no body here\n");
      return false;
    }
    if (error) {
      to_send += refusal(http::status::bad_request, "this is no request of HTTP\n");
      return false;
    }
    if (!impl.parser->is_header_done()) continue;
    // A body is neither read nor waited for.
    const bool has_body = impl.parser->chunked() || impl.parser->content_length().value_or(0) > 0;
    if (has_body) {
      to_send += refusal(http::status::payload_too_large, "a request has no body here\n");
      return false;
    }
    if (!impl.serve(to_send)) return false;
    impl.begin();
  }
  return true;
}

}  // namespace ccixfer::metrics

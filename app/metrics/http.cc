#include "app/metrics/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http.hpp>
#include <optional>

#include "app/metrics/own_names.h"
#include "app/metrics/status_page.h"

namespace ccixfer::metrics {
namespace {

namespace http = boost::beast::http;
using Parser = http::request_parser<http::empty_body>;

constexpr std::string_view plain_text = "text/plain; charset=utf-8";

// Nothing is kept by whoever reads it, guessed at, or shown within a page of somebody else.
std::string head_of(http::status status, std::string_view type) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\nReferrer-Policy: no-referrer\r\n",
      static_cast<unsigned>(status), std::string(http::obsolete_reason(status)), type);
}

struct Body {
  std::string_view type, text;
  std::string_view more_headers = {};
};

std::string answer(http::status status, bool stays, const Body& body, bool with_body = true) {
  std::string text = head_of(status, body.type);
  fmt::format_to(std::back_inserter(text), "Content-Length: {}\r\nConnection: {}\r\n{}\r\n", body.text.size(),
                 stays ? "keep-alive" : "close", body.more_headers);
  if (with_body) text += body.text;
  return text;
}

std::string refusal(http::status status, std::string_view words, std::string_view more_headers = {}) {
  return answer(status, false, {plain_text, words, more_headers});
}

std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

struct HttpConnection::Impl {
  Impl(const Site& a_site, const Token* a_token) : site(a_site), token(a_token) { begin(); }

  void begin() {
    parser.emplace();
    parser->header_limit(request_bytes_max);
    parser->body_limit(uint64_t{0});
    parser->eager(false);
  }

  // The answer to a request that is complete.
  Next serve(std::string& to_send) {
    const auto& request = parser->get();
    stays = request.keep_alive();
    is_head = request.method() == http::verb::head;
    const auto refuse = [&](http::status status, std::string_view words, std::string_view more_headers = {}) {
      to_send += refusal(status, words, more_headers);
      return Next::end;
    };
    if (token != nullptr && !token->is_in(view(request[http::field::authorization]))) return refuse_stranger(to_send);
    if (!is_head && request.method() != http::verb::get)
      return refuse(http::status::method_not_allowed, "only GET and HEAD\n", "Allow: GET, HEAD\r\n");
    const std::string_view target = view(request.target());
    const std::string_view path = target.substr(0, target.find('?'));
    if (path == "/metrics") {
      const Format format = format_of(view(request[http::field::accept]));
      return give(to_send, {content_type(format), site.metrics(format)});
    }
    if (path == "/" && !site.has_status) return give(to_send, {plain_text, "ccixfer: see /metrics\n"});
    const bool is_page = path == "/";
    if (!is_page && (!site.has_status || (path != "/status.json" && path != "/events")))
      return refuse(http::status::not_found, "only /, /status.json, /events and /metrics are here\n");
    if (site.checks_host && !is_own_name(view(request[http::field::host])))
      return refuse(http::status::misdirected_request, "ask for this by an address of this host: localhost, 127.0.0.1 or [::1]\n");
    if (is_page) return give(to_send, {"text/html; charset=utf-8", status_page(), status_page_policy()});
    // A page of somebody else may lead here, and may not read here.
    const std::string_view asked_from = view(request["Sec-Fetch-Site"]);
    if (!asked_from.empty() && asked_from != "same-origin" && asked_from != "none")
      return refuse(http::status::forbidden, "not for pages of others\n");
    if (path == "/status.json") return Next::status;
    return is_head ? give(to_send, {"text/event-stream", ""}) : Next::events;
  }

  // A browser asks for a name and a password then, and the password is the token.
  Next refuse_stranger(std::string& to_send) {
    const bool said_one = parser->get().count(http::field::authorization) > 0;
    if (site.refused != nullptr) site.refused->add(said_one ? Refused::wrong_token : Refused::no_token);
    to_send += answer(http::status::unauthorized, false,
                      {plain_text, "give the token of this place: as a bearer, or as the password of any name\n",
                       "WWW-Authenticate: Bearer realm=\"ccixfer\"\r\nWWW-Authenticate: Basic realm=\"ccixfer\"\r\n"},
                      !is_head);
    return Next::end;
  }

  Next give(std::string& to_send, const Body& body) {
    to_send += answer(http::status::ok, stays, body, !is_head);
    return stays ? Next::more : Next::end;
  }

  // Of what has come: until a request is answered or has to be by the owner, or more bytes are needed.
  Next go_on(std::string& to_send) {
    has_waiting = false;
    while (!waiting.empty()) {
      boost::beast::error_code error;
      const size_t taken = parser->put(boost::asio::buffer(waiting), error);
      waiting.erase(0, taken);
      const bool waits = error == http::error::need_more;
      const bool too_long = error == http::error::header_limit || (waits && waiting.size() > request_bytes_max);
      if (waits && !too_long) return Next::more;
      if (const std::string words = refusal_of(error, too_long); !words.empty()) {
        to_send += words;
        return Next::end;
      }
      if (!parser->is_header_done()) continue;
      // A body is neither read nor waited for.
      const bool has_body = parser->chunked() || parser->content_length().value_or(0) > 0;
      if (has_body) {
        to_send += refusal(http::status::payload_too_large, "a request has no body here\n");
        return Next::end;
      }
      const Next next = serve(to_send);
      begin();
      has_waiting = !waiting.empty();
      return next;
    }
    return Next::more;
  }

  [[nodiscard]] static std::string refusal_of(boost::beast::error_code error, bool too_long) {
    if (too_long) return refusal(http::status::request_header_fields_too_large, "a request is shorter\n");
    if (error == http::error::body_limit) return refusal(http::status::payload_too_large, "a request has no body here\n");
    return error ? refusal(http::status::bad_request, "this is no request of HTTP\n") : std::string();
  }

  const Site& site;
  const Token* token;
  std::optional<Parser> parser;
  std::string waiting;                  // bytes that the parser has not taken
  bool has_waiting = false;             // and that it has not seen since the last request
  bool stays = false, is_head = false;  // as the last request wants it
};

HttpConnection::HttpConnection(const Site& site, const Token* token) : impl_(std::make_unique<Impl>(site, token)) {}
HttpConnection::~HttpConnection() = default;
HttpConnection::HttpConnection(HttpConnection&&) noexcept = default;
HttpConnection& HttpConnection::operator=(HttpConnection&&) noexcept = default;

bool HttpConnection::is_between_requests() const { return impl_->waiting.empty() && !impl_->parser->got_some(); }

bool HttpConnection::has_waiting() const { return impl_->has_waiting; }

Next HttpConnection::received(std::string_view bytes, std::string& to_send) {
  impl_->waiting += bytes;
  return impl_->go_on(to_send);
}

Next HttpConnection::answer_status(std::string_view json, std::string& to_send) {
  return impl_->give(to_send, {"application/json", json});
}

void HttpConnection::begin_events(std::string& to_send) {
  to_send += head_of(http::status::ok, "text/event-stream") + "Connection: close\r\n\r\nretry: 2000\n\n";
}

void HttpConnection::refuse_busy(std::string& to_send) {
  to_send += answer(http::status::service_unavailable, false,
                    {plain_text, "as many as may listen do so: close another page\n", "Retry-After: 10\r\n"});
}

std::string event_of(std::string_view json) { return fmt::format("data: {}\n\n", json); }

}  // namespace ccixfer::metrics

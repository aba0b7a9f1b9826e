#include "app/metrics/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <vector>

#include "app/metrics/http.h"
#include "core/base/units.h"

namespace ccixfer::metrics {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::string_view unix_prefix = "unix:";
constexpr std::chrono::milliseconds accept_pause{100};

struct Place {
  sockaddr_storage address{};
  socklen_t size = 0;
  std::string path;  // of a Unix socket
};

tl::unexpected<Error> bad_place(const std::string& place) {
  return fail(ErrorKind::usage,
              fmt::format("bad value: metrics.listen: '{}': give an address of this host alone, as \"127.0.0.1:9464\" or "
                          "\"unix:/run/ccixfer/metrics.sock\"",
                          printable(place)));
}

Result<Place> parse(const std::string& text) {
  Place place;
  if (text.starts_with(unix_prefix)) {
    auto& address = reinterpret_cast<sockaddr_un&>(place.address);
    place.path = text.substr(unix_prefix.size());
    if (place.path.empty() || place.path.front() != '/' || place.path.size() >= sizeof address.sun_path) return bad_place(text);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, place.path.c_str(), place.path.size() + 1);
    place.size = sizeof address;
    return place;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return bad_place(text);
  uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, problem] = std::from_chars(text.data() + colon + 1, end, port);
  if (problem != std::errc() || at != end) return bad_place(text);
  const std::string host = text.substr(0, colon);
  auto& four = reinterpret_cast<sockaddr_in&>(place.address);
  auto& six = reinterpret_cast<sockaddr_in6&>(place.address);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    if (::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &six.sin6_addr) != 1 ||
        !IN6_IS_ADDR_LOOPBACK(&six.sin6_addr))
      return bad_place(text);
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    place.size = sizeof six;
    return place;
  }
  const bool is_address = ::inet_pton(AF_INET, (host == "localhost" ? "127.0.0.1" : host).c_str(), &four.sin_addr) == 1;
  if (!is_address || (ntohl(four.sin_addr.s_addr) >> 24) != 127) return bad_place(text);
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  place.size = sizeof four;
  return place;
}

// A socket that a process left behind: nobody answers there.
void remove_stale(const Place& place) {
  struct stat status {};
  if (::lstat(place.path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const host::Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const bool answers =
      ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&place.address), place.size) == 0 || errno != ECONNREFUSED;
  if (!answers) ::unlink(place.path.c_str());
}

std::string named(int fd, const std::string& asked) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (asked.starts_with(unix_prefix) || ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return asked;
  const uint16_t port = address.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                                                     : reinterpret_cast<const sockaddr_in6&>(address).sin6_port;
  return fmt::format("{}:{}", asked.substr(0, asked.rfind(':')), ntohs(port));
}

struct Connection {
  host::Descriptor fd;
  HttpConnection http;
  std::string out;
  bool ends = false;  // once that is sent
  std::optional<Clock::time_point> until{};
};

// False: it is over.
bool take(Connection& one) {
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = ::recv(one.fd.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    if (got == 0) return false;
    if (!one.until) one.until = Clock::now() + request_time_max;
    if (!one.http.received({bytes.data(), static_cast<size_t>(got)}, one.out)) one.ends = true;
    if (one.ends || !one.out.empty()) return true;  // an answer first
  }
}

bool give(Connection& one) {
  while (!one.out.empty()) {
    const ssize_t sent = ::send(one.fd.get(), one.out.data(), one.out.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    one.out.erase(0, static_cast<size_t>(sent));
  }
  if (one.ends) return false;
  if (one.http.is_between_requests()) one.until = Clock::now() + request_time_max;  // for the next one
  return true;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const std::string& asked, std::function<std::string(Format)> text) {
  const auto place = parse(asked);
  if (!place) return tl::unexpected(place.error());
  const auto cannot = [&](int problem) {
    return fail(ErrorKind::network, fmt::format("cannot serve metrics: {}: {}: give metrics.listen another place", printable(asked),
                                                std::strerror(problem)));
  };
  host::Descriptor fd(::socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  host::Descriptor stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!fd || !stop) return cannot(errno);
  const int on = 1;
  if (place->path.empty()) {
    static_cast<void>(::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on));
  } else {
    remove_stale(*place);
  }
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&place->address), place->size) != 0) return cannot(errno);
  if (!place->path.empty()) static_cast<void>(::chmod(place->path.c_str(), 0660));
  if (::listen(fd.get(), static_cast<int>(connections_max)) != 0) return cannot(errno);
  std::string name = named(fd.get(), asked);
  return std::unique_ptr<Server>(new Server(std::move(fd), std::move(stop), std::move(name), std::move(text)));
}

Server::Server(host::Descriptor listener, host::Descriptor stop, std::string place, std::function<std::string(Format)> text)
    : listener_(std::move(listener)), stop_(std::move(stop)), place_(std::move(place)), text_(std::move(text)) {}

Server::~Server() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    static_cast<void>(!::write(stop_.get(), &one, sizeof one));
    thread_.join();
  }
  if (place_.starts_with(unix_prefix)) ::unlink(place_.c_str() + unix_prefix.size());
}

void Server::begin() {
  thread_ = std::thread([this] { run(); });
}

void Server::run() {
  std::vector<Connection> connections;
  std::vector<pollfd> polled;
  auto accept_again = Clock::time_point::min();  // out of descriptors: not before then
  for (;;) {
    const bool accepts = Clock::now() >= accept_again;
    polled.assign({{stop_.get(), POLLIN, 0}, {accepts ? listener_.get() : -1, POLLIN, 0}});
    auto until = accepts ? Clock::time_point::max() : accept_again;
    for (const Connection& one : connections) {
      polled.push_back({one.fd.get(), static_cast<short>(one.out.empty() ? POLLIN : POLLOUT), 0});
      until = std::min(until, one.until.value_or(Clock::time_point::max()));
    }
    int patience_ms = -1;
    if (until != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
      patience_ms = static_cast<int>(std::max<int64_t>(left, 0));
    }
    if (::poll(polled.data(), polled.size(), patience_ms) < 0 && errno != EINTR) return;
    if (polled[0].revents != 0) return;
    const Clock::time_point now = Clock::now();
    for (size_t i = connections.size(); i-- > 0;) {
      Connection& one = connections[i];
      bool lives = one.until.value_or(Clock::time_point::max()) > now;
      if (lives && polled[i + 2].revents != 0) lives = (one.out.empty() ? take(one) : true) && give(one);
      if (lives) continue;
      std::swap(one, connections.back());
      connections.pop_back();
    }
    if (polled[1].revents == 0) continue;
    // Who comes when all places are taken is hung up on: a queue would be theirs who keep the places.
    for (size_t come = 0; come < connections_max; ++come) {
      host::Descriptor fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) {
        if (errno == EMFILE || errno == ENFILE) accept_again = now + accept_pause;  // poll would say at once that somebody waits
        break;
      }
      if (connections.size() >= connections_max) continue;
      connections.push_back({std::move(fd), HttpConnection(text_), "", false, now + request_time_max});
    }
  }
}

}  // namespace ccixfer::metrics

#include "app/metrics/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "app/metrics/client.h"
#include "app/metrics/handshake_budget.h"
#include "app/metrics/place.h"
#include "app/metrics/status_feed.h"
#include "app/metrics/status_page.h"
#include "core/base/check.h"
#include "core/base/units.h"
#include "core/host/threads.h"

namespace ccixfer::metrics {
namespace {

using Clock = Client::Clock;
constexpr std::chrono::milliseconds accept_pause{100};
constexpr size_t accepts_a_turn = 16;

}  // namespace

Result<std::unique_ptr<Server>> Server::listen(const std::string& asked, Options options) {
  const auto place = program::parse_metrics_place(asked);
  // The configuration has said so with its line. It is checked here too, since here is the socket.
  if (!place || (!place->is_local && !options.guard))
    return fail(ErrorKind::usage, fmt::format("bad value: metrics.listen: '{}': give an address of this host alone, a socket, or "
                                              "certificate, key and token",
                                              printable(asked)));
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
  std::string name = name_of_place(fd.get(), asked);
  // Who has said the token over TLS may call this host what he likes.
  const bool checks_host = place->path.empty() && !options.guard;
  static_cast<void>(status_page_policy());  // made here and not in the thread
  return std::unique_ptr<Server>(new Server(std::move(fd), std::move(stop), std::move(name), std::move(options), checks_host));
}

Server::Server(host::Descriptor listener, host::Descriptor stop, std::string place, Options options, bool checks_host)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      place_(std::move(place)),
      file_(file_at(place_)),
      site_{std::move(options.metrics), options.board != nullptr, checks_host, options.refused},
      board_(options.board),
      guard_(options.guard ? std::make_shared<const Guard>(std::move(*options.guard)) : nullptr) {}

Server::~Server() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    static_cast<void>(!::write(stop_.get(), &one, sizeof one));
    thread_.join();
  }
  if (file_ && *file_ == file_at(place_)) ::unlink(place_.c_str() + program::unix_prefix.size());
}

std::shared_ptr<const Guard> Server::guard() const {
  const std::lock_guard hold(guard_lock_);
  return guard_;
}

void Server::renew(Guard guard) {
  auto next = std::make_shared<const Guard>(std::move(guard));
  const std::lock_guard hold(guard_lock_);
  CHECK(guard_ != nullptr);
  guard_ = std::move(next);
}

// What the thread does. Its clients live and end with it.
class Server::Run {
 public:
  explicit Run(const Server& server) : server_(server), feed_(server.board_) {}
  void until_stopped() {
    while (wait()) {
      const Clock::time_point now = Clock::now();
      const bool news = polled_[news_at].revents != 0 && feed_.take(now);
      const bool come = polled_[listener_at].revents != 0;
      serve(now);
      feed(news, now);
      if (come) accept(now);
    }
  }

 private:
  static constexpr size_t stop_at = 0, listener_at = 1, news_at = 2, clients_at = 3;

  // False: the thread is to end.
  bool wait() {
    Clock::time_point now = Clock::now();
    const bool accepts = now >= accept_again_;
    auto until = accepts ? Clock::time_point::max() : accept_again_;
    polled_.assign(
        {{server_.stop_.get(), POLLIN, 0}, {accepts ? server_.listener_.get() : -1, POLLIN, 0}, {feed_.news(), POLLIN, 0}});
    bool wanted = false;
    for (const Client& client : clients_) {
      polled_.push_back({client.fd(), client.waits_for(), 0});
      until = std::min(until, client.deadline().value_or(Clock::time_point::max()));
      wanted = wanted || client.listens() || client.wants_status();
      // What is left of the last turn. Everybody else has a turn in between, and the end is looked for.
      if (client.has_more() || (client.wants_status() && feed_.fresh(now) != nullptr)) until = now;
    }
    if (wanted) {
      if (const auto due = feed_.want(now)) until = std::min(until, *due);
    }
    int patience_ms = -1;
    if (until != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
      patience_ms = static_cast<int>(std::max<int64_t>(left, 0));
    }
    if (::poll(polled_.data(), polled_.size(), patience_ms) < 0 && errno != EINTR) return false;
    return polled_[stop_at].revents == 0;
  }

  void serve(Clock::time_point now) {
    for (size_t i = clients_.size(); i-- > 0;) {
      Client& client = clients_[i];
      bool lives = client.deadline().value_or(Clock::time_point::max()) > now;
      const short ready = polled_[i + clients_at].revents;
      if (lives && (ready != 0 || client.has_more())) lives = client.turn(now, ready);
      if (lives && client.wants_events()) lives = admit(client, now);
      if (!lives && client.deadline() && *client.deadline() <= now) client.give_up();
      if (!lives) end(i);
    }
  }
  bool admit(Client& client, Clock::time_point now) {
    const auto listening = std::count_if(clients_.begin(), clients_.end(), [](const Client& each) { return each.listens(); });
    if (static_cast<size_t>(listening) >= listeners_max) {
      client.refuse_busy();
      return client.turn(now);
    }
    client.begin_events();
    if (!client.turn(now)) return false;
    const std::string* known = feed_.fresh(now);
    if (known == nullptr) return true;
    client.tell(event_of(*known), now);
    return client.turn(now);
  }

  // To whom it is news.
  void feed(bool news, Clock::time_point now) {
    const std::string* json = feed_.fresh(now);
    if (json == nullptr) return;
    const std::string event = news ? event_of(*json) : std::string();
    for (size_t i = clients_.size(); i-- > 0;) {
      Client& client = clients_[i];
      bool lives = true;
      if (client.listens() && news) {
        client.tell(event, now);
        lives = client.turn(now);
      }
      if (lives && client.wants_status()) {
        client.answer(*json);
        lives = client.turn(now);
      }
      if (!lives) end(i);
    }
  }

  void end(size_t client) {
    std::swap(clients_[client], clients_.back());
    clients_.pop_back();
  }

  // So few at a time that whoever has come can say something before others take its place.
  void accept(Clock::time_point now) {
    const std::shared_ptr<const Guard> guard = server_.guard();
    for (size_t come = 0; come < accepts_a_turn; ++come) {
      host::Descriptor fd(::accept4(server_.listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!fd) {
        if (errno == EMFILE || errno == ENFILE) accept_again_ = now + accept_pause;  // poll would say at once that somebody waits
        return;
      }
      if (guard && !handshakes_.take(now)) {
        refuse();
        continue;
      }
      if (clients_.size() >= connections_max && !make_room()) {
        refuse();
        continue;
      }
      clients_.emplace_back(std::move(fd), server_.site_, now, guard);
    }
  }
  void refuse() {
    if (server_.site_.refused != nullptr) server_.site_.refused->add(Refused::no_place);
  }
  // The place of whoever has waited longest for its own request, or to take an answer, is free then. Not of those who wait for
  // ours, or listen: there is always somebody else, unless the protocol thread is slow to answer.
  bool make_room() {
    const auto until = [](const Client& client) {
      return client.wants_status() || client.listens() ? Clock::time_point::max()
                                                       : client.deadline().value_or(Clock::time_point::max());
    };
    const auto first =
        std::min_element(clients_.begin(), clients_.end(), [&](const Client& a, const Client& b) { return until(a) < until(b); });
    if (until(*first) == Clock::time_point::max()) return false;
    refuse();
    end(static_cast<size_t>(first - clients_.begin()));
    return true;
  }

  const Server& server_;
  StatusFeed feed_;
  HandshakeBudget handshakes_{Clock::now()};
  std::vector<Client> clients_;
  std::vector<pollfd> polled_;                                 // the clients' behind ours, in their order
  Clock::time_point accept_again_ = Clock::time_point::min();  // out of descriptors: not before then
};

Result<void> Server::begin() {
  auto thread = host::begin_thread([this] { Run(*this).until_stopped(); });
  if (!thread) return tl::unexpected(thread.error());
  thread_ = std::move(*thread);
  return {};
}

}  // namespace ccixfer::metrics

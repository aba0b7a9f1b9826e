#include "app/session/hub.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "app/session/dialler.h"
#include "app/session/limits.h"
#include "app/session/link.h"
#include "app/session/pings.h"
#include "app/session/refusal.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::session {
namespace {

// Contexts of connections that we accept are numbered from here, those of diallers below it: (id << 32) | attempt.
constexpr uint64_t accept_context_base = uint64_t{1} << 63;

}  // namespace

struct Hub::Impl final : LaneRegistry {
  struct PendingAccept {
    Link* link = nullptr;
    cci::Connection connection;
    bool first = false;  // of a new session: if it fails the session is over before it began
  };

  Impl(cci::Endpoint& an_endpoint, Counters& the_counters) : endpoint(an_endpoint), counters(the_counters), pings(an_endpoint) {}

  cci::Endpoint& endpoint;
  Counters& counters;
  Pings pings;
  AcceptHandler* accept_handler = nullptr;
  std::map<uint64_t, Link*> links;  // by order of arrival: turns are deterministic
  std::map<uint64_t, Dialler*> diallers;
  uint64_t next_link = 1;
  uint32_t next_dialler = 1;
  std::unordered_map<uint64_t, Link*> by_connection;
  std::unordered_map<uint64_t, PendingAccept> accepting;  // by context
  uint64_t next_accept = accept_context_base;
  Instant now{};  // of the turn that is under way

  void connection_added(Link& link, cci::Connection connection) override { by_connection[connection.packed()] = &link; }
  // Of one that its Link has left before its acceptance ended, the endpoint tells nothing more.
  void connection_removed(cci::Connection connection) override {
    by_connection.erase(connection.packed());
    std::erase_if(accepting, [connection](const auto& item) { return item.second.connection == connection; });
  }
  void link_destroyed(Link& link) override { forget(link); }

  void forget(Link& link) {
    const auto is_link = [&link](const auto& item) { return item.second == &link; };
    std::erase_if(links, is_link);
    std::erase_if(by_connection, is_link);
    std::erase_if(accepting, [&link](const auto& item) { return item.second.link == &link; });
  }

  [[nodiscard]] bool knows(const Link& link) const {
    return std::any_of(links.begin(), links.end(), [&link](const auto& item) { return item.second == &link; });
  }
  void add(Link& link) {
    if (knows(link)) return;
    links.emplace(next_link++, &link);
    link.set_now(now);
    link.attach(this, &counters);
  }

  void route(cci::Event&& event) {
    switch (event.type) {
      case cci::EventType::connect_request:
        return on_connect_request(event);
      case cci::EventType::connect:
        return on_connect(event);
      case cci::EventType::accept:
        return on_accept(event);
      case cci::EventType::device_failed:
        return log(LogLevel::error, "the device failed: {}", printable(event.reason));
      case cci::EventType::send:
      case cci::EventType::local_completion:
      case cci::EventType::mailbox_ready:
      case cci::EventType::receive:
      case cci::EventType::disconnected:
      case cci::EventType::keepalive_timed_out:
      case cci::EventType::draining: {
        const auto link = by_connection.find(event.connection.packed());
        if (link != by_connection.end()) return link->second->handle(std::move(event));
        if (event.type == cci::EventType::receive) pings.heard(event.connection, now);
        if (event.type == cci::EventType::disconnected) pings.gone(event.connection);
        return;
      }
    }
  }

  void on_connect(cci::Event& event) {
    for (const auto& [id, dialler] : diallers) {
      static_cast<void>(id);
      if (dialler->handle_connect(event)) return;
    }
    if (event.status == Status::success) endpoint.disconnect(event.connection);  // its dialler went meanwhile
  }

  void refuse(cci::Event& request, std::string_view reason) {
    log(LogLevel::info, "session refused to {}: {}", request.peer().name(), reason);
    static_cast<void>(endpoint.reject(request, reason));  // not_found: the peer went already
  }
  void refuse_session(cci::Event& request, const Hello* hello, const Error& why) {
    if (accept_handler != nullptr) accept_handler->on_refused(hello, request.peer(), why);
    refuse(request, format_refusal(why));
  }

  void on_connect_request(cci::Event& request) {
    if (request.role == ports::Role::admin && request.attribute == ports::Attribute::reliable_ordered) {
      // not success: the peer went already
      if (endpoint.accept(request, 0) == Status::success) pings.add(request.connection, now);
      return;
    }
    if (request.role != ports::Role::application || request.attribute != ports::Attribute::reliable_ordered) {
      counters.add(Counter::session_rejected);
      return refuse_session(request, nullptr, {ErrorKind::protocol, "not a session's kind of connection"});
    }
    Result<Hello> hello = decode_hello(request.data());
    if (!hello) {
      counters.add(Counter::session_rejected);
      return refuse_session(request, nullptr, hello.error());
    }
    if (accept_handler == nullptr) return refuse(request, format_refusal({ErrorKind::usage, "this end takes no sessions"}));
    if (accepting.size() >= accepts_pending_max) {
      const Error busy{ErrorKind::network, "busy: too many connections at once"};
      return hello->session == 0 ? refuse_session(request, &*hello, busy) : refuse(request, format_refusal(busy));
    }
    const auto early = std::exchange(hello->early, {});
    const Result<Link*> link = find_link(*hello);
    if (!link && hello->session == 0) return refuse_session(request, &*hello, link.error());
    if (!link) {
      return refuse(request, link.error().message == refusal_unknown_session ? std::string(refusal_unknown_session)
                                                                             : format_refusal(link.error()));
    }
    accept(request, **link, *hello, early);
  }

  Result<Link*> find_link(const Hello& hello) {
    if (hello.session == 0) {
      Result<Link*> link = accept_handler->on_new_session(hello, now);
      if (link) CHECK(*link != nullptr);
      return link;
    }
    Link* link = accept_handler->find_session(hello);
    // Someone who guessed a session's number has not guessed its transfer: it learns nothing else.
    if (link == nullptr || link->hello().transfer != hello.transfer) {
      return ccixfer::fail(ErrorKind::network, std::string(refusal_unknown_session));
    }
    if (link->hello().direction != hello.direction || link->hello().sealed != hello.sealed) {
      counters.add(Counter::session_rejected);
      return ccixfer::fail(ErrorKind::protocol, "the lane's hello is not the session's");
    }
    const LaneAdmission admission = link->admits(hello);
    if (admission == LaneAdmission::admitted) return link;
    counters.add(Counter::session_rejected);
    // Whoever has proved the session knows that it is there: it is to dial anew, and not to take the session for gone.
    return ccixfer::fail(ErrorKind::network, admission == LaneAdmission::repeated ? "this connection was asked for before"
                                                                                  : std::string(refusal_unknown_session));
  }

  // The lane is up at once: what is sent on it follows the acceptance, and need not wait until the dialler has heard of that. A
  // session that nothing was asked of yet is over when its first connection fails, and so is one of a stranger.
  void accept(cci::Event& request, Link& link, const Hello& hello, const std::vector<std::vector<std::byte>>& early) {
    add(link);
    const bool first = hello.session == 0 && (hello.sealed || early.empty());
    const uint64_t context = next_accept++;
    if (endpoint.accept(request, context) == Status::success) {
      accepting.emplace(context, PendingAccept{&link, request.connection, first});
      link.add_lane(hello.lane, request.connection, hello.moves, hello.dial);
      if (!by_connection.contains(request.connection.packed())) accepting.erase(context);  // it had failed, and took no lane
      link.take_early(request.connection, early);
    } else if (hello.session == 0) {
      link.fail({ErrorKind::network, "the peer went before the session began"});
    }
  }

  void on_accept(cci::Event& event) {
    if (event.status != Status::success) pings.gone(event.connection);
    const auto it = accepting.find(event.context);
    if (it == accepting.end()) return;
    const PendingAccept pending = it->second;
    accepting.erase(it);
    if (event.status == Status::success) return;
    pending.link->lane_failed(pending.connection);
    if (pending.first && pending.link->live_lanes().empty()) {
      pending.link->fail({ErrorKind::network, "the peer went before the session began"});
    }
  }
};

Hub::Hub(cci::Endpoint& endpoint, Counters& counters) : impl_(std::make_unique<Impl>(endpoint, counters)) {}

Hub::~Hub() {
  for (const auto& [id, link] : impl_->links) {
    static_cast<void>(id);
    link->attach(nullptr, nullptr);
  }
}

void Hub::set_accept_handler(AcceptHandler* handler) { impl_->accept_handler = handler; }

void Hub::add_dialler(Dialler* dialler) {
  dialler->set_id(impl_->next_dialler);
  dialler->set_now(impl_->now);
  impl_->diallers.emplace(impl_->next_dialler++, dialler);
}

void Hub::remove_dialler(Dialler* dialler) {
  std::erase_if(impl_->diallers, [dialler](const auto& item) { return item.second == dialler; });
}

void Hub::add_link(Link* link) { impl_->add(*link); }

void Hub::remove_link(Link* link) {
  if (!impl_->knows(*link)) return;
  link->attach(nullptr, nullptr);
  impl_->forget(*link);
}

void Hub::turn(Instant now) {
  Impl& impl = *impl_;
  impl.now = now;
  for (const auto& [id, link] : impl.links) {
    static_cast<void>(id);
    link->set_now(now);
  }
  for (const auto& [id, dialler] : impl.diallers) {
    static_cast<void>(id);
    dialler->set_now(now);
  }
  impl.endpoint.turn(now);
  while (std::optional<cci::Event> event = impl.endpoint.get_event()) impl.route(std::move(*event));
  impl.pings.turn(now);
  // Callbacks may add and remove: walk by number, look each up anew.
  for (uint64_t id = 0;;) {
    const auto link = impl.links.upper_bound(id);
    if (link == impl.links.end()) break;
    id = link->first;
    link->second->turn(now);
  }
  for (uint64_t id = 0;;) {
    const auto dialler = impl.diallers.upper_bound(id);
    if (dialler == impl.diallers.end()) break;
    id = dialler->first;
    dialler->second->turn(now);
  }
}

Instant Hub::next_deadline() const {
  Instant deadline = std::min(impl_->endpoint.next_deadline(), impl_->pings.next_deadline());
  for (const auto& [id, link] : impl_->links) {
    static_cast<void>(id);
    deadline = std::min(deadline, link->next_deadline());
  }
  for (const auto& [id, dialler] : impl_->diallers) {
    static_cast<void>(id);
    deadline = std::min(deadline, dialler->next_deadline());
  }
  return deadline;
}

}  // namespace ccixfer::session

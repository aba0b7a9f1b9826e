// How TcpNet dials, accepts and gathers events.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "transports/inet/uri.h"
#include "transports/tcp/tcp_net_impl.h"

namespace ccixfer::tcp {

Result<StreamId> TcpNet::dial(std::string_view uri) {
  const Result<inet::HostName> name = inet::parse_uri("tcp", uri);
  if (!name) return tl::unexpected<Error>(name.error());
  const StreamId id = impl_->add_stream(Impl::State::resolving);
  Impl::Stream& stream = *impl_->find(id);
  Address address;
  if (inet::numeric_address(name->host, name->port, address)) {
    stream.addresses.push_back(address);
    impl_->try_next_address(id);
    return id;
  }
  if (!impl_->resolver) impl_->resolver.emplace(impl_->watched.wake_handle());
  if (!impl_->resolver->resolve(id, name->host, name->port)) impl_->fail_dial(id, Status::busy, inet::words_of_no_lookup);
  return id;
}

void TcpNet::Impl::fail_dial(StreamId id, Status status, std::string reason) {
  Stream& stream = *find(id);
  stream.state = State::failed;
  stream.status = status;
  stream.reason = std::move(reason);
  stop(stream);
  failed.push_back(id);
  arm();
}

void TcpNet::Impl::try_next_address(StreamId id) {
  Stream& stream = *find(id);
  address_ends.set(SlotName::of(id).index, never);
  while (!stream.addresses.empty()) {
    const Address address = stream.addresses.back();
    stream.addresses.pop_back();
    stream.state = State::connecting;
    stream.fd = open_socket(address.storage.ss_family, options.interface_name);
    int error = stream.fd ? 0 : errno;
    if (error == 0) {
      set_stream_options(stream.fd.get());
      const int answer = connect(stream.fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size);
      if (answer != 0 && errno != EINPROGRESS) error = errno;
    }
    if (error == 0 && !watch(stream, id)) error = errno;
    if (error == 0) {  // an event will tell
      if (stream.addresses.empty()) return;
      address_ends.set(SlotName::of(id).index, after(now, address_time));
      return arm();
    }
    stream.status = status_of_connect_errno(error);
    stream.reason =
        fmt::format("{}: {}", inet::format_uri("tcp", inet::host_of(address), inet::port_of(address)), inet::error_words(error));
    stop(stream);
  }
  fail_dial(id, stream.status, std::move(stream.reason));
}

// The last address has what is left of the dial's time.
void TcpNet::Impl::leave_silent_addresses() {
  while (address_ends.earliest() <= now) {
    const StreamId id = streams.name_of(address_ends.earliest_slot()).packed();
    stop(*find(id));
    try_next_address(id);
  }
}

void TcpNet::Impl::dial_progress(StreamId id, const Report& report) {
  Stream& stream = *find(id);
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(stream.fd.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) {
    opened(stream);
    address_ends.set(SlotName::of(id).index, never);
    stream.addresses = {};
    return report({StreamEventType::connected, id, Status::success, {}});
  }
  stream.status = status_of_connect_errno(error);
  stream.reason = inet::error_words(error);
  stop(stream);
  try_next_address(id);
}

void TcpNet::Impl::take_answers() {
  for (inet::Resolver::Answer& answer : resolver->take()) {
    Stream* stream = find(answer.id);
    if (stream == nullptr || stream->state != State::resolving) continue;  // closed meanwhile
    if (answer.addresses.empty()) {
      fail_dial(answer.id, answer.unknown ? Status::not_found : Status::unreachable, answer.reason);
      continue;
    }
    std::reverse(answer.addresses.begin(), answer.addresses.end());
    stream->addresses = std::move(answer.addresses);
    try_next_address(answer.id);
  }
}

void TcpNet::Impl::report_failed(const Report& report) {
  if (failed.empty()) return;
  for (const StreamId id : std::exchange(failed, {})) {
    const Stream* stream = find(id);
    if (stream == nullptr) continue;
    report({StreamEventType::failed, id, stream->status, stream->reason});
  }
}

void TcpNet::Impl::update_accepting() {
  const bool want = listener && !accept_paused && accept_again == never;
  if (want == accepting.has_value()) return;
  if (want) {
    // Level-triggered: what one poll leaves in the backlog the next one finds.
    accepting = watched.add(listener.get(), listener_token, EPOLLIN);
  } else if (watched.remove(*accepting)) {
    accepting.reset();
  }
}

// The other half is for what those who are in want to open: files, directories and ledgers.
int TcpNet::Impl::descriptors_for_streams() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > 2 * static_cast<rlim_t>(INT_MAX)) return INT_MAX;
  return static_cast<int>(limit.rlim_cur / 2);
}

// The lowest free number is the one that accept4 will take.
Descriptor TcpNet::Impl::accept_one(Address& peer) const {
  const int next = Descriptor(fcntl(listener.get(), F_DUPFD_CLOEXEC, 0)).get();
  if (next >= accept_below) errno = EMFILE;
  if (next < 0 || next >= accept_below) return {};
  return Descriptor(accept4(listener.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

void TcpNet::Impl::accept_some(const Report& report) {
  for (int i = 0; i < accepts_per_poll_max && accepting; ++i) {
    Address peer;
    peer.size = sizeof peer.storage;
    Descriptor fd = accept_one(peer);
    if (!fd) {
      const bool is_out_of_something = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (i == 0 && is_out_of_something) {  // behind the first there may be nobody to wait: the next poll knows
        if (!std::exchange(pause_told, true)) log(LogLevel::warning, "accepting pauses: {}", inet::error_words(errno));
        accept_again = after(now, accept_retry);
        update_accepting();
        arm();
      }
      return;  // EAGAIN; or a connection that ended in the backlog, and the next poll finds the rest
    }
    pause_told = false;
    set_stream_options(fd.get());
    const StreamId id = add_stream(State::open);
    find(id)->fd = std::move(fd);
    opened(*find(id));
    if (!watch(*find(id), id)) {
      release(id);
      return;
    }
    report({StreamEventType::accepted, id, Status::success, inet::format_uri("tcp", inet::host_of(peer), inet::port_of(peer))});
  }
}

void TcpNet::Impl::stream_event(StreamId id, uint32_t events, const Report& report) {
  Stream* stream = find(id);
  if (stream == nullptr) return;  // closed by what was reported before it
  if (stream->state == State::connecting) {
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) return;
    dial_progress(id, report);
    stream = find(id);
    if (stream == nullptr || stream->state != State::open) return;
  }
  if (stream->state != State::open) return;
  const bool ended = (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
  stream->hung_up = stream->hung_up || ended;
  if ((events & EPOLLIN) != 0 || ended) {
    stream->nothing_to_read = false;
    last_readable = id;
    report({StreamEventType::readable, id, Status::success, {}});
    stream = find(id);
  }
  if (stream != nullptr && ((events & EPOLLOUT) != 0 || (events & (EPOLLERR | EPOLLHUP)) != 0)) {
    // The rest of what was taken before goes first. An error shows at the next send.
    if (!stream->pipe.empty() && !stream->pipe.flush(stream->fd.get(), false) && errno == EAGAIN) return;
    stream->full = false;
    report({StreamEventType::writable, id, Status::success, {}});
  }
}

// Who turns again without a wait mostly expects an answer where the last bytes came from: to try to receive there tells as much as
// to ask epoll, and brings the bytes. The others are asked for every so often. Several networks have one question to ask together.
bool TcpNet::Impl::guess(const Report& report) {
  Stream* stream = !watched.has_news() && watched.looks_alone() && guesses < guesses_in_a_row_max ? find(last_readable) : nullptr;
  if (stream == nullptr || stream->state != State::open || stream->full) {
    guesses = 0;
    return false;
  }
  ++guesses;
  stream->nothing_to_read = false;
  report({StreamEventType::readable, last_readable, Status::success, {}});
  return true;
}

void TcpNet::poll(Instant now, const std::function<void(const StreamEvent&)>& event) {
  Impl& net = *impl_;
  net.now = now;
  if (net.guess(event)) return;
  net.watched.look(now);
  if (net.watched.woken()) net.take_answers();
  while (const auto ready = net.watched.next()) {
    switch (ready->token) {
      case Impl::listener_token:
        net.accept_some(event);
        break;
      case Impl::device_token:
        if (net.device.lost_now()) {
          event({StreamEventType::device_failed, 0, Status::device_dead,
                 fmt::format("{}: no interface that is up has this address any more", uri())});
        }
        break;
      default:
        net.stream_event(ready->token, ready->events, event);
        break;
    }
  }
  net.leave_silent_addresses();
  if (net.accept_again <= now) {
    net.accept_again = never;
    net.update_accepting();
  }
  net.report_failed(event);
}

}  // namespace ccixfer::tcp

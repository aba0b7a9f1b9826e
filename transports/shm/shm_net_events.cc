// How ShmNet dials, accepts and gathers events.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <system_error>
#include <utility>

#include "core/base/log.h"
#include "transports/shm/shm_net_impl.h"

namespace ccixfer::shm {
namespace {

// Bells that were rung and not read: the socket's buffer holds some hundreds.
constexpr uint32_t rings_unread_max = 16;

// Whether there are numbers for another stream: for its socket, and for a moment for its memory. The lowest free one is the one
// that the socket will have. The upper half is for what those who are in want to open: files, directories and ledgers. False: errno
// says why.
bool are_there_descriptors(int any) {
  const Descriptor socket(fcntl(any, F_DUPFD_CLOEXEC, 0));
  const Descriptor memory(socket ? fcntl(any, F_DUPFD_CLOEXEC, 0) : -1);
  if (!memory) return false;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || static_cast<rlim_t>(socket.get()) < limit.rlim_cur / 2) return true;
  errno = EMFILE;
  return false;
}

bool is_out_of_something(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM || error == ETOOMANYREFS;
}

// How often it is said that diallers wait for their memory.
constexpr Duration tell_retry = std::chrono::minutes(1);

}  // namespace

// ---- Dialling.

Result<StreamId> ShmNet::dial(std::string_view uri) {
  Result<std::string> name = parse_uri(uri);
  if (!name) return tl::unexpected<Error>(name.error());
  const StreamId id = impl_->add_stream(Impl::State::dialling);
  impl_->find(id)->name = std::move(*name);
  impl_->try_to_dial(id);
  return id;
}

bool ShmNet::Impl::may_meet(const std::optional<PeerProcess>& peer) const {
  return options.meets == Meets::anybody || (peer && peer->user == geteuid());
}

void ShmNet::Impl::try_to_dial(StreamId id) {
  Stream& stream = *find(id);
  const std::string uri = format_uri(stream.name);
  const bool must_wait = closer.is_full();  // each dial to a hostile listener may leave two descriptors to be closed
  if (!must_wait) stream.socket = dial_name(stream.name);
  if (must_wait || (!stream.socket && errno == EAGAIN)) {
    stream.state = State::dialling;
    dialling.push_back(id);
    dial_again = std::min(dial_again, after(now, dial_retry));
    return arm();
  }
  if (!stream.socket && errno == ECONNREFUSED) return fail_stream(id, Status::refused, fmt::format("{}: nobody listens", uri));
  if (!stream.socket || !watch(stream, id)) {
    const int error = errno;
    return fail_stream(id, Status::unreachable, fmt::format("{}: {}", uri, std::generic_category().message(error)));
  }
  if (const auto peer = peer_of(stream.socket.get()); !may_meet(peer)) {
    const std::string user = peer ? fmt::format("user {}", peer->user) : "an unknown user";
    return fail_stream(id, Status::refused,
                       fmt::format("{}: it is of {}, and connections without proof stay within one user", uri, user));
  }
  stream.state = State::meeting;
}

void ShmNet::Impl::dial_waiting() {
  dial_again = never;
  for (const StreamId id : std::exchange(dialling, {})) {
    if (const Stream* stream = find(id); stream != nullptr && stream->state == State::dialling) try_to_dial(id);
  }
}

void ShmNet::Impl::meet(StreamId id, const Report& report) {
  Stream& stream = *find(id);
  std::optional<Result<Segment>> segment = take_segment(stream.socket.get(), closer);
  if (!segment) return;
  if (!*segment) {
    return fail_stream(id, Status::refused, fmt::format("{}: {}", format_uri(stream.name), segment->error().message));
  }
  open(stream, id, std::move(**segment), 0);
  report({StreamEventType::connected, id, Status::success, {}});
}

// ---- Accepting.

void ShmNet::Impl::update_accepting() {
  const bool want = listener && !accept_paused && accept_again == never;
  if (want == accepting.has_value()) return;
  if (want) {
    // Level-triggered: what one poll leaves in the backlog the next one finds.
    accepting = watched.add(listener.get(), listener_token, EPOLLIN);
  } else if (watched.remove(*accepting)) {
    accepting.reset();
  }
}

void ShmNet::Impl::accept_some(const Report& report) {
  for (int i = 0; i < accepts_per_poll_max && accepting; ++i) {
    if (accept_one(report)) continue;
    if (i == 0 && is_out_of_something(errno)) {  // behind the first there may be nobody to wait: the next poll knows
      if (!std::exchange(pause_told, true)) log(LogLevel::warning, "accepting pauses: {}", std::generic_category().message(errno));
      accept_again = after(now, accept_retry);
      update_accepting();
      arm();
    }
    return;  // or nobody waits
  }
}

// False: errno says why.
bool ShmNet::Impl::accept_one(const Report& report) {
  if (!are_there_descriptors(listener.get())) return false;  // asked before somebody is taken off the backlog
  Descriptor fd = accept_at(listener.get());
  if (!fd) return false;
  const StreamId id = add_stream(State::open);
  Stream& stream = *find(id);
  stream.socket = std::move(fd);
  const std::optional<PeerProcess> peer = peer_of(stream.socket.get());
  if (!may_meet(peer)) {
    if (options.counters != nullptr) options.counters->add(Counter::hello_rejected);
    release(id);
    return true;
  }
  if (!watch(stream, id)) {
    const int error = errno;
    release(id);
    errno = error;
    return false;
  }
  stream.user = peer ? peer->user : static_cast<uid_t>(-1);
  if (pass(id) == Passed::dialler_went) {
    release(id);
    return true;
  }
  pause_told = false;
  report({StreamEventType::accepted, id, Status::success,
          peer ? fmt::format("shm://user-{}.process-{}", peer->user, peer->process) : std::string("shm://unknown")});
  return true;
}

ShmNet::Impl::Passed ShmNet::Impl::pass(StreamId id) {
  Stream& stream = *find(id);
  std::string why = fmt::format("user {} does not take what it was passed", stream.user);
  if (untaken.has_room(stream.user)) {
    Result<Segment> segment = Segment::create(options.ring_bytes);
    if (segment && pass_segment(stream.socket.get(), *segment)) {
      untaken.add(stream.user, stream.socket.get());
      segment->close_descriptor();
      open(stream, id, std::move(*segment), 1);
      return Passed::yes;
    }
    if (segment && !is_out_of_something(errno)) return Passed::dialler_went;
    why = segment ? std::generic_category().message(errno) : segment.error().message;
  }
  if (now >= tell_again) log(LogLevel::warning, "a dialler waits for its shared memory: {}", why);
  if (now >= tell_again) tell_again = after(now, tell_retry);
  stream.state = State::passing;
  passing.push_back(id);
  look_at_untaken_later();
  return Passed::later;
}

void ShmNet::Impl::look_at_untaken_later() {
  pass_again = std::min(pass_again, after(now, pass_retry));
  arm();
}

void ShmNet::Impl::pass_waiting(const Report& report) {
  pass_again = never;
  untaken.look();
  for (const StreamId id : std::exchange(passing, {})) {
    const Stream* stream = find(id);
    if (stream == nullptr || stream->state != State::passing) continue;
    const Passed passed = pass(id);
    if (passed == Passed::dialler_went) fail_stream(id, Status::disconnected, "the dialler went");
    if (passed == Passed::yes) look_into(id, true, report);
  }
  if (untaken.keeps_any()) look_at_untaken_later();
}

// ---- Events.

void ShmNet::Impl::stream_event(StreamId id, uint32_t events, const Report& report) {
  Stream* stream = find(id);
  if (stream == nullptr) return;  // closed by what was reported before it
  if (stream->state == State::meeting) {
    meet(id, report);
    stream = find(id);
  }
  const bool hung_up = (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)) != 0;
  if (stream != nullptr && stream->state == State::passing && hung_up)
    return fail_stream(id, Status::disconnected, "the dialler went");
  if (stream == nullptr || stream->state != State::open) return;
  const bool hangs_up = hung_up && !std::exchange(stream->hung_up, true);
  if (++stream->rings >= rings_unread_max) {
    stream->rings = 0;
    if (!silence(stream->socket.get())) {
      if (options.counters != nullptr) options.counters->add(Counter::shared_rings_rejected);
      return fail_stream(id, Status::disconnected, "the peer passed descriptors in place of a bell");
    }
  }
  use(*stream, id);
  look_into(id, hangs_up, report);
}

// `told`: there is news in any case.
void ShmNet::Impl::look_into(StreamId id, bool told, const Report& report) {
  Stream* stream = find(id);
  if (stream == nullptr || stream->state != State::open) return;
  const bool has_room = stream->wants_room && stream->out.has_room();
  if (stream->in.has_bytes() || told) report({StreamEventType::readable, id, Status::success, {}});
  stream = find(id);
  if (stream == nullptr || stream->state != State::open) return;
  if (stream->in.broken() || stream->out.broken()) return check_rings(id);
  if (!has_room && !(told && stream->wants_room)) return;
  stream->wants_room = false;
  report({StreamEventType::writable, id, Status::success, {}});
}

void ShmNet::Impl::report_failed(const Report& report) {
  if (failed.empty()) return;
  for (const StreamId id : std::exchange(failed, {})) {
    const Stream* stream = find(id);
    if (stream == nullptr) continue;
    report({StreamEventType::failed, id, stream->status, stream->reason});
  }
}

void ShmNet::poll(Instant now, const std::function<void(const StreamEvent&)>& event) {
  Impl& net = *impl_;
  net.now = now;
  const bool asks = net.busy.empty() || net.watched.has_news() || !net.watched.looks_alone() ||
                    ++net.polls_without_kernel >= polls_without_kernel_max;
  net.looking = net.busy;
  if (asks) {
    net.polls_without_kernel = 0;
    net.watched.look(now);
    while (const auto ready = net.watched.next()) {
      if (ready->token == Impl::listener_token) {
        net.accept_some(event);
      } else {
        net.stream_event(ready->token, ready->events, event);
      }
    }
  }
  for (const StreamId id : net.looking) net.look_into(id, false, event);
  if (net.dial_again <= now) net.dial_waiting();
  if (net.pass_again <= now) net.pass_waiting(event);
  if (net.accept_again <= now) {
    net.accept_again = never;
    net.update_accepting();
  }
  net.report_failed(event);
}

}  // namespace ccixfer::shm

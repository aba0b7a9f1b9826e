#include "transports/shm/shm_net.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "core/host/clock.h"
#include "transports/shm/shm_net_impl.h"

namespace ccixfer::shm {
namespace {

// The peer works on one part while we copy the next one.
constexpr size_t step_bytes = 64u << 10;

std::string free_name() {
  uint64_t number = 0;
  CHECK(getrandom(&number, sizeof number, 0) == static_cast<ssize_t>(sizeof number));
  return fmt::format("any-{:016x}", number);
}

bool has_two_processors() {
  cpu_set_t ours;
  return sched_getaffinity(0, sizeof ours, &ours) == 0 && CPU_COUNT(&ours) > 1;
}

}  // namespace

ShmNet::Impl::Impl(const ShmNetOptions& o, std::shared_ptr<host::Waker> waker)
    : options(o),
      watched(std::move(waker)),
      has_processor_for_peer(has_two_processors()),
      closer(o.closing_threads),
      untaken([this](Descriptor socket) { close_socket(std::move(socket)); }) {
  watched.ask_before_sleep([this] { return may_sleep(); });
}

Result<std::unique_ptr<ShmNet>> ShmNet::create(const ShmNetOptions& options) {
  CHECK(is_ring_size(options.ring_bytes));
  std::shared_ptr<host::Waker> waker = options.waker;
  if (waker == nullptr) {
    auto own = host::Waker::create(host::Waits::for_handle);
    if (!own) return fail(ErrorKind::network, fmt::format("no descriptors for a network: {}", own.error().message));
    waker = std::move(*own);
  }
  auto impl = std::make_unique<Impl>(options, std::move(waker));
  if (options.listen) {
    impl->name = options.name.empty() ? free_name() : options.name;
    if (auto name = parse_uri(format_uri(impl->name)); !name) return tl::unexpected<Error>(name.error());
    Result<Descriptor> listener = listen_at(impl->name, options.backlog);
    if (!listener) return tl::unexpected<Error>(listener.error());
    impl->listener = std::move(*listener);
    impl->update_accepting();
  }
  return std::unique_ptr<ShmNet>(new ShmNet(std::move(impl)));
}

ShmNet::ShmNet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ShmNet::~ShmNet() = default;

std::string ShmNet::uri() const { return impl_->listener ? format_uri(impl_->name) : std::string(); }
int ShmNet::os_handle() const { return impl_->watched.waker().os_handle(); }

ShmNet::Impl::Stream* ShmNet::Impl::find(StreamId id) { return streams.find(SlotName::of(id)); }

StreamId ShmNet::Impl::add_stream(State state) {
  const SlotName slot = streams.take();
  streams[slot.index] = Stream{};
  streams[slot.index].state = state;
  return slot.packed();
}

bool ShmNet::Impl::watch(Stream& stream, StreamId id) {
  const auto added = watched.add(stream.socket.get(), id, EPOLLIN | EPOLLRDHUP | EPOLLET);
  stream.watch = added.value_or(host::WatchId{});
  return added.has_value();
}

void ShmNet::Impl::open(Stream& stream, StreamId id, Segment segment, size_t written_direction) {
  stream.segment = std::move(segment);
  stream.out = RingWriter(stream.segment.ring(written_direction));
  stream.in = RingReader(stream.segment.ring(1 - written_direction));
  stream.state = State::open;
  use(stream, id);
}

// At once, or on another thread where that may take as long as the peer likes.
void ShmNet::Impl::close_socket(Descriptor socket) {
  if (!end(socket.get())) closer.close(std::move(socket));
}

// The socket is closed, or will be, and watched no more. The peer is told at once.
void ShmNet::Impl::drop(Stream& stream) {
  const host::WatchId was = std::exchange(stream.watch, {});
  const bool is_empty = !stream.socket || end(stream.socket.get());
  const bool is_kept = stream.socket && untaken.stands_in(stream.socket.get());
  if ((is_empty && !is_kept) || !watched.remove(was)) watched.closed(was);
  if (is_kept) {
    untaken.keep(std::move(stream.socket));
    return look_at_untaken_later();
  }
  if (is_empty) return stream.socket.reset();
  closer.close(std::move(stream.socket));
}

void ShmNet::Impl::release(StreamId id) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  if (stream->in_use) std::erase(busy, id);
  drop(*stream);
  *stream = Stream{};
  streams.release(SlotName::of(id).index);
  if (accept_again != never) {
    accept_again = never;
    update_accepting();
  }
}

void ShmNet::close(StreamId id) { impl_->release(id); }

bool ShmNet::accept_starves() const { return impl_->accept_again != never; }

void ShmNet::pause_accept(bool paused) {
  impl_->accept_paused = paused;
  impl_->update_accepting();
}

// ---- Who is looked at, and who wakes us.

// Whoever is in use is looked at in each poll, and is not to wake us.
void ShmNet::Impl::use(Stream& stream, StreamId id) {
  if (stream.in_use || stream.state != State::open) return;
  if (busy.size() >= streams_watched_max) make_room();
  busy.push_back(id);
  stream.in_use = true;
  stream.in.stop_waiting();
  stream.out.stop_waiting();
}

// True: the peer wakes us from now on. False: there is news, or something is wrong.
bool ShmNet::Impl::wait(Stream& stream) {
  if (!stream.in.wait()) return false;
  if (!stream.wants_room || stream.out.wait()) return true;
  stream.in.stop_waiting();
  return false;
}

// One that has been in use for the longest, and has no news, wakes us in place of being looked at. If all have news they stay.
void ShmNet::Impl::make_room() {
  for (auto at = busy.begin(); at != busy.end(); ++at) {
    Stream& stream = *find(*at);
    if (!stream.hung_up && !wait(stream)) continue;
    stream.in_use = false;
    busy.erase(at);
    return;
  }
}

bool ShmNet::Impl::has_news(Stream& stream) {
  return stream.hung_up || stream.in.has_bytes() || stream.in.broken() || (stream.wants_room && stream.out.has_room()) ||
         stream.out.broken();
}

// Whether a peer answers within a moment, so that nobody need sleep. Only in a loop that has nobody else to look at, and where the
// peer has a processor to answer on.
bool ShmNet::Impl::news_come_at_once() {
  if (!has_processor_for_peer || busy.empty() || !failed.empty() || !watched.looks_alone() || !linger.before_this_sleep())
    return false;
  const host::SystemClock clock;
  const Instant until = after(clock.now(), linger_time);
  bool news = false;
  do news = std::any_of(busy.begin(), busy.end(), [this](StreamId id) { return has_news(*find(id)); });
  while (!news && clock.now() < until);
  linger.ended(news);
  return news;
}

bool ShmNet::Impl::may_sleep() {
  if (news_come_at_once()) return false;
  std::erase_if(busy, [this](StreamId id) {
    Stream& stream = *find(id);
    stream.in_use = !stream.hung_up && !wait(stream);
    return !stream.in_use;
  });
  return busy.empty() && failed.empty();
}

void ShmNet::set_deadline(Instant at) {
  impl_->deadline = at;
  impl_->arm();
}

void ShmNet::Impl::arm() {
  watched.arm(failed.empty() ? std::min({deadline, accept_again, dial_again, pass_again}) : Instant::min());
}

// ---- Bytes.

void ShmNet::Impl::fail_stream(StreamId id, Status status, std::string reason) {
  Stream& stream = *find(id);
  if (stream.in_use) std::erase(busy, id);
  drop(stream);
  stream = Stream{};
  stream.state = State::failed;
  stream.status = status;
  stream.reason = std::move(reason);
  failed.push_back(id);
  arm();
}

void ShmNet::Impl::check_rings(StreamId id) {
  const Stream& stream = *find(id);
  if (!stream.in.broken() && !stream.out.broken()) return;
  if (options.counters != nullptr) options.counters->add(Counter::shared_rings_rejected);
  fail_stream(id, Status::disconnected, "the peer wrote into the shared memory what cannot be");
}

int64_t ShmNet::recv(StreamId id, std::span<const stream::IoSpan> into) {
  Impl::Stream* stream = impl_->find(id);
  if (stream == nullptr) return stream::io_error;
  if (stream->state != Impl::State::open) return stream::io_again;  // what failed is reported by the next poll
  impl_->use(*stream, id);
  int64_t total = 0;
  bool wakes = false;
  bool all = true;  // of what fits: more may come at any time, and the next place is for what is behind it
  for (const stream::IoSpan& span : into) {
    for (size_t at = 0; at < span.size && all;) {
      const size_t step = std::min(span.size - at, step_bytes);
      const size_t taken = stream->in.take({span.data + at, step});
      if (stream->in.unreleased_bytes() >= step_bytes) wakes = stream->in.release() || wakes;
      at += taken;
      total += static_cast<int64_t>(taken);
      all = taken == step;
    }
  }
  wakes = stream->in.release() || wakes;
  if (wakes) ring(stream->socket.get());
  if (total > 0) return total;
  if (stream->in.broken()) {
    impl_->check_rings(id);
    return stream::io_again;
  }
  return stream->hung_up ? stream::io_closed : stream::io_again;
}

bool ShmNet::nothing_to_read(StreamId id) const {
  Impl::Stream* stream = impl_->find(id);
  return stream != nullptr && stream->state == Impl::State::open && stream->in_use && !stream->hung_up && !stream->in.broken() &&
         !stream->in.has_bytes();
}

int64_t ShmNet::send(StreamId id, std::span<const stream::ConstIoSpan> from) {
  Impl::Stream* stream = impl_->find(id);
  if (stream == nullptr) return stream::io_error;
  if (stream->state == Impl::State::passing) stream->wants_room = true;  // told once it is open
  if (stream->state != Impl::State::open) return stream::io_again;
  if (stream->hung_up) return stream::io_closed;
  const bool was_asleep = !stream->in_use;
  impl_->use(*stream, id);
  int64_t total = 0;
  const auto publish = [&] {
    if (stream->out.publish()) ring(stream->socket.get());
  };
  for (const stream::ConstIoSpan& span : from) {
    CHECK(span.splice_pipe == nullptr);  // we make none, and take none
    for (size_t at = 0; at < span.size && !stream->wants_room;) {
      const size_t step = std::min(span.size - at, step_bytes);
      const size_t taken = stream->out.append({span.data + at, step});
      if (stream->out.unpublished_bytes() >= step_bytes) publish();
      at += taken;
      total += static_cast<int64_t>(taken);
      stream->wants_room = taken < step;
    }
  }
  publish();
  if (stream->out.broken()) impl_->check_rings(id);
  if (was_asleep) impl_->arm();  // whoever sleeps on the OS handle may look into no ring before the peer's answer
  return total > 0 ? total : stream::io_again;
}

uint64_t ShmNet::waiting_bytes(StreamId id) const {
  Impl::Stream* stream = impl_->find(id);
  return stream == nullptr || stream->state != Impl::State::open ? 0 : stream->out.waiting_bytes();
}

}  // namespace ccixfer::shm

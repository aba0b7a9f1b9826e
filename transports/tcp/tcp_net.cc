#include "transports/tcp/tcp_net.h"

#include <fmt/core.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "transports/inet/uri.h"
#include "transports/tcp/kernel_splice_pipe.h"
#include "transports/tcp/path_figures.h"
#include "transports/tcp/tcp_net_impl.h"

namespace ccixfer::tcp {

TcpNet::Impl::~Impl() = default;

Result<std::unique_ptr<TcpNet>> TcpNet::create(const TcpNetOptions& options) {
  // Splicing into a socket that the peer closed raises it, and there is no flag against it as sendmsg has.
  struct sigaction before {};
  if (sigaction(SIGPIPE, nullptr, &before) == 0 && before.sa_handler == SIG_DFL) signal(SIGPIPE, SIG_IGN);
  const auto no_descriptors = [](const std::string& why) {
    return fail(ErrorKind::network, fmt::format("no descriptors for a network: {}", why));
  };
  std::shared_ptr<host::Waker> waker = options.waker;
  if (waker == nullptr) {
    auto own = host::Waker::create(host::Waits::for_handle);
    if (!own) return no_descriptors(own.error().message);
    waker = std::move(*own);
  }
  auto impl = std::make_unique<Impl>(options, std::move(waker));
  if (options.listen) {
    Result<Descriptor> listener = options.listener >= 0
                                      ? take_listener(options.listener)
                                      : open_listener(options.listen_host, options.port, options.interface_name, options.backlog);
    if (!listener) return tl::unexpected<Error>(listener.error());
    impl->listener = std::move(*listener);
    impl->listening = inet::local_address(impl->listener.get());
    impl->update_accepting();
    impl->device.open(impl->listening);
    if (impl->device && !impl->watched.add(impl->device.descriptor(), Impl::device_token, EPOLLIN))
      return no_descriptors(inet::error_words(errno));
  }
  return std::unique_ptr<TcpNet>(new TcpNet(std::move(impl)));
}

TcpNet::TcpNet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TcpNet::~TcpNet() = default;

std::vector<std::string> TcpNet::uris() const {
  if (!impl_->listener) return {};
  std::vector<std::string> hosts = inet::hosts_to_dial(impl_->listening, impl_->options.interface_name);
  for (std::string& host : hosts) host = inet::format_uri("tcp", host, inet::port_of(impl_->listening));
  return hosts;
}

uint64_t TcpNet::waiting_bytes(StreamId id) const {
  const Impl::Stream* stream = impl_->find(id);
  int bytes = 0;
  if (stream == nullptr || !stream->fd || ioctl(stream->fd.get(), SIOCOUTQ, &bytes) != 0) return 0;
  return static_cast<uint64_t>(bytes) + stream->pipe.held_bytes();
}

std::optional<ports::PathFigures> TcpNet::path_figures(StreamId id) const {
  const Impl::Stream* stream = impl_->find(id);
  return stream == nullptr || stream->state != Impl::State::open ? std::nullopt : figures_of(stream->fd.get());
}

std::string TcpNet::uri() const {
  const std::vector<std::string> all = uris();
  return all.empty() ? std::string() : all.front();
}

int TcpNet::os_handle() const { return impl_->watched.waker().os_handle(); }

TcpNet::Impl::Stream* TcpNet::Impl::find(StreamId id) { return streams.find(SlotName::of(id)); }

StreamId TcpNet::Impl::add_stream(State state) {
  const SlotName name = streams.take();
  streams[name.index] = Stream{};
  streams[name.index].state = state;
  return name.packed();
}

bool TcpNet::Impl::watch(Stream& stream, StreamId id) {
  const auto added = watched.add(stream.fd.get(), id, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
  stream.watch = added.value_or(host::WatchId{});
  return added.has_value();
}

void TcpNet::Impl::stop(Stream& stream) {
  watched.closed(std::exchange(stream.watch, {}));
  stream.fd.reset();
}

// What the peer has acknowledged its kernel has, and ours refers to no more.
uint64_t TcpNet::Impl::unacknowledged_bytes(const Stream& stream) {
  if (!stream.fd || !stream.pipe.used()) return 0;
  int unsent_bytes = 0;
  if (ioctl(stream.fd.get(), SIOCOUTQ, &unsent_bytes) != 0) return UINT64_MAX;
  return static_cast<uint64_t>(unsent_bytes) + stream.pipe.held_bytes();
}

void TcpNet::Impl::release(StreamId id) {
  Stream* stream = find(id);
  if (stream == nullptr) return;
  if (stream->state == State::resolving) resolver->forget(id);
  // What refers to lent memory must not go out once its owner was told that the connection is over.
  if (unacknowledged_bytes(*stream) > 0) {
    const linger abortive{1, 0};
    static_cast<void>(setsockopt(stream->fd.get(), SOL_SOCKET, SO_LINGER, &abortive, sizeof abortive));
  }
  stop(*stream);
  address_ends.set(SlotName::of(id).index, never);
  stream->pipe = {};
  stream->addresses = {};
  streams.release(SlotName::of(id).index);
  if (accept_again != never) {
    accept_again = never;
    update_accepting();
  }
}

namespace {

class LooseSocket final : public stream::LooseStream {
 public:
  explicit LooseSocket(Descriptor socket) : fd(std::move(socket)) {}
  Descriptor fd;
};

}  // namespace

// The kernel tells the other waker anew what is there to be read: nothing is lost between the two.
std::unique_ptr<stream::LooseStream> TcpNet::release(StreamId id) {
  Impl::Stream* stream = impl_->find(id);
  if (stream == nullptr || stream->state != Impl::State::open || !stream->pipe.empty()) return nullptr;
  if (!impl_->watched.remove(stream->watch)) return nullptr;
  stream->watch = {};
  auto loose = std::make_unique<LooseSocket>(std::exchange(stream->fd, {}));
  impl_->release(id);
  return loose;
}

StreamId TcpNet::adopt(std::unique_ptr<stream::LooseStream> stream) {
  auto* loose = dynamic_cast<LooseSocket*>(stream.get());
  if (loose == nullptr) return 0;
  const StreamId id = impl_->add_stream(Impl::State::open);
  impl_->find(id)->fd = std::move(loose->fd);
  impl_->opened(*impl_->find(id));
  if (impl_->watch(*impl_->find(id), id)) return id;
  impl_->release(id);
  return 0;
}

void TcpNet::close(StreamId id) { impl_->release(id); }

bool TcpNet::accept_starves() const { return impl_->accept_again != never; }

void TcpNet::pause_accept(bool paused) {
  impl_->accept_paused = paused;
  impl_->update_accepting();
}

int64_t TcpNet::recv(StreamId id, std::span<const stream::IoSpan> into) {
  Impl::Stream* stream = impl_->find(id);
  if (stream == nullptr || stream->state != Impl::State::open) return stream::io_error;
  if (stream->nothing_to_read) return stream::io_again;
  std::array<iovec, 4> spans;
  CHECK(!into.empty() && into.size() <= spans.size());
  size_t offered = 0;
  for (size_t i = 0; i < into.size(); ++i) {
    spans[i] = {into[i].data, into[i].size};
    offered += into[i].size;
  }
  for (;;) {
    const ssize_t n = into.size() == 1 ? ::recv(stream->fd.get(), into[0].data, into[0].size, 0)
                                       : readv(stream->fd.get(), spans.data(), static_cast<int>(into.size()));
    if (n > 0) {
      stream->nothing_to_read = static_cast<size_t>(n) < offered && !stream->hung_up;
      return n;
    }
    if (n == 0) return stream::io_closed;
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return stream::io_again;
    return stream::io_error;
  }
}

bool TcpNet::nothing_to_read(StreamId id) const {
  const Impl::Stream* stream = impl_->find(id);
  return stream != nullptr && stream->nothing_to_read;
}

namespace {

// A few bytes from several places go out from one: the kernel takes longer over a list of places than it takes to copy them.
constexpr size_t joined_bytes_max = 512;

int64_t io_of_send_errno(int error) {
  if (error == EAGAIN) return stream::io_again;
  return error == EPIPE || error == ECONNRESET ? stream::io_closed : stream::io_error;
}

size_t bytes_of(std::span<const stream::ConstIoSpan> spans) {
  return std::accumulate(spans.begin(), spans.end(), size_t{0},
                         [](size_t bytes, const stream::ConstIoSpan& span) { return bytes + span.size; });
}

void touch_pages(Bytes memory) {
  constexpr size_t page_bytes_min = 4096;
  for (size_t at = 0; at < memory.size(); at += page_bytes_min)
    static_cast<void>(*static_cast<const volatile std::byte*>(&memory[at]));
  if (!memory.empty()) static_cast<void>(*static_cast<const volatile std::byte*>(&memory.back()));
}

}  // namespace

void TcpNet::Impl::opened(Stream& stream) const {
  stream.state = State::open;
  stream.by_reference = options.by_reference == ByReference::always;
  if (peer_is_this_host(stream.fd.get())) return;
  space_packets(stream.fd.get());
  static_cast<void>(setsockopt(stream.fd.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &notsent_lowat_bytes, sizeof notsent_lowat_bytes));
}

int64_t TcpNet::Impl::send_copied(Stream& stream, std::span<const stream::ConstIoSpan> from, bool more) {
  std::array<iovec, 128> spans;
  CHECK(!from.empty() && from.size() <= spans.size());
  const size_t offered = bytes_of(from);
  std::array<std::byte, joined_bytes_max> joined;
  size_t count = 0;
  if (from.size() > 1 && offered <= joined.size()) {
    for (size_t at = 0; const stream::ConstIoSpan& span : from) {
      std::memcpy(joined.data() + at, span.data, span.size);
      at += span.size;
    }
    spans[count++] = {joined.data(), offered};
  } else {
    for (const stream::ConstIoSpan& span : from) spans[count++] = {const_cast<std::byte*>(span.data), span.size};
  }
  msghdr message{};
  message.msg_iov = spans.data();
  message.msg_iovlen = count;
  const int flags = MSG_NOSIGNAL | (more ? MSG_MORE : 0);
  bool touched = false;
  for (;;) {
    const ssize_t n = count == 1 ? ::send(stream.fd.get(), spans[0].iov_base, spans[0].iov_len, flags)
                                 : sendmsg(stream.fd.get(), &message, flags);
    if (n >= 0) {
      // Before pages of a file that was cut short the kernel stops, too, and no event will tell of room: the next try finds out.
      stream.full = static_cast<size_t>(n) < offered &&
                    std::none_of(from.begin(), from.end(), [](const stream::ConstIoSpan& span) { return span.is_file; });
      return n;
    }
    if (errno == EINTR) continue;
    // Pages of a file that was cut short: touched, they are zeros from now on (core/memory/file_view.h), and its hash will tell.
    if (errno == EFAULT && !touched) {
      for (const stream::ConstIoSpan& span : from) touch_pages({span.data, span.size});
      touched = true;
      continue;
    }
    stream.full = errno == EAGAIN;
    return io_of_send_errno(errno);
  }
}

int64_t TcpNet::Impl::send_lent(Stream& stream, Bytes memory, bool more) {
  const size_t taken = stream.pipe.fill(memory);
  if (taken == 0) return 0;
  if (!stream.pipe.flush(stream.fd.get(), more || taken < memory.size())) {
    if (errno != EAGAIN) return io_of_send_errno(errno);
    stream.full = true;
  }
  return static_cast<int64_t>(taken);
}

int64_t TcpNet::Impl::send_through(Stream& stream, ports::SplicePipe& splice_pipe, size_t size, bool more) {
  const size_t sent = static_cast<KernelSplicePipe&>(splice_pipe).flush(stream.fd.get(), size, more);
  stream.full = sent < size && errno == EAGAIN;
  return sent > 0 ? static_cast<int64_t>(sent) : io_of_send_errno(errno);
}

int64_t TcpNet::recv_to(StreamId id, ports::SplicePipe& splice_pipe, size_t size) {
  Impl::Stream* stream = impl_->find(id);
  if (stream == nullptr || stream->state != Impl::State::open) return stream::io_error;
  if (stream->nothing_to_read) return stream::io_again;
  const int64_t n = static_cast<KernelSplicePipe&>(splice_pipe).fill(stream->fd.get(), size);
  // A full pipe hides the end of the stream, of which no event will tell again: it is found without the pipe.
  return n == stream::io_again && stream->hung_up && splice_pipe.held_bytes() > 0 ? stream::io_full : n;
}

std::unique_ptr<ports::SplicePipe> TcpNet::make_splice_pipe() {
  return impl_->options.by_reference == ByReference::never ? nullptr : KernelSplicePipe::create();
}

bool TcpNet::takes(const ports::SplicePipe& splice_pipe) const {
  return impl_->options.by_reference != ByReference::never && dynamic_cast<const KernelSplicePipe*>(&splice_pipe) != nullptr;
}

wire::HostIdentity TcpNet::machine() const { return this_machine(impl_->number_of_boot); }

void TcpNet::peer_is_elsewhere(StreamId id) {
  Impl::Stream* stream = impl_->find(id);
  if (stream != nullptr && impl_->options.by_reference == ByReference::to_other_machines) stream->by_reference = true;
}

bool TcpNet::lends(StreamId id) const {
  const Impl::Stream* stream = impl_->find(id);
  return stream != nullptr && stream->by_reference;
}

uint64_t TcpNet::unacknowledged_bytes(StreamId id) const {
  const Impl::Stream* stream = impl_->find(id);
  return stream == nullptr ? 0 : Impl::unacknowledged_bytes(*stream);
}

int64_t TcpNet::send(StreamId id, std::span<const stream::ConstIoSpan> from) {
  Impl::Stream* stream = impl_->find(id);
  if (stream == nullptr || stream->state != Impl::State::open) return stream::io_error;
  if (stream->full) return stream::io_again;
  if (!stream->pipe.empty()) return stream::io_closed;  // the socket broke with bytes on their way into it
  CHECK(!from.empty());
  if (from.size() == 1 && !from[0].lent) {
    const int64_t n = Impl::send_copied(*stream, from, from[0].more);
    if (n < 0 && n != stream::io_again) stream->nothing_to_read = false;
    return n;
  }
  const auto goes_by_reference = [&](const stream::ConstIoSpan& span) {
    const bool may = stream->by_reference || (span.is_file && impl_->options.by_reference != ByReference::never);
    return may && span.lent && span.splice_pipe == nullptr && span.size >= zero_copy_bytes_min;
  };
  int64_t total = 0;
  bool copy_next = false;
  for (size_t i = 0; i < from.size() && !stream->full;) {
    size_t end = i + 1;
    int64_t n = 0;
    if (from[i].splice_pipe != nullptr) {
      n = Impl::send_through(*stream, *from[i].splice_pipe, from[i].size, end < from.size() || from.back().more);
    } else if (goes_by_reference(from[i]) && !copy_next) {
      n = Impl::send_lent(*stream, {from[i].data, from[i].size}, end < from.size() || from.back().more);
      copy_next = n == 0;
      if (copy_next) continue;
    } else {
      while (end < from.size() && end - i < 128 && from[end].splice_pipe == nullptr &&
             (copy_next || !goes_by_reference(from[end]))) {
        ++end;
      }
      n = Impl::send_copied(*stream, from.subspan(i, end - i), end < from.size() || from.back().more);
    }
    // Broken: what the peer said last may be there, whatever the events said so far.
    if (n < 0 && n != stream::io_again) stream->nothing_to_read = false;
    if (n < 0) return total > 0 ? total : n;
    total += n;
    if (static_cast<size_t>(n) < bytes_of(from.subspan(i, end - i))) break;
    i = end;
  }
  return total;
}

void TcpNet::set_deadline(Instant at) {
  impl_->deadline = at;
  impl_->arm();
}

void TcpNet::Impl::arm() {
  watched.arm(failed.empty() ? std::min({deadline, accept_again, address_ends.earliest()}) : Instant::min());
}

}  // namespace ccixfer::tcp

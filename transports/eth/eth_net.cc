#include "transports/eth/eth_net.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/host/entropy.h"
#include "transports/eth/frame.h"
#include "transports/eth/id_claim.h"
#include "transports/eth/socket.h"

namespace ccixfer::eth {

using datagram::Address;
using datagram::batch_datagrams_max;
using datagram::Datagram;
using datagram::DatagramEvents;
using datagram::Sent;

namespace {

constexpr uint64_t socket_token = 1;
constexpr uint32_t guesses_in_a_row_max = 16;  // polls without a wait that look into the ring alone

// The id that is asked for, or any free one.
Result<IdClaim> claim_id(const Interface& interface, uint16_t id) {
  host::SystemEntropy entropy;
  auto claim = id == 0 ? IdClaim::take_any(interface.index, entropy) : IdClaim::take(interface.index, id);
  if (!claim) return tl::unexpected(claim.error());
  if (*claim) return std::move(**claim);
  if (id == 0) return fail(ErrorKind::network, fmt::format("no id is free on {}", interface.name));
  return fail(ErrorKind::network, fmt::format("cannot listen on {}: another process has the id {} on {}: give another id",
                                              format_uri({interface.mac, id}), id, interface.name));
}

}  // namespace

struct EthNet::Impl {
  struct Answer {
    uint64_t query = 0;
    Status status = Status::success;
    Address address;
    std::string reason;
  };

  Impl(const EthNetOptions& o, std::shared_ptr<host::Waker> waker, Counters& c, Interface i, IdClaim claimed, Socket s)
      : listens(o.listen),
        watched(std::move(waker)),
        counters(c),
        interface(std::move(i)),
        claim(std::move(claimed)),
        own{interface.mac, claim.id()},
        socket(std::move(s)),
        ring(socket.mapping.memory(), socket.shape) {}

  void arm() { watched.arm(readable || !answers.empty() ? Instant::min() : deadline); }
  [[nodiscard]] bool guesses_readable();
  void take_news(Instant now, DatagramEvents& events);
  void tell_failure(DatagramEvents& events) const;
  void read(DatagramEvents& events);
  void take(const RawFrame& frame);

  const bool listens;
  host::WatchList watched;  // ends after the descriptors below, which are closed by then
  Counters& counters;
  const Interface interface;
  const IdClaim claim;
  const Name own;
  Socket socket;
  ReceiveRing ring;
  std::vector<Answer> answers;  // that poll() is to report
  uint64_t last_query = 0;
  bool readable = true;  // there may be more: no event will tell again
  bool full = false;     // a send found no room, and no event has told of any since
  uint32_t guesses = 0;
  Instant deadline = never;

  std::array<Header, batch_datagrams_max> headers;
  std::array<std::array<iovec, 2>, batch_datagrams_max> parts;
  std::array<mmsghdr, batch_datagrams_max> messages{};
  std::vector<Datagram> came;
};

Result<std::unique_ptr<EthNet>> EthNet::create(const EthNetOptions& options, Counters& counters) {
  const auto no_descriptors = [](const std::string& why) {
    return fail(ErrorKind::network, fmt::format("no descriptors for a network: {}", why));
  };
  std::shared_ptr<host::Waker> waker = options.waker;
  if (waker == nullptr) {
    auto own = host::Waker::create(host::Waits::for_handle);
    if (!own) return no_descriptors(own.error().message);
    waker = std::move(*own);
  }
  const auto all = interfaces();
  if (!all) return tl::unexpected(all.error());
  auto interface = choose_interface(*all, options.interface_name, options.mac);
  if (!interface) return tl::unexpected(interface.error());
  auto claim = claim_id(*interface, options.id);
  if (!claim) return tl::unexpected(claim.error());
  auto socket = open_socket(*interface, claim->id(), options.ring_bytes);
  if (!socket) return tl::unexpected(socket.error());
  auto impl =
      std::make_unique<Impl>(options, std::move(waker), counters, std::move(*interface), std::move(*claim), std::move(*socket));
  if (!impl->watched.add(impl->socket.descriptor.get(), socket_token, EPOLLIN | EPOLLOUT | EPOLLET))
    return no_descriptors(std::generic_category().message(errno));
  return std::unique_ptr<EthNet>(new EthNet(std::move(impl)));
}

EthNet::EthNet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EthNet::~EthNet() = default;

const Name& EthNet::name() const { return impl_->own; }
std::string EthNet::host_of(const Address& address) const { return format_mac(name_of(address).mac); }
std::string EthNet::uri() const { return impl_->listens ? format_uri(impl_->own) : std::string(); }
bool EthNet::takes_strangers() const { return impl_->listens; }
uint32_t EthNet::datagram_bytes_max() const { return impl_->socket.datagram_bytes_max; }
int EthNet::os_handle() const { return impl_->watched.waker().os_handle(); }

void EthNet::set_deadline(Instant at) {
  impl_->deadline = at;
  impl_->arm();
}

Result<uint64_t> EthNet::resolve(std::string_view uri) {
  const Result<Name> name = parse_uri(uri);
  if (!name) return tl::unexpected(name.error());
  Impl& net = *impl_;
  Impl::Answer& answer = net.answers.emplace_back();
  answer.query = ++net.last_query;
  answer.address = address_of(*name);
  if (name->mac == net.own.mac) {
    answer.status = Status::unreachable;
    answer.reason =
        fmt::format("{}: that is this end's own interface, {}, and Ethernet brings no frame back to it: use tcp on one host",
                    format_uri(*name), net.interface.name);
  }
  net.arm();
  return net.last_query;
}

// ---- Out.

Sent EthNet::send(std::span<const Datagram> batch) {
  Impl& net = *impl_;
  CHECK(!batch.empty() && batch.size() <= batch_datagrams_max);
  if (net.full) return {0, Sent::Stop::again};
  for (size_t i = 0; i < batch.size(); ++i) {
    const Bytes bytes = batch[i].bytes;
    CHECK(!bytes.empty() && bytes.size() <= net.socket.datagram_bytes_max);
    net.headers[i] = encode_header(name_of(batch[i].peer), net.own, bytes.size());
    net.parts[i] = {iovec{net.headers[i].data(), net.headers[i].size()}, iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
    net.messages[i] = {};
    net.messages[i].msg_hdr.msg_iov = net.parts[i].data();
    net.messages[i].msg_hdr.msg_iovlen = net.parts[i].size();
  }
  for (;;) {
    const int taken = sendmmsg(net.socket.descriptor.get(), net.messages.data(), static_cast<unsigned>(batch.size()), MSG_NOSIGNAL);
    if (taken > 0) return {static_cast<size_t>(taken), Sent::Stop::none};
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return {0, Sent::Stop::failed, errno};
    net.full = true;
    return {0, Sent::Stop::again};
  }
}

void EthNet::send_last(std::span<const Datagram> batch) {
  while (!batch.empty()) {
    const Sent sent = send(batch);
    batch = batch.subspan(sent.taken);
    if (sent.stop == Sent::Stop::failed) batch = batch.subspan(1);
    if (sent.stop != Sent::Stop::again) continue;
    pollfd room{impl_->socket.descriptor.get(), POLLOUT, 0};
    if (::poll(&room, 1, static_cast<int>(last_words_wait.count() / 1'000'000)) != 1) return;
    impl_->full = false;
  }
}

// ---- In.

// Who turns again without a wait mostly expects an answer, and the ring shows it without a system call. The rest is asked for every
// so often.
bool EthNet::Impl::guesses_readable() {
  if (watched.has_news() || !watched.looks_alone() || full || guesses >= guesses_in_a_row_max) {
    guesses = 0;
    return false;
  }
  ++guesses;
  return true;
}

// The kernel tells a packet socket when its interface goes down or away.
void EthNet::Impl::tell_failure(DatagramEvents& events) const {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket.descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error == 0) return;
  events.device_failed(fmt::format("{}: the interface {} is down or gone: {}", format_uri(own), interface.name,
                                   std::generic_category().message(error)));
}

void EthNet::Impl::take_news(Instant now, DatagramEvents& events) {
  watched.look(now);
  while (const auto ready = watched.next()) {
    if ((ready->events & EPOLLERR) != 0) tell_failure(events);
    if ((ready->events & EPOLLOUT) != 0 && std::exchange(full, false)) events.writable();
  }
}

void EthNet::Impl::take(const RawFrame& frame) {
  if (frame.lost_some) counters.add(Counter::datagrams_dropped, take_drops(socket.descriptor.get()));
  const auto decoded = frame.is_whole && frame.is_for_this_host ? decode_frame(frame.bytes, own) : std::nullopt;
  if (!decoded) return counters.add(Counter::datagrams_rejected);
  came.push_back({address_of(decoded->from), decoded->datagram});
}

void EthNet::Impl::read(DatagramEvents& events) {
  readable = true;
  for (size_t frames = 0; readable && frames < frames_per_poll_max;) {
    came.clear();
    for (size_t i = 0; readable && i < batch_datagrams_max; ++i) {
      const auto frame = ring.next();
      readable = frame.has_value();
      if (!frame) break;
      ++frames;
      take(*frame);
    }
    if (!came.empty()) events.received(came);
    ring.release();
  }
}

void EthNet::poll(Instant now, DatagramEvents& events) {
  Impl& net = *impl_;
  if (!net.guesses_readable()) net.take_news(now, events);
  net.read(events);
  for (const Impl::Answer& answer : std::exchange(net.answers, {}))
    events.resolved(answer.query, answer.status, answer.address, answer.reason);
}

}  // namespace ccixfer::eth

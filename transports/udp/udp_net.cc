#include "transports/udp/udp_net.h"

#include <fmt/core.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "transports/inet/device_watch.h"
#include "transports/inet/resolver.h"
#include "transports/inet/uri.h"
#include "transports/udp/multicast.h"
#include "transports/udp/name_turns.h"
#include "transports/udp/pieces.h"

namespace ccixfer::udp {

using datagram::Address;
using datagram::batch_datagrams_max;
using datagram::Datagram;
using datagram::DatagramEvents;
using datagram::Sent;

namespace {

constexpr uint64_t socket_token = 1;
constexpr uint64_t device_token = 2;
constexpr uint64_t member_token = uint64_t{1} << 32;  // and the member's number below
constexpr uint32_t guesses_in_a_row_max = 16;         // polls without a wait that ask the socket alone

bool is_loopback(const Address& address) {
  const bool is_v6_loopback = address.high == 0 && address.low == 1;
  return is_v6_loopback || (is_v4(address) && (address.low >> 24 & 0xff) == 127);
}

bool set(int fd, int level, int name, int value) { return setsockopt(fd, level, name, &value, sizeof value) == 0; }

// As large as the system grants: with the privilege for it (the second name) more than the administrator's bound.
void set_buffer(int fd, int name, int forced_name) {
  if (!set(fd, SOL_SOCKET, forced_name, socket_buffer_bytes)) static_cast<void>(set(fd, SOL_SOCKET, name, socket_buffer_bytes));
}

// The kernel counts its own overhead in, as much again as was asked for.
uint64_t buffer_of(int fd, int name) {
  int doubled = 0;
  socklen_t size = sizeof doubled;
  return getsockopt(fd, SOL_SOCKET, name, &doubled, &size) == 0 ? static_cast<uint64_t>(doubled) / 2 : 0;
}

Result<host::Descriptor> open_socket(const inet::Address& address, const UdpNetOptions& options) {
  const auto cannot = [&](const char* what, int error) {
    return fail(ErrorKind::network,
                fmt::format("{} {}: {}", what, inet::format_uri("udp", inet::host_of(address), inet::port_of(address)),
                            inet::error_words(error)));
  };
  host::Descriptor fd(socket(address.storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return cannot("no socket for", errno);
  if (!options.interface_name.empty() && setsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, options.interface_name.c_str(),
                                                    static_cast<socklen_t>(options.interface_name.size())) != 0) {
    return cannot("cannot bind to the interface for", errno);
  }
  // A datagram is never fragmented, so a probe that arrives shows what the path carries. No ICMP message, which anybody can make
  // up, changes what this socket takes for the path's MTU.
  if (address.storage.ss_family == AF_INET6) {
    static_cast<void>(set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0));
    static_cast<void>(set(fd.get(), IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE));
  }
  static_cast<void>(set(fd.get(), IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE));
  // Of a socket of several addresses the kernel tells to which a datagram came: its answer leaves from there.
  if (inet::is_wildcard(address) && address.storage.ss_family == AF_INET6)
    static_cast<void>(set(fd.get(), IPPROTO_IPV6, IPV6_RECVPKTINFO, 1));
  if (inet::is_wildcard(address) && address.storage.ss_family == AF_INET)
    static_cast<void>(set(fd.get(), IPPROTO_IP, IP_PKTINFO, 1));
  take_no_foreign_groups(fd.get(), address.storage.ss_family);
  set_buffer(fd.get(), SO_RCVBUF, SO_RCVBUFFORCE);
  set_buffer(fd.get(), SO_SNDBUF, SO_SNDBUFFORCE);
  if (options.joins) static_cast<void>(set(fd.get(), SOL_UDP, UDP_GRO, 1));
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0)
    return cannot("cannot listen on", errno);
  return fd;
}

// Of a socket that only dials: both families, where the host has both.
inet::Address any_address() {
  inet::Address address;
  const host::Descriptor has_both(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  CHECK(inet::numeric_address(has_both ? "::" : "0.0.0.0", 0, address));
  return address;
}

}  // namespace

std::optional<GrantedBuffers> granted_buffers() {
  const host::Descriptor fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return std::nullopt;
  set_buffer(fd.get(), SO_RCVBUF, SO_RCVBUFFORCE);
  set_buffer(fd.get(), SO_SNDBUF, SO_SNDBUFFORCE);
  return GrantedBuffers{buffer_of(fd.get(), SO_RCVBUF), buffer_of(fd.get(), SO_SNDBUF)};
}

struct UdpNet::Impl {
  using Tell = std::function<void(std::span<const Datagram>)>;
  struct Answer {
    uint64_t query = 0;
    Status status = Status::success;
    Address address;
    std::string reason;
  };

  // Of a group: what one of our connections receives.
  struct Member {
    host::Descriptor socket;
    host::WatchId watch;
    bool readable = true;
  };

  Impl(const UdpNetOptions& o, std::shared_ptr<host::Waker> waker)
      : options(o), watched(std::move(waker)), joins{o.joins, o.joins} {}

  void arm();
  void take_answers();
  [[nodiscard]] bool reaches(const Address& address) const;
  void answer(uint64_t query, const inet::Address& to);
  void read(DatagramEvents& events);
  [[nodiscard]] size_t read_once(int fd, const Tell& tell);
  [[nodiscard]] bool guesses_readable();
  [[nodiscard]] Result<uint32_t> reached_interface(const inet::Address& group, bool sends) const;
  [[nodiscard]] bool has_readable() const;

  const UdpNetOptions options;
  host::WatchList watched;  // ends after the descriptors below, which are closed by then
  host::Descriptor socket;
  inet::Address bound;
  std::map<uint32_t, Member> members;
  inet::DeviceWatch device;
  std::optional<inet::Resolver> resolver;
  std::vector<Answer> answers;  // that poll() is to report
  uint64_t last_query = 0;
  std::map<uint64_t, std::string> asked;  // the names that are being looked up
  NameTurns turns;
  Joins joins;           // false once the kernel refused
  bool readable = true;  // there may be more: no event will tell again
  bool full = false;     // a send found no room, and no event has told of any since
  uint32_t guesses = 0;
  Instant deadline = never;

  OutPieces out;
  const std::unique_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(pieces_per_read * piece_bytes_max);
  std::vector<Datagram> came;
};

Result<std::unique_ptr<UdpNet>> UdpNet::create(const UdpNetOptions& options) {
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
  const Result<inet::Address> place = options.listen ? inet::listen_address(options.listen_host, options.port) : any_address();
  if (!place) return tl::unexpected<Error>(place.error());
  auto socket = open_socket(*place, options);
  if (!socket) return tl::unexpected<Error>(socket.error());
  impl->socket = std::move(*socket);
  impl->bound = inet::local_address(impl->socket.get());
  if (!impl->watched.add(impl->socket.get(), socket_token, EPOLLIN | EPOLLOUT | EPOLLET))
    return no_descriptors(inet::error_words(errno));
  if (options.listen) impl->device.open(impl->bound);
  if (impl->device && !impl->watched.add(impl->device.descriptor(), device_token, EPOLLIN))
    return no_descriptors(inet::error_words(errno));
  return std::unique_ptr<UdpNet>(new UdpNet(std::move(impl)));
}

UdpNet::UdpNet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
UdpNet::~UdpNet() = default;

std::vector<std::string> UdpNet::uris() const {
  if (!impl_->options.listen) return {};
  std::vector<std::string> hosts = inet::hosts_to_dial(impl_->bound, impl_->options.interface_name);
  for (std::string& host : hosts) host = inet::format_uri("udp", host, inet::port_of(impl_->bound));
  return hosts;
}

std::string UdpNet::uri() const {
  const std::vector<std::string> all = uris();
  return all.empty() ? std::string() : all.front();
}

std::string UdpNet::host_of(const Address& address) const {
  inet::Address to;
  const bool is_v4 = to_socket_address(address, AF_INET, to);
  if (!is_v4) static_cast<void>(to_socket_address(address, AF_INET6, to));
  return inet::host_of(to);
}

std::string UdpNet::uri_of(const Address& address) const {
  return inet::format_uri("udp", host_of(address), static_cast<uint16_t>(address.port));
}

bool UdpNet::takes_strangers() const { return impl_->options.listen; }

bool UdpNet::knows_path(const Address& peer) const { return is_loopback(peer); }

// What most paths carry whole: on others a message goes in two parts. Whoever dials takes what the acceptor says; the peers of an
// acceptor on the loopback are there too.
uint32_t UdpNet::message_datagram_bytes() const {
  const bool is_long = !impl_->options.listen || is_loopback(address_of(impl_->bound.storage));
  return is_long ? datagram::datagram_bytes_max : datagram::datagram_bytes_min;
}

int UdpNet::os_handle() const { return impl_->watched.waker().os_handle(); }

void UdpNet::set_deadline(Instant at) {
  impl_->deadline = at;
  impl_->arm();
}

void UdpNet::Impl::arm() { watched.arm(has_readable() || !answers.empty() ? Instant::min() : deadline); }

bool UdpNet::Impl::has_readable() const {
  return readable || std::ranges::any_of(members, [](const auto& entry) { return entry.second.readable; });
}

// ---- Names.

Result<uint64_t> UdpNet::resolve(std::string_view uri) {
  const Result<inet::HostName> name = inet::parse_uri("udp", uri);
  if (!name) return tl::unexpected<Error>(name.error());
  Impl& net = *impl_;
  const uint64_t query = ++net.last_query;
  inet::Address address;
  if (inet::numeric_address(name->host, name->port, address)) {
    net.answer(query, address);
  } else {
    if (!net.resolver) net.resolver.emplace(net.watched.wake_handle());
    if (net.resolver->resolve(query, name->host, name->port)) {
      net.asked[query] = uri;
    } else {
      net.answers.push_back({query, Status::busy, {}, inet::words_of_no_lookup});
    }
  }
  net.arm();
  return query;
}

void UdpNet::forget(uint64_t query) {
  if (impl_->asked.erase(query) > 0) impl_->resolver->forget(query);
}

// The other family is reached by a socket of all addresses only.
bool UdpNet::Impl::reaches(const Address& address) const {
  if (bound.storage.ss_family == AF_INET) return is_v4(address);
  return inet::is_wildcard(bound) || is_v4(address) == is_v4(address_of(bound.storage));
}

void UdpNet::Impl::answer(uint64_t query, const inet::Address& to) {
  const Address address = address_of(to.storage);
  if (is_group(address)) {
    return answers.push_back({query, Status::unreachable, address, fmt::format("{} is a group and no peer", inet::host_of(to))});
  }
  if (reaches(address)) return answers.push_back({query, Status::success, address, {}});
  const char* family = is_v4(address) ? "IPv6" : "IPv4";
  answers.push_back(
      {query, Status::unreachable, address, fmt::format("{}: this end has an address of {} only", inet::host_of(to), family)});
}

// ---- Groups.

Result<uint32_t> UdpNet::Impl::reached_interface(const inet::Address& group, bool sends) const {
  const Address address = address_of(group.storage);
  if (!reaches(address)) {
    return fail(ErrorKind::network,
                fmt::format("{}: this end has an address of {} only", inet::host_of(group), is_v4(address) ? "IPv6" : "IPv4"));
  }
  const Result<uint32_t> own = group_interface(bound, options.interface_name);
  if (!own) return own;
  const uint32_t named = scope_of(group);
  // What an end of every address sends to groups leaves by one interface, whatever their names say.
  const bool fits = named == 0 ? *own != 0 || !is_of_one_link(group) : *own == named || (*own == 0 && !sends);
  if (fits) return named != 0 ? named : *own;
  return fail(ErrorKind::usage,
              fmt::format("{} is a group of one interface: give this end an address of that interface", inet::host_of(group)));
}

Result<datagram::Group> UdpNet::group(std::string_view uri) {
  const Result<inet::Address> group = parse_group(uri);
  if (!group) return tl::unexpected<Error>(group.error());
  const Result<uint32_t> interface = impl_->reached_interface(*group, true);
  if (!interface) return tl::unexpected<Error>(interface.error());
  const int family = group->storage.ss_family;
  const Result<void> set_up = send_to_groups(impl_->socket.get(), family, *interface, impl_->options.group_hops);
  if (!set_up) return tl::unexpected<Error>(set_up.error());
  return datagram::Group{address_of(group->storage), group_datagram_bytes(*group, *interface)};
}

Result<datagram::Group> UdpNet::join_group(std::string_view uri, uint32_t member) {
  const Result<inet::Address> group = parse_group(uri);
  if (!group) return tl::unexpected<Error>(group.error());
  const Result<uint32_t> interface = impl_->reached_interface(*group, false);
  if (!interface) return tl::unexpected<Error>(interface.error());
  Result<host::Descriptor> socket = join(*group, *interface, impl_->options.interface_name);
  if (!socket) return tl::unexpected<Error>(socket.error());
  set_buffer(socket->get(), SO_RCVBUF, SO_RCVBUFFORCE);
  const auto watch = impl_->watched.add(socket->get(), member_token | member, EPOLLIN | EPOLLET);
  if (!watch) return fail(ErrorKind::network, fmt::format("no descriptors for a group: {}", inet::error_words(errno)));
  const bool fresh = impl_->members.emplace(member, Impl::Member{std::move(*socket), *watch, true}).second;
  CHECK(fresh);
  impl_->arm();
  return datagram::Group{address_of(group->storage), group_datagram_bytes(*group, *interface)};
}

void UdpNet::leave_group(uint32_t member) {
  const auto found = impl_->members.find(member);
  if (found == impl_->members.end()) return;
  static_cast<void>(impl_->watched.remove(found->second.watch));
  impl_->members.erase(found);
}

void UdpNet::Impl::take_answers() {
  for (const inet::Resolver::Answer& found : resolver->take()) {
    const auto name = asked.extract(found.id);
    if (name.empty()) continue;  // nobody waits for it any more
    if (found.addresses.empty()) {
      answers.push_back({found.id, found.unknown ? Status::not_found : Status::unreachable, {}, found.reason});
      continue;
    }
    std::vector<inet::Address> reached;
    std::copy_if(found.addresses.begin(), found.addresses.end(), std::back_inserter(reached),
                 [&](const inet::Address& address) { return reaches(address_of(address.storage)); });
    answer(found.id, reached.empty() ? found.addresses.front() : reached[turns.next(name.mapped()) % reached.size()]);
  }
}

// ---- Out.

Sent UdpNet::send(std::span<const Datagram> batch) {
  Impl& net = *impl_;
  CHECK(!batch.empty() && batch.size() <= batch_datagrams_max);
  if (net.full) return {0, Sent::Stop::again};
  bool& joins = net.joins.of(batch[0].peer);
  bool stopped_joining = false;
  for (;;) {
    net.out.fill(batch, net.bound.storage.ss_family, net.joins);
    const std::span<mmsghdr> messages = net.out.messages();
    if (messages.empty()) return {0, Sent::Stop::failed, EAFNOSUPPORT};
    const int taken = sendmmsg(net.socket.get(), messages.data(), static_cast<unsigned>(messages.size()), MSG_NOSIGNAL);
    if (taken > 0) {
      Sent sent;
      for (size_t piece = 0; piece < static_cast<size_t>(taken); ++piece) sent.taken += net.out.datagrams_in(piece);
      return sent;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      net.full = true;
      if (stopped_joining) joins = true;  // nothing is known yet of a datagram alone
      return {0, Sent::Stop::again};
    }
    // A kernel or a device that cannot cut pieces apart: the first datagram by itself is taken. Where it is refused too, the
    // joining was not the reason: it is too long for the interface, or its address is one to which nothing can be sent, as a peer
    // may forge.
    const bool is_joined = net.out.datagrams_in(0) > 1;
    if (!is_joined && stopped_joining) joins = true;
    if (!is_joined || (errno != EINVAL && errno != EIO && errno != EMSGSIZE && errno != EOPNOTSUPP)) {
      return {0, Sent::Stop::failed, errno};
    }
    joins = false;
    stopped_joining = true;
  }
}

void UdpNet::send_last(std::span<const Datagram> batch) {
  while (!batch.empty()) {
    const Sent sent = send(batch);
    batch = batch.subspan(sent.taken);
    if (sent.stop == Sent::Stop::failed) batch = batch.subspan(1);
    if (sent.stop != Sent::Stop::again) continue;
    pollfd room{impl_->socket.get(), POLLOUT, 0};
    if (::poll(&room, 1, static_cast<int>(last_words_wait.count() / 1'000'000)) != 1) return;
    impl_->full = false;
  }
}

// ---- In.

// How many pieces came; fewer than were asked for: there are no more.
size_t UdpNet::Impl::read_once(int fd, const Tell& tell) {
  std::array<mmsghdr, pieces_per_read> messages{};
  std::array<sockaddr_storage, pieces_per_read> from;
  std::array<iovec, pieces_per_read> spans;
  struct alignas(cmsghdr) Control {
    std::array<std::byte, control_in_bytes> bytes;
  };
  std::array<Control, pieces_per_read> controls;
  for (size_t i = 0; i < pieces_per_read; ++i) {
    spans[i] = {memory.get() + i * piece_bytes_max, piece_bytes_max};
    msghdr& message = messages[i].msg_hdr;
    message.msg_name = &from[i];
    message.msg_namelen = sizeof from[i];
    message.msg_iov = &spans[i];
    message.msg_iovlen = 1;
    message.msg_control = controls[i].bytes.data();
    message.msg_controllen = controls[i].bytes.size();
  }
  const int count = recvmmsg(fd, messages.data(), pieces_per_read, 0, nullptr);
  // Another error is not of what waits: the socket is asked again, in the next poll at the latest.
  if (count < 0) return errno == EAGAIN ? 0 : pieces_per_read;
  came.clear();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    cut_piece(messages[i].msg_hdr, Bytes(memory.get() + i * piece_bytes_max, messages[i].msg_len), came);
  }
  for (std::span<const Datagram> rest = came; !rest.empty();) {
    const size_t size = std::min(rest.size(), batch_datagrams_max);
    tell(rest.first(size));
    rest = rest.subspan(size);
  }
  return static_cast<size_t>(count);
}

void UdpNet::Impl::read(DatagramEvents& events) {
  const Tell tell = [&events](std::span<const Datagram> batch) { events.received(batch); };
  for (int reads = 0; readable && reads < reads_per_poll_max; ++reads) readable = read_once(socket.get(), tell) == pieces_per_read;
  for (auto& [number, member] : members) {
    if (!member.readable) continue;
    const Tell tell_member = [&events, member_number = number](std::span<const Datagram> batch) {
      events.received_of_group(member_number, batch);
    };
    member.readable = read_once(member.socket.get(), tell_member) == pieces_per_read;
  }
}

// Who turns again without a wait mostly expects an answer: to try to receive tells as much as to ask epoll. The rest is asked for
// every so often.
bool UdpNet::Impl::guesses_readable() {
  if (!members.empty() || watched.has_news() || !watched.looks_alone() || full || guesses >= guesses_in_a_row_max) {
    guesses = 0;
    return false;
  }
  ++guesses;
  return true;
}

void UdpNet::poll(Instant now, DatagramEvents& events) {
  Impl& net = *impl_;
  if (net.guesses_readable()) {
    net.readable = true;
  } else {
    net.watched.look(now);
    if (net.watched.woken() && net.resolver) net.take_answers();
    while (const auto ready = net.watched.next()) {
      if (ready->token == device_token) {
        if (net.device.lost_now())
          events.device_failed(fmt::format("{}: no interface that is up has this address any more", uri()));
        continue;
      }
      if (ready->token >= member_token) {
        const auto member = net.members.find(static_cast<uint32_t>(ready->token));
        if (member != net.members.end()) member->second.readable = true;
        continue;
      }
      net.readable = net.readable || (ready->events & (EPOLLIN | EPOLLERR)) != 0;
      if ((ready->events & EPOLLOUT) == 0 || !std::exchange(net.full, false)) continue;
      events.writable();
    }
  }
  net.read(events);
  for (const Impl::Answer& answer : std::exchange(net.answers, {}))
    events.resolved(answer.query, answer.status, answer.address, answer.reason);
}

}  // namespace ccixfer::udp

#include "transports/verbs/verbs_net.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/host/clock.h"
#include "transports/inet/uri.h"

namespace ccixfer::verbs {

using rdma::PairId;

namespace {

constexpr uint64_t manager_token = 1;
constexpr uint64_t wake_token = 2;
constexpr uint64_t event_token = 3;
constexpr int backlog = 1024;
constexpr uint32_t guesses_in_a_row_max = 16;  // polls without a wait that ask the card alone
constexpr size_t inline_bytes_max = 256;
constexpr Duration nap_max = std::chrono::milliseconds(100);  // of a call that blocks, before it looks again

static_assert(sizeof(void*) >= sizeof(PairId), "the manager keeps the id of a pair in a pointer");

tl::unexpected<Error> no_manager() {
  return fail(ErrorKind::network,
              fmt::format("verbs cannot be used here: {}: it needs an RDMA device and the kernel module rdma_ucm",
                          inet::error_words(errno)));
}

sockaddr* of(inet::Address& address) { return reinterpret_cast<sockaddr*>(&address.storage); }

}  // namespace

bool is_built_in() { return true; }

Result<OpenedNet> open_net(const VerbsNetOptions& options) {
  auto net = VerbsNet::create(options);
  if (!net) return tl::unexpected<Error>(net.error());
  OpenedNet opened;
  opened.device = (*net)->device();
  if (const std::string uri = (*net)->uri(); !uri.empty()) opened.uris.push_back(uri);
  opened.net = std::move(*net);
  return opened;
}

// ---- Creation.

VerbsNet::VerbsNet(const VerbsNetOptions& options, std::shared_ptr<host::Waker> waker)
    : options_(options), watched_(std::move(waker)) {}

Result<std::unique_ptr<VerbsNet>> VerbsNet::create(const VerbsNetOptions& options) {
  std::shared_ptr<host::Waker> waker = options.waker;
  if (waker == nullptr) {
    auto own = host::Waker::create(host::Waits::for_handle);
    if (!own) return fail(ErrorKind::network, fmt::format("no descriptors for a network: {}", own.error().message));
    waker = std::move(*own);
  }
  std::unique_ptr<VerbsNet> net(new VerbsNet(options, std::move(waker)));
  net->manager_.reset(rdma_create_event_channel());
  if (net->manager_ == nullptr) return no_manager();
  const int fd = net->manager_->fd;
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) != 0) return no_manager();
  for (Result<void> (VerbsNet::*step)() : {&VerbsNet::find_device, &VerbsNet::listen, &VerbsNet::watch}) {
    if (auto made = (*net.*step)(); !made) return tl::unexpected<Error>(made.error());
  }
  return net;
}

// The manager knows which device carries an address: a name that is bound to it says so.
Result<void> VerbsNet::find_device() {
  auto place = inet::listen_address(options_.listen_host, options_.port);
  if (!place) return tl::unexpected<Error>(place.error());
  std::vector<inet::Address> candidates;
  if (!inet::is_wildcard(*place)) {
    candidates.push_back(*place);
  } else {
    for (const std::string& host : inet::interface_hosts(AF_INET6, options_.interface_name).value_or(std::vector<std::string>{})) {
      inet::Address address;
      if (inet::numeric_address(host, options_.port, address)) candidates.push_back(address);
    }
  }
  CardOptions card;
  card.receive_slots = options_.receive_slots;
  card.send_slots = options_.send_slots;
  card.slot_bytes = options_.slot_bytes;
  for (const inet::Address& candidate : candidates) {
    rdma_cm_id* raw = nullptr;
    if (rdma_create_id(manager_.get(), &raw, nullptr, RDMA_PS_TCP) != 0) return no_manager();
    const ManagerId id(raw);
    inet::Address any_port;
    CHECK(inet::numeric_address(inet::host_of(candidate), 0, any_port));
    if (rdma_bind_addr(raw, of(any_port)) != 0 || raw->verbs == nullptr) continue;
    if (raw->verbs->device->transport_type != IBV_TRANSPORT_IB) continue;  // iWARP: its reads want more rights than we give
    address_ = candidate;
    card.device = ibv_get_device_name(raw->verbs->device);
    card.port = raw->port_num;
    break;
  }
  if (card.device.empty()) {
    const std::string where = inet::is_wildcard(*place) ? std::string("an address of this host") : inet::host_of(*place);
    return fail(ErrorKind::network,
                fmt::format("no RDMA device (InfiniBand or RoCE) has {}: see ccixfer devices, rdma link and ip addr", where));
  }
  auto opened = Card::open(card);
  if (!opened) return tl::unexpected<Error>(opened.error());
  card_ = std::move(*opened);
  device_ = card_->device();
  card_limits_ = card_->options();
  work_bytes_max_ = card_->work_bytes_max();
  return {};
}

Result<void> VerbsNet::listen() {
  if (!options_.listen) return {};
  const std::string host = inet::host_of(address_);
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(manager_.get(), &raw, nullptr, RDMA_PS_TCP) != 0) return no_manager();
  listener_.reset(raw);
  if (rdma_bind_addr(raw, of(address_)) != 0 || rdma_listen(raw, backlog) != 0) {
    return fail(ErrorKind::network, fmt::format("cannot listen on {}: {}", inet::format_uri("verbs", host, inet::port_of(address_)),
                                                inet::error_words(errno)));
  }
  uri_ = inet::format_uri("verbs", host, ntohs(rdma_get_src_port(raw)));
  return {};
}

Result<void> VerbsNet::watch() {
  const auto wakes = watched_.add(card_->channel_descriptor(), wake_token, EPOLLIN);
  const auto events = watched_.add(card_->event_descriptor(), event_token, EPOLLIN);
  if (!wakes || !events || !watched_.add(manager_->fd, manager_token, EPOLLIN))
    return fail(ErrorKind::network, fmt::format("no descriptors for a network: {}", inet::error_words(errno)));
  card_wakes_ = *wakes;
  card_events_ = *events;
  return {};
}

VerbsNet::~VerbsNet() {
  pairs_.for_each([&](Pair& pair) { close(pair.id); });
}

// ---- Pairs.

VerbsNet::Pair& VerbsNet::add_pair(State state) {
  const SlotName name = pairs_.add();
  Pair& pair = *pairs_.find(name);
  pair.id = name.packed();
  pair.state = state;
  return pair;
}

VerbsNet::Pair* VerbsNet::of_number(uint32_t pair_number) const {
  const auto found = by_number_.find(pair_number);
  return found == by_number_.end() ? nullptr : find(found->second);
}

void VerbsNet::remove(Pair& pair) { pairs_.remove(SlotName::of(pair.id).index); }

void VerbsNet::tell(Told what, PairId pair) {
  News news;
  news.what = what;
  news.pair = pair;
  told_.push_back(news);
}

uint32_t VerbsNet::reads_max(PairId id) const {
  const Pair* pair = find(id);
  return pair == nullptr ? 1 : pair->reads_out;
}

uint32_t VerbsNet::unsent(PairId id) const {
  const Pair* pair = find(id);
  return pair == nullptr ? 0 : pair->unsent;
}

void VerbsNet::close(PairId id) {
  Pair* pair = find(id);
  if (pair == nullptr) return;
  if (pair->state == State::naming) resolver_->forget(id);
  if (pair->state == State::requested) {
    static_cast<void>(rdma_reject(pair->manager.get(), nullptr, 0));
    --requests_;
  }
  if (pair->queue != nullptr && pair->state != State::breaking) {
    set_to_error(*pair);
    static_cast<void>(rdma_disconnect(pair->manager.get()));
  }
  static_cast<void>(release_queue(*pair));
  remove(*pair);
}

// ---- Posting.

bool VerbsNet::has_room(const Pair& pair) const {
  return pair.posted.size() < card_limits_.work_of_a_pair && work_of_all_ < card_limits_.work_of_all;
}

bool VerbsNet::may_post(Pair& pair, bool has_slot) {
  if (pair.state != State::open) return false;
  if (has_slot && has_room(pair)) return true;
  if (!std::exchange(pair.is_starved, true)) starved_.push_back(pair.id);
  return false;
}

bool VerbsNet::post(Pair& pair, ibv_send_wr& work, const Posted& posted) {
  ibv_send_wr* refused = nullptr;
  if (const int error = ibv_post_send(pair.queue.get(), &work, &refused); error != 0) {
    break_pair(pair, Status::disconnected, fmt::format("the RDMA device {} takes no work: {}", device_, inet::error_words(error)));
    return false;
  }
  pair.posted.push_back(posted);
  ++work_of_all_;
  return true;
}

bool VerbsNet::post_send(PairId id, std::span<const Bytes> parts) {
  Pair* pair = find(id);
  if (pair == nullptr) return false;
  size_t total = 0;
  for (const Bytes part : parts) total += part.size();
  CHECK(total > 0 && total <= card_limits_.slot_bytes);
  const bool is_inline = total <= card_limits_.inline_bytes;
  if (!may_post(*pair, is_inline || card_->has_send_slot())) return false;
  std::array<std::byte, inline_bytes_max> within;
  Posted posted;
  if (!is_inline) posted.slot = card_->take_send_slot();
  std::byte* const start = is_inline ? within.data() : card_->send_slot(*posted.slot).data();
  for (std::byte* at = start; const Bytes part : parts) {
    if (!part.empty()) std::memcpy(at, part.data(), part.size());
    at += part.size();
  }
  ibv_sge place{reinterpret_cast<uint64_t>(start), static_cast<uint32_t>(total), is_inline ? 0 : card_->send_key()};
  ibv_send_wr work{};
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = IBV_WR_SEND;
  if (is_inline) work.send_flags = IBV_SEND_INLINE;
  if (!post(*pair, work, posted)) {
    if (posted.slot) card_->return_send_slot(*posted.slot);
    return false;
  }
  ++pair->unsent;
  return true;
}

bool VerbsNet::post_work(PairId id, Kind kind, const rdma::Work& wanted) {
  Pair* pair = find(id);
  CHECK(!wanted.local.empty() && wanted.local.size() <= work_bytes_max_);
  if (pair == nullptr || !may_post(*pair, true)) return false;
  ibv_sge place{reinterpret_cast<uint64_t>(wanted.local.data()), static_cast<uint32_t>(wanted.local.size()), wanted.local_key};
  ibv_send_wr work{};
  work.sg_list = &place;
  work.num_sge = 1;
  work.opcode = kind == Kind::read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
  work.wr.rdma.remote_addr = wanted.remote_address;
  work.wr.rdma.rkey = wanted.remote_key;
  return post(*pair, work, {kind, std::nullopt, wanted.tag});
}

bool VerbsNet::post_read(PairId pair, const rdma::Work& work) { return post_work(pair, Kind::read, work); }
bool VerbsNet::post_write(PairId pair, const rdma::Work& work) { return post_work(pair, Kind::write, work); }

// ---- Memory.

Status VerbsNet::register_memory(MutableBytes memory, rdma::Access access, rdma::Registration& registration) {
  return is_lost() ? Status::no_memory : card_->add_region(memory, access, registration);
}

// A device that does not let go of memory is left altogether, as nothing else keeps it from writing there.
void VerbsNet::deregister(uint64_t id) {
  if (is_lost() || card_->remove_region(id)) return;
  fail_device(fmt::format("the RDMA device {} does not let go of registered memory", device_), true);
}

// ---- Waiting.

template <typename Done>
bool VerbsNet::wait_until(const Done& done, Duration limit) {
  const host::SystemClock clock;
  const Instant until = after(clock.now(), limit);
  for (;;) {
    take_all_completions();
    if (done()) return true;
    const Duration left = until - clock.now();
    if (is_lost() || left <= Duration::zero()) return false;
    if (!is_armed_) {  // then once more, for what came before that
      is_armed_ = card_->arm();
      continue;
    }
    pollfd channel{card_->channel_descriptor(), POLLIN, 0};
    static_cast<void>(::poll(&channel, 1, static_cast<int>(std::min(left, nap_max).count() / 1'000'000 + 1)));
    card_->take_wakes();
    is_armed_ = false;
  }
}

bool VerbsNet::await(PairId id, uint64_t tag, Duration limit) {
  const auto is_done = [&] {
    const Pair* pair = find(id);
    return pair == nullptr || std::none_of(pair->posted.begin(), pair->posted.end(),
                                           [&](const Posted& posted) { return posted.kind != Kind::send && posted.tag == tag; });
  };
  return wait_until(is_done, limit);
}

bool VerbsNet::flush(PairId id, Duration limit) {
  return wait_until([&] { return unsent(id) == 0; }, limit);
}

void VerbsNet::set_deadline(Instant at) {
  deadline_ = at;
  arm_watch();
}

// Who turns again without a wait mostly expects an answer: the card is asked alone, and the kernel every so often.
bool VerbsNet::may_guess() {
  if (watched_.has_news() || !watched_.looks_alone() || guesses_ >= guesses_in_a_row_max) {
    guesses_ = 0;
    return false;
  }
  ++guesses_;
  return true;
}

void VerbsNet::look() {
  watched_.look(now_);
  if (watched_.woken() && resolver_) take_answers();
  while (const auto ready = watched_.next()) {
    if (ready->token == manager_token) manager_ready_ = true;
    if (ready->token == event_token) card_ready_ = true;
    if (ready->token != wake_token || is_lost()) continue;
    card_->take_wakes();
    is_armed_ = false;
    quiet_polls_ = 0;
  }
}

void VerbsNet::poll(Instant now, rdma::RdmaEvents& events) {
  now_ = now;
  if (!may_guess()) look();
  if (manager_ready_) take_manager_events();
  if ((card_ready_ || !card_told_.empty()) && !is_lost()) take_card_events();
  const size_t taken = is_lost() ? 0 : take_completions(batches_per_poll);
  has_more_ = taken == batch * batches_per_poll;
  expire_dials();
  end_broken();
  tell_room();
  // What is noted meanwhile is for the next poll.
  for (size_t count = told_.size(); count > 0; --count) report(told_.pop_front(), events);
  if (failure_) events.device_failed(*std::exchange(failure_, std::nullopt));
  if (!is_lost()) card_->post_receives();
  sleep_or_spin(taken == 0);
}

void VerbsNet::report(const News& news, rdma::RdmaEvents& events) {
  Pair* pair = find(news.pair);
  if (news.what == Told::received) {
    if (pair != nullptr) events.received(news.pair, card_->received(news.slot, news.bytes));
    if (!is_lost()) card_->repost(news.slot);
    return;
  }
  if (pair == nullptr) return;  // it was closed meanwhile
  switch (news.what) {
    case Told::requested:
      return events.requested(news.pair, std::exchange(pair->words, {}));
    case Told::connected:
      return events.connected(news.pair);
    case Told::completed:
      return events.completed(news.pair, news.tag, news.status);
    case Told::sendable:
      return events.sendable(news.pair);
    case Told::closed: {
      const Status end = pair->end;
      const std::string words = std::move(pair->words);
      remove(*pair);
      return events.closed(news.pair, end, words);
    }
    case Told::received:
      break;
  }
}

void VerbsNet::sleep_or_spin(bool is_quiet) {
  if (!is_quiet) quiet_polls_ = 0;
  const bool is_tired = options_.waker == nullptr || ++quiet_polls_ >= polls_before_sleep;
  if (is_tired && !is_armed_ && !is_lost()) {
    is_armed_ = card_->arm();
    has_more_ = take_completions(batches_per_poll) == batch * batches_per_poll || has_more_;  // those before it wake nobody
  }
  arm_watch();
}

void VerbsNet::arm_watch() {
  const bool is_card_quiet = is_lost() || (is_armed_ && card_told_.empty());
  const bool may_sleep = told_.empty() && !has_more_ && !failure_ && !manager_ready_ && is_card_quiet;
  Instant at = may_sleep ? deadline_ : Instant::min();
  for (const auto* limited : {&dialling_, &breaking_}) {
    for (const PairId id : *limited) {
      if (const Pair* pair = find(id)) at = std::min(at, pair->limit);
    }
  }
  watched_.arm(at);
}

}  // namespace ccixfer::verbs

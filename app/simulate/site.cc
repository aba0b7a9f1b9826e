#include "app/simulate/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "core/base/check.h"
#include "core/base/log.h"
#include "transports/stream/stream_transport.h"

namespace ccixfer::simulate {
namespace {

constexpr uint32_t receive_buffers = 128;  // of an endpoint
constexpr int burial_turns_max = 1000;
constexpr Duration burial_step = std::chrono::milliseconds(100);

std::unique_ptr<report::Reporter> make_reporter(const Site& site) {
  report::ReporterOptions options;
  options.quiet = site.verbose == 0;
  options.verbose = site.verbose;
  options.text_fd = site.verbose > 0 ? 2 : -1;
  auto reporter = report::Reporter::create(options, site.world.now());
  CHECK(reporter.has_value());
  set_log_sink({}, LogLevel::error);  // the log of all nodes is one: the swarm's
  return std::move(*reporter);
}

std::unique_ptr<cci::Endpoint> make_native(Site& site, const std::vector<sim::Attachment>& networks, std::optional<uint16_t> port,
                                           const std::shared_ptr<cci::MemoryTable>& memory) {
  sim::SimNetOptions net;
  net.networks = networks;
  net.listen = port.has_value();
  net.port = port.value_or(0);
  auto transport = std::make_unique<stream::StreamTransport>(
      ports::TransportOptions{}, std::make_unique<sim::SimNet>(site.fabric, site.node, net), site.counters);
  cci::EndpointOptions options;
  options.receive_buffers = receive_buffers;
  return std::make_unique<cci::Endpoint>(options, std::move(transport), memory, site.counters);
}

ports::FileSystem& disk_of(Site& site) { return site.parallel != nullptr ? *site.parallel : site.files; }

// Whoever has a key may do everything: who may do what is not what simulated worlds are about.
class OpenGate final : public program::PeerGate {
 public:
  [[nodiscard]] Result<void> may_wait(const session::Link& /*link*/, const session::Open& /*open*/,
                                      const std::string& /*path*/) override {
    return {};
  }
  [[nodiscard]] Result<policy::Grant> admit(const session::Link& /*link*/, const session::Open& /*open*/,
                                            const std::string& /*path*/) override {
    policy::Grant grant;
    grant.name = "anybody";
    grant.devices = grant.setid = true;
    grant.prefixes = {""};
    return grant;
  }
  [[nodiscard]] std::optional<Error> ended(const session::Link& /*link*/, const Error& /*result*/) override { return std::nullopt; }
  [[nodiscard]] std::string name_of(const trust::ProvedPeer& /*peer*/) const override { return "anybody"; }
};

}  // namespace

std::unique_ptr<cci::Endpoint> make_endpoint(Site& site, bool listen, const std::shared_ptr<cci::MemoryTable>& memory,
                                             ports::Entropy& entropy) {
  auto native = make_native(site, site.networks, listen ? std::optional(receiver_port) : std::nullopt, memory);
  if (!site.routing) return native;
  routing::RoutedOptions options;
  options.subnet = site.routing->subnet;
  options.routers = site.routing->routers;
  options.scheme = "sim";
  auto routed = routing::make_routed_transport(options, std::move(native), memory, entropy, site.counters);
  cci::EndpointOptions above;
  above.receive_buffers = receive_buffers;
  return std::make_unique<cci::Endpoint>(above, std::move(routed), memory, site.counters);
}

Process::Process(Site& site, bool listen)
    : site_(site),
      entropy_(site.world.random().next()),
      reporter_(make_reporter(site)),
      memory_(std::make_shared<cci::MemoryTable>(entropy_, site.counters)),
      endpoint_(make_endpoint(site, listen, memory_, entropy_)),
      pool_(session::segment_bytes_max, site.buffers),
      work_(site.world, site.node, disk_of(site), site.work),
      hub_(*endpoint_, site.counters),
      pool_region_(memory_->register_region(pool_.memory(), cci::access_read_parts | cci::access_puts)),
      services_{*endpoint_, disk_of(site), work_, pool_, pool_region_, entropy_, site.counters, *reporter_} {
  site_.world.add_actor(site_.node, this);
}

Process::~Process() {
  if (site_.world.alive(site_.node)) site_.world.remove_actor(site_.node, this);
  static_cast<void>(memory_->deregister_region(pool_region_));
}

std::string Process::uri() const { return endpoint_->uri(); }

void Process::turn(Instant now) {
  reporter_->set_now(now);
  work_.reap();
  hub_.turn(now);
  while (const auto completion = endpoint_->mailboxes().next_completion()) take(*completion);
  turn_user(now);
}

Instant Process::next_deadline() const { return std::min({hub_.next_deadline(), endpoint_->next_deadline(), user_deadline()}); }

void Process::bury() {
  CHECK(!site_.world.alive(site_.node));
  stop_user();
  Instant now = site_.world.now();
  for (int i = 0; i < burial_turns_max && !user_idle(); ++i) {
    work_.finish_dead();
    turn(now);
    now += burial_step;
  }
  work_.finish_dead();
  CHECK(user_idle());
}

Listener::Listener(Site& site, const ListenPlan& plan) : Process(site, true), vfs_(site.world, site.files) {
  program::AcceptorOptions options;
  if (plan.serve) {
    options.served_root = site.files.open(ports::FileSystem::no_directory, plan.directory, {.directory = true}, 0);
    if (options.served_root < 0) {
      error_ = Error{ErrorKind::source_selection, "cannot serve the directory"};
      return;
    }
  } else if (plan.shares_root) {
    auto opened = recv::SecondRoot::open(disk_of(site), plan.directory);
    if (!opened) {
      error_ = opened.error();
      return;
    }
    options.second = *opened;
  } else {
    auto opened = recv::Root::open(site.files, plan.directory, vfs_.name());
    if (!opened) {
      error_ = opened.error();
      return;
    }
    root_ = std::move(*opened);
    options.root = root_.get();
  }
  options.sessions_max = plan.sessions_max;
  options.rate_bytes_per_s = plan.rate_bytes_per_s;
  options.team = plan.team;
  if (site.seal) {
    options.seal = [setup = *site.seal] { return setup; };
    gate_ = std::make_unique<OpenGate>();
    options.gate = gate_.get();
  }
  acceptor_ = std::make_unique<program::Acceptor>(services_, hub_, options);
}

Listener::~Listener() = default;

void Listener::turn_user(Instant now) {
  if (acceptor_) acceptor_->turn(now);
}
Instant Listener::user_deadline() const { return acceptor_ ? acceptor_->next_deadline() : never; }
void Listener::take(const rvma::Completion& completion) {
  if (acceptor_) acceptor_->take_completion(completion);
}
void Listener::stop_user() {
  if (acceptor_) acceptor_->stop({ErrorKind::interrupted, "the node crashed"}, site_.world.now());
}

Dialler::Dialler(Site& site, const DialPlan& dial) : Process(site, false), vfs_(site.world, site.files) {
  program::DialPlan plan;
  plan.uri = dial.uri;
  // Chosen in any case, so that the random numbers that follow stay the same.
  plan.hello.transfer = program::make_transfer_id(entropy_);
  if (dial.transfer) plan.hello.transfer = *dial.transfer;
  plan.hello.direction = dial.pull ? session::Direction::pull : session::Direction::push;
  plan.open = {dial.options, dial.path};
  plan.lanes = dial.lanes;
  plan.routers = site.routing ? site.routing->routers.size() : 0;
  plan.timeout = dial.timeout;
  plan.retries = dial.retries;
  if (site.seal) {  // nobody's address is known beforehand: whoever proves a key is the right one
    plan.hello.sealed = true;
    plan.seal = site.seal;
    plan.judge_peer = [](const trust::ProvedPeer&, const std::string&) { return Result<void>(); };
  }
  if (dial.pull) {
    auto opened = recv::Root::open(site.files, dial.directory, vfs_.name());
    if (!opened) {
      error_ = opened.error();
      return;
    }
    root_ = std::move(*opened);
    program::DestinationPart part;
    part.root = root_.get();
    part.options = dial.options;
    part.rate = std::make_shared<recv::RateAllowance>(dial.rate_bytes_per_s);
    part.record = std::make_shared<session::TransferRecord>();
    part.disk_patience = session::disk_patience(plan.timeout);
    part.asked = dial.asked ? *dial.asked : recv::asked_for(dial.path, dial.options);
    plan.make_role = [this, part](session::Link& link, const program::RoleWish& wish) mutable {
      part.tries_changed_again = wish.tries_changed_again;
      return program::make_destination(services_, link, part);
    };
  } else {
    program::SourcePart part;
    part.sources = dial.sources.empty() ? std::vector<std::string>{dial.directory + "/"} : dial.sources;
    part.options = dial.options;
    part.rate = std::make_shared<send::RateCap>(dial.rate_bytes_per_s);
    part.record = std::make_shared<session::TransferRecord>();
    part.disk_patience = session::disk_patience(plan.timeout);
    plan.open.team = dial.team;
    if (!dial.second_uri.empty()) {
      part.second = std::make_shared<send::SecondPath>([](const std::string&) {});
      program::SecondPlan second{plan, {part.second, part.rate}};
      second.dial.uri = dial.second_uri;
      second.dial.hello.transfer = program::make_transfer_id(entropy_);
      second.dial.open = {session::option_recursive, dial.path};
      second.dial.open.is_second = true;
      second_ = std::make_unique<program::SecondDial>(services_, hub_, std::move(second));
    }
    plan.lists_ahead = !dial.team && (dial.options & session::option_checksum) == 0;
    plan.make_role = [this, part, is_team = dial.team.has_value()](session::Link& link, const program::RoleWish& wish) mutable {
      part.tries_changed_again = wish.tries_changed_again && !wish.helps;
      if (is_team) part.seat = wish.helps ? send::SourceOptions::Seat::helper : send::SourceOptions::Seat::leader;
      return program::make_source(services_, link, part);
    };
  }
  transfer_ = std::make_unique<program::DialledTransfer>(services_, hub_, std::move(plan), site.world.now());
}

Dialler::~Dialler() = default;

void Dialler::turn_user(Instant now) {
  if (transfer_) transfer_->turn(now);
  if (!second_) return;
  if (transfer_->ended()) second_->end(now);
  second_->turn(now);
}
Instant Dialler::user_deadline() const {
  const Instant second = second_ ? second_->next_deadline() : never;
  return transfer_ ? std::min(transfer_->next_deadline(), second) : never;
}
void Dialler::take(const rvma::Completion& completion) {
  if (transfer_) transfer_->take_completion(completion);
}
void Dialler::stop_user() {
  if (transfer_) transfer_->stop({ErrorKind::interrupted, "the node crashed"});
  if (second_) second_->stop({ErrorKind::interrupted, "the node crashed"});
}

RouterProcess::RouterProcess(Site& site, const RouterPlan& plan)
    : site_(site), entropy_(site.world.random().next()), memory_(std::make_shared<cci::MemoryTable>(entropy_, site.counters)) {
  std::vector<routing::RouterDevice> devices;
  for (const RouterPlan::Device& at : plan.devices) {
    routing::RouterDevice& device = devices.emplace_back();
    device.name = at.at.network;
    device.subnet = at.subnet;
    device.scheme = "sim";
    device.endpoint = make_native(site, {at.at}, router_port, memory_);
    device.peers = at.peers;
    device.rate_bits_per_s = at.rate_bits_per_s;
    device.wan = at.wan;
    device.wan_to = at.wan_to;
  }
  routing::RouterOptions options = plan.options;
  options.mechanisms.poison_returned = true;
  auto router = routing::Router::create(options, std::move(devices), memory_, entropy_, site.counters);
  if (!router) std::fprintf(stderr, "router: %s\n", router.error().message.c_str());
  CHECK(router.has_value());
  router_ = std::move(*router);
  site_.world.add_actor(site_.node, this);
}

void RouterProcess::turn(Instant now) {
  router_->turn(now);
  if (drained_ && router_->drained()) std::exchange(drained_, {})();
}

void RouterProcess::drain(std::function<void()> drained) {
  draining_ = true;
  drained_ = std::move(drained);
  router_->drain();
  site_.world.wake(site_.node);
}

RouterProcess::~RouterProcess() {
  if (site_.world.alive(site_.node)) site_.world.remove_actor(site_.node, this);
}

}  // namespace ccixfer::simulate

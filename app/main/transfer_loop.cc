#include "app/main/transfer_loop.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "app/main/confinement.h"
#include "app/main/expire_requests.h"
#include "app/main/failed_list.h"
#include "app/main/on_complete.h"
#include "app/main/path_file.h"
#include "app/main/rate_clock.h"
#include "app/main/session_trust.h"
#include "app/main/status_teller.h"
#include "app/main/stop_clock.h"
#include "app/main/uri_file.h"
#include "app/recv/history.h"
#include "app/recv/opened_root.h"
#include "app/report/outcome.h"
#include "app/session/hub.h"
#include "app/session/limits.h"
#include "app/trust/places.h"
#include "core/base/check.h"
#include "core/base/units.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {
namespace {

constexpr unsigned work_threads_max = 8;
constexpr unsigned work_threads_min = 2;
constexpr Duration jobs_patience = std::chrono::milliseconds(500);  // a disk that answers needs less

unsigned work_threads() { return std::clamp(std::thread::hardware_concurrency(), work_threads_min, work_threads_max); }

// A hang-up of the terminal that the process was started from sends SIGHUP, as an administrator does who wants it to read its
// configuration again. A process that was started to ignore it (nohup) outlives its terminal.
class ControllingTerminal {
 public:
  [[nodiscard]] bool has_gone() const { return was_there_ && !outlives_ && !is_there(); }

 private:
  [[nodiscard]] static bool is_there() {
    return host::Descriptor(::open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)) ? true : false;
  }
  const bool was_there_ = is_there();
  const bool outlives_ = is_ignored(SIGHUP);
};

Error interruption(const char* what_to_do) {
  return {ErrorKind::interrupted, fmt::format("interrupted: by a signal: {}", what_to_do)};
}

}  // namespace

// Members in the order of construction: what a role uses outlives it.
struct TransferLoop::Impl {
  Impl(const Process& process_, Node node_, bool routed_, uint32_t buffers, memory::BulkMemory memory, RateClock rate_)
      : process(process_),
        rate(std::move(rate_)),
        node(std::move(node_)),
        routed(routed_),
        pool(session::segment_bytes_max, buffers, std::move(memory)),
        work(files, work_threads()),
        hub(*node.endpoint, process.counters),
        pool_region(node.memory->register_region(pool.memory(), cci::access_read_parts | cci::access_puts)),
        services{*node.endpoint, files, work, pool, pool_region, entropy, process.counters, process.reporter} {}
  ~Impl() { static_cast<void>(node.memory->deregister_region(pool_region)); }

  // One turn of everything below the roles.
  template <typename Handler>
  void turn(Instant now, Handler& handler) {
    process.reporter.set_now(now);
    work.reap();
    hub.turn(now);
    while (const auto completion = node.endpoint->mailboxes().next_completion()) handler.take_completion(*completion);
    handler.turn(now);
    if (process.on_complete != nullptr) process.on_complete->turn();
  }
  [[nodiscard]] Instant next_deadline() const {
    return std::min({hub.next_deadline(), process.reporter.next_deadline(), rate.next_deadline()});
  }
  // Once the process is confined, and before a peer hears of it: its threads have the rights that it has by then.
  [[nodiscard]] Result<void> begin() {
    if (begun) return {};
    if (auto threads = work.begin(); !threads) return threads;
    begun = true;
    process.loop.watch(work.os_handle());
    return {};
  }

  const Process process;
  RateClock rate;
  std::optional<StopClock> stop;
  std::string stop_text;  // as it was given
  host::PosixFileSystem files{process.disk_times};
  host::SystemEntropy entropy;
  Node node;
  const bool routed;
  memory::Pool pool;
  host::ThreadWorkPool work;
  session::Hub hub;
  ports::Handle pool_region;
  SessionServices services;
  bool begun = false;
  std::optional<Error> stopped_by;  // by a signal or at --stop-at
  bool given_up = false;
};

Result<uint32_t> pool_buffers(uint64_t memory_bytes) {
  const uint64_t count = memory_bytes / session::segment_bytes_max;
  if (count < pool_buffers_min) {
    return fail(ErrorKind::usage, fmt::format("too little memory: --memory {}: give at least {}MiB", memory_bytes,
                                              (uint64_t{pool_buffers_min} * session::segment_bytes_max >> 20) + 1));
  }
  if (auto fits = memory::fits_this_host(memory_bytes); !fits)
    return fail(fits.error().kind, fmt::format("too much memory: --memory: {}", fits.error().message));
  return static_cast<uint32_t>(std::min<uint64_t>(count, 1u << 20));
}

Result<std::unique_ptr<TransferLoop>> TransferLoop::create(const Process& process, const CommonOptions& common,
                                                           const TransferOptions& transfer, const NodeOptions& options) {
  const auto buffers = pool_buffers(transfer.memory_bytes);
  if (!buffers) return tl::unexpected(buffers.error());
  const std::string transport = options.listening ? transport_of(options.listen) : options.dials;
  const auto device = chosen_device(process.config, common.device, transport);
  if (!device) return tl::unexpected(device.error());
  if (transfer.rate.changes() || transfer.stop_at) keep_time_zone();
  std::optional<StopClock> stop;
  if (transfer.stop_at) {
    const auto time = time_of(*transfer.stop_at, wall_time_now());
    if (!time) return tl::unexpected(time.error());
    stop.emplace(*time);
  }
  std::unique_ptr<TransferLoop> loop(new TransferLoop(process));
  static host::SystemEntropy entropy;  // stateless; outlives every transport
  NodeOptions with_waker = options;
  with_waker.waker = process.loop.waker();
  if (options.listening) with_waker.passed_listener = process.passed_listener;
  if (device->transport == "udp") {
    with_waker.paths = options.listening ? std::shared_ptr<reliability::PathMemory>(std::make_shared<PathTable>(wall_time_s))
                                         : std::make_shared<PathFile>(policy::places_of_process().paths(), wall_time_s);
  }
  auto memory = memory::BulkMemory::make(memory::Pool::memory_bytes(session::segment_bytes_max, *buffers));
  if (!memory) return fail(memory.error().kind, fmt::format("--memory {}: {}", transfer.memory_bytes, memory.error().message));
  auto node = make_node(*device, with_waker, entropy, process.counters);
  if (!node) return tl::unexpected(node.error());
  loop->impl_ = std::make_unique<Impl>(process, std::move(*node), device->subnet.has_value(), *buffers, std::move(*memory),
                                       RateClock(transfer.rate));
  if (device->transport == "verbs") loop->impl_->pool.keep_pages();
  if (loop->impl_->pool_region.kind == ports::HandleKind::none) {
    return fail(ErrorKind::usage, fmt::format("device {} takes no {} bytes of memory: raise the limit of locked memory (ulimit -l; "
                                              "LimitMEMLOCK= of a service), or give less --memory",
                                              device->name, loop->impl_->pool.memory().size()));
  }
  loop->impl_->stop = std::move(stop);
  if (transfer.stop_at) loop->impl_->stop_text = transfer.stop_at->text;
  return loop;
}

TransferLoop::TransferLoop(const Process&) {}
TransferLoop::~TransferLoop() {
  if (given_up()) static_cast<void>(impl_.release());
}
bool TransferLoop::given_up() const { return impl_ && impl_->given_up; }
const SessionServices& TransferLoop::services() const { return impl_->services; }
host::PosixFileSystem& TransferLoop::files() { return impl_->files; }
bool TransferLoop::stopped() const { return impl_->stopped_by.has_value(); }
uint64_t TransferLoop::rate_bytes_per_s() const { return impl_->rate.rate_bytes_per_s(); }

class TransferLoop::ServeHandler final : public LoopHandler {
 public:
  ServeHandler(Impl& impl, const AcceptorOptions& options, ListenerTrust& trust)
      : impl_(impl),
        options_(kept(options, ended_)),
        trust_(trust),
        requests_(impl.work, options.root),
        teller_(impl.process),
        acceptor_(impl.services, impl.hub, options_) {
    if (options.root != nullptr && impl.process.board != nullptr)
      ended_->read(options.root->opened()->staging, std::string(recv::history_name));
  }

  bool turn(Instant now) override {
    if (impl_.rate.turn(now)) acceptor_.set_rate(impl_.rate.rate_bytes_per_s(), now);
    impl_.turn(now, acceptor_);
    requests_.turn(now);
    tell_status();
    if (teller_.is_asked()) tell_page(now);
    const Tally tally = acceptor_.tally();
    if (acceptor_.sessions() > 0) impl_.process.reporter.progress({tally.files, tally.bytes, tally.bytes_total, tally.total_known});
    if (stopping_) return !acceptor_.idle();
    told_to_stop_ = told_to_stop_ || is_out_of_reach();
    if (told_to_stop_) {  // judged after the turn: what the peer had sent before the signal counts
      begin_to_stop();
      cut_short_ = acceptor_.unfinished() > 0 || (options_.once && !acceptor_.first_end());
      acceptor_.stop({ErrorKind::interrupted, "the peer was told to stop; the transfer can be resumed"}, now);
      return !acceptor_.idle();
    }
    if (options_.once && acceptor_.first_end()) {
      begin_to_stop();
      return !acceptor_.idle();
    }
    return true;
  }
  Instant next_deadline() const override {
    const Instant speak = acceptor_.sessions() > 0 ? impl_.process.reporter.progress_due() : never;
    return std::min({impl_.next_deadline(), acceptor_.next_deadline(), speak, requests_.next_deadline()});
  }
  void on_signal(int number, Instant now) override {
    impl_.process.reporter.set_now(now);
    if (number == SIGUSR1) return impl_.process.reporter.stats(impl_.process.counters);
    if (number == SIGHUP && !terminal_.has_gone()) return reload(now);
    if (acceptor_.unfinished() > 0) {
      impl_.process.reporter.warn(fmt::format(
          "interrupted: {} transfer(s) are told, and can be resumed: a second signal ends this at once", acceptor_.unfinished()));
    }
    told_to_stop_ = true;
  }
  CommandEnd end() const {
    if (is_out_of_reach()) {
      return {
          {ErrorKind::file_io, fmt::format("the directory was moved or replaced: {}: start this receiver again, so that it opens "
                                           "what is there now",
                                           printable(options_.root->opened()->path))},
          acceptor_.tally()};
    }
    if (cut_short_) return {interruption("the sender may resume when this runs again"), acceptor_.tally()};
    return {options_.once && acceptor_.first_end() ? *acceptor_.first_end() : Error{ErrorKind::ok, ""}, acceptor_.tally()};
  }

  void tell_ready() { service_manager().ready(status()); }

 private:
  // Each transfer that ends is one for the status page too.
  [[nodiscard]] static AcceptorOptions kept(AcceptorOptions options, const std::shared_ptr<EndedTransfers>& ended) {
    options.completed = [ended, also = std::move(options.completed)](const std::string& result) {
      ended->add(result);
      if (also) also(result);
    };
    return options;
  }
  void tell_page(Instant now) {
    report::Status status = teller_.begin(now);
    report::StatusTransfers& transfers = status.transfers.emplace();
    transfers.is_receiver = options_.receives();
    transfers.listed = acceptor_.show(now, transfers_shown_max, transfers.more);
    for (report::StatusTransfer& one : transfers.listed) one.bytes_per_s = teller_.rate(one.transfer, one.counts.bytes);
    transfers.ended = ended_->lines();
    teller_.tell(std::move(status));
  }
  [[nodiscard]] host::ServiceManager& service_manager() { return impl_.process.loop.service_manager(); }
  // Sessions come with each connection that says what it wants, so they are counted and not looked through.
  void tell_status() {
    if (acceptor_.sessions() == sessions_told_) return;
    sessions_told_ = acceptor_.sessions();
    service_manager().status(status());
  }
  [[nodiscard]] std::string status() const { return fmt::format("listening; sessions: {}", acceptor_.sessions()); }
  void reload(Instant now) {
    service_manager().reloading(now);
    const auto done = trust_.reload();
    service_manager().ready(done ? status() : "not reloaded: " + done.error().message);
  }
  void begin_to_stop() {
    stopping_ = true;
    service_manager().stopping(fmt::format("stopping; sessions: {}", acceptor_.sessions()));
  }

  Impl& impl_;
  const std::shared_ptr<EndedTransfers> ended_ = std::make_shared<EndedTransfers>();
  const AcceptorOptions options_;
  // The service manager starts it again, and what it finds then is its root.
  bool is_out_of_reach() const { return options_.root != nullptr && options_.root->is_out_of_reach(); }

  ListenerTrust& trust_;
  const ControllingTerminal terminal_;
  ExpireRequests requests_;
  StatusTeller teller_;
  Acceptor acceptor_;
  size_t sessions_told_ = 0;
  bool told_to_stop_ = false;
  bool stopping_ = false;
  bool cut_short_ = false;
};

CommandEnd TransferLoop::serve(const AcceptorOptions& options, const ListenOptions& listen, ListenerTrust& trust,
                               sandbox::Plan plan) {
  Impl& impl = *impl_;
  UriFile uri_file(impl.process.loop);
  if (!listen.uri_file.empty()) plan.places.push_back({directory_of(listen.uri_file), sandbox::Access::files});
  trust.add_to(plan);
  plan.dials = impl.routed;  // a receiver dials its routers only
  const auto confined = confine(impl.process, plan, LogLevel::warning);
  if (!confined) return {confined.error(), {}};
  if (*confined && options.root != nullptr) options.root->fix(ErrorKind::interrupted);
  if (auto begun = impl.begin(); !begun) return {begun.error(), {}};
  ServeHandler handler(impl, options, trust);
  // Whoever waits for the file dials at once.
  if (auto written = listen.uri_file.empty() ? Result<void>() : uri_file.write(listen.uri_file, impl.node.uris); !written)
    return {written.error(), {}};
  impl.process.reporter.ready(impl.node.uris);
  if (auto said = trust.ready(impl.node.uris); !said) return {said.error(), {}};
  handler.tell_ready();
  impl.process.loop.run(handler);
  return handler.end();
}

class TransferLoop::DialHandler final : public LoopHandler {
 public:
  DialHandler(Impl& impl, DialPlan plan, const Tally& all, std::optional<SecondPlan> second)
      : impl_(impl),
        all_(all),
        set_rate_(plan.set_rate),
        is_push_(plan.hello.direction == session::Direction::push),
        transfer_(impl.services, impl.hub, std::move(plan), impl.process.loop.now()) {
    if (second) second_.emplace(impl.services, impl.hub, std::move(*second));
  }

  bool turn(Instant now) override {
    if (impl_.rate.turn(now) && set_rate_) set_rate_(impl_.rate.rate_bytes_per_s(), now);
    if (!impl_.stopped_by && impl_.stop && impl_.stop->is_reached(now)) stop_in_time();
    impl_.turn(now, transfer_);
    const bool is_over = transfer_.ended() || transfer_.may_be_left();
    if (second_ && is_over) second_->end(now);
    if (second_) second_->turn(now);
    Tally tally = all_;
    add(tally, transfer_.tally());
    if (transfer_.moving()) {
      report::Moving moving{tally.files, tally.bytes, tally.bytes_total, tally.total_known};
      if (impl_.process.reporter.progress_due() <= now) moving.waiting = transfer_.waiting(now);
      moving.stalled = transfer_.stalled(now);
      moving.timeout = transfer_.timeout();
      impl_.process.reporter.progress(moving);
    }
    return !is_over || (second_ && !second_->is_over()) || waits_for_jobs(now);
  }
  void stood_still() override { transfer_.stood_still(); }
  Instant next_deadline() const override {
    const Instant speak = transfer_.moving() ? impl_.process.reporter.progress_due() : never;
    const Instant stop = impl_.stopped_by || !impl_.stop ? never : impl_.stop->next_deadline();
    const Instant second = second_ ? second_->next_deadline() : never;
    return std::min({impl_.next_deadline(), transfer_.next_deadline(), speak, stop, second, jobs_until_});
  }
  void on_signal(int number, Instant now) override {
    impl_.process.reporter.set_now(now);
    if (number == SIGUSR1) return impl_.process.reporter.stats(impl_.process.counters);
    impl_.stopped_by = interruption("run the same command again to resume");
    impl_.process.reporter.warn("interrupted: the peer is told, what is durable stays: a second signal ends this at once");
    transfer_.stop(*impl_.stopped_by);
    if (second_) second_->stop(*impl_.stopped_by);
  }
  CommandEnd end() const {
    CommandEnd end{transfer_.result(), transfer_.tally(), transfer_.transfer(), transfer_.identity(),
                   transfer_.is_in_use() || leaves_jobs()};
    if (!second_) return end;
    end.tally.bytes_sent += second_->bytes_sent();
    end.in_use = end.in_use || second_->is_in_use();
    return end;
  }

 private:
  void stop_in_time() {
    impl_.stopped_by = Error{ErrorKind::timeout, fmt::format("stopped in time: --stop-at {}: run the same command again to resume",
                                                             printable(impl_.stop_text))};
    transfer_.stop(*impl_.stopped_by);
  }
  // A source leaves its jobs behind, and the work pool's end would wait for a disk that does not answer.
  [[nodiscard]] bool leaves_jobs() const {
    const ErrorKind kind = transfer_.result().kind;
    const bool is_cut_short = kind == ErrorKind::timeout || kind == ErrorKind::interrupted;
    return impl_.work.in_flight() > 0 && (is_cut_short || (is_push_ && !report::has_delivered(kind)));
  }
  [[nodiscard]] bool waits_for_jobs(Instant now) {
    if (impl_.stopped_by || !leaves_jobs()) return false;
    if (jobs_until_ == never) jobs_until_ = after(now, jobs_patience);
    return now < jobs_until_;
  }

  Impl& impl_;
  const Tally all_;
  const std::function<void(uint64_t, Instant)> set_rate_;
  const bool is_push_;
  DialledTransfer transfer_;
  std::optional<SecondDial> second_;
  Instant jobs_until_ = never;  // from the transfer's end on
};

CommandEnd TransferLoop::dial(DialPlan plan, const Tally& all, std::optional<SecondPlan> second) {
  if (impl_->stopped_by) return {*impl_->stopped_by, {}};
  if (auto begun = impl_->begin(); !begun) return {begun.error(), {}};
  plan.routers = impl_->node.routers;
  if (second) second->dial.routers = impl_->node.routers;
  auto handler = std::make_unique<DialHandler>(*impl_, std::move(plan), all, std::move(second));
  impl_->process.loop.run(*handler);
  CommandEnd end = handler->end();
  if (end.in_use) {
    impl_->given_up = true;
    static_cast<void>(handler.release());
  }
  return end;
}

Result<std::shared_ptr<FailedList>> begin_failed_list(const TransferOptions& transfer, sandbox::Plan& plan) {
  const ListFormat format = transfer.from0 ? ListFormat::nul_terminated : ListFormat::lines;
  auto list = FailedList::begin(transfer.failed_list, format, temporary_directory());
  if (!list) return tl::unexpected(list.error());
  if (transfer.dry_run) return nullptr;  // the list of the last run stays
  if (*list) plan.places.push_back({directory_of(transfer.failed_list), sandbox::Access::files});
  return std::shared_ptr<FailedList>(std::move(*list));
}

void finish_failed_list(const Process& process, FailedList* list, CommandEnd& end) {
  if (list == nullptr) return;
  const auto say_failure = [&process](std::string line) { process.reporter.error({ErrorKind::partial, std::move(line)}); };
  uint64_t left_out = 0;
  const auto finished = list->finish(left_out);
  if (left_out > 0) {
    say_failure(
        fmt::format("{}: {} names with line breaks are left out: give -0 for a list that holds them", list->file(), left_out));
  }
  if (finished && list->unnamed() > 0) {
    say_failure(fmt::format("{}: not complete: {} that failed are missing, which the source did not name in full: its own lines do",
                            list->file(), list->unnamed()));
  }
  if (finished) return;
  // Who reads the list after 23 would read that of another run.
  Error other = finished.error();
  if (report::worse(end.error.kind, other.kind) != end.error.kind) std::swap(end.error, other);
  if (other.kind != ErrorKind::ok) process.reporter.error(other);
}

Result<void> check_targets(const Config& config, const CommonOptions& common, const std::vector<Target>& targets) {
  const auto device = chosen_device(config, common.device, transport_of(targets.front()));
  if (!device) return tl::unexpected(device.error());
  for (const Target& target : targets) {
    if (auto fits = check_target(*device, target); !fits) return fits;
  }
  return {};
}

DialPlan make_plan(const SessionServices& services, const std::string& uri, const TransferOptions& transfer) {
  DialPlan plan;
  plan.uri = uri;
  plan.hello.transfer = make_transfer_id(services.entropy);
  plan.lanes = transfer.lanes;
  plan.timeout = transfer.timeout;
  plan.retries = transfer.retries;
  return plan;
}

uint32_t session_options(const TransferOptions& transfer) {
  uint32_t options = session::option_recursive;
  if (transfer.archive)
    options |= session::option_links | session::option_permissions | session::option_times | session::option_owner |
               session::option_specials;
  if (transfer.checksum) options |= session::option_checksum;
  if (transfer.verify) options |= session::option_verify;
  if (transfer.dry_run) options |= session::option_dry_run;
  return options | session_options(transfer.sync) | session_options(transfer.metadata);
}

}  // namespace ccixfer::program

// [main] argv -> command -> exit code. Everything else is in app/main.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

#include "app/main/commands.h"
#include "app/main/ended_transfer.h"
#include "app/main/job.h"
#include "app/main/json_place.h"
#include "app/main/metrics_guard.h"
#include "app/main/on_complete.h"
#include "app/main/out_of_memory.h"
#include "app/main/session_trust.h"
#include "app/metrics/board.h"
#include "app/metrics/server.h"
#include "app/simulate/command.h"
#include "app/trust/journal.h"
#include "core/base/units.h"
#include "core/host/passed_sockets.h"
#include "routing/router/traffic.h"

namespace ccixfer::program {
namespace {

// Whoever starts us may have closed 0, 1 or 2 (`>&-`). The next descriptors that we open, a socket among them, would get these
// numbers and what is written to standard output would go there. Standard input is opened for writing only and standard output for
// reading only, so that using them still fails: whoever waits for what a command prints shall hear that nobody got it.
void open_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one: those below it are open by now.
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : fd == STDOUT_FILENO ? O_RDONLY : O_RDWR) != fd)
      _exit(exit_code(ErrorKind::file_io));
  }
}

bool in_journal() { return policy::is_journal(std::getenv("JOURNAL_STREAM"), STDERR_FILENO); }

// `json_fd`: as of json_fd_of(); -1: no event.
int say_and_leave(const Error& error, int json_fd) {
  std::fputs(((in_journal() ? "<3>" : "") + report::error_line(error) + "\n").c_str(), stderr);  // sd-daemon(3)
  if (json_fd >= 0) {
    report::Done done;
    done.kind = error.kind;
    done.reason = error.message;
    std::FILE* const to = json_fd == STDERR_FILENO ? stderr : stdout;
    std::fputs((report::done_event(0, done) + "\n").c_str(), to);
    std::fflush(to);
  }
  return exit_code(error.kind);
}

const CommonOptions& common_of(const Command& command) {
  static const CommonOptions none;
  return std::visit(
      [](const auto& chosen) -> const CommonOptions& {
        if constexpr (requires { chosen.common; }) {
          return chosen.common;
        } else {
          return none;
        }
      },
      command);
}

// A sanitizer has a thread, or makes calls, that a confined process has not.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

std::function<Result<sandbox::Report>(const sandbox::Plan&)> confinement() {
  if (is_sanitized) return {};
  return [](const sandbox::Plan& plan) { return sandbox::enter(plan); };
}

CommandEnd run(const Process& process, const Command& command) {
  if (const auto* send = std::get_if<SendCommand>(&command)) return run_send(process, *send);
  if (const auto* receive = std::get_if<ReceiveCommand>(&command)) return run_receive(process, *receive);
  if (const auto* route = std::get_if<RouteCommand>(&command)) return run_route(process, *route);
  if (const auto* routes = std::get_if<RoutesCommand>(&command)) return run_routes(process, *routes);
  if (const auto* ping = std::get_if<PingCommand>(&command)) return run_ping(process, *ping);
  if (const auto* sim = std::get_if<SimCommand>(&command)) return simulate::run_sim(process, *sim);
  if (const auto* bench = std::get_if<BenchCommand>(&command)) return run_bench(process, *bench);
  if (const auto* keygen = std::get_if<KeygenCommand>(&command)) return run_keygen(process, *keygen);
  if (const auto* id = std::get_if<IdCommand>(&command)) return run_id(process, *id);
  if (const auto* verify = std::get_if<VerifyCommand>(&command)) return run_verify(process, *verify);
  if (const auto* status = std::get_if<StatusCommand>(&command)) return run_status(process, *status);
  if (const auto* jobs = std::get_if<JobCommand>(&command)) return check_jobs(process, *jobs);
  return run_devices(process, std::get<DevicesCommand>(command));
}

// A service that listens takes the one socket that its manager has for it; -1: there is none.
Result<int> listener_of(const std::vector<host::PassedSocket>& sockets, const Command& command) {
  if (sockets.empty()) return -1;
  const auto* send = std::get_if<SendCommand>(&command);
  const auto* receive = std::get_if<ReceiveCommand>(&command);
  if ((send == nullptr || !send->serve) && (receive == nullptr || !receive->root))
    return fail(ErrorKind::usage, "the service manager passed a socket: only recv --root and send --serve take one");
  if (sockets.size() > 1)
    return fail(ErrorKind::usage,
                fmt::format("the service manager passed {} sockets, {} and {}: give the unit of a socket one ListenStream=",
                            sockets.size(), printable(sockets[0].name), printable(sockets[1].name)));
  return sockets.front().fd.get();
}

// Of a command that runs until it is told to end; nullptr: of others, of which nobody asks for metrics.
const char* role_of(const Command& command) {
  if (std::holds_alternative<RouteCommand>(command)) return "router";
  const auto* send = std::get_if<SendCommand>(&command);
  if (send != nullptr && send->serve) return "server";
  const auto* receive = std::get_if<ReceiveCommand>(&command);
  return receive != nullptr && receive->root ? "receiver" : nullptr;
}

metrics::RouterTraffic traffic_of(const routing::Traffic& traffic) {
  metrics::RouterTraffic all;
  for (uint32_t device = 0; device < traffic.devices(); ++device)
    all.devices.push_back({traffic.name(device), traffic.received_bytes(device), traffic.sent_bytes(device)});
  for (uint8_t crossed = 0; crossed < routing::classes_max; ++crossed)
    all.fragment_bytes.push_back(traffic.fragment_bytes(crossed));
  for (size_t i = 0; i < static_cast<size_t>(routing::RefusedAs::count_); ++i) {
    const auto why = static_cast<routing::RefusedAs>(i);
    all.refused.emplace_back(routing::to_string(why), traffic.refused(why));
  }
  return all;
}

std::string_view web_scheme(const metrics::Server& server) {
  if (server.place().starts_with(unix_prefix)) return "";
  return server.has_guard() ? "https://" : "http://";
}

std::string metrics_page(const metrics::Subject& subject, metrics::Format format) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return metrics::page(subject, format, seconds(used.ru_utime) + seconds(used.ru_stime),
                       static_cast<uint64_t>(used.ru_maxrss) * 1024);
}

// With -i the lines of the items say it.
bool lists_files(const TransferOptions& transfer) { return transfer.dry_run && !transfer.sync.itemize; }

report::ReporterOptions reporter_options(const Command& command, TurnLoop& loop) {
  const CommonOptions& common = common_of(command);
  const auto* send = std::get_if<SendCommand>(&command);
  const auto* receive = std::get_if<ReceiveCommand>(&command);
  report::ReporterOptions options;
  options.json = common.json;
  options.json_fd = json_fd_of(command);
  options.quiet = common.quiet;
  options.verbose = common.verbose;
  options.progress = common.progress;
  options.stats = common.stats;
  options.log_file = common.log_file;
  options.journal = in_journal();
  options.told_to_end = [&loop] { return loop.is_interrupted() || TurnLoop::is_told_to_end(); };
  options.may_be_unheard = send != nullptr || receive != nullptr || std::holds_alternative<RouteCommand>(command);
  options.list = (send != nullptr && lists_files(send->transfer)) || (receive != nullptr && lists_files(receive->transfer)) ||
                 std::holds_alternative<VerifyCommand>(command);
  return options;
}

// What this process counts, and the pages that show it, where somebody asks for them.
struct Counted {
  Counters counters;
  metrics::Activity activity;
  metrics::Refusals refusals;
  host::DiskTimes disk_times;
  std::shared_ptr<routing::Traffic> traffic;  // of a router with pages
  std::unique_ptr<metrics::Board> board;
  std::unique_ptr<metrics::Server> server;

  Result<void> serve(const MetricsConfig& wanted, const char* role, bool is_router) {
    auto made = metrics::Board::create();
    if (!made) return tl::unexpected(made.error());
    board = std::move(*made);
    metrics::Subject subject{program_version, role, static_cast<double>(wall_time_s()), &counters, is_router ? nullptr : &activity};
    subject.refusals = &refusals;
    if (is_router) {
      traffic = std::make_shared<routing::Traffic>();
      subject.traffic = [seen = traffic] { return traffic_of(*seen); };
    } else {
      subject.disk = &disk_times;
    }
    auto guard = guard_of(wanted);
    if (!guard) return tl::unexpected(guard.error());
    auto listening = metrics::Server::listen(
        wanted.listen, {.metrics = [subject](metrics::Format format) { return metrics_page(subject, format); },
                        .board = board.get(),
                        .guard = std::move(*guard),
                        .refused = &refusals});
    if (!listening) return tl::unexpected(listening.error());
    server = std::move(*listening);
    return {};
  }
};

int run_program(int argc, char** argv) {
  const auto sockets = host::take_passed_sockets();
  Result<Command> command = parse_command_line(argc, argv);
  if (!command) return say_and_leave(command.error(), json_fd_of(argc, argv));
  if (!sockets) return say_and_leave(sockets.error(), json_fd_of(argc, argv));
  if (const auto* help = std::get_if<HelpCommand>(&*command)) {
    std::signal(SIGPIPE, SIG_IGN);
    const bool is_written = std::fputs(help->text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0;
    return is_written || errno == EPIPE
               ? 0
               : say_and_leave({ErrorKind::file_io, "standard output cannot be written: give it room"}, -1);
  }
  std::unique_ptr<JobTeller> teller;
  if (const auto* wanted = std::get_if<JobCommand>(&*command); wanted != nullptr && !wanted->check) {
    const int json = wanted->common.json ? STDOUT_FILENO : -1;
    auto job = prepare_job(*wanted, wanted->names.front());
    if (!job) return say_and_leave(job.error(), json);
    auto part = begin_job(*job);
    if (!part) {
      tell_unbegun(job->command, part.error(), nullptr);
      return say_and_leave(part.error(), json);
    }
    if (part->exit) return *part->exit;
    teller = std::move(part->teller);
    command = std::move(job->command);
  }
  const CommonOptions& common = common_of(*command);
  const int json_fd = common.json ? json_fd_of(*command) : -1;
  std::unique_ptr<OnComplete> on_complete;
  const auto leave_unbegun = [&](const Error& error) {
    tell_unbegun(*command, error, on_complete.get());
    return say_and_leave(error, json_fd);
  };
  const auto listener = listener_of(*sockets, *command);
  if (!listener) return leave_unbegun(listener.error());
  TurnLoop loop;
  if (loop.problem()) return leave_unbegun(*loop.problem());
  auto reporter = report::Reporter::create(reporter_options(*command, loop), loop.now());
  if (!reporter) return leave_unbegun(reporter.error());
  // Before any program is started, and before the process is confined.
  if (auto manager = host::ServiceManager::of_environment()) {
    loop.take_service_manager(std::move(*manager));
  } else {
    (*reporter)->warn(manager.error().message);
  }
  if (const TransferOptions* transfer = transfer_of(*command); transfer != nullptr && !transfer->on_complete.empty()) {
    auto started = OnComplete::start(transfer->on_complete, **reporter);
    if (!started) return say_and_leave(started.error(), json_fd);
    on_complete = std::move(*started);
    loop.watch(on_complete->os_handle());
  }
  const auto config = config_of_process(common.config_file);
  if (!config) return leave_unbegun(config.error());
  for (const std::string& warning : config->warnings) (*reporter)->warn(warning);

  Counted counted;
  const char* const role = role_of(*command);
  if (role != nullptr && !config->metrics.listen.empty()) {
    if (auto served = counted.serve(config->metrics, role, std::holds_alternative<RouteCommand>(*command)); !served)
      return say_and_leave(served.error(), json_fd);
    (*reporter)->info(fmt::format("metrics and status page at {}{}", web_scheme(*counted.server), counted.server->place()));
  }
  const int64_t began_s = wall_time_s();
  const CommandEnd end = run(Process{.loop = loop,
                                     .reporter = **reporter,
                                     .counters = counted.counters,
                                     .config = *config,
                                     .confine = confinement(),
                                     .on_complete = on_complete.get(),
                                     .metrics = counted.server.get(),
                                     .activity = &counted.activity,
                                     .board = counted.board.get(),
                                     .role = role != nullptr ? role : "",
                                     .shows_names = config->metrics.names,
                                     .traffic = counted.traffic,
                                     .disk_times = counted.server ? &counted.disk_times : nullptr,
                                     .passed_listener = *listener},
                             *command);
  (*reporter)->set_now(loop.now());
  if (on_complete) {
    if (const auto dialled = dialled_transfer(*command, end)) on_complete->run(result_of(*dialled, end, began_s));
    // A command that ends has nobody else to leave it to: a service manager ends what its units have left behind. One that listens
    // was told to stop.
    const bool was_told = role != nullptr || end.error.kind == ErrorKind::interrupted;
    on_complete->finish([&] { return was_told || loop.times_told_to_end() > 0; }, on_complete_patience,
                        [&loop] { return loop.times_told_to_end() > 1; });
  }
  loop.release_signals();
  if (end.error.kind != ErrorKind::ok) (*reporter)->error(below_its_lines(end.error));
  report::Done done;
  done.kind = end.error.kind;
  done.reason = end.error.message;
  done.counts = counts_of(end.tally);
  const bool transfer = std::holds_alternative<SendCommand>(*command) || std::holds_alternative<ReceiveCommand>(*command);
  (*reporter)->done(done, counted.counters, transfer);
  const auto problem = (*reporter)->output_problem();
  if (teller) teller->tell(problem && end.error.kind == ErrorKind::ok ? *problem : end.error, done.counts);
  // Threads in the disk, and puts that come, use what destructors and the end of main would take away.
  if (end.in_use) std::_Exit(exit_code(end.error.kind));
  if (!problem || end.error.kind != ErrorKind::ok) return exit_code(end.error.kind);
  (*reporter)->error(*problem);
  return exit_code(problem->kind);
}

}  // namespace
}  // namespace ccixfer::program

int main(int argc, char** argv) {
  ccixfer::program::open_standard_descriptors();
  std::set_new_handler(ccixfer::program::end_out_of_memory);
  return ccixfer::program::run_program(argc, argv);
}

// What each subcommand does. In: its options and what the process offers. Out: how it ended, for the one line, the done event and
// the exit code.
#pragma once
#include <functional>
#include <memory>

#include "app/config/config.h"
#include "app/main/cli.h"
#include "app/main/transfer_role.h"
#include "app/main/turn_loop.h"
#include "app/report/reporter.h"
#include "core/sandbox/sandbox.h"

namespace ccixfer::metrics {
class Activity;
class Board;
class Server;
}  // namespace ccixfer::metrics

namespace ccixfer::routing {
class Traffic;
}
namespace ccixfer::host {
class DiskTimes;
}

namespace ccixfer::program {

class OnComplete;  // app/main/on_complete.h

struct Process {
  TurnLoop& loop;
  report::Reporter& reporter;
  Counters& counters;
  const Config& config;
  std::function<Result<sandbox::Report>(const sandbox::Plan&)> confine = {};  // none: this process is confined by nobody
  OnComplete* on_complete = nullptr;                                          // --on-complete
  metrics::Server* metrics = nullptr;                                         // begins once the process is confined
  metrics::Activity* activity = nullptr;
  metrics::Board* board = nullptr;                 // of the status page
  std::string_view role = {};                      // as the metrics call it
  bool shows_names = false;                        // on the status page
  std::shared_ptr<routing::Traffic> traffic = {};  // of a router that is asked for metrics
  host::DiskTimes* disk_times = nullptr;           // of a receiver or server that is asked for metrics
  int passed_listener = -1;  // of a service: the socket that its manager listens at for it (core/host/passed_sockets.h); -1: none
};

struct CommandEnd {
  Error error{ErrorKind::ok, ""};
  Tally tally;
  // Of the last transfer that was dialled, for whoever is told of it; "": none was.
  std::string transfer = {};
  std::string identity = {};  // of its peer
  bool in_use = false;  // jobs or puts still use what the command made: nothing of it may be destroyed, the process ends without
};

[[nodiscard]] CommandEnd run_send(const Process& process, const SendCommand& command);
[[nodiscard]] CommandEnd run_receive(const Process& process, const ReceiveCommand& command);
[[nodiscard]] CommandEnd run_route(const Process& process, const RouteCommand& command);
[[nodiscard]] CommandEnd run_routes(const Process& process, const RoutesCommand& command);
[[nodiscard]] CommandEnd run_ping(const Process& process, const PingCommand& command);
[[nodiscard]] CommandEnd run_bench(const Process& process, const BenchCommand& command);
[[nodiscard]] CommandEnd run_devices(const Process& process, const DevicesCommand& command);
[[nodiscard]] CommandEnd run_keygen(const Process& process, const KeygenCommand& command);
[[nodiscard]] CommandEnd run_verify(const Process& process, const VerifyCommand& command);
[[nodiscard]] CommandEnd run_status(const Process& process, const StatusCommand& command);
[[nodiscard]] CommandEnd run_id(const Process& process, const IdCommand& command);

void warn_insecure(const Process& process);  // loudly
// The files of [metrics] are read again; to call what this gives puts them in force, for whoever asks from then on. Where it
// listens stays. usage, file_io: they cannot be used.
[[nodiscard]] Result<std::function<void()>> read_guard_again(const Process& process, const Config& config);

}  // namespace ccixfer::program

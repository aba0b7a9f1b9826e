// The process of a transfer: one endpoint, one hub, one buffer pool, the work pool, and either an acceptor or transfers that we
// dial. Everything that the loop of `send` and `recv` shares; what differs is in the callers.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "app/devices/node.h"
#include "app/main/acceptor.h"
#include "app/main/commands.h"
#include "app/main/dialled.h"
#include "app/main/listener_trust.h"
#include "app/main/second_dial.h"
#include "core/host/entropy.h"
#include "core/host/file_system.h"
#include "core/host/work_pool.h"
#include "core/sandbox/plan.h"

namespace ccixfer::program {

inline constexpr uint32_t pool_buffers_min = 4;

// usage: memory that holds fewer than pool_buffers_min buffers, or more than this host has.
[[nodiscard]] Result<uint32_t> pool_buffers(uint64_t memory_bytes);

class TransferLoop {
 public:
  // usage: --stop-at is past, and as make_node; network: as make_node.
  static Result<std::unique_ptr<TransferLoop>> create(const Process& process, const CommonOptions& common,
                                                      const TransferOptions& transfer, const NodeOptions& node);
  ~TransferLoop();
  [[nodiscard]] const SessionServices& services() const;
  [[nodiscard]] host::PosixFileSystem& files();

  // Listens until --once is done or a signal came. Writes the uri file, confines the process to the plan, says ready and prints the
  // ticket first.
  [[nodiscard]] CommandEnd serve(const AcceptorOptions& options, const ListenOptions& listen, ListenerTrust& trust,
                                 sandbox::Plan plan);
  // Runs one transfer to its end. `all` is what earlier transfers of this command moved, for the progress.
  // `second`: where a member of a team has a second receiver, the plan for that. Once a signal or --stop-at has stopped a transfer,
  // no further one begins: dial() gives the end of the stopped transfer, which may have ended well in that very moment.
  [[nodiscard]] CommandEnd dial(DialPlan plan, const Tally& all, std::optional<SecondPlan> second = {});
  // True: jobs or puts still use the loop and the root (CommandEnd::in_use), so neither is destroyed: end by std::_Exit.
  [[nodiscard]] bool given_up() const;
  [[nodiscard]] bool stopped() const;               // by a signal or at --stop-at: no further transfer begins
  [[nodiscard]] uint64_t rate_bytes_per_s() const;  // what --bwlimit allows now; 0: no cap

 private:
  TransferLoop(const Process& process);
  struct Impl;
  class ServeHandler;
  class DialHandler;
  std::unique_ptr<Impl> impl_;
};

// `--failed-list`: begun before the process is confined, with the place that the plan needs for it; none: it is not asked for.
[[nodiscard]] Result<std::shared_ptr<FailedList>> begin_failed_list(const TransferOptions& transfer, sandbox::Plan& plan);
void finish_failed_list(const Process& process, FailedList* list, CommandEnd& end);
// usage: one of them cannot be dialled over the command's device.
[[nodiscard]] Result<void> check_targets(const Config& config, const CommonOptions& common, const std::vector<Target>& targets);
// What every plan has: uri, a new transfer id, lanes, timeout, retries.
[[nodiscard]] DialPlan make_plan(const SessionServices& services, const std::string& uri, const TransferOptions& transfer);
// Bits of Open::options for the user's options. Directories are always entered, as with cp -r.
[[nodiscard]] uint32_t session_options(const TransferOptions& transfer);

}  // namespace ccixfer::program

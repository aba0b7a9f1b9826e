// `ccixfer recv`: accept transfers below a root, or pull from a `send --serve`.
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "app/main/commands.h"
#include "app/main/transfer_loop.h"
#include "app/main/uri.h"
#include "app/report/outcome.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

CommandEnd accept_below(const Process& process, const ReceiveCommand& command) {
  NodeOptions node;
  node.listening = true;
  node.listen = command.listen.listen;
  auto loop = TransferLoop::create(process, command.common, command.transfer, node);
  if (!loop) return {loop.error(), {}};
  auto root = recv::Root::open((*loop)->files(), *command.root);
  if (!root) return {report::advised(root.error(), *command.root), {}};
  AcceptorOptions options;
  options.root = root->get();
  options.rate_bytes_per_s = command.transfer.rate_bytes_per_s;
  options.once = command.listen.once;
  if (command.transfer.lanes != 0) options.lanes_max = command.transfer.lanes;
  return (*loop)->serve(options, command.listen);
}

CommandEnd pull(const Process& process, const ReceiveCommand& command, const std::vector<Target>& targets) {
  if (auto there = check_targets(process, command.common, targets); !there) return {there.error(), {}};
  auto loop = TransferLoop::create(process, command.common, command.transfer, {});
  if (!loop) return {loop.error(), {}};
  if (!command.transfer.dry_run && ::mkdir(command.directory.c_str(), 0777) != 0 && errno != EEXIST) {
    const int problem = errno;
    return {{kind_of_file_errno(problem) == ErrorKind::no_space ? ErrorKind::no_space : ErrorKind::file_io,
             fmt::format("cannot make the directory: {}: {}: name one that exists, or can be made", printable(command.directory),
                         std::strerror(problem))},
            {}};
  }
  auto root = recv::Root::open((*loop)->files(), command.directory);
  if (!root) return {report::advised(root.error(), command.directory), {}};
  const Bench& bench = (*loop)->bench();
  CommandEnd end;
  for (const Target& target : targets) {
    DialPlan plan = make_plan(bench, target.address, command.transfer);
    plan.hello.direction = session::Direction::pull;
    plan.open = {session_options(command.transfer) | session::option_directory, target.path};
    DestinationPart part;
    part.root = root->get();
    part.options = plan.open.options;
    part.rate_bytes_per_s = command.transfer.rate_bytes_per_s;
    plan.make_machine = [&bench, part](session::Link& link) { return make_destination(bench, link, part); };
    const CommandEnd one = (*loop)->dial(std::move(plan), end.tally);
    add(end.tally, one.tally);
    if (report::worse(end.error.kind, one.error.kind) != end.error.kind) {
      if (end.error.kind != ErrorKind::ok) process.reporter.warn(end.error.message);
      end.error = one.error;
    } else if (one.error.kind != ErrorKind::ok) {
      process.reporter.warn(one.error.message);
    }
    if ((*loop)->interrupted()) break;
  }
  return end;
}

}  // namespace

CommandEnd run_receive(const Process& process, const ReceiveCommand& command) {
  std::vector<Target> targets;
  for (const std::string& uri : command.uris) {
    auto target = split_target(uri);
    if (!target) return {target.error(), {}};
    targets.push_back(std::move(*target));
  }
  if (!command.root && command.directory == "-") {
    return {{ErrorKind::usage, "not in this version: pull to standard output: name a directory"}, {}};
  }
  if (auto allowed = require_insecure(process, command.common); !allowed) return {allowed.error(), {}};
  return command.root ? accept_below(process, command) : pull(process, command, targets);
}

}  // namespace ccixfer::program

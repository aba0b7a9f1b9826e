// `ccixfer send`: push sources to a receiver, or publish a directory.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "app/config/uri.h"
#include "app/main/aside.h"
#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/destinations.h"
#include "app/main/ended_transfer.h"
#include "app/main/job_lock.h"
#include "app/main/listener_trust.h"
#include "app/main/on_complete.h"
#include "app/main/process_trust.h"
#include "app/main/receipts.h"
#include "app/main/rule_words.h"
#include "app/main/seen_sources.h"
#include "app/main/session_trust.h"
#include "app/main/transfer_loop.h"
#include "app/send/walk.h"
#include "app/send/walk_rules.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

// When nothing of it is there, that is said before anything is dialled. The Source finds out the rest.
Result<void> check_sources(host::PosixFileSystem& files, const std::vector<std::string>& sources) {
  std::optional<Error> missing;
  for (const std::string& source : sources) {
    if (source == "-") {
      if (::read(STDIN_FILENO, nullptr, 0) == 0) continue;
      return fail(ErrorKind::source_selection,
                  fmt::format("cannot read the source: standard input: {}: give the command an input", std::strerror(errno)));
    }
    ports::FileStat stat;
    const int status = files.stat_at(ports::FileSystem::no_directory, source, stat, false);
    if (status >= 0) return {};
    if (!missing) {
      missing = Error{ErrorKind::source_selection,
                      fmt::format("cannot select the source: {}: {}: name a file or directory that can be read", printable(source),
                                  std::strerror(-status))};
    }
  }
  if (missing) return tl::unexpected(*missing);
  return {};
}

CommandEnd serve(const Process& process, const SendCommand& command) {
  process.loop.take_hangups();  // before there are threads that SIGHUP would end
  auto trust = ListenerTrust::make(process, command.common, command.listen, policy::Direction::read);
  if (!trust) return {trust.error(), {}};
  NodeOptions node;
  node.listening = true;
  node.listen = command.listen.listen;
  node.trust = (*trust)->hops();
  auto loop = TransferLoop::create(process, command.common, command.transfer, node);
  if (!loop) return {loop.error(), {}};
  ports::OpenFlags flags;
  flags.directory = true;
  const int root = (*loop)->files().open(ports::FileSystem::no_directory, *command.serve, flags, 0);
  if (root < 0) {
    return {{ErrorKind::source_selection, fmt::format("cannot serve the directory: {}: {}: name a directory that can be read",
                                                      printable(*command.serve), std::strerror(-root))},
            {}};
  }
  AcceptorOptions options;
  options.served_root = root;
  options.rate_bytes_per_s = (*loop)->rate_bytes_per_s();
  options.once = command.listen.once;
  if (auto applied = (*trust)->apply(options, *command.serve); !applied) return {applied.error(), {}};
  auto receipts = listener_receipts(command.transfer.receipt, *command.serve, receipt::Side::source);
  if (!receipts) return {receipts.error(), {}};
  options.receipts = *receipts;
  options.wall_time_s = wall_time_s;
  options.activity = process.activity;
  if (OnComplete* on_complete = process.on_complete; on_complete != nullptr)
    options.completed = [on_complete](const std::string& result) { on_complete->run(result); };
  options.sessions_max = command.listen.sessions.value_or(sessions_max_default);
  if (command.transfer.lanes != 0) options.lanes_max = command.transfer.lanes;
  sandbox::Plan rights = plan_of_server(process.config, *command.serve);
  if (!receipts->directory.empty()) add_receipt(rights, receipts->directory);
  CommandEnd end = (*loop)->serve(options, command.listen, **trust, std::move(rights));
  (*loop)->files().close(root);
  return end;
}

using Seat = send::SourceOptions::Seat;

bool is_of_team(const SendCommand& command) { return command.team.stripe || !command.team.part.empty(); }

// What goes with others that share the transfer, before anything is done.
Result<void> check_team(const SendCommand& command) {
  if (auto fits = check_destinations(command); !fits) return fits;
  if (!is_of_team(command)) return {};
  if (command.serve) {
    return fail(ErrorKind::usage,
                "bad use: --stripe or --part with --serve: several processes share a push only: name SRC and DEST");
  }
  if (std::find(command.sources.begin(), command.sources.end(), "-") != command.sources.end()) {
    return fail(ErrorKind::usage, "bad use: --stripe: name as SRC files or directories that every process can read");
  }
  if (!command.transfer.lock_file.empty()) {
    return fail(ErrorKind::usage,
                "bad use: --lock with --stripe or --part: the processes would lock each other out: let Slurm run one "
                "such job at a time (sbatch --dependency=singleton)");
  }
  return {};
}

// All of its processes must see the same source, and ask for the same: `open` has all that is asked for.
Result<std::optional<session::TeamWish>> team_of_command(const SendCommand& command, const session::Open& open, std::string seen,
                                                         ports::Entropy& entropy) {
  TeamWork work;
  work.open = &open;
  work.seen = std::move(seen);
  for (const std::string& source : command.sources) {
    if (!work.sources.empty()) work.sources += '\0';
    work.sources += send::absolute_place(working_directory(), source);
    work.more.push_back(send::Walk::own_name(source));  // of a directory: itself, or what is in it
  }
  work.destination = command.destination;
  work.more.insert(work.more.end(), command.more_destinations.begin(), command.more_destinations.end());
  for (const RuleWord& rule : command.transfer.rules)
    work.more.push_back(fmt::format("{} {}", static_cast<int>(rule.kind), rule.text));
  work.more.push_back(command.transfer.sync.files_from.value_or(""));
  for (const std::string& mode : command.transfer.metadata.chmod) work.more.push_back(mode);
  work.more.push_back(command.transfer.metadata.chown);
  const auto environment = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value != nullptr ? value : "");
  };
  return team_of(command.team, environment, work, program_version, entropy);
}

// The session of this process with its second receiver, if it has one.
Result<std::optional<SecondPlan>> second_plan(const SessionServices& services, const SendCommand& command,
                                              const std::optional<Place>& place, const SourcePart& part,
                                              std::optional<Security>& security) {
  if (!place) return std::optional<SecondPlan>();
  const Target& target = place->targets.front();
  const PeerPath path = peer_path(target.path);
  if (path.path != peer_path(split_target(command.destination)->path).path) {
    return fail(ErrorKind::usage,
                fmt::format("bad use: {}: the receivers share one directory: give each DEST the path of the first",
                            printable(target.address)));
  }
  SecondPlan plan{make_plan(services, target.address, command.transfer),
                  {part.second, part.rate, part.compress, part.disk_patience}};
  plan.dial.hello.direction = session::Direction::push;
  plan.dial.open = {session::option_recursive, path.path};
  plan.dial.open.is_second = true;
  plan.dial.name = fmt::format("second receiver {}: ", target.address);
  if (security) secure_plan(plan.dial, *security, *place);
  return std::optional(std::move(plan));
}

// Where each DEST is. Of several none is a ticket.
Result<std::vector<Place>> find_places(const SendCommand& command) {
  std::vector<Place> places;
  auto first = find_place(command.destination, command.common);
  if (!first) return tl::unexpected(first.error());
  if (first->ticket && is_of_team(command)) {
    return fail(ErrorKind::usage,
                "bad use: a ticket with --stripe or --part: the processes must have one identity: give the account one "
                "(ccixfer keygen), and have it permitted at the receiver");
  }
  places.push_back(std::move(*first));
  for (const std::string& more : command.more_destinations) {
    auto found = find_place(more, command.common);
    if (!found) return tl::unexpected(found.error());
    if (found->ticket) return fail(ErrorKind::usage, "bad use: a ticket as a further DEST: give the URI of the receiver");
    places.push_back(std::move(*found));
  }
  return places;
}

// What of the sources is sent.
struct Selection {
  std::vector<std::string> sources;
  std::optional<filter::PathList> list;
  filter::Rules rules;
};

Result<Selection> select(host::PosixFileSystem& files, const SendCommand& command) {
  Selection selection{command.sources, {}, {}};
  if (auto there = check_sources(files, selection.sources); !there) return tl::unexpected(there.error());
  auto chosen = chosen_of(command.sources, command.transfer.sync, command.transfer.from0);
  if (!chosen) return tl::unexpected(chosen.error());
  if (*chosen) {
    selection.sources = {(*chosen)->top + "/"};
    selection.list = std::move((*chosen)->list);
    if (auto there = check_sources(files, selection.sources); !there) return tl::unexpected(there.error());
  }
  auto rules = read_rules(command.transfer.rules, command.transfer.sync, command.transfer.from0);
  if (!rules) return tl::unexpected(rules.error());
  selection.rules = std::move(*rules);
  if (command.transfer.sync.deletes) {
    if (auto travels = check_travel(selection.rules); !travels) return tl::unexpected(travels.error());
  }
  return selection;
}

// What the receiver is told of the transfer when a session opens.
session::Open open_of(const SendCommand& command, const PeerPath& path, const Selection& selection) {
  session::Open open = {session_options(command.transfer), path.path};
  if (path.directory || selection.sources.size() > 1 || selection.list) open.options |= session::option_directory;
  add_aside(open, command.transfer.sync);
  open.compress = compression_of(command.transfer.sync);
  if (command.transfer.sync.deletes) {
    open.deletes = command.transfer.sync.max_delete.value_or(recv::deletions_unlimited);
    if (!selection.rules.empty()) open.rules = selection.rules;
  }
  return open;
}

// The source's end of each session of the transfer.
struct RoleMaker {
  const Process& process;
  const SessionServices& services;
  DialledReceipt& receipt;
  std::shared_ptr<std::optional<SeenSources>> seen;  // none: whatever is there may be read
  SourcePart part;
  std::string uri;
  bool is_team = false;

  std::unique_ptr<TransferRole> operator()(session::Link& link, const RoleWish& wish) {
    for (const std::string& words : *seen ? (*seen)->replaced() : std::vector<std::string>()) process.reporter.warn(words);
    part.tries_changed_again = wish.tries_changed_again && !wish.helps;  // a helper gives back to the leader what has changed
    part.seat = !is_team ? Seat::alone : wish.helps ? Seat::helper : Seat::leader;
    part.receipt = wish.helps ? nullptr : receipt.begin(link, uri);
    return make_source(services, link, part);
  }
};

}  // namespace

CommandEnd run_send(const Process& process, const SendCommand& command) {
  if (auto fits = check_team(command); !fits) return {fits.error(), {}};
  if (command.serve) return serve(process, command);
  const auto places = find_places(command);
  if (!places) return {places.error(), {}};
  const Place& place = places->front();
  const auto lock = JobLock::take(command.transfer.lock_file);
  if (!lock) return {lock.error(), {}};

  const auto without = place.ticket ? policy::WithoutIdentity::make_for_this_process : policy::WithoutIdentity::refuse;
  auto security = security_of_process(process, command.common, without);
  if (!security) return {security.error(), {}};
  const Target& target = place.targets.front();
  for (const Place& one : *places) {
    if (auto there = check_targets(process.config, command.common, one.targets); !there) return {there.error(), {}};
  }
  NodeOptions node;
  node.dials = transport_of(target);
  node.trust = trust_of_dialler(*security, *places);
  auto loop = TransferLoop::create(process, command.common, command.transfer, node);
  if (!loop) return {loop.error(), {}};
  auto selection = select((*loop)->files(), command);
  if (!selection) return {selection.error(), {}};
  const SessionServices& services = (*loop)->services();
  const PeerPath path = peer_path(target.path);
  DialPlan plan = make_plan(services, target.address, command.transfer);
  plan.hello.direction = session::Direction::push;
  plan.open = open_of(command, path, *selection);
  const bool follows_links = (plan.open.options & session::option_links) == 0;
  auto team =
      team_of_command(command, plan.open, identities_of((*loop)->files(), selection->sources, follows_links), services.entropy);
  if (!team) return {team.error(), {}};
  plan.open.team = *team;
  plan.lists_ahead = !team->has_value() && !command.transfer.checksum;

  SourcePart part;
  part.sources = selection->sources;
  part.options = plan.open.options;
  part.compress = plan.open.compress;
  part.list = std::move(selection->list);
  part.working_directory = working_directory();
  part.tells_listed = command.transfer.sync.deletes;
  const std::string top = send::absolute_place(part.working_directory, part.sources.front());
  if (auto added = add_rules_above((*loop)->files(), selection->rules, top); !added) return {added.error(), {}};
  part.rules = std::move(selection->rules);
  part.rate = std::make_shared<send::RateCap>((*loop)->rate_bytes_per_s());
  plan.set_rate = [rate = part.rate](uint64_t bytes_per_s, Instant now) { rate->set(bytes_per_s, now); };
  part.record = std::make_shared<session::TransferRecord>();
  part.disk_patience = session::disk_patience(plan.timeout);
  auto tweaks = tweaks_of(command.transfer.metadata, false);
  if (!tweaks) return {tweaks.error(), {}};
  part.tweaks = std::move(*tweaks);
  for (const std::string& owner : unknown_owners(command.transfer.metadata))
    process.reporter.warn(fmt::format("--chown: no {} here: if the receiver does not know it either, files go to 65534", owner));

  std::optional<Place> second_place;
  if (const size_t which = *team ? ((*team)->part - 1u) % places->size() : 0; which != 0) second_place = (*places)[which];
  if (second_place && command.transfer.metadata.sparse) {  // who owns a file makes its holes: nobody else writes into it
    process.reporter.warn(fmt::format("second receiver {}: with --sparse only the first receiver writes: all goes to that one",
                                      second_place->targets.front().address));
    second_place.reset();
  }
  if (second_place) {
    part.second = std::make_shared<send::SecondPath>(
        [&reporter = process.reporter, uri = second_place->targets.front().address](const std::string& line) {
          reporter.warn(fmt::format("second receiver {}: {}: its pieces go to the first one", uri, line));
        });
  }
  auto second = second_plan(services, command, second_place, part, *security);
  if (!second) return {second.error(), {}};
  if (*security) secure_plan(plan, **security, place);

  receipt::Header header{.path = path.path, .archive = command.transfer.archive};
  const bool whole = (plan.open.options & session::option_directory) == 0 || part.sources.front().ends_with('/');
  if (part.sources.size() == 1) header.directory = delivered_directory(absolute(part.sources.front()), "", whole);
  DialledReceipt receipt(command.transfer.receipt, std::move(header), identity_of(*security));
  sandbox::Plan rights = plan_of_push(command, part.sources);
  receipt.add_to(rights);
  if (auto fine = receipt.check(); !fine) return {fine.error(), {}};
  auto failed = begin_failed_list(command.transfer, rights);
  if (!failed) return {failed.error(), {}};
  part.failed = *failed;
  const auto seen = std::make_shared<std::optional<SeenSources>>();
  if (command.transfer.archive) seen->emplace((*loop)->files(), part.sources);
  plan.make_role = RoleMaker{process, services, receipt, seen, std::move(part), target.address, team->has_value()};
  add_trust(rights, *security);
  const auto confined = confine(process, rights);
  if (!confined) return {confined.error(), {}};
  if (!*confined) seen->reset();
  CommandEnd end = (*loop)->dial(std::move(plan), {}, std::move(*second));
  if (end.tally.helped) return end;  // the list and the receipt are written by the process that leads
  finish_failed_list(process, failed->get(), end);
  receipt.finish(process, (*loop)->files(), end);
  return end;
}

}  // namespace ccixfer::program

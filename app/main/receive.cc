// `ccixfer recv`: accept transfers below a root, or pull from a `send --serve`.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "app/config/uri.h"
#include "app/main/aside.h"
#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/ended_transfer.h"
#include "app/main/failed_list.h"
#include "app/main/job_lock.h"
#include "app/main/listener_trust.h"
#include "app/main/on_complete.h"
#include "app/main/process_trust.h"
#include "app/main/pull_wish.h"
#include "app/main/receipts.h"
#include "app/main/rule_words.h"
#include "app/main/session_trust.h"
#include "app/main/standard_io.h"
#include "app/main/transfer_loop.h"
#include "app/recv/root.h"
#include "app/report/outcome.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

CommandEnd accept_below(const Process& process, const ReceiveCommand& command) {
  process.loop.take_hangups();  // before there are threads that SIGHUP would end
  auto trust = ListenerTrust::make(process, command.common, command.listen, policy::Direction::write);
  if (!trust) return {trust.error(), {}};
  NodeOptions node;
  node.listening = true;
  node.listen = command.listen.listen;
  node.trust = (*trust)->hops();
  auto loop = TransferLoop::create(process, command.common, command.transfer, node);
  if (!loop) return {loop.error(), {}};
  AcceptorOptions options;
  std::unique_ptr<recv::Root> root;
  if (command.shares_root) {
    auto second = recv::SecondRoot::open((*loop)->files(), *command.root);
    if (!second) return {second.error(), {}};
    options.second = *second;
  } else {
    recv::RootOptions root_options;
    if (command.listen.staging_age_max_s)
      root_options.staging_age_max_s =
          static_cast<int64_t>(std::min<uint64_t>(*command.listen.staging_age_max_s, uint64_t{1} << 40));
    auto opened = recv::Root::open((*loop)->files(), *command.root, nullptr, root_options);
    if (!opened) return {report::advised(opened.error(), *command.root), {}};
    root = std::move(*opened);
    options.root = root.get();
  }
  options.rate_bytes_per_s = (*loop)->rate_bytes_per_s();
  options.once = command.listen.once;
  if (auto applied = (*trust)->apply(options, *command.root); !applied) return {applied.error(), {}};
  auto receipts = listener_receipts(command.transfer.receipt, *command.root, receipt::Side::destination);
  if (!receipts) return {receipts.error(), {}};
  options.receipts = *receipts;
  options.keeps_history = !command.shares_root;
  options.wall_time_s = wall_time_s;
  options.activity = process.activity;
  if (OnComplete* on_complete = process.on_complete; on_complete != nullptr)
    options.completed = [on_complete](const std::string& result) { on_complete->run(result); };
  options.sessions_max = command.listen.sessions.value_or(sessions_max_default);
  if (command.transfer.lanes != 0) options.lanes_max = command.transfer.lanes;
  sandbox::Plan rights = plan_of_receiver(process.config, *command.root);
  if (!receipts->directory.empty()) add_receipt(rights, receipts->directory);
  return (*loop)->serve(options, command.listen, **trust, std::move(rights));
}

// Of several sources: the others are pulled, as those of a push are sent.
Error missing_one(const Process& process, const std::string& path, CommandEnd& end, FailedList* failed) {
  const std::string name = path.empty() ? "." : path, before = printable(name) + ": ";
  std::string reason = end.error.message;
  if (const size_t at = reason.find(before); at != std::string::npos) reason.erase(0, at + before.size());
  process.reporter.file({name, 0, "failed", reason, end.transfer});
  if (failed != nullptr) failed->ended(name, "failed");
  ++end.tally.files_failed;
  return end_of_tally(end.tally);
}

CommandEnd pull_each(const Process& process, const ReceiveCommand& command, const std::vector<Place>& places,
                     std::optional<Security>& security, TransferLoop& loop, recv::Root& root, bool is_new, const recv::Aside& aside,
                     const std::shared_ptr<FailedList>& failed, DialledReceipt& receipt, const filter::Rules& rules,
                     const session::TweaksRef& tweaks, const std::vector<std::optional<Chosen>>& lists, bool one_file) {
  const SessionServices& services = loop.services();
  const auto rate = std::make_shared<recv::RateAllowance>(loop.rate_bytes_per_s());  // of all that this command pulls
  const auto earlier = places.size() > 1 ? std::make_shared<recv::EarlierSources>() : nullptr;
  CommandEnd end;
  const bool is_one_of_several = places.size() > 1;
  bool is_all_missing = is_one_of_several;
  for (const Place& place : places) {
    if (earlier) earlier->next_source();
    const Target& target = place.targets.front();
    DialPlan plan = make_plan(services, target.address, command.transfer);
    plan.hello.direction = session::Direction::pull;
    plan.open = {session_options(command.transfer) | session::option_directory, target.path};
    plan.open.compress = compression_of(command.transfer.sync);
    const std::optional<Chosen>& chosen = lists[static_cast<size_t>(&place - places.data())];
    if (chosen) {
      const std::string& top = chosen->top;
      plan.open.path = top == "." || top == "/" || top.empty() ? "" : top + "/";
      plan.open.list = chosen->list;
    }
    if (!rules.empty()) plan.open.rules = rules;
    if (command.transfer.sync.deletes) plan.open.deletes = command.transfer.sync.max_delete.value_or(recv::deletions_unlimited);
    DestinationPart part;
    part.root = &root;
    part.is_new = std::exchange(is_new, false);
    part.aside = aside;
    if (plan.open.deletes) part.deletes = recv::DeleteWish{*plan.open.deletes, rules};
    part.options = plan.open.options;
    part.rate = rate;
    part.failed = failed;
    plan.set_rate = [rate](uint64_t bytes_per_s, Instant now) { rate->set(bytes_per_s, now); };
    part.record = std::make_shared<session::TransferRecord>();
    part.disk_patience = session::disk_patience(plan.timeout);
    part.tweaks = tweaks;
    part.asked = recv::asked_for(plan.open.path, plan.open.options);  // each peer may send what it was asked for, and no more
    part.asked->list = plan.open.list;
    part.asked->one_file = one_file;
    part.asked->earlier = earlier;
    if (security) secure_plan(plan, *security, place);
    plan.make_role = [&services, &receipt, part, uri = target.address](session::Link& link, const RoleWish& wish) mutable {
      part.tries_changed_again = wish.tries_changed_again;
      part.receipt = receipt.begin(link, uri);
      part.peer = link.proved() != nullptr ? trust::to_string(link.proved()->id) : uri;
      return make_destination(services, link, part);
    };
    CommandEnd one = loop.dial(std::move(plan), end.tally);
    if (is_one_of_several && one.error.kind == ErrorKind::source_selection) {
      one.error = missing_one(process, target.path, one, failed.get());
    } else {
      is_all_missing = false;
    }
    if (failed) failed->transfer_ends();
    add(end.tally, one.tally);
    const bool has_worse = report::worse(end.error.kind, one.error.kind) != end.error.kind;
    const Error& other = has_worse ? end.error : one.error;
    if (!report::has_delivered(other.kind)) process.reporter.error(other);
    if (has_worse) end.error = one.error;
    end.in_use = one.in_use;
    end.transfer = one.transfer;
    end.identity = one.identity;
    if (end.in_use || (loop.stopped() && !report::has_delivered(one.error.kind))) break;
  }
  if (is_all_missing) {
    end.error = {ErrorKind::source_selection, "none of the sources is there: name files or directories that exist"};
  } else if (is_one_of_several && report::has_delivered(end.error.kind)) {
    end.error = end_of_tally(end.tally);
  }
  return end;
}

// DIR of a pull, made if absent: whether it was.
Result<bool> make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0777) == 0) return true;
  const int problem = errno;
  if (problem == EEXIST) return false;
  return fail(kind_of_file_errno(problem) == ErrorKind::no_space ? ErrorKind::no_space : ErrorKind::file_io,
              fmt::format("cannot make the directory: {}: {}: name one that exists, or can be made", printable(path),
                          std::strerror(problem)));
}

// A dry run makes nothing, but says what the real one would: DIR is there, or can be made in what is there.
Result<bool> look_for_directory(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code problem;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, problem))) return false;
  std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (parent.empty()) parent = ".";
  if (std::filesystem::is_directory(parent, problem)) return false;
  return fail(
      ErrorKind::file_io,
      fmt::format("cannot make the directory: {}: its parent is not there: name one that exists, or can be made", printable(path)));
}

// `temporary`: the directory is the caller's, who removes it, and is for one file.
CommandEnd pull(const Process& process, const ReceiveCommand& command, const std::vector<Place>& places,
                std::optional<Security>& security, bool temporary = false) {
  std::vector<Target> targets;
  for (const Place& place : places) targets.insert(targets.end(), place.targets.begin(), place.targets.end());
  if (auto there = check_targets(process.config, command.common, targets); !there) return {there.error(), {}};
  const auto tweaks = tweaks_of(command.transfer.metadata, true);
  if (!tweaks) return {tweaks.error(), {}};
  NodeOptions node;
  node.dials = transport_of(places.front().targets.front());
  node.trust = trust_of_dialler(security, places);
  const auto lists = chosen_of_each(places, command.transfer);
  if (!lists) return {lists.error(), {}};
  auto rules = read_rules(command.transfer.rules, command.transfer.sync, command.transfer.from0);
  if (!rules) return {rules.error(), {}};
  if (auto travels = check_travel(*rules); !travels) return {travels.error(), {}};
  auto loop = TransferLoop::create(process, command.common, command.transfer, node);
  if (!loop) return {loop.error(), {}};
  const bool dry = command.transfer.dry_run;
  const auto made = dry ? look_for_directory(command.directory) : make_directory(command.directory);
  if (!made) return {made.error(), {}};
  auto root = dry ? recv::Root::look((*loop)->files(), command.directory) : recv::Root::open((*loop)->files(), command.directory);
  sandbox::Plan rights = plan_of_pull(command, *made || temporary);
  add_trust(rights, security);
  const auto failed = begin_failed_list(command.transfer, rights);
  receipt::Header header{.side = receipt::Side::destination,
                         .directory = temporary ? "" : absolute(command.directory),
                         .archive = command.transfer.archive};
  DialledReceipt receipt(command.transfer.receipt, std::move(header), identity_of(security));
  receipt.add_to(rights);
  auto aside = aside_of(command.transfer.sync, command.directory, dry);
  if (aside) add_aside(rights, *aside);
  CommandEnd end;
  if (auto fine = receipt.check(); !fine) {
    end.error = fine.error();
  } else if (!root) {
    end.error = report::advised(root.error(), command.directory);
  } else if (!failed) {
    end.error = failed.error();
  } else if (!aside) {
    end.error = aside.error();
  } else if (auto confined = confine(process, rights); !confined) {
    end.error = confined.error();
  } else {
    if (*confined) (*root)->fix(ErrorKind::file_io);
    end = pull_each(process, command, places, security, **loop, **root, *made, aside->aside, *failed, receipt, *rules, *tweaks,
                    *lists, temporary);
    finish_failed_list(process, failed->get(), end);
    receipt.finish(process, (*loop)->files(), end);
    if (end.in_use) {
      static_cast<void>(root->release());  // a call in it has not come back
    } else {
      root->reset();  // and its staging directory
    }
  }
  if (aside && !end.in_use) remove_unused(*aside);
  // Only an empty one goes, and only if it was made for this: what can be resumed stays.
  if (*made && !end.in_use && !report::has_delivered(end.error.kind)) static_cast<void>(::rmdir(command.directory.c_str()));
  return end;
}

// A directory of ours that goes with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = temporary_directory() + "/ccixfer-pull-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What came into the temporary directory goes with it.
void nothing_is_kept(Tally& tally) {
  tally.files_failed += std::exchange(tally.files, 0);
  tally.bytes = 0;
}

// `-`: nobody shall read bytes that were not verified, so the file is pulled whole first.
CommandEnd pull_to_standard_output(const Process& process, ReceiveCommand command, const std::vector<Place>& places,
                                   std::optional<Security>& security) {
  const std::string& path = places.front().targets.front().path;
  if (places.size() != 1 || peer_path(path).directory || command.transfer.sync.files_from) {
    return {{ErrorKind::usage, "one file goes to standard output: -: give the URI of one file"}, {}};
  }
  const TemporaryDirectory directory;
  if (directory.path().empty()) {
    return {{ErrorKind::file_io,
             fmt::format("cannot make a temporary directory: {}: set TMPDIR to a writable one", std::strerror(errno))},
            {}};
  }
  command.directory = directory.path();
  CommandEnd end = pull(process, command, places, security, true);
  if (end.error.kind != ErrorKind::ok || command.transfer.dry_run) return end;
  // A file keeps its name; of a directory its content would have come.
  const std::filesystem::path file =
      std::filesystem::path(directory.path()) / std::filesystem::path(peer_path(path).path).filename();
  std::error_code problem;
  if (std::filesystem::symlink_status(file, problem).type() == std::filesystem::file_type::regular) {
    if (auto written = write_out(file, STDOUT_FILENO); !written) {
      end.error = written.error();
      nothing_is_kept(end.tally);
    }
    return end;
  }
  nothing_is_kept(end.tally);
  end.error = {ErrorKind::source_selection, fmt::format("not a file: {}: give the URI of one file", command.uris.front())};
  return end;
}

}  // namespace

CommandEnd run_receive(const Process& process, const ReceiveCommand& command) {
  if (command.shares_root && command.listen.once) {
    return {{ErrorKind::usage, "bad use: --once with --shares-root: it has no transfer of its own: stop it when you are done"}, {}};
  }
  if (command.shares_root && (!command.root || !command.transfer.receipt.empty())) {
    return {
        {ErrorKind::usage, command.root ? "bad use: --receipt with --shares-root: the receiver that owns the root writes it"
                                        : "bad use: --shares-root without --root: give the directory of the receiver that owns it"},
        {}};
  }
  if (command.root) return accept_below(process, command);
  const auto lock = JobLock::take(command.transfer.lock_file);
  if (!lock) return {lock.error(), {}};
  std::vector<Place> places;
  bool all_have_tickets = true;
  for (const std::string& uri : command.uris) {
    auto place = find_place(uri, command.common);
    if (!place) return {place.error(), {}};
    all_have_tickets = all_have_tickets && place->ticket;
    places.push_back(std::move(*place));
  }
  const auto without = all_have_tickets ? policy::WithoutIdentity::make_for_this_process : policy::WithoutIdentity::refuse;
  auto security = security_of_process(process, command.common, without);
  if (!security) return {security.error(), {}};
  return command.directory == "-" ? pull_to_standard_output(process, command, places, *security)
                                  : pull(process, command, places, *security);
}

}  // namespace ccixfer::program

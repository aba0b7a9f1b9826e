#include "app/main/transfer_role.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "app/main/confinement.h"
#include "app/main/failed_list.h"
#include "app/report/outcome.h"

namespace ccixfer::program {
namespace {

class Observer final : public send::SourceObserver, public recv::DestinationObserver {
 public:
  // `is_silent`: another process of the team tells of each file.
  Observer(report::Reporter& reporter, const session::TransferId& transfer, std::shared_ptr<FailedList> failed,
           bool is_silent = false)
      : reporter_(reporter), transfer_(transfer_name(transfer)), failed_(std::move(failed)), is_silent_(is_silent) {}
  void session_begins() {
    if (failed_) failed_->session_begins();
  }
  void on_file(std::string_view path, uint64_t bytes, std::string_view status, std::string_view reason) override {
    if (is_silent_) return;
    if (failed_) failed_->ended(path, status);
    reporter_.file({std::string(path), bytes, std::string(status), std::string(reason), transfer_});
  }
  void on_failed_again(std::string_view path) override {
    if (failed_ && !is_silent_) failed_->failed_again(path);
  }
  void on_unnamed(uint64_t things) override {
    if (failed_ && !is_silent_) failed_->add_unnamed(things);
  }
  void on_item(const session::ItemLine& item) override {
    if (!is_silent_) reporter_.item({item.letters, item.name, item.target});
  }
  void on_warning(std::string_view line) override { reporter_.warn(line); }
  void on_failure(std::string_view line) override { reporter_.error({ErrorKind::partial, std::string(line)}); }

 private:
  report::Reporter& reporter_;
  const std::string transfer_;
  const std::shared_ptr<FailedList> failed_;
  const bool is_silent_;
};

class SourceRole final : public TransferRole {
 public:
  SourceRole(const SessionServices& services, session::Link& link, const SourcePart& part)
      : observer_(services.reporter, link.hello().transfer, part.failed, part.seat == send::SourceOptions::Seat::helper),
        is_helper_(part.seat == send::SourceOptions::Seat::helper),
        source_(of_this_process(part), link, services.work, services.pool, services.pool_region, observer_, services.counters) {}

  session::LinkHandler& handler() override { return source_; }
  void list_ahead() override { source_.list_ahead(); }
  bool has_listed_ahead() const override { return source_.has_listed_ahead(); }
  session::FirstEntries first_entries(size_t bytes_max) override { return source_.first_entries(bytes_max); }
  void start(Instant now) override {
    observer_.session_begins();  // of one that only listed ahead there is no session
    source_.start(now);
  }
  void turn(Instant now) override { source_.turn(now); }
  Instant next_deadline() const override { return source_.next_deadline(); }
  bool finished() const override { return source_.finished(); }
  bool may_leave() const override { return source_.finished() || source_.said_all(); }
  bool idle() const override { return source_.idle(); }
  bool in_use() const override { return false; }  // its jobs hold what they use
  const Error* error() const override { return source_.error(); }
  Tally tally() const override {
    Tally tally = source_.tally();
    tally.helped = is_helper_;
    return tally;
  }
  Instant last_progress() const override { return source_.last_progress(); }
  std::string stuck_disk() const override { return source_.stuck_disk(); }
  // A helper's process ends as its team did, and the leader's lines tell what there is to tell.
  Error end() const override {
    const std::optional<session::TeamEnded>& how = source_.team_ended();
    if (!how) return TransferRole::end();
    if (how->kind == ErrorKind::ok) return {ErrorKind::ok, ""};
    return {how->kind, "not all of the transfer is delivered: the lines of the process that led it say what is missing"};
  }
  bool repeatable() const override { return !source_.input_is_spent(); }
  session::Bottleneck bottleneck(Instant now) const override { return source_.bottleneck(now); }
  void abort(const Error& error) override { source_.abort(error); }
  bool take_completion(const rvma::Completion&) override { return false; }

 private:
  static send::SourceOptions of_this_process(send::SourceOptions options) {
    options.is_root = ::geteuid() == 0;
    options.spool_directory = temporary_directory();
    return options;
  }
  Observer observer_;
  const bool is_helper_;
  send::Source source_;
};

class DestinationRole final : public TransferRole {
 public:
  DestinationRole(const SessionServices& services, session::Link& link, const DestinationPart& part)
      : observer_(services.reporter, link.hello().transfer, part.failed),
        destination_(part, *part.root, link, services.endpoint, services.work, services.pool, services.entropy, observer_,
                     services.counters) {
    observer_.session_begins();
  }

  session::LinkHandler& handler() override { return destination_; }
  void start(Instant now) override { destination_.start(now); }
  void turn(Instant now) override { destination_.turn(now); }
  Instant next_deadline() const override { return destination_.next_deadline(); }
  bool finished() const override { return destination_.finished(); }
  bool idle() const override { return destination_.idle(); }
  bool in_use() const override { return !destination_.idle(); }
  const Error* error() const override { return destination_.error(); }
  Tally tally() const override { return destination_.tally(); }
  Instant last_progress() const override { return destination_.last_progress(); }
  std::string stuck_disk() const override { return destination_.stuck_disk(); }
  bool repeatable() const override { return true; }
  session::Bottleneck bottleneck(Instant now) const override { return destination_.bottleneck(now); }
  const session::TeamEnded* team_ended() const override { return destination_.team_ended(); }
  bool add_helper(const std::shared_ptr<recv::Helper>& helper) override { return destination_.add_helper(helper); }
  void abort(const Error& error) override { destination_.abort(error); }
  bool take_completion(const rvma::Completion& completion) override {
    if (!destination_.owns_mailbox(completion.mailbox)) return false;
    destination_.on_completion(completion);
    return true;
  }

 private:
  Observer observer_;
  recv::Destination destination_;
};

class HelperRole final : public TransferRole {
 public:
  explicit HelperRole(const recv::HelperParts& parts) : helper_(std::make_shared<recv::Helper>(parts)) {}

  const std::shared_ptr<recv::Helper>& helper() const { return helper_; }
  session::LinkHandler& handler() override { return *helper_; }
  void start(Instant now) override { helper_->start(now); }
  void turn(Instant now) override { helper_->turn(now); }
  Instant next_deadline() const override { return helper_->next_deadline(); }
  bool finished() const override { return helper_->finished(); }
  bool idle() const override { return helper_->idle(); }
  bool in_use() const override { return !helper_->idle(); }
  const Error* error() const override { return helper_->error(); }
  bool is_peer_told() const override { return helper_->is_end_posted(); }
  // For the log: what it brought counts in the session that leads.
  Tally tally() const override {
    Tally tally;
    tally.bytes = helper_->bytes();
    return tally;
  }
  Error end() const override { return {ErrorKind::ok, ""}; }
  Instant last_progress() const override { return helper_->last_progress(); }
  std::string stuck_disk() const override { return {}; }
  bool repeatable() const override { return true; }
  void abort(const Error& error) override { helper_->abort(error); }
  bool take_completion(const rvma::Completion& completion) override {
    if (!helper_->owns_mailbox(completion.mailbox)) return false;
    helper_->on_completion(completion);
    return true;
  }

 private:
  const std::shared_ptr<recv::Helper> helper_;
};

std::unique_ptr<HelperRole> make_helper_role(const SessionServices& services, session::Link& link,
                                             std::shared_ptr<session::PoolTurns> turns, std::shared_ptr<recv::RateAllowance> rate) {
  return std::make_unique<HelperRole>(
      recv::HelperParts{link, services.endpoint.mailboxes(), services.pool, services.entropy,
                        turns ? std::move(turns) : std::make_shared<session::PoolTurns>(services.pool.count(), true),
                        rate ? std::move(rate) : std::make_shared<recv::RateAllowance>(0)});
}

constexpr std::string_view rest_done = ": the rest is done";
constexpr std::string_view rest_delivered = ": the rest is delivered";

}  // namespace

Reached reached_by(const Tally& tally) { return {tally.entries_answered, tally.ended(), tally.bytes}; }

bool advance(Reached& most, const Reached& now) {
  const bool further =
      now.entries_answered > most.entries_answered || now.files_ended > most.files_ended || now.bytes_there > most.bytes_there;
  most.entries_answered = std::max(most.entries_answered, now.entries_answered);
  most.files_ended = std::max(most.files_ended, now.files_ended);
  most.bytes_there = std::max(most.bytes_there, now.bytes_there);
  return further;
}

report::Waiting waiting_for(session::Bottleneck what, const std::vector<report::Hop>& hops) {
  using session::Bottleneck;
  switch (what) {
    case Bottleneck::none:
      return {};
    case Bottleneck::source_disk:
      return {report::Waits::source_disk, {}};
    case Bottleneck::destination_disk:
      return {report::Waits::destination_disk, {}};
    case Bottleneck::source_or_network:
      return {report::Waits::source_or_network, {}};
    case Bottleneck::rate_cap:
      return {report::Waits::bandwidth_limit, {}};
    case Bottleneck::network:
      break;
  }
  const auto slower = [](const report::Hop& a, const report::Hop& b) { return a.rate_bits_per_s < b.rate_bits_per_s; };
  const auto unknown = [](const report::Hop& hop) { return hop.rate_bits_per_s == 0; };
  const bool named = hops.size() > 1 && std::none_of(hops.begin(), hops.end(), unknown);
  return {report::Waits::network, named ? std::min_element(hops.begin(), hops.end(), slower)->node : std::string()};
}

Error end_of_tally(const Tally& tally) {
  const ErrorKind kind = report::worse(report::kind_of_counts(tally.failed(), tally.vanished()),
                                       tally.delete_skipped > 0 ? ErrorKind::max_delete : ErrorKind::ok);
  if (kind == ErrorKind::ok) return {ErrorKind::ok, ""};
  const std::string limit = fmt::format("--max-delete reached: {} deleted, {} not", tally.deleted, tally.delete_skipped);
  const bool only_deletions = tally.failed() == tally.delete_failed && tally.vanished() == 0;
  const uint64_t count = tally.failed() + tally.vanished();
  const std::string files =
      fmt::format("{} file{} {}", count, count == 1 ? "" : "s", kind == ErrorKind::partial ? "failed" : "vanished or changed");
  if (kind == ErrorKind::max_delete) {
    return {kind, fmt::format("{}{}: check the source and raise the limit", limit, count > 0 ? ", and " + files : "")};
  }
  return {kind, fmt::format("{}{}{}", only_deletions ? fmt::format("{} could not be deleted", tally.delete_failed) : files,
                            tally.delete_skipped > 0 ? ", and " + limit : "", only_deletions ? rest_done : rest_delivered)};
}

Error below_its_lines(Error end) {
  if (end.message.ends_with(rest_done) || end.message.ends_with(rest_delivered))
    end.message += ": see the lines above and run again";
  return end;
}

report::Counts counts_of(const Tally& tally) {
  return {.files = tally.files,
          .files_unchanged = tally.files_unchanged,
          .files_failed = tally.failed() + tally.vanished(),
          .bytes = tally.bytes,
          .bytes_sent = tally.bytes_sent,
          .segments_resent = tally.segments_resent,
          .helped = tally.helped};
}

session::TransferId make_transfer_id(ports::Entropy& entropy) {
  session::TransferId transfer{};
  for (size_t i = 0; i < transfer.size(); i += sizeof(uint64_t)) {
    const uint64_t word = entropy.next_u64();
    std::memcpy(transfer.data() + i, &word, sizeof word);
  }
  return transfer;
}

std::string transfer_name(const session::TransferId& transfer) {
  std::string name;
  for (const uint8_t byte : transfer) name += fmt::format("{:02x}", byte);
  return name;
}

std::vector<report::Hop> report_hops(const std::vector<ports::HopInfo>& hops) {
  std::vector<report::Hop> list;
  for (const ports::HopInfo& hop : hops) {
    const bool routed = hop.as != 0 || hop.subnet != 0;
    list.push_back({hop.transport, hop.node, routed ? fmt::format("{}:{}", hop.as, hop.subnet) : std::string(),
                    std::chrono::duration<double>(hop.round_trip).count(), hop.rate_bits_per_s, hop.peer,
                    std::string(hop.protection)});
  }
  return list;
}

void show_role(report::StatusTransfer& view, const TransferRole& role, const Tally& all, const session::Link& link, Instant came,
               Instant now) {
  view.state = report::StatusTransfer::State::running;
  view.counts = counts_of(all);
  view.bytes_total = all.bytes_total;
  view.total_known = all.total_known;
  view.quiet_s = std::chrono::duration<double>(now - std::max(role.last_progress(), came)).count();
  const std::vector<session::LaneIndex> lanes = link.live_lanes();
  view.lanes = lanes.size();
  view.waiting =
      waiting_for(role.bottleneck(now), lanes.empty() ? std::vector<report::Hop>() : report_hops(link.hops(lanes.front())));
}

std::unique_ptr<TransferRole> make_source(const SessionServices& services, session::Link& link, const SourcePart& part) {
  return std::make_unique<SourceRole>(services, link, part);
}
std::unique_ptr<TransferRole> make_destination(const SessionServices& services, session::Link& link, const DestinationPart& part) {
  return std::make_unique<DestinationRole>(services, link, part);
}

std::unique_ptr<TransferRole> make_helper(const SessionServices& services, session::Link& link, TransferRole& leader,
                                          const DestinationPart& part) {
  auto role = make_helper_role(services, link, part.turns, part.rate);
  if (!leader.add_helper(role->helper())) return nullptr;
  return role;
}

std::unique_ptr<TransferRole> make_late_helper(const SessionServices& services, session::Link& link,
                                               const session::TeamEnded& how) {
  auto role = make_helper_role(services, link, {}, {});
  role->helper()->end(how);
  return role;
}

}  // namespace ccixfer::program

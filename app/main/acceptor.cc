#include "app/main/acceptor.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/config/uri.h"
#include "app/main/aside.h"
#include "app/main/ended_transfer.h"
#include "app/main/farewell.h"
#include "app/main/session_trust.h"
#include "app/recv/history.h"
#include "app/recv/task.h"
#include "app/report/outcome.h"
#include "app/session/entry.h"
#include "app/session/tlv.h"
#include "core/base/log.h"

namespace ccixfer::program {
namespace {

constexpr uint32_t known_options =
    session::option_recursive | session::option_links | session::option_permissions | session::option_times |
    session::option_owner | session::option_checksum | session::option_dry_run | session::option_directory |
    session::option_verify | session::option_update | session::option_size_only | session::option_ignore_existing |
    session::option_one_file_system | session::option_itemize | session::option_hard_links | session::option_acls |
    session::option_xattrs | session::option_specials | session::option_numeric_ids | session::option_sparse |
    session::option_whole_file | session::option_inplace;

constexpr const char* words_of_busy = "the peer is busy with other transfers: try again later";

recv::Limits limits_of(const policy::Grant& grant) { return {grant.quota_bytes, grant.entries_max, grant.setid, grant.devices}; }

}  // namespace

namespace {

// Notes a transfer that ended. That it cannot be is nothing of the transfer's.
class HistoryJob final : public ports::Job {
 public:
  HistoryJob(std::shared_ptr<recv::OpenedRoot> root, std::string line, std::shared_ptr<size_t> running)
      : root_(std::move(root)), line_(std::move(line)), running_(std::move(running)) {
    ++*running_;
  }
  void run(ports::FileSystem&) override { error_ = recv::add_history(*root_, line_); }
  void done() override {
    --*running_;
    if (error_ < 0) log(LogLevel::warning, "the history of transfers cannot be written: {}", recv::describe_errno(-error_));
  }

 private:
  const std::shared_ptr<recv::OpenedRoot> root_;
  const std::string line_;
  const std::shared_ptr<size_t> running_;
  int error_ = 0;
};

}  // namespace

class Acceptor::Session {
 public:
  Session(Acceptor& acceptor, const session::Hello& hello, Instant now)
      : acceptor_(acceptor),
        link_(acceptor.services_.endpoint, hello, forwarder_),
        came_(now),
        opened_by_(after(now, open_timeout)) {
    if (acceptor.options_.seal) link_.secure(acceptor.options_.seal());
    acceptor_.hub_.add_link(&link_);
  }
  ~Session() {
    role_.reset();
    if (grant_) {
      if (const auto problem = acceptor_.options_.gate->ended(link_, result_)) log(LogLevel::error, "{}", problem->message);
    }
    if (transfer_ != nullptr) --transfer_->sessions;
    acceptor_.hub_.remove_link(&link_);
  }

  session::Link& link() { return link_; }
  bool under_way() const { return state_ == State::running; }
  bool ended() const { return state_ == State::ended; }
  bool is_proved() const { return link_.is_secured(); }
  // Of a peer that is not proved, the transfer is not known: its id may be somebody else's.
  bool is_of(const session::TransferId& transfer) const { return is_proved() && link_.transfer_key() == transfer; }
  bool same_transfer(const session::Hello& hello) const { return link_.hello().transfer == hello.transfer; }
  Instant came() const { return came_; }
  // It holds a use of this ticket, and whoever began it is gone.
  bool is_abandoned(const trust::TicketNumber& ticket) const {
    const std::optional<session::Open>& open = forwarder_.open();
    return under_way() && grant_ && open && open->ticket && open->ticket->number == ticket && link_.live_lanes().empty();
  }
  // Once, when a proved peer has said what it wants: the sessions that it lost are this one's now.
  bool takes_over() { return std::exchange(takes_over_, false); }
  bool has_role() const { return role_ != nullptr; }
  bool waits() const { return state_ == State::queued && !link_.live_lanes().empty(); }  // one that is cut off keeps its place
  bool superseded() const { return superseded_; }
  Instant last_progress() const { return role_ ? role_->last_progress() : Instant::min(); }
  Tally tally() const { return transfer_ != nullptr ? transfer_->tally : Tally{}; }
  const Error& result() const { return result_; }
  bool was_open() const { return reported_; }
  bool is_dry() const { return is_dry_; }
  // For log lines: which transfer it is, and whose.
  std::string name() const {
    const std::string transfer = transfer_name(link_.hello().transfer);
    return who_.is_known() ? fmt::format("{} of {}", transfer, who_.name()) : transfer;
  }
  void report_end() const {
    if (metrics::Activity* activity = acceptor_.options_.activity; activity != nullptr) {
      activity->session_ended(result_.kind);
      const Tally all = tally();
      if (report::has_delivered(result_.kind) && !is_dry_)
        activity->delivered(all.files, all.files_unchanged, all.files_failed, all.bytes);
    }
    acceptor_.services_.reporter.ended({.transfer = transfer_name(link_.hello().transfer),
                                        .peer = peer_,
                                        .path = path_,
                                        .serves = acceptor_.options_.root == nullptr,
                                        .kind = result_.kind,
                                        .reason = result_.message,
                                        .counts = counts_of(tally())});
  }
  void report_transfer() const {
    const AcceptorOptions& options = acceptor_.options_;
    report::Transfer transfer;
    transfer.transfer = transfer_name(link_.hello().transfer);
    transfer.peer = grant_ && !grant_->name.empty() ? grant_->name : peer_;
    if (link_.proved() != nullptr) transfer.identity = trust::to_string(link_.proved()->id);
    transfer.is_push = options.root != nullptr;
    transfer.path = path_;
    transfer.kind = result_.kind;
    transfer.reason = result_.message;
    transfer.counts = counts_of(tally());
    transfer.began_s = began_s_;
    transfer.ended_s = options.wall_time_s ? options.wall_time_s() : 0;
    acceptor_.services_.reporter.transfer(transfer);
    const std::string result = report::transfer_result(transfer);
    if (options.completed) options.completed(result);
    if (options.keeps_history && options.root != nullptr)
      acceptor_.services_.work.submit(std::make_unique<HistoryJob>(options.root->opened(), result, acceptor_.writing_));
  }
  policy::AuditRecord audit_record(Instant now) const {
    policy::AuditRecord record;
    record.event = reported_ ? policy::AuditRecord::Event::session : policy::AuditRecord::Event::refused;
    if (const trust::ProvedPeer* peer = link_.proved()) {
      record.peer = trust::to_string(peer->id);
      record.name = acceptor_.options_.gate->name_of(*peer);
    }
    if (grant_) record.name = grant_->name;
    record.address = who_.address;
    record.direction = acceptor_.options_.root != nullptr ? "push" : "pull";
    record.path = path_;
    record.files = tally().files;
    record.bytes = tally().bytes;
    record.outcome = result_.kind;
    record.reason = result_.message;
    record.seconds = std::chrono::duration<double>(now - came_).count();
    record.transfer = transfer_name(link_.hello().transfer);
    return record;
  }
  bool counts() const { return counts_; }  // it was a transfer, not a mere knock at the door
  bool take_completion(const rvma::Completion& completion) { return role_ && role_->take_completion(completion); }

  void stop(const Error& why, Instant now) {
    if (state_ >= State::farewell) return;
    result_ = why;
    abort_session(link_, role_.get(), why);
    leave(now);
  }
  void supersede(Instant now) {
    counts_ = false;
    superseded_ = true;
    stop({ErrorKind::network, "the peer began this transfer anew"}, now);
  }

  void turn(Instant now) {
    if (state_ == State::waiting || state_ == State::queued) turn_waiting(now);
    if (state_ == State::running) turn_running(now);
    count();
    if (state_ == State::farewell) turn_farewell(now);
  }
  Instant next_deadline() const {
    Instant own = never;
    if (state_ == State::waiting) own = opened_by_;
    if (waits()) own = place_due_;
    if (state_ == State::farewell) own = farewell_.next_deadline();
    return role_ ? std::min(own, role_->next_deadline()) : own;
  }

  // Its turn has come.
  void admit(Instant now) {
    if (auto begun = begin(now); !begun) stop(begun.error(), now);
  }
  // It has to wait: it hears its place when that changes, and now and then while those before it get on.
  void tell_place(uint32_t before, Instant now) {
    const bool heartbeat = now >= place_due_ && acceptor_.someone_got_on(place_told_);
    if (place_ != before || heartbeat) {
      if (place_ != before) log(LogLevel::info, "session {}: waits, {} before it", name(), before);
      link_.post(session::Queued{before});
      place_ = before;
      place_told_ = now;
    }
    if (now >= place_due_ || heartbeat) place_due_ = after(now, place_interval);
  }

 private:
  enum class State : uint8_t { waiting, queued, running, farewell, ended };

  void turn_waiting(Instant now) {
    if (!who_.is_known()) who_ = link_.peer();
    if (forwarder_.peer_broke_protocol()) return stop(*forwarder_.lost(), now);
    if (forwarder_.lost()) {
      result_ = *forwarder_.lost();
      return leave(now);
    }
    if (state_ == State::queued) return;
    if (now >= opened_by_) return stop({ErrorKind::protocol, "no session was opened in time"}, now);
    if (!forwarder_.open()) return;
    counts_ = !link_.hello().sealed;                                 // else once it is admitted
    if (auto may = may_wait(); !may) return stop(may.error(), now);  // a stranger need not wait for a place to hear that
    takes_over_ = link_.hello().sealed;
    state_ = State::queued;
    place_due_ = now;
  }

  Result<void> may_wait() {
    const session::Open& open = *forwarder_.open();
    if ((open.options & ~known_options) != 0)
      return fail(ErrorKind::protocol, "the peer asks for options that this version does not have");
    if (open.unknown_mandatory != 0)
      return fail(ErrorKind::protocol, session::words_of_unknown("request to open a session", open.unknown_mandatory));
    const PeerPath path = peer_path(open.path);
    if (!path.path.empty() && !session::is_safe_relative_path(path.path)) {
      return fail(ErrorKind::not_authorised, fmt::format("the path leaves the root: {}: name a place below it", open.path));
    }
    path_ = path.path;
    PeerGate* gate = acceptor_.options_.gate;
    auto aside = aside_of(open, path.path);
    if (!aside) return tl::unexpected<Error>(aside.error());
    aside_ = std::move(*aside);
    if (gate == nullptr) return {};
    if (auto may = gate->may_wait(link_, open, path_); !may) return may;
    // It may read and write nothing that it may not name as its destination.
    for (const recv::SidePlace& place : aside_.older) {
      if (auto may = gate->may_wait(link_, open, place.path); !may) return may;
    }
    return aside_.backup && aside_.backup->directory ? gate->may_wait(link_, open, aside_.backup->directory->path) : Result<void>();
  }

  Result<void> begin(Instant now) {
    const SessionServices& services = acceptor_.services_;
    const AcceptorOptions& options = acceptor_.options_;
    const session::Open& open = *forwarder_.open();
    const PeerPath path = peer_path(open.path);
    if (options.gate != nullptr) {
      Result<policy::Grant> grant = options.gate->admit(link_, open, path.path);
      if (!grant && open.ticket && grant.error().kind == ErrorKind::network) acceptor_.end_abandoned(open.ticket->number, now);
      if (!grant) return tl::unexpected(grant.error());
      grant_ = std::move(*grant);
      counts_ = true;
    }
    uint64_t number = 0;
    while (number == 0) number = services.entropy.next_u64();
    link_.set_session(number);
    link_.post(session::Opened{number, options.lanes_max});
    report_session();
    if (options.wall_time_s) began_s_ = options.wall_time_s();
    is_dry_ = (open.options & session::option_dry_run) != 0;
    transfer_ = &acceptor_.transfer(link_.transfer_key());
    ++transfer_->sessions;
    earlier_ = transfer_->tally;
    if (!options.receipts.directory.empty() && (open.options & session::option_dry_run) == 0) {
      book_ = std::make_shared<receipt::Book>();
      book_->begin(transfer_name(link_.hello().transfer));
    }
    const bool has_rate = grant_ && grant_->rate_bytes_per_s;
    if (options.root != nullptr) {
      DestinationPart part{options.root, open.options, path.path};
      part.turns = acceptor_.turns_;
      part.peer = grant_ && !grant_->name.empty() ? grant_->name : peer_;
      part.aside = aside_;
      if (open.deletes) part.deletes = recv::DeleteWish{*open.deletes, open.rules.value_or(filter::Rules{})};
      part.rate =
          has_rate ? acceptor_.receive_rates_.of(grant_->name, *grant_->rate_bytes_per_s) : acceptor_.receive_rates_.process();
      part.record = transfer_->record;
      part.receipt = book_.get();
      if (grant_) part.limits = limits_of(*grant_);
      role_ = make_destination(services, link_, part);
    } else {
      const std::string below = path.path.empty() ? "" : path.path + (path.directory ? "/" : "");
      SourcePart part{{below}, options.served_root, open.options, open.compress};
      if (open.rules) part.rules = *open.rules;
      part.list = open.list;
      part.tells_listed = open.deletes.has_value();
      part.turns = acceptor_.turns_;
      part.rate = has_rate ? acceptor_.send_rates_.of(grant_->name, *grant_->rate_bytes_per_s) : acceptor_.send_rates_.process();
      part.record = transfer_->record;
      part.receipt = book_.get();
      role_ = make_source(services, link_, part);
    }
    state_ = State::running;
    forwarder_.attach(role_->handler());  // before start(): it takes up live lanes that it has not been told of
    role_->start(now);
    return {};
  }

  void report_session() {
    report::Session line;
    line.transfer = transfer_name(link_.hello().transfer);
    line.path = report_hops(link_.hops(0));
    line.peer = peer_ = line.path.empty() ? "?" : line.path.back().node;
    if (const trust::ProvedPeer* peer = link_.proved()) line.identity = trust::to_string(peer->id);
    acceptor_.services_.reporter.session(line);
    if (acceptor_.options_.activity != nullptr) acceptor_.options_.activity->session_opened();
    reported_ = true;
  }

  void turn_running(Instant now) {
    role_->turn(now);
    if (!role_->finished()) return;
    result_ = role_->error() != nullptr ? *role_->error() : end_of_tally(role_->tally());
    if (book_ && is_worth_a_receipt(result_)) write_receipt();
    leave(now);
  }

  void write_receipt() {
    const ListenerReceipts& receipts = acceptor_.options_.receipts;
    const session::Open& open = *forwarder_.open();
    const PeerPath path = peer_path(open.path);
    const bool names_directory = (open.options & session::option_directory) != 0;
    ReceiptOrder order{.book = book_, .file = receipts.directory + "/" + transfer_name(link_.hello().transfer) + ".receipt"};
    order.header.side = receipts.side;
    order.header.peer = link_.proved() != nullptr ? trust::to_string(link_.proved()->id) : who_.address;
    order.header.path = path.path;
    // A pull of `dir` has its name in the paths, one of `dir/` has not.
    const bool inside = receipts.side == receipt::Side::destination || !names_directory || path.directory || path.path.empty();
    order.header.directory = delivered_directory(receipts.root, path.path, inside);
    order.header.archive = (open.options & session::option_permissions) != 0 && (open.options & session::option_times) != 0;
    order.header.status = error_row(result_.kind).name;
    order.header.time_s = wall_time_s();
    if (acceptor_.options_.seal) order.identity = acceptor_.options_.seal().identity;
    acceptor_.services_.work.submit(make_receipt_job(std::move(order), acceptor_.services_.reporter, acceptor_.writing_));
  }

  void count() {
    if (role_) transfer_->tally = continued(earlier_, role_->tally());
  }

  void leave(Instant now) {
    state_ = State::farewell;
    farewell_.begin(now, farewell_timeout, true);
  }

  void turn_farewell(Instant now) {
    if (role_) role_->turn(now);
    const Farewell::Stage stage = farewell_.turn(link_, role_.get(), now);
    if (stage == Farewell::Stage::waiting_for_role && farewell_.is_late(now)) farewell_.wait_until(never);
    if (stage != Farewell::Stage::over) return;
    if (role_) {
      count();
      forwarder_.detach();
      role_.reset();
    }
    state_ = State::ended;
  }

  Acceptor& acceptor_;
  Forwarder forwarder_;
  session::Link link_;
  std::shared_ptr<receipt::Book> book_;  // of its receipt; none: nobody wants one
  std::unique_ptr<TransferRole> role_;
  State state_ = State::waiting;
  Farewell farewell_;
  const Instant came_;
  Instant opened_by_;
  std::optional<uint32_t> place_;  // as the peer was told
  Instant place_told_ = Instant::min(), place_due_ = never;
  bool counts_ = false;
  bool superseded_ = false;
  bool takes_over_ = false;
  std::optional<policy::Grant> grant_;  // of an admitted peer; none: --insecure
  bool reported_ = false;
  std::string peer_, path_;  // for people
  recv::Aside aside_;        // of a push
  ports::PeerIdentity who_;
  Transfer* transfer_ = nullptr;
  Tally earlier_;        // of the transfer, before this session
  int64_t began_s_ = 0;  // since 1970
  bool is_dry_ = false;
  Error result_{ErrorKind::ok, ""};
};

Acceptor::Acceptor(const SessionServices& services, session::Hub& hub, const AcceptorOptions& options)
    : services_(services),
      hub_(hub),
      options_(options),
      turns_(std::make_shared<session::PoolTurns>(services.pool.count(), options.once || options.sessions_max == 1)),
      receive_rates_(std::make_shared<recv::RateAllowance>(options.rate_bytes_per_s)),
      send_rates_(std::make_shared<send::RateCap>(options.rate_bytes_per_s)) {
  hub_.set_accept_handler(this);
}
Acceptor::~Acceptor() { hub_.set_accept_handler(nullptr); }

void Acceptor::set_rate(uint64_t bytes_per_s, Instant now) {
  receive_rates_.process()->set(bytes_per_s, now);
  send_rates_.process()->set(bytes_per_s, now);
}

// In the order in which they came, so that nobody waits for who came later.
void Acceptor::admit(Instant now) {
  size_t running = 0;
  for (const auto& session : sessions_) running += session->has_role() ? 1u : 0u;
  uint32_t before = 0;
  for (const auto& session : sessions_) {
    if (!session->waits()) continue;
    const bool earlier_self = std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& other) {
      return other->superseded() && other->has_role() && other->is_of(session->link().transfer_key());
    });  // it still holds the names that this one wants
    if (options_.once && (first_end_ || (running > 0 && !earlier_self))) {
      session->stop({ErrorKind::network, words_of_busy}, now);
    } else if (running < options_.sessions_max && !earlier_self) {
      session->admit(now);
      running += session->has_role() ? 1u : 0u;
    } else {
      session->tell_place(before++, now);
    }
  }
}

bool Acceptor::someone_got_on(Instant since) const {
  return std::any_of(sessions_.begin(), sessions_.end(), [since](const auto& session) { return session->last_progress() > since; });
}

Acceptor::Transfer& Acceptor::transfer(const session::TransferId& id) {
  const auto known = std::find_if(transfers_.begin(), transfers_.end(), [&id](const Transfer& one) { return one.id == id; });
  if (known != transfers_.end()) return *known;
  if (transfers_.size() >= transfers_remembered_max) {
    const auto oldest = std::find_if(transfers_.begin(), transfers_.end(), [](const Transfer& one) { return one.sessions == 0; });
    if (oldest != transfers_.end()) {
      add(forgotten_, oldest->tally);
      transfers_.erase(oldest);
    }
  }
  Transfer& transfer = transfers_.emplace_back();
  transfer.id = id;
  transfer.record = std::make_shared<session::TransferRecord>(session::TransferRecord::files_max_of_acceptor);
  return transfer;
}

Result<void> Acceptor::check_hello(const session::Hello& hello) const {
  const auto wanted = options_.root != nullptr ? session::Direction::push : session::Direction::pull;
  if (stopped_) return fail(ErrorKind::network, "the peer is going down");
  if (hello.sealed && !options_.seal) {
    return fail(ErrorKind::authentication, "the peer runs with --insecure: start both sides with it, or both without it");
  }
  if (!hello.sealed && options_.seal) {
    return fail(ErrorKind::authentication, "the peer wants encryption: start both sides without --insecure, or both with it");
  }
  if (hello.direction != wanted) {
    return fail(ErrorKind::usage, options_.root != nullptr ? "the peer receives (recv --root): send to it"
                                                           : "the peer serves (send --serve): pull from it");
  }
  return {};
}

std::list<std::unique_ptr<Acceptor::Session>>::iterator Acceptor::supersede(const session::TransferId& transfer, const Session* by,
                                                                            Instant now) {
  auto place = sessions_.end();
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if (at->get() == by || (*at)->ended() || !(*at)->is_of(transfer)) continue;
    (*at)->supersede(now);
    place = std::next(at);
  }
  return place;
}

// Strangers are many and cost nothing to be: those who do not prove themselves keep nobody out.
bool Acceptor::make_room_for_unproved(Instant now) {
  size_t unproved = 0;
  Session* oldest = nullptr;
  for (const auto& session : sessions_) {
    if (session->ended() || session->is_proved()) continue;
    ++unproved;
    if (oldest == nullptr || session->came() < oldest->came()) oldest = session.get();
  }
  if (unproved < unproved_sessions_max) return true;
  if (now < after(oldest->came(), unproved_kept)) return false;
  oldest->stop({ErrorKind::network, "it did not say in time who it is"}, now);
  return true;
}

Result<session::Link*> Acceptor::on_new_session(const session::Hello& hello, Instant now) {
  if (auto fits = check_hello(hello); !fits) return tl::unexpected(fits.error());
  auto place = sessions_.end();
  if (hello.sealed) {
    if (!make_room_for_unproved(now)) return fail(ErrorKind::network, words_of_busy);
  } else {
    place = supersede(hello.transfer, nullptr, now);
  }
  const auto others = static_cast<size_t>(std::count_if(sessions_.begin(), sessions_.end(), [&hello](const auto& session) {
    return !session->ended() && !session->superseded() && (!hello.sealed || session->counts());
  }));
  if ((options_.once && others > 0) || sessions_.size() >= options_.sessions_max + sessions_waiting_max) {
    return fail(ErrorKind::network, words_of_busy);
  }
  return &(*sessions_.insert(place, std::make_unique<Session>(*this, hello, now)))->link();
}

// A sender that was killed left its session behind, which waits for it. Its ticket is all that tells that the next one is the same.
void Acceptor::end_abandoned(const trust::TicketNumber& ticket, Instant now) {
  for (const auto& session : sessions_) {
    if (session->is_abandoned(ticket)) session->stop({ErrorKind::network, "another transfer came with its ticket"}, now);
  }
}

// A proved peer that begins its transfer anew has the place of the session that it lost.
void Acceptor::take_over_transfers(Instant now) {
  std::vector<std::list<std::unique_ptr<Session>>::iterator> taking;
  for (auto at = sessions_.begin(); at != sessions_.end(); ++at) {
    if ((*at)->takes_over()) taking.push_back(at);
  }
  for (const auto at : taking) {
    const auto place = supersede((*at)->link().transfer_key(), at->get(), now);
    if (place != sessions_.end()) sessions_.splice(place, sessions_, at);
  }
}

session::Link* Acceptor::find_session(const session::Hello& hello) {
  for (const auto& session : sessions_) {
    const session::Link& link = session->link();
    if (!session->ended() && link.session() == hello.session && hello.session != 0 && session->same_transfer(hello))
      return &session->link();
  }
  return nullptr;
}

void Acceptor::turn(Instant now) {
  // Each is the first in its turn, so that what they share (the cap, the pool) is nobody's more than the others'.
  if (!sessions_.empty()) {
    first_ = (first_ + 1) % sessions_.size();
    const auto middle = std::next(sessions_.begin(), static_cast<std::ptrdiff_t>(first_));
    for (auto at = middle; at != sessions_.end(); ++at) (*at)->turn(now);
    for (auto at = sessions_.begin(); at != middle; ++at) (*at)->turn(now);
  }
  take_over_transfers(now);
  admit(now);
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    Session& session = **at;
    if (!session.ended()) {
      ++at;
      continue;
    }
    const Error& result = session.result();
    const LogLevel level = result.kind == ErrorKind::ok ? LogLevel::info : LogLevel::warning;
    if (session.was_open()) {
      session.report_end();
      if (session.counts() && !session.is_dry()) session.report_transfer();
    } else if (session.counts() || result.kind != ErrorKind::ok) {
      log(level, "session {}: {}{}{}", session.name(), error_row(result.kind).name, result.message.empty() ? "" : ": ",
          result.message);
    }
    const bool knocked = !session.was_open() && !session.counts() && result.kind == ErrorKind::ok;
    if (options_.audit && !knocked) options_.audit(session.audit_record(now));
    if (session.counts() && !first_end_) first_end_ = result;
    at = sessions_.erase(at);
  }
}

Instant Acceptor::next_deadline() const {
  Instant deadline = never;
  for (const auto& session : sessions_) deadline = std::min(deadline, session->next_deadline());
  return deadline;
}

bool Acceptor::take_completion(const rvma::Completion& completion) {
  return std::any_of(sessions_.begin(), sessions_.end(), [&](const auto& session) { return session->take_completion(completion); });
}

void Acceptor::stop(const Error& why, Instant now) {
  stopped_ = true;
  for (const auto& session : sessions_) session->stop(why, now);
}

bool Acceptor::idle() const { return sessions_.empty() && *writing_ == 0; }
size_t Acceptor::sessions() const { return sessions_.size(); }
size_t Acceptor::unfinished() const {
  return static_cast<size_t>(
      std::count_if(sessions_.begin(), sessions_.end(), [](const auto& session) { return session->under_way(); }));
}
const std::optional<Error>& Acceptor::first_end() const { return first_end_; }

Tally Acceptor::tally() const {
  Tally sum = forgotten_;
  for (const Transfer& transfer : transfers_) add(sum, transfer.tally);
  return sum;
}

}  // namespace ccixfer::program

#include "app/main/acceptor_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/config/uri.h"
#include "app/main/aside.h"
#include "app/main/ended_transfer.h"
#include "app/main/history_job.h"
#include "app/main/open_check.h"
#include "app/main/session_trust.h"
#include "app/report/outcome.h"
#include "core/base/log.h"

namespace ccixfer::program {
namespace {

recv::Limits limits_of(const policy::Grant& grant) { return {grant.quota_bytes, grant.entries_max, grant.setid, grant.devices}; }

}  // namespace

Acceptor::Session::Session(Acceptor& acceptor, const session::Hello& hello, Instant now)
    : acceptor_(acceptor), link_(acceptor.services_.endpoint, hello, forwarder_), came_(now), opened_by_(after(now, open_timeout)) {
  if (acceptor.options_.seal) link_.secure(acceptor.options_.seal());
  acceptor_.hub_.add_link(&link_);
}

Acceptor::Session::~Session() {
  role_.reset();
  if (grant_) {
    if (const auto problem = acceptor_.options_.gate->ended(link_, result_)) log(LogLevel::error, "{}", problem->message);
  }
  if (transfer_ != nullptr && !helps_) --transfer_->sessions;
  acceptor_.hub_.remove_link(&link_);
}

void Acceptor::Session::note_connection(Instant now) {
  if (is_connected() || state_ != State::running) {
    cut_off_at_ = never;
  } else if (cut_off_at_ == never) {
    cut_off_at_ = now;
  }
  is_given_up_ = cut_off_at_ != never && now >= after(cut_off_at_, lost_patience);
}

// Without a proof the host is all that is known; a peer that has none is like nobody.
bool Acceptor::Session::is_like(const Session& other) const {
  if (team_ || other.team_ || !forwarder_.open() || !other.forwarder_.open()) return false;
  const auto& ticket = forwarder_.open()->ticket;
  const auto& other_ticket = other.forwarder_.open()->ticket;
  if (ticket && other_ticket && ticket->number == other_ticket->number) return true;
  if (path_ != other.path_) return false;
  const trust::ProvedPeer* peer = link_.proved();
  const trust::ProvedPeer* other_peer = other.link_.proved();
  if (peer != nullptr && other_peer != nullptr) return peer->id == other_peer->id;
  return peer == nullptr && other_peer == nullptr && !who_.address.empty() && who_.address == other.who_.address;
}

bool Acceptor::Session::is_abandoned(const trust::TicketNumber& ticket) const {
  const std::optional<session::Open>& open = forwarder_.open();
  return under_way() && grant_ && open && open->ticket && open->ticket->number == ticket && link_.live_lanes().empty();
}

std::string Acceptor::Session::name() const {
  const std::string transfer = transfer_name(link_.hello().transfer);
  return who_.is_known() ? fmt::format("{} of {}", transfer, who_.name()) : transfer;
}

void Acceptor::Session::report_end(Instant now) const {
  if (metrics::Activity* activity = acceptor_.options_.activity; activity != nullptr) {
    activity->session_ended(result_.kind, std::chrono::duration<double>(now - came_).count());
    const report::Counts all = counts_of(tally());
    if (report::has_delivered(result_.kind) && !is_dry_)
      activity->delivered(all.files, all.files_unchanged, all.files_failed, all.bytes);
  }
  acceptor_.services_.reporter.ended({.transfer = transfer_name(link_.hello().transfer),
                                      .peer = peer_,
                                      .path = path_,
                                      .name = grant_ ? grant_->name : "",
                                      .serves = !acceptor_.options_.receives(),
                                      .kind = result_.kind,
                                      .reason = result_.message,
                                      .counts = counts_of(tally())});
}

void Acceptor::Session::report_transfer() const {
  const AcceptorOptions& options = acceptor_.options_;
  report::Transfer transfer;
  transfer.transfer = transfer_name(link_.hello().transfer);
  transfer.peer = grant_ && !grant_->name.empty() ? grant_->name : peer_;
  if (link_.proved() != nullptr) transfer.identity = trust::to_string(link_.proved()->id);
  transfer.is_push = options.receives();
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
    acceptor_.services_.work.submit(make_history_job(options.root->opened(), result, acceptor_.writing_));
}

policy::AuditRecord Acceptor::Session::audit_record(Instant now) const {
  policy::AuditRecord record;
  record.event = reported_ ? policy::AuditRecord::Event::session : policy::AuditRecord::Event::refused;
  if (const trust::ProvedPeer* peer = link_.proved()) {
    record.peer = trust::to_string(peer->id);
    record.name = acceptor_.options_.gate->name_of(*peer);
  }
  if (grant_) record.name = grant_->name;
  record.address = who_.address;
  record.direction = acceptor_.options_.receives() ? "push" : "pull";
  record.path = path_;
  // Of this session alone: what the transfer's earlier ones did stands in their lines.
  const auto beyond = [](uint64_t all, uint64_t before) { return all > before ? all - before : 0; };
  record.files = beyond(tally().files, earlier_.files);
  record.bytes = beyond(tally().bytes, earlier_.bytes);
  record.outcome = result_.kind;
  record.reason = result_.message;
  record.seconds = std::chrono::duration<double>(now - came_).count();
  record.transfer = transfer_name(link_.hello().transfer);
  return record;
}

report::StatusTransfer Acceptor::Session::view(Instant now) const {
  report::StatusTransfer view;
  view.transfer = transfer_name(link_.hello().transfer);
  view.peer = grant_ && !grant_->name.empty() ? grant_->name : peer_.empty() ? who_.name() : peer_;
  if (link_.proved() != nullptr) view.identity = trust::to_string(link_.proved()->id);
  view.path = path_;
  view.seconds = std::chrono::duration<double>(now - came_).count();
  view.lanes = link_.live_lanes().size();
  if (waits()) view.before = place_;
  if (role_) show_role(view, *role_, tally(), link_, came_, now);
  view.counts.helped = helps_;
  if (role_ && !under_way()) view.state = report::StatusTransfer::State::ending;
  return view;
}

void Acceptor::Session::stop(const Error& why, Instant now) {
  if (state_ >= State::farewell) return;
  result_ = why;
  if (role_ && role_->is_peer_told()) return leave(now);
  abort_session(link_, role_.get(), told_.value_or(why));
  leave(now);
}

bool Acceptor::Session::is_stranger() const {
  if (!link_.hello().sealed || is_let_in_ || ended()) return false;
  const trust::ProvedPeer* peer = link_.proved();
  return peer == nullptr || acceptor_.options_.gate == nullptr || acceptor_.options_.gate->name_of(*peer).empty();
}

void Acceptor::Session::dismiss(const Error& why, Instant now) {
  stop(why, now);
  is_dismissed_ = true;
  farewell_.begin(now, Duration::zero(), false);
}

void Acceptor::Session::send_away(const Error& why, Instant now) {
  counts_ = false;
  stop(why, now);
}

void Acceptor::Session::supersede(Instant now, bool by_another_process) {
  superseded_ = true;
  is_cut_off_ = is_cut_off_ || (counts_ && by_another_process);
  send_away({ErrorKind::network, "the peer began this transfer anew"}, now);
}

bool Acceptor::Session::take_completion(const rvma::Completion& completion) { return role_ && role_->take_completion(completion); }

void Acceptor::Session::ask_for_a_sign(Instant now) {
  if (sign_) return;
  link_.post(session::Alive{});
  sign_ = Sign{link_.messages_posted(), now};
}

void Acceptor::Session::listen() {
  if (!sign_ || !link_.was_delivered(sign_->message)) return;
  sign_given_ = sign_->asked_at;
  sign_.reset();
}

void Acceptor::Session::turn(Instant now) {
  listen();
  note_connection(now);
  if (state_ == State::waiting || state_ == State::queued) turn_waiting(now);
  if (state_ == State::running) turn_running(now);
  count();
  if (state_ == State::farewell) turn_farewell(now);
}

Instant Acceptor::Session::next_deadline() const {
  Instant own = never;
  if (state_ == State::waiting) own = opened_by_;
  if (waits()) own = place_due_;
  if (state_ == State::farewell) own = farewell_.next_deadline();
  if (cut_off_at_ != never && !is_given_up_) own = std::min(own, after(cut_off_at_, lost_patience));
  return role_ ? std::min(own, role_->next_deadline()) : own;
}

void Acceptor::Session::admit(Instant now) {
  if (auto begun = begin(now); !begun) stop(begun.error(), now);
}

void Acceptor::Session::tell_place(uint32_t before, Instant now) {
  const bool heartbeat = now >= place_due_ && acceptor_.someone_got_on(place_told_);
  if (place_ != before || heartbeat) {
    if (place_ != before) log(LogLevel::info, "session {}: waits, {} before it", name(), before);
    link_.post(session::Queued{before});
    place_ = before;
    place_told_ = now;
  }
  if (now >= place_due_ || heartbeat) place_due_ = after(now, place_interval);
}

void Acceptor::Session::turn_waiting(Instant now) {
  if (!who_.is_known()) who_ = link_.peer();
  if (forwarder_.peer_broke_protocol()) return stop(*forwarder_.lost(), now);
  if (forwarder_.lost()) {
    result_ = *forwarder_.lost();
    return leave(now);
  }
  if (state_ == State::queued) return;
  if (now >= opened_by_) return stop({ErrorKind::protocol, "no session was opened in time"}, now);
  if (!forwarder_.open()) {
    // Its dialler cannot come back to a session that has no number yet.
    if (forwarder_.peer_left()) stop({ErrorKind::network, "the peer went before it had said what it wants"}, now);
    return;
  }
  counts_ = !link_.hello().sealed;                                 // else once it is admitted
  if (auto may = may_wait(); !may) return stop(may.error(), now);  // a stranger need not wait for a place to hear that
  is_let_in_ = true;
  takes_over_ = link_.hello().sealed;
  state_ = State::queued;
  place_due_ = now;
}

// What is wrong with our own files, and where they are, is nothing that a stranger should hear.
tl::unexpected<Error> Acceptor::Session::not_let_in(const Error& why) {
  if (why.kind == ErrorKind::usage || why.kind == ErrorKind::file_io || why.kind == ErrorKind::no_space)
    told_ = Error{ErrorKind::file_io, words_of_unreadable_tickets};
  return tl::unexpected<Error>(why);
}

Result<void> Acceptor::Session::may_wait() {
  const session::Open& open = *forwarder_.open();
  auto path = check_open(open);
  if (!path) return tl::unexpected<Error>(path.error());
  path_ = path->path;
  if (acceptor_.options_.receives()) {
    if (auto fits = check_second(open, acceptor_.options_.second != nullptr); !fits) return fits;
  }
  if (open.team) team_ = link_.transfer_key(open.team->name);
  PeerGate* gate = acceptor_.options_.gate;
  auto aside = aside_of(open, path->path);
  if (!aside) return tl::unexpected<Error>(aside.error());
  aside_ = std::move(*aside);
  if (gate == nullptr) return {};
  if (auto may = gate->may_wait(link_, open, path_); !may) return not_let_in(may.error());
  return may_look_aside();
}

// It may read and write nothing that it may not name as its destination.
Result<void> Acceptor::Session::may_look_aside() const {
  PeerGate& gate = *acceptor_.options_.gate;
  const session::Open& open = *forwarder_.open();
  for (const recv::SidePlace& place : aside_.older) {
    if (auto may = gate.may_wait(link_, open, place.path); !may) return may;
  }
  return aside_.backup && aside_.backup->directory ? gate.may_wait(link_, open, aside_.backup->directory->path) : Result<void>();
}

Result<void> Acceptor::Session::begin(Instant now) {
  const SessionServices& services = acceptor_.services_;
  const AcceptorOptions& options = acceptor_.options_;
  const session::Open& open = *forwarder_.open();
  const PeerPath path = peer_path(open.path);
  if (options.gate != nullptr) {
    // It may have waited for hours, and its grant may be another one by now.
    if (auto may = may_look_aside(); !may) return not_let_in(may.error());
    Result<policy::Grant> grant = options.gate->admit(link_, open, path.path);
    if (!grant && open.ticket && grant.error().kind == ErrorKind::network) acceptor_.end_abandoned(open.ticket->number, now);
    if (!grant) return not_let_in(grant.error());
    grant_ = std::move(*grant);
    counts_ = true;
  }
  uint64_t number = 0;
  while (number == 0) number = services.entropy.next_u64();
  link_.set_session(number);
  Teams::Place place;
  if (team_) {
    auto seat = acceptor_.seat_of(*this, now);
    if (!seat) return tl::unexpected<Error>(seat.error());
    place = *seat;
    link_.post(session::TeamSeat{place.seat != Teams::Seat::leads});
  }
  // What a session listed before it had to wait may have changed since.
  const bool takes_first = options.root != nullptr && options.second == nullptr && !team_ && !place_ && open.first.count > 0;
  link_.post(session::Opened{number, options.lanes_max, takes_first});
  if (place.seat != Teams::Seat::leads) return help(place, now);
  report_session();
  if (options.wall_time_s) began_s_ = options.wall_time_s();
  is_dry_ = (open.options & session::option_dry_run) != 0;
  transfer_ = &acceptor_.transfer(team_ ? place.record : link_.transfer_key(), team_.has_value());
  ++transfer_->sessions;
  earlier_ = transfer_->tally;
  if (!options.receipts.directory.empty() && (open.options & session::option_dry_run) == 0) {
    book_ = std::make_shared<receipt::Book>();
    book_->begin(transfer_name(link_.hello().transfer));
  }
  if (options.second != nullptr) {
    DestinationPart part;
    part.turns = acceptor_.turns_;
    part.rate = acceptor_.receive_rates_.of(grant_);
    role_ = make_second_receiver(services, link_, options.second, part);
  } else if (options.root != nullptr) {
    DestinationPart part;
    part.root = options.root;
    part.options = open.options;
    part.path = path.path;
    part.turns = acceptor_.turns_;
    part.peer = grant_ && !grant_->name.empty() ? grant_->name : peer_;
    part.aside = aside_;
    if (open.deletes) part.deletes = recv::DeleteWish{*open.deletes, open.rules.value_or(filter::Rules{})};
    part.rate = acceptor_.receive_rates_.of(grant_);
    part.record = transfer_->record;
    part.receipt = book_.get();
    if (takes_first) part.first = open.first;
    if (team_) part.team = acceptor_.options_.team;
    if (grant_) part.limits = limits_of(*grant_);
    role_ = make_destination(services, link_, part);
  } else {
    const std::string below = path.path.empty() ? "" : path.path + (path.directory ? "/" : "");
    SourcePart part;
    part.sources = {below};
    part.served_root = options.served_root;
    part.options = open.options;
    part.compress = open.compress;
    if (open.rules) part.rules = *open.rules;
    if (grant_) part.may_be_served = [grant = *grant_](std::string_view name) { return policy::covers(grant, name); };
    part.list = open.list;
    part.tells_listed = open.deletes.has_value();
    part.turns = acceptor_.turns_;
    part.rate = acceptor_.send_rates_.of(grant_);
    part.record = transfer_->record;
    part.receipt = book_.get();
    role_ = make_source(services, link_, part);
  }
  state_ = State::running;
  forwarder_.attach(role_->handler());  // before start(): it takes up live lanes that it has not been told of
  role_->start(now);
  return {};
}

Result<void> Acceptor::Session::help(const Teams::Place& place, Instant now) {
  helps_ = reported_ = true;
  counts_ = false;
  DestinationPart part;
  part.turns = acceptor_.turns_;
  part.rate = acceptor_.receive_rates_.of(grant_);
  if (place.seat == Teams::Seat::late) {
    role_ = make_late_helper(acceptor_.services_, link_, place.how);
  } else {
    role_ = make_helper(acceptor_.services_, link_, *acceptor_.leader_of(*team_)->role(), part);
  }
  if (!role_) return fail(ErrorKind::network, words_of_busy);  // it has just ended
  log(LogLevel::info, "session {}: part {}/{} of a transfer {}", name(), wish().part, wish().parts,
      place.seat == Teams::Seat::late ? "that has ended" : "that another process leads");
  state_ = State::running;
  forwarder_.attach(role_->handler());
  role_->start(now);
  return {};
}

void Acceptor::Session::report_session() {
  report::Session line;
  line.transfer = transfer_name(link_.hello().transfer);
  line.path = report_hops(link_.hops(0));
  line.peer = peer_ = line.path.empty() ? "?" : line.path.back().node;
  if (const trust::ProvedPeer* peer = link_.proved()) line.identity = trust::to_string(peer->id);
  acceptor_.services_.reporter.session(line);
  if (acceptor_.options_.activity != nullptr) acceptor_.options_.activity->session_opened();
  reported_ = true;
}

void Acceptor::Session::turn_running(Instant now) {
  role_->turn(now);
  tell_team_end(now);
  if (!role_->finished()) return;
  result_ = role_->error() != nullptr ? *role_->error() : role_->end();
  if (book_ && is_worth_a_receipt(result_)) write_receipt();
  leave(now);
}

// As soon as the helpers hear it: whoever of the team comes from now on is late.
void Acceptor::Session::tell_team_end(Instant now) {
  const session::TeamEnded* how = role_->team_ended();
  if (!team_ || how == nullptr || std::exchange(is_team_end_told_, true)) return;
  acceptor_.teams_.ended(*team_, *how, now);
  transfer_->record = std::make_shared<session::TransferRecord>(session::TransferRecord::files_max_of_acceptor);  // it is large
}

// The peer chose the transfer's id: what it proved stands beside it, so that no other peer's receipt is replaced.
std::string Acceptor::Session::receipt_name() const {
  const std::string transfer = transfer_name(link_.hello().transfer);
  return link_.proved() == nullptr ? transfer : fmt::format("{}.{}", transfer, trust::to_string(link_.proved()->id));
}

void Acceptor::Session::write_receipt() {
  const ListenerReceipts& receipts = acceptor_.options_.receipts;
  const session::Open& open = *forwarder_.open();
  const PeerPath path = peer_path(open.path);
  const bool names_directory = (open.options & session::option_directory) != 0;
  ReceiptOrder order{.book = book_, .file = receipts.directory + "/" + receipt_name() + ".receipt"};
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

void Acceptor::Session::count() {
  if (role_ && helps_) own_ = role_->tally();
  if (role_ && !helps_) transfer_->tally = continued(earlier_, role_->tally());
}

void Acceptor::Session::leave(Instant now) {
  state_ = State::farewell;
  farewell_.begin(now, farewell_timeout, true);
}

void Acceptor::Session::turn_farewell(Instant now) {
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

}  // namespace ccixfer::program

#include "app/main/acceptor.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/main/uri.h"
#include "app/session/entry.h"
#include "core/base/log.h"

namespace ccixfer::program {
namespace {

constexpr uint32_t known_options = session::option_recursive | session::option_links | session::option_permissions |
                                   session::option_times | session::option_owner | session::option_checksum |
                                   session::option_dry_run | session::option_directory;

}  // namespace

class Acceptor::Session {
 public:
  Session(Acceptor& acceptor, const session::Hello& hello, Instant now)
      : acceptor_(acceptor), link_(acceptor.bench_.endpoint, hello, forwarder_), opened_by_(after(now, open_timeout)) {
    acceptor_.hub_.add_link(&link_);
  }
  ~Session() {
    machine_.reset();
    if (transfer_ != nullptr) --transfer_->sessions;
    acceptor_.hub_.remove_link(&link_);
  }

  session::Link& link() { return link_; }
  bool under_way() const { return state_ == State::running; }
  bool ended() const { return state_ == State::ended; }
  bool same_transfer(const session::Hello& hello) const { return link_.hello().transfer == hello.transfer; }
  bool holds_root() const { return machine_ != nullptr; }
  uint32_t buffers() const { return buffers_; }
  Tally tally() const { return transfer_ != nullptr ? transfer_->tally : Tally{}; }
  const Error& result() const { return result_; }
  bool was_open() const { return reported_; }
  void report_end() const {
    const Tally moved = tally();
    acceptor_.bench_.reporter.ended({transfer_name(link_.hello().transfer), result_.kind, result_.message, moved.files,
                                     moved.files_unchanged, moved.files_failed + moved.files_vanished, moved.bytes,
                                     moved.bytes_sent, moved.segments_resent});
  }
  bool counts() const { return counts_; }  // it was a transfer, not a mere knock at the door
  bool take_completion(const rvma::Completion& completion) { return machine_ && machine_->take_completion(completion); }

  void stop(const Error& why, Instant now) {
    if (state_ >= State::farewell) return;
    result_ = why;
    if (machine_) {
      machine_->abort(why);
    } else {
      link_.post(session::Abort{why.kind, why.message.substr(0, 512)});
    }
    leave(now);
  }
  void supersede(Instant now) {
    counts_ = false;
    superseded_ = true;
    stop({ErrorKind::network, "the peer began this transfer anew"}, now);
  }

  void turn(Instant now) {
    if (state_ == State::waiting) turn_waiting(now);
    if (state_ == State::running) turn_running(now);
    count();
    if (state_ == State::farewell) turn_farewell(now);
  }
  Instant next_deadline() const {
    const Instant own = state_ == State::waiting ? opened_by_ : state_ == State::farewell ? leave_by_ : never;
    return machine_ ? std::min(own, machine_->next_deadline()) : own;
  }

 private:
  enum class State : uint8_t { waiting, running, farewell, ended };

  void turn_waiting(Instant now) {
    if (forwarder_.lost()) {
      result_ = *forwarder_.lost();
      return leave(now);
    }
    if (now >= opened_by_) return stop({ErrorKind::protocol, "no session was opened in time"}, now);
    if (!forwarder_.open()) return;
    for (const auto& other : acceptor_.sessions_) {
      if (other.get() != this && other->superseded_ && other->holds_root()) return;  // it still writes below the root
    }
    counts_ = true;
    if (auto begun = begin(now); !begun) stop(begun.error(), now);
  }

  Result<void> begin(Instant now) {
    const Bench& bench = acceptor_.bench_;
    const AcceptorOptions& options = acceptor_.options_;
    const session::Open& open = *forwarder_.open();
    if ((open.options & ~known_options) != 0)
      return fail(ErrorKind::protocol, "the peer asks for options that this version does not have");
    const PeerPath path = peer_path(open.path);
    if (!path.path.empty() && !session::is_safe_relative_path(path.path)) {
      return fail(ErrorKind::not_authorised, fmt::format("the path leaves the root: {}: name a place below it", open.path));
    }
    uint64_t number = 0;
    while (number == 0) number = bench.entropy.next_u64();
    link_.set_session(number);
    link_.post(session::Opened{number, options.lanes_max});
    report_session();
    transfer_ = &acceptor_.transfer(link_.hello().transfer);
    ++transfer_->sessions;
    earlier_ = transfer_->tally;
    if (options.root != nullptr) {
      buffers_ = acceptor_.share();
      machine_ = make_destination(bench, link_,
                                  {options.root, open.options, path.path, options.rate_bytes_per_s, buffers_, transfer_->record});
    } else {
      const std::string below = path.path.empty() ? "" : path.path + (path.directory ? "/" : "");
      machine_ =
          make_source(bench, link_, {{below}, options.served_root, open.options, options.rate_bytes_per_s, transfer_->record});
    }
    state_ = State::running;
    forwarder_.attach(machine_->user());  // before start(): it takes up live lanes that it has not been told of
    machine_->start(now);
    return {};
  }

  void report_session() {
    report::Session line;
    line.transfer = transfer_name(link_.hello().transfer);
    line.path = report_hops(link_.hops(0));
    line.peer = line.path.empty() ? "?" : line.path.back().node;
    acceptor_.bench_.reporter.session(line);
    reported_ = true;
  }

  void turn_running(Instant now) {
    machine_->turn(now);
    if (!machine_->finished()) return;
    result_ = machine_->error() != nullptr ? *machine_->error() : end_of_tally(machine_->tally());
    leave(now);
  }

  void count() {
    if (machine_) transfer_->tally = continued(earlier_, machine_->tally());
  }

  void leave(Instant now) {
    state_ = State::farewell;
    leave_by_ = after(now, farewell_timeout);
  }

  // What we told the peer goes out first; jobs and buffers of the machine come back first.
  void turn_farewell(Instant now) {
    if (machine_) machine_->turn(now);
    const bool said = link_.control_drained() || link_.live_lanes().empty() || now >= leave_by_;
    if (!said) return;
    if (machine_ && !machine_->idle()) {
      leave_by_ = now >= leave_by_ ? never : leave_by_;  // idle() comes with a job or a buffer, not with time
      return;
    }
    if (machine_) {
      count();
      forwarder_.detach();
      machine_.reset();
    }
    state_ = State::ended;
  }

  Acceptor& acceptor_;
  Forwarder forwarder_;
  session::Link link_;
  std::unique_ptr<Machine> machine_;
  State state_ = State::waiting;
  Instant opened_by_, leave_by_ = never;
  uint32_t buffers_ = 0;
  bool counts_ = false;
  bool superseded_ = false;
  bool reported_ = false;
  Transfer* transfer_ = nullptr;
  Tally earlier_;  // of the transfer, before this session
  Error result_{ErrorKind::ok, ""};
};

Acceptor::Acceptor(const Bench& bench, session::Hub& hub, const AcceptorOptions& options)
    : bench_(bench), hub_(hub), options_(options) {
  hub_.set_accept_user(this);
}
Acceptor::~Acceptor() { hub_.set_accept_user(nullptr); }

// Half of what is left for each, so that there is always some for one more.
uint32_t Acceptor::share() const {
  const uint32_t all = bench_.pool.count();
  if (options_.once) return all;
  uint32_t taken = 0;
  for (const auto& session : sessions_) taken += session->buffers();
  return taken >= all ? 0 : std::max(session_buffers_min, (all - taken) / 2);
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

Result<session::Link*> Acceptor::on_new_session(const session::Hello& hello, Instant now) {
  const auto wanted = options_.root != nullptr ? session::Direction::push : session::Direction::pull;
  if (stopped_) return fail(ErrorKind::network, "the peer is going down");
  if (hello.sealed) return fail(ErrorKind::protocol, "the peer runs with --insecure: no encryption");
  if (hello.direction != wanted) {
    return fail(ErrorKind::usage, options_.root != nullptr ? "the peer receives (recv --root): send to it"
                                                           : "the peer serves (send --serve): pull from it");
  }
  size_t others = 0;
  for (const auto& session : sessions_) {
    if (session->ended()) continue;
    if (session->same_transfer(hello)) {
      session->supersede(now);
    } else {
      ++others;
    }
  }
  if ((options_.once && others > 0) || sessions_.size() >= accepted_sessions_max ||
      (options_.root != nullptr && share() < session_buffers_min)) {
    return fail(ErrorKind::network, "the peer is busy with other transfers");
  }
  sessions_.push_back(std::make_unique<Session>(*this, hello, now));
  return &sessions_.back()->link();
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
  for (const auto& session : sessions_) session->turn(now);
  for (auto at = sessions_.begin(); at != sessions_.end();) {
    Session& session = **at;
    if (!session.ended()) {
      ++at;
      continue;
    }
    const Error& result = session.result();
    const LogLevel level = result.kind == ErrorKind::ok ? LogLevel::info : LogLevel::warning;
    if (session.counts() || result.kind != ErrorKind::ok) {
      log(level, "session {}: {}{}{}", transfer_name(session.link().hello().transfer), error_row(result.kind).name,
          result.message.empty() ? "" : ": ", result.message);
    }
    if (session.was_open()) session.report_end();
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

bool Acceptor::idle() const { return sessions_.empty(); }
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

#include "app/main/listener_trust.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "app/main/confinement.h"
#include "app/main/process_trust.h"
#include "app/main/session_trust.h"
#include "app/main/standard_io.h"
#include "app/trust/private_file.h"
#include "core/base/units.h"
#include "core/trust/secret.h"

namespace ccixfer::program {
namespace {

template <typename Unit>
int64_t wall_time() {
  return std::chrono::duration_cast<Unit>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Whoever reads the line may use it, so it goes to the one place where the user looks for it, into no log and no event, and stays
// in no buffer of this process. A ticket that nobody has is of no use: nobody would come.
Result<void> print_ticket(const trust::Ticket& ticket, int to) {
  constexpr const char* cannot_print = "cannot print the ticket";
  std::string line = trust::to_text(ticket);
  auto printed = write_text(line, to, cannot_print);
  trust::wipe({reinterpret_cast<uint8_t*>(line.data()), line.size()});
  return printed ? write_text("\n", to, cannot_print) : printed;
}

}  // namespace

Result<std::unique_ptr<ListenerTrust>> ListenerTrust::make(const Process& process, const CommonOptions& common,
                                                           const ListenOptions& listen, policy::Direction direction) {
  std::unique_ptr<ListenerTrust> trust(new ListenerTrust(process, common, listen, direction));
  const auto without = listen.ticket ? policy::WithoutIdentity::make_and_keep : policy::WithoutIdentity::refuse;
  auto security = security_of_process(process, common, without);
  if (!security) return tl::unexpected(security.error());
  warn_of_dates(process, *security);
  if (auto opened = trust->open_audit_log(); !opened) return tl::unexpected(opened.error());
  trust->security_ = std::move(*security);
  return trust;
}

Result<void> ListenerTrust::open_audit_log() {
  auto log = policy::AuditLog::open(policy::audit_targets_of_process(listen_.audit_log), wall_time<std::chrono::milliseconds>);
  if (!log) return tl::unexpected(log.error());
  audit_log_.emplace(std::move(*log));
  return {};
}

std::shared_ptr<connection::HopTrust> ListenerTrust::hops() {
  std::shared_ptr<ProcessTrust> trust = process_trust(security_, ListenerKind::transfers);
  if (trust) trust->tell_sent_away([this](policy::AuditRecord record) { audit(std::move(record)); });
  return trust;
}

void ListenerTrust::audit(policy::AuditRecord record) {
  if (const auto words = audit_log_->write(std::move(record))) process_.reporter.alarm(*words);
}

Result<void> ListenerTrust::apply(AcceptorOptions& options, const std::string& root) {
  options.audit = [this](const policy::AuditRecord& record) { audit(record); };
  if (!security_) return {};
  std::error_code problem;
  root_ = std::filesystem::canonical(root, problem).string();
  if (problem) {
    return fail(ErrorKind::file_io,
                fmt::format("cannot find the directory: {}: {}: name one that exists", printable(root), problem.message()));
  }
  tickets_.emplace(security_->places.tickets(), wall_time<std::chrono::seconds>);
  gate_.emplace(security_->peers(), direction_, root_, *tickets_, [this](const trust::ProvedPeer& peer) {
    return trust::why_no_longer(peer, security_->identity.authority, wall_time_s());
  });
  options.seal = [this] { return seal_setup(*security_); };
  options.gate = &*gate_;
  return {};
}

void ListenerTrust::add_to(sandbox::Plan& plan) const {
  add_trust(plan, security_);
  add_identity(plan, process_.config, security_);
  // It is opened by its name again when logrotate has taken the file away.
  if (const std::string file = policy::audit_targets_of_process(listen_.audit_log).file; !file.empty())
    plan.places.push_back({directory_of(file), sandbox::Access::files});
  if (!security_ || security_->places.state.empty()) return;
  // Another process of the account may issue a ticket for this one later, and then there is no making a directory.
  static_cast<void>(policy::make_directory_of(security_->places.tickets()));
  for (const sandbox::Access access : {sandbox::Access::read, sandbox::Access::files})
    plan.places.push_back({security_->places.state, access});
}

Result<void> ListenerTrust::ready(const std::vector<std::string>& uris) {
  if (!listen_.ticket || !security_) return {};
  policy::TicketTerms terms;
  terms.direction = direction_;
  terms.root = root_;
  terms.expires_in_s = listen_.ticket_expires_in_s;
  terms.uses = listen_.ticket_uses;
  const auto ticket = tickets_->issue(terms, security_->identity.identity.id(), uris);
  if (!ticket) return tl::unexpected(ticket.error());
  return print_ticket(*ticket, common_.json ? STDERR_FILENO : STDOUT_FILENO);
}

Result<void> ListenerTrust::reload() {
  if (const auto words = audit_log_->reopen()) process_.reporter.warn(*words);
  const auto not_reloaded = [this](const Error& why) {
    process_.reporter.warn("not reloaded: " + why.message);
    return tl::unexpected(why);
  };
  const auto config = config_of_process(common_.config_file);
  if (!config) return not_reloaded(config.error());
  const auto renew_guard = read_guard_again(process_, *config);
  if (!renew_guard) return not_reloaded(renew_guard.error());
  std::optional<TrustNews> news;
  if (security_) {
    auto read = read_again(*security_, *config);
    if (!read) return not_reloaded(read.error());
    news = std::move(*read);
  }
  (*renew_guard)();
  for (const std::string& line : in_force_.left_of(*config)) process_.reporter.warn(line);
  if (!news) return {};
  take(*security_, std::move(*news));
  gate_->set_peers(security_->peers());
  process_.reporter.info(fmt::format("reloaded: {} with {} peers", trust::to_string(security_->identity.identity.id()),
                                     security_->peers().all().size()));
  return {};
}

}  // namespace ccixfer::program

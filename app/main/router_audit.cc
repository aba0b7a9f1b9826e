#include "app/main/router_audit.h"

#include <chrono>
#include <utility>

#include "app/main/confinement.h"
#include "routing/transport/messages.h"

namespace ccixfer::program {
namespace {

using routing::Admission;

int64_t wall_time_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

ErrorKind kind_of(const Admission& admission) {
  if (admission.reason.starts_with(routing::words_of_no_grant)) return ErrorKind::not_authorised;
  switch (admission.status) {
    case Status::success:
      return ErrorKind::ok;
    case Status::not_authenticated:
      return ErrorKind::authentication;
    case Status::not_authorised:
      return ErrorKind::not_authorised;
    case Status::no_route:
      return ErrorKind::no_route;
    case Status::unreachable:
    case Status::timed_out:
    case Status::not_found:
      return ErrorKind::no_answer;
    case Status::version:
    case Status::error:
      return ErrorKind::protocol;
    default:
      return ErrorKind::network;
  }
}

std::string direction_of(Admission::As as) {
  switch (as) {
    case Admission::As::connection:
      return "route";
    case Admission::As::router:
      return "link";
    case Admission::As::administrator:
      return "admin";
    case Admission::As::unknown:
      break;
  }
  return {};
}

policy::AuditRecord::Event event_of(Admission::Step step) {
  switch (step) {
    case Admission::Step::admitted:
      return policy::AuditRecord::Event::admitted;
    case Admission::Step::ended:
      return policy::AuditRecord::Event::connection;
    case Admission::Step::refused:
      break;
  }
  return policy::AuditRecord::Event::refused;
}

}  // namespace

Result<std::unique_ptr<RouterAudit>> RouterAudit::open(const Process& process, const std::string& option,
                                                       std::shared_ptr<ProcessTrust> trust) {
  const policy::AuditTargets targets = policy::audit_targets_of_process(option);
  auto log = policy::AuditLog::open(targets, wall_time_ms);
  if (!log) return tl::unexpected(log.error());
  return std::unique_ptr<RouterAudit>(new RouterAudit(process, targets, std::move(*log), std::move(trust)));
}

RouterAudit::RouterAudit(const Process& process, policy::AuditTargets targets, policy::AuditLog log,
                         std::shared_ptr<ProcessTrust> trust)
    : process_(process), targets_(std::move(targets)), log_(std::move(log)), trust_(std::move(trust)) {
  if (!trust_) return;
  trust_->tell_sent_away([this](policy::AuditRecord record) { write(std::move(record)); });
}

RouterAudit::~RouterAudit() {
  if (trust_) trust_->tell_sent_away({});
}

routing::AdmissionObserver RouterAudit::observer() {
  if (!is_read()) return {};
  return [this](const Admission& admission) { write(record_of(admission, trust_.get())); };
}

policy::AuditRecord RouterAudit::record_of(const Admission& admission, const ProcessTrust* trust) {
  policy::AuditRecord record;
  record.event = event_of(admission.step);
  if (trust != nullptr) {
    ProcessTrust::Named who = trust->named(admission.peer);
    record.peer = std::move(who.id);
    record.name = std::move(who.name);
  }
  record.address = admission.peer.address;
  record.direction = direction_of(admission.as);
  record.to = admission.to;
  record.bytes = admission.bytes;
  record.outcome = kind_of(admission);
  record.reason = admission.reason;
  record.seconds = std::chrono::duration<double>(admission.lasted).count();
  return record;
}

void RouterAudit::write(policy::AuditRecord record) {
  record.of_router = true;
  if (const auto words = log_.write(std::move(record))) process_.reporter.alarm(*words);
}

void RouterAudit::add_to(sandbox::Plan& plan) const {
  if (!targets_.file.empty()) plan.places.push_back({directory_of(targets_.file), sandbox::Access::files});
}

void RouterAudit::reopen() {
  if (const auto words = log_.reopen()) process_.reporter.warn(*words);
}

}  // namespace ccixfer::program

// The audit log of a router: a line for each link, client and administrator that it admits or refuses, and for each routed
// connection that ends. It says who, from where, to which address, how much and how it ended; a router knows of nothing else.
// Errors: usage, the file cannot be opened. Ownership: it outlives the router that it observes.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "app/main/commands.h"
#include "app/main/process_trust.h"
#include "app/trust/audit_log.h"
#include "core/sandbox/plan.h"
#include "routing/router/admission.h"

namespace ccixfer::program {

class RouterAudit {
 public:
  // `option`: of --audit-log, or "". `trust`: nullptr with --insecure; who is sent away by it before it is a request has a line
  // too.
  [[nodiscard]] static Result<std::unique_ptr<RouterAudit>> open(const Process& process, const std::string& option,
                                                                 std::shared_ptr<ProcessTrust> trust);
  ~RouterAudit();
  RouterAudit(const RouterAudit&) = delete;
  RouterAudit& operator=(const RouterAudit&) = delete;
  [[nodiscard]] routing::AdmissionObserver observer();  // empty if nobody reads it
  // Makes the record of what a router of another thread tells. `trust` is that thread's.
  [[nodiscard]] static policy::AuditRecord record_of(const routing::Admission& admission, const ProcessTrust* trust);
  [[nodiscard]] bool is_read() const { return !targets_.file.empty() || targets_.journal; }  // false: nobody reads it
  void write(policy::AuditRecord record);
  void add_to(sandbox::Plan& plan) const;  // the directory of the file, which is opened again by its name
  void reopen();                           // SIGHUP

 private:
  RouterAudit(const Process& process, policy::AuditTargets targets, policy::AuditLog log, std::shared_ptr<ProcessTrust> trust);

  const Process& process_;
  const policy::AuditTargets targets_;
  policy::AuditLog log_;
  const std::shared_ptr<ProcessTrust> trust_;
};

}  // namespace ccixfer::program

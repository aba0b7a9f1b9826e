// What a listening command (recv --root, send --serve) makes of the trust of its process: who it is, whom it admits, the ticket
// that it prints, its audit log. Errors: those of Security; usage, file_io, no_space of the files of tickets and of the audit log.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/main/acceptor.h"
#include "app/main/gate.h"
#include "app/main/in_force.h"
#include "app/main/security.h"
#include "app/trust/audit_log.h"
#include "core/sandbox/plan.h"
#include "transports/connection/hop_trust.h"

namespace ccixfer::program {

class ListenerTrust {
 public:
  [[nodiscard]] static Result<std::unique_ptr<ListenerTrust>> make(const Process& process, const CommonOptions& common,
                                                                   const ListenOptions& listen, policy::Direction direction);
  // For the transport, which it outlives; nullptr with --insecure. Whom the transport sends away has a line in the audit log.
  [[nodiscard]] std::shared_ptr<connection::HopTrust> hops();
  // What the Acceptor asks of it; lives as long as the Acceptor. `root`: the directory as the user named it; it exists.
  [[nodiscard]] Result<void> apply(AcceptorOptions& options, const std::string& root);
  // What it needs of a confined process: that of add_trust (confinement.h), the tickets and the audit log.
  void add_to(sandbox::Plan& plan) const;
  // The listener can be reached at these addresses: prints the ticket, if one is wanted.
  [[nodiscard]] Result<void> ready(const std::vector<std::string>& uris);
  // Reads the identity, the authority, the grants and what guards the metrics again, and opens the audit log again. What cannot be
  // used leaves all as it is and is said, and so is what takes a restart. Sessions that run go on; handshakes from now on are with
  // the new. The error is why it was not taken.
  [[nodiscard]] Result<void> reload();

 private:
  ListenerTrust(const Process& process, const CommonOptions& common, const ListenOptions& listen, policy::Direction direction)
      : process_(process), common_(common), listen_(listen), direction_(direction), in_force_(process.config, Reload::listener) {}
  [[nodiscard]] Result<void> open_audit_log();
  void audit(policy::AuditRecord record);

  const Process& process_;
  const CommonOptions& common_;
  const ListenOptions& listen_;
  const policy::Direction direction_;
  InForce in_force_;
  std::string root_;
  std::optional<Security> security_;  // none: --insecure
  std::optional<policy::TicketStore> tickets_;
  std::optional<Gate> gate_;
  std::optional<policy::AuditLog> audit_log_;
};

}  // namespace ccixfer::program

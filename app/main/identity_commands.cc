// `ccixfer keygen` and `ccixfer id`: this account's identity.
#include "app/main/commands.h"
#include "app/trust/local_identity.h"
#include "app/trust/places.h"
#include "app/trust/private_file.h"
#include "core/trust/subject.h"

namespace ccixfer::program {
namespace {

void show(const Process& process, const trust::Identity& identity, const std::string& file) {
  const report::IdentityLine line{trust::to_string(identity.id()), file, trust::subject_of(identity)};
  process.reporter.event(report::identity_event(process.reporter.seconds(), line));
  process.reporter.output(line.id);
  if (!line.subject.empty()) process.reporter.output(line.subject);
}

}  // namespace

CommandEnd run_keygen(const Process& process, const KeygenCommand& command) {
  const std::string file = command.out.value_or(policy::places_of_process().key());
  if (file.empty()) return {{ErrorKind::usage, "this account has no home: HOME: set it, or name a place with --out"}, {}};
  // A mistyped --out shall not make a tree of directories.
  if (auto made = command.out ? Result<void>() : policy::make_directory_of(file); !made) return {made.error(), {}};
  const auto identity = policy::make_key(file, command.force);
  if (!identity) return {identity.error(), {}};
  show(process, *identity, file);
  return {};
}

CommandEnd run_id(const Process& process, const IdCommand&) {
  const auto local =
      policy::load_local_identity(process.config.identity, policy::places_of_process(), policy::WithoutIdentity::refuse);
  if (!local) return {local.error(), {}};
  show(process, local->identity, local->file);
  return {};
}

}  // namespace ccixfer::program

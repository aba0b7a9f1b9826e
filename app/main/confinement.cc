#include "app/main/confinement.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/devices/node.h"
#include "app/main/job.h"
#include "app/main/metrics_guard.h"
#include "app/metrics/server.h"
#include "app/trust/private_file.h"
#include "core/host/accounts.h"

namespace ccixfer::program {
namespace {

using sandbox::Access;
using sandbox::FileRights;
using sandbox::Plan;

// SIGHUP reads it again, and an editor puts a new file in the place of the old one: so the directory is named.
void add_configuration(Plan& plan, const Config& config) {
  for (const std::string& directory : directories_to(config.file.empty() ? "/etc/ccixfer/ccixfer.toml" : config.file))
    plan.places.push_back({directory, Access::read});
}

// A sender sorts the names of a large directory in a file of its own (app/send/names).
void add_spool(Plan& plan) {
  plan.places.push_back({temporary_directory(), Access::files});
  plan.places.push_back({temporary_directory(), Access::read});
}

}  // namespace

std::string directory_of(const std::string& file) {
  std::string path = file;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::vector<std::string> directories_to(const std::string& file) {
  constexpr int links_max = 40;  // as the kernel follows
  std::vector<std::string> all;
  std::filesystem::path name = file;
  for (int link = 0; link < links_max; ++link) {
    const std::string directory = directory_of(name.string());
    all.push_back(directory);
    std::error_code problem;
    const std::filesystem::path into = std::filesystem::read_symlink(directory, problem).lexically_normal();
    const bool is_beside = !problem && into.is_relative() && *into.begin() != "..";
    if (is_beside && directory_of(directory) != "/") all.push_back(directory_of(directory));
    const std::filesystem::path next = std::filesystem::read_symlink(name, problem);
    if (problem) break;
    name = next.is_absolute() ? next : std::filesystem::path(directory) / next;
  }
  return all;
}

std::string temporary_directory() {
  const char* directory = std::getenv("TMPDIR");  // as sort(1)
  return directory != nullptr && *directory == '/' ? directory : "/var/tmp";
}

Plan plan_of_push(const SendCommand& command, const std::vector<std::string>& sources) {
  Plan plan;
  plan.dials = true;
  plan.file_rights = FileRights::read_all;
  // Links are followed to wherever they lead, as `cp -r` does.
  plan.reads_everything = !command.transfer.archive;
  for (const std::string& source : sources) {
    if (source != "-") plan.places.push_back({source, Access::read});
  }
  add_spool(plan);
  return plan;
}

Plan plan_of_server(const Config& config, const std::string& served) {
  Plan plan;
  plan.file_rights = FileRights::read_all;
  plan.places.push_back({served, Access::read});
  add_configuration(plan, config);
  add_spool(plan);
  return plan;
}

Plan plan_of_receiver(const Config& config, const std::string& root) {
  Plan plan;
  plan.file_rights = FileRights::write_all_with_owners;  // whether a sender gives -a is not known yet
  plan.places.push_back({root, Access::write});
  add_configuration(plan, config);
  return plan;
}

Plan plan_of_pull(const ReceiveCommand& command, bool removable) {
  Plan plan;
  plan.dials = true;
  plan.file_rights = command.transfer.archive ? FileRights::write_all_with_owners : FileRights::write_all;
  plan.places.push_back({command.directory, command.transfer.dry_run ? Access::read : Access::write});
  if (removable) plan.places.push_back({directory_of(command.directory), Access::remove});
  return plan;
}

Plan plan_of_router(const Config& config, const RouteCommand& command) {
  Plan plan;
  plan.dials = true;
  plan.listens = true;  // devices may be added
  add_configuration(plan, config);
  if (!command.uri_file.empty()) plan.places.push_back({directory_of(command.uri_file), Access::files});
  return plan;
}

Plan plan_of_question() {
  Plan plan;
  plan.dials = true;
  return plan;
}

void add_trust(Plan& plan, const std::optional<Security>& security) {
  plan.places.push_back({"/dev/tty", Access::change});
  if (!security || security->places.configuration.empty()) return;
  const std::string known_peers = security->places.known_peers();
  const bool may_be_asked = !security->identity.file.empty() && person_at_terminal() == policy::Person::present;
  if (may_be_asked && ::access(known_peers.c_str(), F_OK) != 0 && policy::make_directory_of(known_peers))
    static_cast<void>(policy::append_private(known_peers, ""));  // else the person is told when it is to be written
  plan.places.push_back({security->places.configuration, Access::read});
  plan.places.push_back({known_peers, Access::change});
}

void add_identity(Plan& plan, const Config& config, const std::optional<Security>& security) {
  if (!security) return;
  const IdentityConfig given = config.identity.value_or(IdentityConfig{});
  for (const std::string& file : {security->identity.file, given.certificate, given.ca, given.crl}) {
    if (file.empty()) continue;
    for (const std::string& directory : directories_to(file)) plan.places.push_back({directory, Access::read});
  }
}

namespace {

Result<bool> enter(const Process& process, const Plan& given, LogLevel level) {
  if (!process.confine) return false;
  Plan plan = given;
  if (process.metrics != nullptr) {
    add_guard(plan, process.config.metrics);
    if (const std::string file = job_history_file(); !file.empty()) plan.places.push_back({directory_of(file), Access::read});
  }
  host::remember_accounts();
  plan.shares_memory = shares_memory();
  plan.uses_cards = uses_cards();
  const auto report = process.confine(plan);
  if (!report) return tl::unexpected(report.error());
  log(LogLevel::info, "confined: {}", fmt::join(report->in_force, "; "));
  for (const std::string& line : report->missing) log(level, "{}", line);
  return report->confines_files;
}

}  // namespace

Result<bool> confine(const Process& process, const Plan& given, LogLevel level) {
  const auto confined = enter(process, given, level);
  if (!confined || process.metrics == nullptr) return confined;
  // Its thread has the rights that the process has by now, and is there as soon as peers are.
  if (auto begun = process.metrics->begin(); !begun) return tl::unexpected(begun.error());
  return confined;
}

}  // namespace ccixfer::program

#include "app/recv/leftovers.h"

#include <cerrno>
#include <string>
#include <unordered_set>
#include <vector>

#include "core/base/log.h"

namespace ccixfer::recv {

void remove_unnamed(OpenedRoot& root) {
  std::unordered_set<std::string> named;
  const auto known = root.ledger->all();
  if (!known) return log(LogLevel::warning, "{}", known.error().message);
  for (const Ledger::File& file : *known) named.insert(staged_name(file.key, file.version));
  std::vector<std::string> unnamed;
  const auto look = [&](std::string_view name) {
    const bool part = name.ends_with(part_suffix) && !named.contains(std::string(name));
    if (part || name.ends_with(temporary_suffix)) unnamed.emplace_back(name);
  };
  const int directory = root.files.open(root.staging, ".", {.directory = true}, 0);
  if (directory < 0) return;
  root.files.read_directory(directory, look);
  root.files.close(directory);
  for (const std::string& name : unnamed) root.files.unlink_at(root.staging, name, false);
}

void remove_expired(OpenedRoot& root, ports::FileTime now) {
  std::vector<Ledger::File> expired;
  const auto known = root.ledger->all();
  if (!known) return log(LogLevel::warning, "{}", known.error().message);
  for (const Ledger::File& file : *known) {
    const std::string name = staged_name(file.key, file.version);
    ports::FileStat stat;
    const int found = root.files.stat_at(root.staging, name, stat, false);
    const bool is_old = found >= 0 && now.seconds - stat.ctime.seconds > partial_age_max_s;
    if (is_old) root.files.unlink_at(root.staging, name, false);
    if (is_old || found == -ENOENT) expired.push_back(file);
  }
  if (const auto removed = root.ledger->remove(expired); !removed) log(LogLevel::warning, "{}", removed.error().message);
}

}  // namespace ccixfer::recv

#include "app/recv/leftovers.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "app/recv/shared_place.h"
#include "core/base/log.h"

namespace ccixfer::recv {

void remove_unnamed(OpenedRoot& root) {
  std::unordered_set<std::string> named;
  const auto known = root.ledger->all();
  if (!known) return log(LogLevel::warning, "{}", known.error().message);
  for (const Ledger::File& file : *known) named.insert(staged_name(file.key, file.version));
  std::vector<std::string> unnamed;
  const auto look = [&](std::string_view name) {
    const bool is_share = is_share_name(name);
    const std::string_view part_name = is_share ? name.substr(0, name.size() - share_suffix.size()) : name;
    const bool part = (is_share || name.ends_with(part_suffix)) && !named.contains(std::string(part_name));
    if (part || name.ends_with(temporary_suffix)) unnamed.emplace_back(name);
  };
  const int directory = root.files.open(root.staging, ".", {.directory = true}, 0);
  if (directory < 0) return;
  root.files.read_directory(directory, look);
  root.files.close(directory);
  for (const std::string& name : unnamed) root.files.unlink_at(root.staging, name, false);
}

void remove_expired(OpenedRoot& root, ports::FileTime now, int64_t age_s) {
  const auto nobody = std::make_shared<Owner>();  // holds what is looked at, so that no session begins with it
  std::vector<Ledger::File> expired;
  const auto known = root.ledger->all();
  if (!known) return log(LogLevel::warning, "{}", known.error().message);
  for (const Ledger::File& file : *known) {
    const std::string name = staged_name(file.key, file.version);
    if (!root.claims.take(file.key, nobody)) continue;
    ports::FileStat stat;
    const int found = root.files.stat_at(root.staging, name, stat, false);
    const bool is_old = found >= 0 && now.seconds - stat.ctime.seconds >= age_s;
    if (is_old) remove_staged(root, name);
    if (is_old || found == -ENOENT) expired.push_back(file);
  }
  if (const auto removed = root.ledger->remove(expired); !removed) log(LogLevel::warning, "{}", removed.error().message);
  root.claims.release_all(nobody);
}

bool serve_expire_request(OpenedRoot& root) {
  const int fd = root.files.open(root.staging, expire_request_name, {}, 0);
  if (fd < 0) return false;
  std::array<char, 20> text{};
  ports::FileStat stat;
  const int64_t got = root.files.pread(fd, std::as_writable_bytes(std::span(text)), 0);
  const bool has_stat = root.files.fstat(fd, stat) >= 0;
  root.files.close(fd);
  int64_t age_s = -1;
  if (got > 0) std::from_chars(text.data(), text.data() + got, age_s);
  if (has_stat && age_s >= 0) {
    log(LogLevel::info, "staged files older than {} s are removed: somebody asked for it", age_s);
    remove_expired(root, stat.ctime, age_s);
  }
  root.files.unlink_at(root.staging, expire_request_name, false);
  return true;
}

}  // namespace ccixfer::recv

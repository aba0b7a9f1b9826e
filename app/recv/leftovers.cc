#include "app/recv/leftovers.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>
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

namespace {

// Takes its name away at once; what it holds is freed later (free_all), while no claim waits. True: it has none any more.
bool lose_name(OpenedRoot& root, const std::string& name, std::vector<std::string>& gone) {
  std::string temporary = root.temporary_name();
  int error = root.files.rename_at(root.staging, name, root.staging, temporary);
  if (error >= 0) {
    gone.push_back(std::move(temporary));
  } else if (error != -ENOENT) {
    error = root.files.unlink_at(root.staging, name, false);  // a full disk may have no room for another name
  }
  root.files.unlink_at(root.staging, share_name(name), false);
  return error >= 0 || error == -ENOENT;
}

void free_all(OpenedRoot& root, const std::vector<std::string>& gone) {
  for (const std::string& name : gone) root.files.unlink_at(root.staging, name, false);
}

}  // namespace

void remove_expired(OpenedRoot& root, ports::FileTime now, int64_t age_s) {
  std::vector<Ledger::File> expired;
  std::vector<std::string> gone;
  const auto known = root.ledger->all();
  if (!known) return log(LogLevel::warning, "{}", known.error().message);
  for (const Ledger::File& file : *known) {
    const std::string name = staged_name(file.key, file.version);
    root.claims.unless_taken(file.key, [&] {
      ports::FileStat stat;
      const int found = root.files.stat_at(root.staging, name, stat, false);
      const bool is_old = found >= 0 && now.seconds - stat.ctime.seconds >= age_s;
      if (found == -ENOENT || (is_old && lose_name(root, name, gone))) expired.push_back(file);
    });
  }
  if (const auto removed = root.ledger->remove(expired); !removed) log(LogLevel::warning, "{}", removed.error().message);
  free_all(root, gone);
}

namespace {

struct Request {
  std::string text;
  ports::FileStat stat;
};

std::optional<Request> expire_request(OpenedRoot& root) {
  Request request;
  if (root.files.stat_at(root.staging, expire_request_name, request.stat, false) < 0) return std::nullopt;
  if (root.files.readlink_at(root.staging, expire_request_name, request.text) >= 0) return request;
  const int fd = root.files.open(root.staging, expire_request_name, {}, 0);
  if (fd < 0) return std::nullopt;
  std::array<char, 20> text{};
  const int64_t got = root.files.pread(fd, std::as_writable_bytes(std::span(text)), 0);
  root.files.close(fd);
  if (got > 0) request.text.assign(text.data(), static_cast<size_t>(got));
  return request;
}

// As staged_name makes it.
std::optional<Ledger::File> file_of_staged_name(std::string_view name) {
  constexpr size_t digits = 16;
  if (!name.ends_with(part_suffix) || name.size() != 3 * digits + 1 + part_suffix.size() || name[2 * digits] != '-') return {};
  const auto number = [](std::string_view text, uint64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 16);
    return error == std::errc() && end == text.data() + text.size();
  };
  Ledger::File file;
  const bool is_one = number(name.substr(0, digits), file.key.high) && number(name.substr(digits, digits), file.key.low) &&
                      number(name.substr(2 * digits + 1, digits), file.version);
  return is_one ? std::optional(file) : std::nullopt;
}

}  // namespace

void remove_unrecorded(OpenedRoot& root) {
  const int directory = root.files.open(root.staging, ".", {.directory = true}, 0);
  if (directory < 0) return;
  std::vector<Ledger::File> found;
  root.files.read_directory(directory, [&](std::string_view name) {
    if (const auto file = file_of_staged_name(name)) found.push_back(*file);
  });
  root.files.close(directory);
  std::vector<std::string> gone;
  for (const Ledger::File& file : found) {
    root.claims.unless_taken(file.key, [&] {
      const auto recorded = root.ledger->versions(file.key);
      if (recorded && std::find(recorded->begin(), recorded->end(), file.version) == recorded->end())
        lose_name(root, staged_name(file.key, file.version), gone);
    });
  }
  free_all(root, gone);
}

bool serve_expire_request(OpenedRoot& root) {
  const std::optional<Request> request = expire_request(root);
  if (!request) return false;
  int64_t age_s = -1;
  std::from_chars(request->text.data(), request->text.data() + request->text.size(), age_s);
  if (age_s >= 0) {
    log(LogLevel::info, "staged files older than {} s are removed: somebody asked for it", age_s);
    remove_expired(root, request->stat.ctime, age_s);
  }
  root.files.unlink_at(root.staging, expire_request_name, false);
  return true;
}

}  // namespace ccixfer::recv

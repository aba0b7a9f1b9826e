#include "app/main/aside.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "app/recv/names.h"
#include "core/base/units.h"

namespace ccixfer::program {

namespace {

// Each old file would be kept under its own name, where the new one is to stand.
tl::unexpected<Error> backups_in_place() {
  return fail(ErrorKind::usage, "--backup-dir: it is the destination itself: name another directory, or give --suffix too");
}

// Nothing in the directory of the backups is deleted.
tl::unexpected<Error> nothing_deleted() {
  return fail(ErrorKind::usage,
              "--backup-dir with --delete: the destination is in it, so that nothing would be deleted: name another directory, or "
              "give --backup in its place");
}

}  // namespace

void add_aside(session::Open& open, const SyncOptions& sync) {
  open.link_dest = sync.link_dest;
  if (sync.keeps_backups()) open.backup = session::BackupWish{sync.backup_directory, sync.backup_suffix()};
}

Result<recv::Aside> aside_of(const session::Open& open, const std::string& base) {
  recv::Aside aside;
  for (const std::string& given : open.link_dest) {
    auto path = recv::beside(base, given);
    if (!path) return tl::unexpected<Error>(path.error());
    aside.older.push_back({std::move(*path)});
  }
  if (!open.backup) return aside;
  aside.backup.emplace();
  aside.backup->suffix = open.backup->suffix;
  if (open.backup->directory.empty()) return aside;
  auto path = recv::beside(base, open.backup->directory);
  if (!path) return tl::unexpected<Error>(path.error());
  if (*path == base && open.backup->suffix.empty()) return backups_in_place();
  if (open.deletes && (*path == base || recv::is_below(base, *path))) return nothing_deleted();
  aside.backup->directory = recv::SidePlace{std::move(*path)};
  return aside;
}

namespace {

// As the system would resolve it, also where the last parts are not there yet.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code problem;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, problem);
  return problem ? path : whole;
}

Result<void> make_directories(const std::filesystem::path& path, std::vector<std::string>& made) {
  std::error_code problem;
  std::vector<std::filesystem::path> absent;
  for (std::filesystem::path at = path; !at.empty() && !std::filesystem::exists(at, problem) && at != at.root_path();
       at = at.parent_path()) {
    absent.push_back(at);
  }
  for (auto at = absent.rbegin(); at != absent.rend(); ++at) {
    if (std::filesystem::create_directory(*at, problem)) made.push_back(at->string());
    if (problem) break;
  }
  if (!problem && std::filesystem::is_directory(path, problem)) return {};
  return fail(ErrorKind::file_io, fmt::format("cannot make the directory for backups: {}: {}: name one that can be made",
                                              printable(path.string()), problem ? problem.message() : "not a directory"));
}

}  // namespace

Result<AsideOfPull> aside_of(const SyncOptions& sync, const std::string& directory, bool dry_run) {
  AsideOfPull aside;
  const std::filesystem::path base = resolved(directory);
  for (const std::string& given : sync.link_dest) aside.aside.older.push_back({resolved(base / given).string(), true});
  if (!sync.keeps_backups()) return aside;
  aside.aside.backup.emplace();
  aside.aside.backup->suffix = sync.backup_suffix();
  if (sync.backup_directory.empty()) return aside;
  const std::filesystem::path place = resolved(base / sync.backup_directory);
  const std::filesystem::path below = place.lexically_relative(base);
  const bool is_base = below.empty() || below == ".";
  if (is_base && aside.aside.backup->suffix.empty()) return backups_in_place();
  if (is_base && sync.deletes) return nothing_deleted();
  if (!below.empty() && *below.begin() != "..") {
    auto path = recv::beside("", below.string());
    if (!path) return fail(ErrorKind::usage, path.error().message);
    aside.aside.backup->directory = recv::SidePlace{std::move(*path)};
    return aside;
  }
  aside.aside.backup->directory = recv::SidePlace{place.string(), true};
  if (dry_run) return aside;
  if (auto made = make_directories(place, aside.made); !made) {
    remove_unused(aside);
    return tl::unexpected<Error>(made.error());
  }
  return aside;
}

// Whoever links a file from one directory into another needs the right to write in both.
void add_aside(sandbox::Plan& plan, const AsideOfPull& aside) {
  for (const recv::SidePlace& place : aside.aside.older) plan.places.push_back({place.path, sandbox::Access::write});
  const auto& backup = aside.aside.backup;
  if (backup && backup->directory && backup->directory->outside)
    plan.places.push_back({backup->directory->path, sandbox::Access::write});
  if (!aside.made.empty()) {
    const std::string parent = std::filesystem::path(aside.made.front()).parent_path().string();
    plan.places.push_back({parent, sandbox::Access::remove});
  }
}

void remove_unused(const AsideOfPull& aside) {
  for (auto directory = aside.made.rbegin(); directory != aside.made.rend(); ++directory) {
    if (::rmdir(directory->c_str()) != 0) return;  // something is in it
  }
}

}  // namespace ccixfer::program

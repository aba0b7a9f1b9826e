#include "app/recv/aside.h"

#include <fmt/format.h>

#include "app/recv/names.h"
#include "app/session/limits.h"
#include "core/base/units.h"

namespace ccixfer::recv {

Result<std::string> beside(std::string_view base, std::string_view given) {
  const auto refuse = [whole = given](std::string_view why) {
    return fail(ErrorKind::not_authorised,
                fmt::format("{}: {}: name a directory below the receiver's root", printable(whole), why));
  };
  std::string path = given.starts_with('/') ? std::string() : std::string(base);
  while (!given.empty()) {
    const size_t slash = given.find('/');
    const std::string_view component = given.substr(0, slash);
    given.remove_prefix(slash == std::string_view::npos ? given.size() : slash + 1);
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      if (path.empty()) return refuse("it leaves the root");
      path = split_path(path).parent;
    } else {
      path = join_path(path, component);
    }
    if (path.size() > session::path_bytes_max) return refuse("it is too long");
  }
  if (path.find('\0') != std::string::npos || is_reserved_path(path)) return refuse("it is reserved");
  return path;
}

std::string_view below_base(std::string_view path, std::string_view base, bool is_directory) {
  if (path == base) return is_directory ? std::string_view() : split_path(path).name;
  if (!base.empty() && is_below(path, base)) path.remove_prefix(base.size() + 1);
  return path;
}

int open_side(OpenedRoot& root, const SidePlace& place) {
  const ports::OpenFlags directory{.directory = true};
  if (place.outside) return root.files.open(ports::FileSystem::no_directory, place.path, directory, 0);
  if (root.fd < 0) return -ENOENT;
  return root.files.open(root.fd, place.path.empty() ? "." : place.path, directory, 0);
}

}  // namespace ccixfer::recv

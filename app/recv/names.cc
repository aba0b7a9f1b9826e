#include "app/recv/names.h"

#include <fmt/format.h>

#include "app/session/limits.h"

namespace ccixfer::recv {

SplitPath split_path(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return {{}, path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

bool is_below(std::string_view path, std::string_view outer) {
  return outer.empty() || (path.size() > outer.size() && path.starts_with(outer) && path[outer.size()] == '/');
}

std::string join_path(std::string_view base, std::string_view below) {
  if (base.empty()) return std::string(below);
  if (below.empty()) return std::string(base);
  std::string joined;
  joined.reserve(base.size() + 1 + below.size());
  joined.append(base).append(1, '/').append(below);
  return joined;
}

Result<std::string> normalise_path(std::string_view typed) {
  if (typed.size() > session::path_bytes_max) return fail(ErrorKind::not_authorised, "the destination path is too long");
  if (typed.find('\0') != std::string_view::npos) return fail(ErrorKind::not_authorised, "the destination path has a NUL");
  std::string path;
  while (!typed.empty()) {
    const size_t slash = typed.find('/');
    const std::string_view component = typed.substr(0, slash);
    typed.remove_prefix(slash == std::string_view::npos ? typed.size() : slash + 1);
    if (component.empty() || component == ".") continue;
    if (component == "..") return fail(ErrorKind::not_authorised, "the destination path leaves the receiver's root ('..')");
    if (!path.empty()) path.push_back('/');
    path.append(component);
  }
  if (is_reserved_path(path)) return fail(ErrorKind::not_authorised, "the destination path is reserved for the receiver");
  return path;
}

bool is_reserved_path(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    if (session::is_reserved_name(path.substr(0, slash))) return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

Hash128 path_key(std::string_view path) { return xxh3_128(as_bytes(path)); }

std::string staged_name(const Hash128& key, uint64_t version) {
  return fmt::format("{:016x}{:016x}-{:016x}{}", key.high, key.low, version, part_suffix);
}

std::string staged_beside_name(const Hash128& key) {
  return fmt::format("{}.{:016x}{:016x}{}", staging_name, key.high, key.low, part_suffix);
}

}  // namespace ccixfer::recv

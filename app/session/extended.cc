#include "app/session/extended.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "app/session/messages.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

constexpr size_t acl_head_bytes = 4, acl_entry_bytes = 8;
constexpr uint32_t acl_version = 2;
constexpr size_t acl_entries_max = 4096;
enum AclTag : uint16_t { user_obj = 1, user = 2, group_obj = 4, group = 8, mask = 16, other = 32 };
constexpr uint16_t permissions_all = 7;

constexpr size_t value_bytes_max = 64u << 10;  // of Linux

uint16_t u16_at(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(static_cast<unsigned char>(bytes[at]) | static_cast<unsigned char>(bytes[at + 1]) << 8);
}

size_t encoded_bytes(const ExtendedAttribute& one) {
  return sizeof(uint16_t) + one.name.size() + sizeof(uint32_t) + one.value.size();
}

bool is_name(std::string_view name) {
  const size_t dot = name.find('.');
  return name.size() <= extended_name_bytes_max && dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
         name.find('\0') == std::string_view::npos;
}

bool is_acl_name(std::string_view name) { return name == access_acl_name || name == default_acl_name; }

}  // namespace

bool is_acl(std::string_view value) {
  if (value.size() < acl_head_bytes || (value.size() - acl_head_bytes) % acl_entry_bytes != 0) return false;
  if ((value.size() - acl_head_bytes) / acl_entry_bytes > acl_entries_max) return false;
  if (u16_at(value, 0) != acl_version || u16_at(value, 2) != 0) return false;
  uint16_t last = 0, seen = 0;
  bool needs_mask = false;
  for (size_t at = acl_head_bytes; at < value.size(); at += acl_entry_bytes) {
    const uint16_t tag = u16_at(value, at);
    const bool may_repeat = tag == user || tag == group;
    const bool is_known = may_repeat || tag == user_obj || tag == group_obj || tag == mask || tag == other;
    if (!is_known || tag < last || (tag == last && !may_repeat) || u16_at(value, at + 2) > permissions_all) return false;
    needs_mask = needs_mask || may_repeat;
    seen |= tag;
    last = tag;
  }
  constexpr uint16_t always = user_obj | group_obj | other;
  return (seen & always) == always && (!needs_mask || (seen & mask) != 0);
}

bool is_wanted_extended(std::string_view name, uint32_t options, bool is_root) {
  if (is_acl_name(name)) return (options & option_acls) != 0;
  if ((options & option_xattrs) == 0 || name.starts_with("system.")) return false;
  return is_root || name.starts_with("user.");
}

int read_extended(ports::FileSystem& files, int fd, uint32_t options, bool is_root, std::vector<ExtendedAttribute>& out) {
  out.clear();
  std::vector<std::string> names;
  if (const int error = files.list_attributes(fd, names); error < 0) return error;
  size_t bytes = 0;
  for (std::string& name : names) {
    if (!is_name(name) || !is_wanted_extended(name, options, is_root)) continue;  // a file system in user space may say anything
    std::string value;
    const int error = files.get_attribute(fd, name, value);
    if (error == -ENODATA) continue;  // gone meanwhile
    if (error < 0) return error;
    if (is_acl_name(name) && !is_acl(value)) continue;
    out.push_back({std::move(name), std::move(value)});
    bytes += encoded_bytes(out.back());
  }
  if (bytes > extended_bytes_max) return -E2BIG;
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  out.erase(std::unique(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.name == b.name; }), out.end());
  return 0;
}

std::vector<std::byte> encode_extended(const std::vector<ExtendedAttribute>& list) {
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  for (const ExtendedAttribute& one : list) {
    out.text16(one.name);
    out.bytes32(as_bytes(one.value));
  }
  return bytes;
}

bool decode_extended(Bytes value, std::vector<ExtendedAttribute>& out) {
  out.clear();
  if (value.size() > extended_bytes_max) return false;
  wire::Reader in(value);
  while (in.ok() && !in.done()) {
    ExtendedAttribute one;
    one.name = in.text16(extended_name_bytes_max);
    one.value = as_text(in.bytes32(value_bytes_max));
    if (!in.ok() || !is_name(one.name) || (!out.empty() && one.name <= out.back().name)) return false;
    if (is_acl_name(one.name) && !is_acl(one.value)) return false;
    out.push_back(std::move(one));
  }
  return in.ok();
}

}  // namespace ccixfer::session

#include "app/session/entry.h"

#include <algorithm>
#include <optional>

#include "app/session/extended.h"
#include "app/session/limits.h"
#include "app/session/tlv.h"
#include "core/base/check.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

// One entry: type u8, flags u8, shared u16 (bytes of the previous entry's path that this one starts with), suffix u16 + bytes;
// all but `leave`: mode u16, uid u32, gid u32, mtime i64 seconds and u32 nanoseconds; file: size u64, version u64; flag_tlvs: the
// length u32 of a list of TLVs, and the list.
constexpr uint8_t flag_tlvs = 1;
constexpr uint16_t tlv_target = tlv_mandatory | 1;  // of a symbolic link, always
constexpr uint16_t tlv_digest = 2;                  // of a file: low u64, high u64
constexpr uint16_t tlv_name = tlv_mandatory | 3;
constexpr uint16_t tlv_linked = tlv_mandatory | 4;   // empty: the first of its names; else the path of that one
constexpr uint16_t tlv_special = tlv_mandatory | 5;  // of a device or special, always: kind u8, device u64
constexpr uint16_t tlv_user = 6;                     // the name of the owner, which who does not know it takes by its number
constexpr uint16_t tlv_group = 7;
constexpr uint16_t tlv_extended = tlv_mandatory | 8;  // as of extended.h
constexpr size_t special_bytes = 9;
constexpr uint16_t tlv_listed = tlv_mandatory | 20;  // of a leave: whole u8 (0, 1), names of what has no entry
constexpr size_t digest_bytes = 16;
constexpr uint32_t mode_mask = 07777;

constexpr size_t entry_head_bytes_max = 48;  // all but the path and the TLVs
static_assert(entry_head_bytes_max + path_bytes_max + entry_tlv_bytes_max <= entries_segment_bytes);
static_assert(8 * tlv_head_bytes + 3 * path_bytes_max + digest_bytes + special_bytes + 2 * name_bytes_max + extended_bytes_max <=
              entry_tlv_bytes_max);  // what the encoder writes

size_t shared_prefix_bytes(std::string_view a, std::string_view b) {
  const size_t limit = std::min(a.size(), b.size());
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(limit), b.begin());
  static_cast<void>(in_b);
  return static_cast<size_t>(in_a - a.begin());
}

bool may_have_name(const Entry& entry) {
  return entry.path.empty() && entry.type != EntryType::directory && entry.type != EntryType::leave;
}

bool may_be_linked(const Entry& entry) { return entry.type != EntryType::directory && entry.type != EntryType::leave; }

bool is_special(const Entry& entry) { return entry.type == EntryType::device || entry.type == EntryType::special; }

// Its kind is one of its type.
bool fits_type(const Entry& entry) {
  using ports::SpecialKind;
  const bool is_device = entry.special == SpecialKind::character || entry.special == SpecialKind::block;
  if (entry.type == EntryType::device) return is_device;
  const bool is_other = entry.special == SpecialKind::fifo || entry.special == SpecialKind::socket;
  return entry.type == EntryType::special ? is_other && entry.special_device == 0 : entry.special == SpecialKind::none;
}

bool may_have_extended(const Entry& entry) { return entry.type == EntryType::file || entry.type == EntryType::directory; }

bool is_account_name(std::string_view name) {
  return !name.empty() && name.size() <= name_bytes_max && name.find('\0') == std::string_view::npos;
}

void read_special(wire::Reader& in, const Tlv& tlv, Entry& entry) {
  in.require(is_special(entry) && tlv.value.size() == special_bytes);
  wire::Reader value(tlv.value);
  const uint8_t kind = value.u8();
  in.require(kind <= static_cast<uint8_t>(ports::SpecialKind::block));
  entry.special = static_cast<ports::SpecialKind>(kind);
  entry.special_device = value.u64();
}

bool is_safe_name(std::string_view name) { return is_safe_relative_path(name) && name.find('/') == std::string_view::npos; }

void read_digest(wire::Reader& in, const Tlv& tlv, Entry& entry) {
  in.require(entry.type == EntryType::file && tlv.value.size() == digest_bytes);
  wire::Reader value(tlv.value);
  entry.has_digest = true;
  entry.digest.low = value.u64();
  entry.digest.high = value.u64();
}

void read_listed(wire::Reader& in, const Tlv& tlv, Entry& entry) {
  wire::Reader value(tlv.value);
  const uint8_t whole = value.u8();
  entry.is_whole = whole == 1;
  while (value.ok() && !value.done()) entry.left_out.emplace_back(value.text16(name_bytes_max));
  in.require(entry.type == EntryType::leave && value.ok() && whole <= 1);
}

void read_tlvs(wire::Reader& in, Entry& entry) {
  TlvReader tlvs(in.bytes32(entry_tlv_bytes_max));
  while (const std::optional<Tlv> tlv = tlvs.next()) {
    const std::string_view text = as_text(tlv->value);
    switch (tlv->type) {
      case tlv_target:
        in.require(entry.type == EntryType::symlink && text.size() <= path_bytes_max && text.find('\0') == std::string_view::npos);
        entry.target = text;
        break;
      case tlv_digest:
        read_digest(in, *tlv, entry);
        break;
      case tlv_name:
        in.require(may_have_name(entry) && text.size() <= path_bytes_max);
        entry.name = text;
        break;
      case tlv_linked:
        in.require(may_be_linked(entry) && is_safe_relative_path(text));
        entry.is_linked = true;
        entry.linked_to = text;
        break;
      case tlv_special:
        read_special(in, *tlv, entry);
        break;
      case tlv_user:
      case tlv_group:
        in.require(entry.type != EntryType::leave && is_account_name(text));
        (tlv->type == tlv_user ? entry.user : entry.group) = text;
        break;
      case tlv_extended:
        in.require(may_have_extended(entry) && decode_extended(tlv->value, entry.extended));
        entry.has_extended = true;
        break;
      case tlv_listed:
        read_listed(in, *tlv, entry);
        break;
      default:
        tlvs.skip(*tlv);
    }
  }
  in.require(tlvs.ok());
  entry.unknown_mandatory = tlvs.unknown_mandatory();
}

// Reads one entry; `previous` is the path before. The path is not yet judged.
Entry read_entry(wire::Reader& in, const std::string& previous) {
  Entry entry;
  const uint8_t type = in.u8();
  in.require(type <= static_cast<uint8_t>(EntryType::special));
  entry.type = static_cast<EntryType>(type);
  const uint8_t flags = in.u8();
  in.require((flags & ~flag_tlvs) == 0);
  const uint16_t shared = in.u16();
  in.require(shared <= previous.size());
  const std::string_view suffix = in.text16(path_bytes_max);
  in.require(suffix.size() + shared <= path_bytes_max);
  if (!in.ok()) return entry;
  entry.path.assign(previous, 0, shared);
  entry.path.append(suffix);
  if (entry.type != EntryType::leave) {
    entry.mode = in.u16();
    in.require((entry.mode & ~mode_mask) == 0);
    entry.uid = in.u32();
    entry.gid = in.u32();
    entry.mtime.seconds = in.i64();
    entry.mtime.nanoseconds = in.u32();
    in.require(entry.mtime.nanoseconds < ports::file_time_nanoseconds);
  }
  if (entry.type == EntryType::file) {
    entry.size_bytes = in.u64();
    entry.version = in.u64();
  }
  if ((flags & flag_tlvs) != 0) read_tlvs(in, entry);
  in.require(fits_type(entry) || entry.unknown_mandatory != 0);
  // A target may stand in a TLV that we do not know.
  in.require(entry.type != EntryType::symlink || !entry.target.empty() || entry.unknown_mandatory != 0);
  return entry;
}

bool has_listed(const Entry& entry) { return entry.is_whole || !entry.left_out.empty(); }

void write_tlvs(wire::Writer& out, const Entry& entry) {
  const size_t length_at = out.position();
  out.u32(0);
  const size_t list_at = out.position();
  TlvWriter tlvs(out);
  if (entry.type == EntryType::symlink) tlvs.add(tlv_target, as_bytes(entry.target));
  if (entry.has_digest) {
    wire::Writer& value = tlvs.begin(tlv_digest, digest_bytes);
    value.u64(entry.digest.low);
    value.u64(entry.digest.high);
  }
  if (!entry.name.empty()) tlvs.add(tlv_name, as_bytes(entry.name));
  if (entry.is_linked) tlvs.add(tlv_linked, as_bytes(entry.linked_to));
  if (is_special(entry)) {
    wire::Writer& value = tlvs.begin(tlv_special, special_bytes);
    value.u8(static_cast<uint8_t>(entry.special));
    value.u64(entry.special_device);
  }
  if (!entry.user.empty()) tlvs.add(tlv_user, as_bytes(entry.user));
  if (!entry.group.empty()) tlvs.add(tlv_group, as_bytes(entry.group));
  if (entry.has_extended) tlvs.add(tlv_extended, encode_extended(entry.extended));
  if (has_listed(entry)) {
    size_t size = 1;
    for (const std::string& name : entry.left_out) size += sizeof(uint16_t) + name.size();
    wire::Writer& value = tlvs.begin(tlv_listed, size);
    value.u8(entry.is_whole ? 1 : 0);
    for (const std::string& name : entry.left_out) value.text16(name);
  }
  out.patch_u32(length_at, static_cast<uint32_t>(out.position() - list_at));
}

}  // namespace

bool is_safe_relative_path(std::string_view path) {
  if (path.empty()) return true;
  if (path.size() > path_bytes_max || path.find('\0') != std::string_view::npos) return false;
  size_t begin = 0;
  while (true) {
    const size_t slash = path.find('/', begin);
    const std::string_view component = path.substr(begin, slash == std::string_view::npos ? slash : slash - begin);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    begin = slash + 1;
  }
}

bool EntryEncoder::add(const Entry& entry) {
  CHECK(is_safe_relative_path(entry.path));
  CHECK((entry.mode & ~mode_mask) == 0);
  CHECK(entry.mtime.nanoseconds < ports::file_time_nanoseconds);
  CHECK(!entry.has_digest || entry.type == EntryType::file);
  CHECK(entry.type != EntryType::symlink || (!entry.target.empty() && entry.target.size() <= path_bytes_max));
  CHECK(entry.name.empty() || (may_have_name(entry) && is_safe_name(entry.name)));
  CHECK(fits_type(entry));
  CHECK(!entry.has_extended || may_have_extended(entry));
  CHECK(entry.user.size() <= name_bytes_max && entry.group.size() <= name_bytes_max);
  CHECK(!entry.is_linked || (may_be_linked(entry) && is_safe_relative_path(entry.linked_to)));
  if (count_ == entries_per_segment_max) return false;
  const size_t shared = shared_prefix_bytes(previous_, entry.path);
  wire::Writer out(into_.subspan(used_));
  out.u8(static_cast<uint8_t>(entry.type));
  const bool has_tlvs = entry.type == EntryType::symlink || is_special(entry) || entry.has_digest || !entry.name.empty() ||
                        entry.is_linked || !entry.user.empty() || !entry.group.empty() || entry.has_extended || has_listed(entry);
  out.u8(has_tlvs ? flag_tlvs : 0);
  out.u16(static_cast<uint16_t>(shared));
  out.text16(std::string_view(entry.path).substr(shared));
  if (entry.type != EntryType::leave) {
    out.u16(static_cast<uint16_t>(entry.mode));
    out.u32(entry.uid);
    out.u32(entry.gid);
    out.i64(entry.mtime.seconds);
    out.u32(entry.mtime.nanoseconds);
  }
  if (entry.type == EntryType::file) {
    out.u64(entry.size_bytes);
    out.u64(entry.version);
  }
  if (has_tlvs) write_tlvs(out, entry);
  if (!out.ok()) return false;
  used_ += static_cast<uint32_t>(out.position());
  ++count_;
  previous_ = entry.path;
  return true;
}

Result<std::vector<Entry>> decode_entries(Bytes data, uint32_t count) {
  if (count > entries_per_segment_max || data.size() > segment_bytes_max) {
    return fail(ErrorKind::protocol, "entries: too many in a segment");
  }
  wire::Reader in(data);
  std::vector<Entry> entries;
  const std::string nothing;
  for (uint32_t i = 0; i < count; ++i) {
    Entry entry = read_entry(in, entries.empty() ? nothing : entries.back().path);
    if (!in.ok()) break;
    if (!is_safe_relative_path(entry.path) || !is_safe_name(entry.name)) {
      return fail(ErrorKind::not_authorised, "entries: a path that leaves the root or is malformed");
    }
    entries.push_back(std::move(entry));
  }
  if (!in.done()) return fail(ErrorKind::protocol, "entries: malformed");
  return entries;
}

void FileDigest::add(const Hash128& piece) {
  constexpr size_t block_bytes = 4096;
  wire::Writer out(waiting_);
  out.u64(piece.low);
  out.u64(piece.high);
  if (waiting_.size() < block_bytes) return;
  hash_.update(waiting_);
  waiting_.clear();
}

Hash128 FileDigest::take() {
  hash_.update(waiting_);
  waiting_.clear();
  return hash_.digest();
}

Hash128 file_digest(const std::vector<Hash128>& pieces) {
  FileDigest digest;
  for (const Hash128& piece : pieces) digest.add(piece);
  return digest.take();
}

}  // namespace ccixfer::session

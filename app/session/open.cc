#include "app/session/open.h"

#include <algorithm>
#include <span>

#include "app/session/control.h"
#include "app/session/limits.h"
#include "app/session/message_wire.h"
#include "app/session/tlv.h"
#include "core/base/check.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

constexpr uint16_t tlv_path = tlv_mandatory | 1;
constexpr uint16_t tlv_ticket = tlv_mandatory | 2;
constexpr uint16_t tlv_rules = tlv_mandatory | 3;
constexpr uint16_t tlv_deletes = tlv_mandatory | 4;
constexpr uint16_t tlv_list = tlv_mandatory | 15;
constexpr uint16_t tlv_link_dest = tlv_mandatory | 5;
constexpr uint16_t tlv_backup = tlv_mandatory | 6;
constexpr uint16_t tlv_compress = tlv_mandatory | 40;
constexpr uint16_t tlv_team = tlv_mandatory | 41;
constexpr uint16_t tlv_second = tlv_mandatory | 42;
constexpr uint16_t tlv_first_entries = 43;
constexpr size_t first_entries_head_bytes = 4;              // before the entries
constexpr size_t team_head_bytes = 16 + 8 + 2 + 2 + 8 + 2;  // before the version

void copy_bytes(Bytes from, std::span<uint8_t> to) {
  std::transform(from.begin(), from.end(), to.begin(), [](std::byte b) { return std::to_integer<uint8_t>(b); });
}

std::optional<TicketProof> decode_ticket(Bytes value) {
  TicketProof ticket;
  if (value.size() != ticket.number.size() + ticket.proof.size()) return std::nullopt;
  copy_bytes(value.first(ticket.number.size()), ticket.number);
  copy_bytes(value.subspan(ticket.number.size()), ticket.proof);
  return ticket;
}

bool decode_link_dest(Bytes value, std::vector<std::string>& places) {
  wire::Reader in(value);
  while (in.ok() && !in.done()) {
    places.emplace_back(in.text16(path_bytes_max));
    in.require(!places.back().empty() && places.size() <= link_dest_max);
  }
  return in.ok() && !places.empty();
}

std::optional<BackupWish> decode_backup(Bytes value) {
  wire::Reader in(value);
  BackupWish backup;
  backup.directory = in.text16(path_bytes_max);
  backup.suffix = in.text16(name_bytes_max);
  in.require(backup.suffix.find('/') == std::string::npos && backup.suffix.find('\0') == std::string::npos);
  in.require(!backup.directory.empty() || !backup.suffix.empty());  // a backup is never its own file
  if (!in.done()) return std::nullopt;
  return backup;
}

std::optional<uint8_t> decode_compress(Bytes value) {
  wire::Reader in(value);
  const uint8_t level = in.u8();
  if (!in.done() || level > compress_level_max) return std::nullopt;
  return level;
}

std::optional<TeamWish> decode_team(Bytes value) {
  wire::Reader in(value);
  TeamWish team;
  const Bytes name = in.bytes(team.name.size());
  team.member = in.u64();
  team.part = in.u16();
  team.parts = in.u16();
  team.agreement = in.u64();
  team.version = in.text16(team_version_bytes_max);
  in.require(team.part >= 1 && team.part <= team.parts && team.parts <= team_parts_max);
  if (!in.done()) return std::nullopt;
  copy_bytes(name, team.name);
  return team;
}

// Whether the entries make sense shows when they are decided.
std::optional<FirstEntries> decode_first_entries(Bytes value) {
  wire::Reader in(value);
  FirstEntries first;
  first.count = in.u32();
  const Bytes bytes = in.rest();
  in.require(first.count >= 1 && first.count <= entries_per_segment_max && !bytes.empty());
  if (!in.ok()) return std::nullopt;
  first.bytes.assign(bytes.begin(), bytes.end());
  return first;
}

std::optional<Open> decode_open(Bytes bytes) {
  wire::Reader in(bytes);
  Open open;
  open.options = in.u32();
  TlvReader tlvs(in.rest());
  while (const std::optional<Tlv> tlv = tlvs.next()) {
    if (tlv->type == tlv_path) {
      in.require(tlv->value.size() <= path_bytes_max);
      open.path = as_text(tlv->value);
    } else if (tlv->type == tlv_ticket) {
      open.ticket = decode_ticket(tlv->value);
      in.require(open.ticket.has_value());
    } else if (tlv->type == tlv_rules) {
      open.rules = filter::decode_rules(tlv->value);
      in.require(open.rules.has_value());
    } else if (tlv->type == tlv_deletes) {
      wire::Reader value(tlv->value);
      open.deletes = value.u64();
      in.require(value.done());
    } else if (tlv->type == tlv_list) {
      open.list = filter::PathList::decode(tlv->value);
      in.require(open.list.has_value());
    } else if (tlv->type == tlv_link_dest) {
      in.require(decode_link_dest(tlv->value, open.link_dest));
    } else if (tlv->type == tlv_backup) {
      open.backup = decode_backup(tlv->value);
      in.require(open.backup.has_value());
    } else if (tlv->type == tlv_compress) {
      open.compress = decode_compress(tlv->value);
      in.require(open.compress.has_value());
    } else if (tlv->type == tlv_team) {
      open.team = decode_team(tlv->value);
      in.require(open.team.has_value());
    } else if (tlv->type == tlv_second) {
      open.is_second = true;
      in.require(tlv->value.empty());
    } else if (tlv->type == tlv_first_entries) {
      std::optional<FirstEntries> first = decode_first_entries(tlv->value);
      in.require(first.has_value());
      if (first) open.first = std::move(*first);
    } else {
      tlvs.skip(*tlv);
    }
  }
  open.unknown_mandatory = tlvs.unknown_mandatory();
  if (!in.done() || !tlvs.ok()) return std::nullopt;
  return open;
}

}  // namespace

namespace {

std::vector<std::byte> encode(const Open& open) {
  CHECK(open.path.size() <= path_bytes_max);
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u32(open.options);
  TlvWriter tlvs(out);
  if (!open.path.empty()) tlvs.add(tlv_path, as_bytes(open.path));
  if (open.ticket) {
    wire::Writer& value = tlvs.begin(tlv_ticket, open.ticket->number.size() + open.ticket->proof.size());
    value.bytes(std::as_bytes(std::span(open.ticket->number)));
    value.bytes(std::as_bytes(std::span(open.ticket->proof)));
  }
  if (open.rules) tlvs.add(tlv_rules, filter::encode(*open.rules));
  if (open.deletes) tlvs.begin(tlv_deletes, sizeof(uint64_t)).u64(*open.deletes);
  if (!open.link_dest.empty()) {
    size_t size = 0;
    for (const std::string& place : open.link_dest) size += sizeof(uint16_t) + place.size();
    wire::Writer& value = tlvs.begin(tlv_link_dest, size);
    for (const std::string& place : open.link_dest) value.text16(place);
  }
  if (open.backup) {
    wire::Writer& value = tlvs.begin(tlv_backup, 2 * sizeof(uint16_t) + open.backup->directory.size() + open.backup->suffix.size());
    value.text16(open.backup->directory);
    value.text16(open.backup->suffix);
  }
  if (open.list) tlvs.add(tlv_list, open.list->encode());
  if (open.compress) tlvs.begin(tlv_compress, sizeof(uint8_t)).u8(*open.compress);
  if (open.team) {
    wire::Writer& value = tlvs.begin(tlv_team, team_head_bytes + open.team->version.size());
    value.bytes(std::as_bytes(std::span(open.team->name)));
    value.u64(open.team->member);
    value.u16(open.team->part);
    value.u16(open.team->parts);
    value.u64(open.team->agreement);
    value.text16(open.team->version);
  }
  if (open.is_second) tlvs.add(tlv_second, Bytes());
  if (open.first.count > 0) {
    wire::Writer& value = tlvs.begin(tlv_first_entries, first_entries_head_bytes + open.first.bytes.size());
    value.u32(open.first.count);
    value.bytes(open.first.bytes);
  }
  CHECK(bytes.size() <= open_bytes_max);
  return bytes;
}

}  // namespace

size_t room_for_first_entries(const Open& open) {
  const size_t of_message = early_overhead_bytes + message_header_bytes + open_part_head_bytes + message_check_bytes;
  const size_t used = encode(open).size() + of_message + tlv_head_bytes + first_entries_head_bytes;
  return used < hello_early_bytes_max ? hello_early_bytes_max - used : 0;
}

std::vector<Message> cut(const Open& open) {
  const std::vector<std::byte> bytes = encode(open);
  std::vector<Message> parts;
  const std::string_view whole = as_text(bytes);
  for (size_t at = 0; at < whole.size(); at += open_part_bytes_max) {
    const std::string_view part = whole.substr(at, open_part_bytes_max);
    parts.emplace_back(OpenPart{static_cast<uint32_t>(whole.size()), static_cast<uint32_t>(at), std::string(part)});
  }
  return parts;
}

std::optional<Open> OpenJoiner::add(const OpenPart& part) {
  if (complete_) failed_ = true;
  if (bytes_.empty()) total_bytes_ = part.total_bytes;
  const bool fits = part.total_bytes == total_bytes_ && total_bytes_ <= open_bytes_max && part.offset_bytes == bytes_.size() &&
                    !part.bytes.empty() && part.bytes.size() <= total_bytes_ - part.offset_bytes;
  if (!fits) failed_ = true;
  if (failed_) return std::nullopt;
  bytes_ += part.bytes;
  if (bytes_.size() < total_bytes_) return std::nullopt;
  complete_ = true;
  std::optional<Open> open = decode_open(as_bytes(bytes_));
  failed_ = !open;
  return open;
}

}  // namespace ccixfer::session

#include "app/session/messages.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <utility>

#include "app/session/item.h"
#include "app/session/message_wire.h"
#include "app/session/tlv.h"
#include "core/base/check.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

void write(wire::Writer& out, const OpenPart& m) {
  CHECK(m.total_bytes <= open_bytes_max && m.offset_bytes <= m.total_bytes && m.bytes.size() <= m.total_bytes - m.offset_bytes);
  out.u32(m.total_bytes);
  out.u32(m.offset_bytes);
  out.text16(m.bytes);
}
void write(wire::Writer& out, const Opened& m) {
  CHECK(m.session != 0);
  out.u64(m.session);
  out.u32(m.lanes_max);
  if (m.took_first_entries) out.u8(1);  // who sent none need not know of this
}
void write(wire::Writer& out, const LaneOpen& m) {
  CHECK(m.stripe_count >= 1 && m.stripe_count <= stripes);
  out.u64(m.lane_session);
  out.u64(m.mailbox_base);
  out.u64(m.key);
  out.u32(m.stripe_count);
}
void write(wire::Writer& out, const Credit& m) {
  out.u64(m.limit);
  out.u8(m.ask ? 1 : 0);
}
void write(wire::Writer& out, const Answer& m) {
  CHECK(m.runs.size() <= answer_runs_max);
  out.u64(m.first_index);
  out.u16(static_cast<uint16_t>(m.runs.size()));
  for (const Answer::Run& run : m.runs) {
    CHECK(run.count > 0 && run.count <= entries_outstanding_max);
    out.u32(run.count);
    out.u8(static_cast<uint8_t>(run.verdict));
  }
}
void write_ranges(wire::Writer& out, const std::vector<Want::Range>& ranges) {
  CHECK(ranges.size() <= want_ranges_max);
  out.u16(static_cast<uint16_t>(ranges.size()));
  for (const Want::Range& range : ranges) {
    CHECK(is_piece_range(range.first, range.count));
    out.u64(range.first);
    out.u64(range.count);
  }
}
void write(wire::Writer& out, const Want& m) {
  out.u64(m.index);
  write_ranges(out, m.ranges);
}
void write(wire::Writer& out, const Resend& m) {
  CHECK(m.piece == Resend::whole || m.piece < pieces_per_file_max);
  out.u64(m.index);
  out.u64(m.piece);
  out.u64(m.lane_session);
  out.u64(m.n);
}
void write(wire::Writer& out, const FileEnd& m) {
  out.u64(m.index);
  out.u8(static_cast<uint8_t>(m.outcome));
  out.u64(m.size_bytes);
  out.u8(m.has_digest ? 1 : 0);
  if (!m.has_digest) return;
  out.u64(m.digest.low);
  out.u64(m.digest.high);
}
void write(wire::Writer& out, const FileResults& m) {
  CHECK(m.results.size() <= file_results_max);
  out.u16(static_cast<uint16_t>(m.results.size()));
  for (const FileResult& result : m.results) {
    out.u64(result.index);
    out.u8(static_cast<uint8_t>(result.kind));
    out.u32(static_cast<uint32_t>(result.error_number));
  }
}
void write(wire::Writer& out, const Durable& m) {
  out.u64(m.bytes);
  out.u64(m.files);
}
void write(wire::Writer& out, const End& m) {
  out.u64(m.entries);
  out.u64(m.unlisted_failed);
  out.u64(m.unlisted_vanished);
}
void write(wire::Writer& out, const Summary& m) {
  out.u64(m.files_ok);
  out.u64(m.files_unchanged);
  out.u64(m.files_failed);
  out.u64(m.bytes);
  if (m.setid_refused > 0) out.u64(m.setid_refused);  // who brought none need not know of this
}
void write(wire::Writer& out, const Holes& m) {
  out.u64(m.index);
  write_ranges(out, m.ranges);
}
void write(wire::Writer&, const Bye&) {}
void write(wire::Writer& out, const Alive& m) {
  out.u64(m.steps);
  out.u64(m.silent_ms);
}
void write(wire::Writer& out, const Abort& m) {
  out.u8(static_cast<uint8_t>(m.kind));
  out.text16(std::string_view(m.message).substr(0, abort_message_bytes_max));
}
void write(wire::Writer& out, const Unlisted& m) {
  out.u8(m.vanished ? 1 : 0);
  const size_t cut = m.path.size() - std::min<size_t>(m.path.size(), unlisted_path_bytes_max);
  out.text16(std::string_view(m.path).substr(cut));
  out.text16(std::string_view(m.reason).substr(0, unlisted_reason_bytes_max));
}
void write(wire::Writer& out, const Ask& m) { out.u64(m.limit); }
void write(wire::Writer& out, const Queued& m) { out.u32(m.before); }
void write(wire::Writer& out, const HandshakePart& m) { out.text16(m.bytes); }
void write(wire::Writer& out, const Itemized& m) {
  CHECK(m.runs.size() <= itemized_runs_max);
  out.u64(m.first_index);
  out.u16(static_cast<uint16_t>(m.runs.size()));
  for (const Itemized::Run& run : m.runs) {
    CHECK(run.count > 0 && run.count <= entries_outstanding_max && (run.items & ~items_known) == 0);
    out.u32(run.count);
    out.u16(run.items);
  }
}
void write(wire::Writer& out, const Deletions& m) {
  out.u64(m.deleted);
  out.u64(m.failed);
  out.u64(m.skipped);
  out.u16(static_cast<uint16_t>(m.names.size()));
  for (const Deletions::Name& name : m.names) {
    out.u8(static_cast<uint8_t>((name.is_directory ? 1 : 0) | (name.goes_on ? 2 : 0)));
    out.text16(name.part);
  }
}

void write_hashes(wire::Writer& out, const std::vector<Hash128>& hashes) {
  out.u16(static_cast<uint16_t>(hashes.size()));
  for (const Hash128& hash : hashes) {
    out.u64(hash.low);
    out.u64(hash.high);
  }
}

void write(wire::Writer& out, const Compare& m) {
  CHECK(is_piece_range(m.first, m.count) && (m.hashes.empty() || m.hashes.size() == m.count));
  CHECK(m.hashes.size() <= compare_hashes_max);
  out.u64(m.index);
  out.u64(m.first);
  out.u64(m.count);
  write_hashes(out, m.hashes);
}
void write(wire::Writer& out, const Same& m) {
  out.u64(m.index);
  write_ranges(out, m.ranges);
}

void write(wire::Writer& out, const TeamSeat& m) { out.u8(m.is_helper ? 1 : 0); }
void write(wire::Writer& out, const ToRead& m) {
  out.u16(static_cast<uint16_t>(m.files.size()));
  for (const ToRead::File& file : m.files) {
    out.u64(file.index);
    out.u64(file.size_bytes);
    out.u64(file.version);
    out.u64(static_cast<uint64_t>(file.mtime_s));
    out.u32(file.mtime_ns);
    out.u8(file.is_shared ? 1 : 0);
    out.text16(file.path);
  }
}
void write(wire::Writer& out, const Give& m) {
  CHECK(m.runs.size() <= give_runs_max);
  out.u16(static_cast<uint16_t>(m.runs.size()));
  for (const Give::Run& run : m.runs) {
    CHECK(run.count > 0 && run.count <= entries_outstanding_max);
    out.u64(run.first);
    out.u32(run.count);
  }
}
void write(wire::Writer& out, const Elsewhere& m) {
  out.u64(m.index);
  write_ranges(out, m.ranges);
}
void write(wire::Writer& out, const TeamEnded& m) {
  out.u8(static_cast<uint8_t>(m.kind));
  out.u64(m.files_ok);
  out.u64(m.files_unchanged);
  out.u64(m.files_failed);
  out.u64(m.bytes);
}

void write(wire::Writer& out, const AskPlace& m) { out.u64(m.index); }
void write(wire::Writer& out, const SharedPlace& m) {
  CHECK(m.name.size() <= name_bytes_max);
  out.u64(m.index);
  out.u64(m.size_bytes);
  out.bytes(std::as_bytes(std::span(m.token)));
  out.text16(m.name);
}
void write(wire::Writer& out, const PlaceState& m) {
  out.u64(m.index);
  out.u8(m.is_open ? 1 : 0);
  out.text16(std::string_view(m.reason).substr(0, place_reason_bytes_max));
}
void write(wire::Writer& out, const Placed& m) {
  CHECK(is_piece_range(m.first, m.hashes.size()) && m.hashes.size() <= placed_hashes_max);
  out.u64(m.index);
  out.u64(m.first);
  write_hashes(out, m.hashes);
}
void write(wire::Writer& out, const PlaceEnded& m) { out.u64(m.index); }

}  // namespace

bool ends_a_session(ErrorKind kind) {
  return kind != ErrorKind::ok && kind != ErrorKind::partial && kind != ErrorKind::vanished && kind != ErrorKind::max_delete;
}

Error error_of(const Abort& abort, std::string_view who) {
  if (ends_a_session(abort.kind)) return {abort.kind, abort.message};
  return {ErrorKind::protocol,
          fmt::format("{} ended the session in the middle and calls that '{}'", who, error_row(abort.kind).name)};
}

bool is_lane_message(const Message& message) {
  return std::holds_alternative<LaneOpen>(message) || std::holds_alternative<Credit>(message) ||
         std::holds_alternative<Ask>(message);
}

std::vector<std::byte> encode(const Message& message, uint64_t sequence) {
  std::vector<std::byte> bytes;
  bytes.reserve(128);
  wire::Writer out(bytes);
  out.u8(static_cast<uint8_t>(message.index() + 1));  // the order of Message's alternatives is the wire's numbering of kinds
  out.u8(0);
  out.u16(0);
  out.u64(sequence);
  std::visit([&out](const auto& m) { write(out, m); }, message);
  CHECK(out.ok() && bytes.size() + message_check_bytes <= session_message_bytes_max);
  out.patch_u16(message_length_at, static_cast<uint16_t>(bytes.size() - message_header_bytes));
  out.u32(static_cast<uint32_t>(xxh3_64(bytes)));
  return bytes;
}

std::vector<std::byte> encode(const Hello& hello) {
  CHECK(hello.lane < lanes_max && (hello.session != 0 || hello.lane == 0));
  std::vector<std::byte> bytes;
  wire::Writer out(bytes);
  out.u32(hello_magic);
  out.u16(session_version);
  out.u8(static_cast<uint8_t>(hello.direction));
  out.u8(static_cast<uint8_t>((hello.sealed ? hello_flag_sealed : 0) | (hello.moves ? hello_flag_moves : 0)));
  out.bytes(std::as_bytes(std::span(hello.transfer)));
  out.u64(hello.session);
  out.u16(hello.lane);
  if (hello.dial != 0) {
    CHECK(hello.sealed && hello.session != 0);
    out.u16(static_cast<uint16_t>(tlv_head_bytes + sizeof(hello.dial) + hello_proof_bytes));
    TlvWriter tlvs(out);
    wire::Writer& value = tlvs.begin(hello_tlv_proof, sizeof(hello.dial) + hello_proof_bytes);
    value.u64(hello.dial);
    value.bytes(std::as_bytes(std::span(hello.proof)));
  } else if (!hello.early.empty()) {
    CHECK(hello.session == 0);
    size_t value_bytes = 0;
    for (const std::vector<std::byte>& message : hello.early) value_bytes += 2 + message.size();
    CHECK(value_bytes <= hello_early_bytes_max);
    out.u16(static_cast<uint16_t>(tlv_head_bytes + value_bytes));
    TlvWriter tlvs(out);
    wire::Writer& value = tlvs.begin(hello_tlv_early, value_bytes);
    for (const std::vector<std::byte>& message : hello.early) value.bytes16(message);
  } else {
    out.u16(0);  // no TLVs
  }
  out.u32(static_cast<uint32_t>(xxh3_64(bytes)));
  return bytes;
}

namespace {

// Of a list of runs from an index on: an Answer, or an Itemized.
template <typename Runs>
std::vector<Message> cut_runs(const Runs& list, size_t runs_max) {
  std::vector<Message> parts;
  Runs part;
  part.first_index = list.first_index;
  uint64_t next_index = list.first_index;
  uint64_t covered = 0;  // by `part`: at most entries_outstanding_max, so that the decoder's bound holds for each message
  const auto flush = [&] {
    if (!part.runs.empty()) parts.emplace_back(part);
    part.first_index = next_index;
    part.runs.clear();
    covered = 0;
  };
  for (typename Runs::Run run : list.runs) {
    uint32_t left = run.count;
    while (left > 0) {
      if (part.runs.size() == runs_max || covered == entries_outstanding_max) flush();
      const auto count = static_cast<uint32_t>(std::min<uint64_t>(left, entries_outstanding_max - covered));
      run.count = count;
      part.runs.push_back(run);
      covered += count;
      next_index += count;
      left -= count;
    }
  }
  flush();
  return parts;
}

}  // namespace

std::vector<Message> cut(const Answer& answer) { return cut_runs(answer, answer_runs_max); }
std::vector<Message> cut(const Itemized& itemized) { return cut_runs(itemized, itemized_runs_max); }

std::vector<Message> cut(const Deletions& deletions) {
  std::vector<Message> parts;
  Deletions part = deletions;
  part.names.clear();
  size_t used = 0;
  const auto flush = [&] {
    parts.emplace_back(part);
    part.names.clear();
    used = 0;
  };
  for (const Deletions::Name& name : deletions.names) {
    std::string_view rest = name.part;
    do {
      if (used + deletion_name_head_bytes >= deletion_names_bytes_max) flush();
      const std::string_view now = rest.substr(0, deletion_names_bytes_max - used - deletion_name_head_bytes);
      rest.remove_prefix(now.size());
      part.names.push_back({name.is_directory, !rest.empty(), std::string(now)});
      used += deletion_name_head_bytes + now.size();
    } while (!rest.empty());
  }
  flush();
  return parts;
}

namespace {

// Of a Want or of Holes.
template <typename List>
std::vector<Message> cut_ranges(const List& list) {
  std::vector<Message> parts;
  for (size_t at = 0; at < list.ranges.size(); at += want_ranges_max) {
    const auto begin = list.ranges.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t count = std::min(list.ranges.size() - at, want_ranges_max);
    parts.emplace_back(List{list.index, {begin, begin + static_cast<std::ptrdiff_t>(count)}});
  }
  return parts;
}

}  // namespace

std::vector<Message> cut(const Want& want) { return cut_ranges(want); }
std::vector<Message> cut(const Holes& holes) { return cut_ranges(holes); }

std::vector<Message> cut(const Elsewhere& pieces) { return cut_ranges(pieces); }

std::vector<Message> cut(const ToRead& orders) {
  std::vector<Message> parts;
  ToRead part;
  size_t used = 0;
  for (const ToRead::File& file : orders.files) {
    CHECK(file.path.size() <= to_read_path_bytes_max);
    const size_t needed = to_read_head_bytes + file.path.size();
    if (used + needed > message_payload_bytes_max - 2) {
      parts.emplace_back(std::exchange(part, {}));
      used = 0;
    }
    part.files.push_back(file);
    used += needed;
  }
  if (!part.files.empty()) parts.emplace_back(std::move(part));
  return parts;
}

namespace {

// Of a list in one member, so many at most in a message.
template <typename List, typename Item>
std::vector<Message> cut_list(const std::vector<Item>& items, size_t most) {
  std::vector<Message> parts;
  for (size_t at = 0; at < items.size(); at += most) {
    const auto begin = items.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t count = std::min(items.size() - at, most);
    parts.emplace_back(List{{begin, begin + static_cast<std::ptrdiff_t>(count)}});
  }
  return parts;
}

}  // namespace

std::vector<Message> cut(const Give& given) { return cut_list<Give>(given.runs, give_runs_max); }
std::vector<Message> cut(const FileResults& results) { return cut_list<FileResults>(results.results, file_results_max); }

}  // namespace ccixfer::session

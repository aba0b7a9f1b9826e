#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "app/session/entry.h"
#include "app/session/item.h"
#include "app/session/message_wire.h"
#include "app/session/messages.h"
#include "app/session/tlv.h"
#include "core/wire/cursor.h"

namespace ccixfer::session {
namespace {

bool read_bool(wire::Reader& in) {
  const uint8_t value = in.u8();
  in.require(value <= 1);
  return value == 1;
}

// An enum on the wire is one byte, at most `last`.
template <typename Enum>
Enum read_enum(wire::Reader& in, Enum last) {
  const uint8_t value = in.u8();
  in.require(value <= static_cast<uint8_t>(last));
  return in.ok() ? static_cast<Enum>(value) : Enum{};
}

void read(wire::Reader& in, OpenPart& m) {
  m.total_bytes = in.u32();
  m.offset_bytes = in.u32();
  m.bytes = in.text16();
  in.require(m.total_bytes <= open_bytes_max && m.offset_bytes <= m.total_bytes &&
             m.bytes.size() <= m.total_bytes - m.offset_bytes);
}
void read(wire::Reader& in, Opened& m) {
  m.session = in.u64();
  m.lanes_max = in.u32();
  m.took_first_entries = in.ok() && !in.done();
  if (m.took_first_entries) in.require(in.u8() == 1);
  in.require(m.session != 0);
}
void read(wire::Reader& in, Deletions& m) {
  m.deleted = in.u64();
  m.failed = in.u64();
  m.skipped = in.u64();
  const uint16_t count = in.u16();
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    const uint8_t bits = in.u8();
    in.require(bits <= 3);
    m.names.push_back({(bits & 1) != 0, (bits & 2) != 0, std::string(in.text16(session_message_bytes_max))});
    in.require(!m.names.back().part.empty());
  }
}
void read(wire::Reader& in, LaneOpen& m) {
  m.lane_session = in.u64();
  m.mailbox_base = in.u64();
  m.key = in.u64();
  m.stripe_count = in.u32();
  in.require(m.stripe_count >= 1 && m.stripe_count <= stripes && m.mailbox_base <= ~uint64_t{0} - m.stripe_count);
}
void read(wire::Reader& in, Credit& m) {
  m.limit = in.u64();
  m.ask = read_bool(in);
}
void read(wire::Reader& in, Answer& m) {
  m.first_index = in.u64();
  const uint16_t count = in.u16();
  in.require(count <= answer_runs_max);
  uint64_t covered = 0;
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    Answer::Run run;
    run.count = in.u32();
    run.verdict = read_enum(in, Verdict::kept);
    covered += run.count;
    in.require(run.count > 0 && covered <= entries_outstanding_max);
    m.runs.push_back(run);
  }
  in.require(m.first_index <= ~uint64_t{0} - covered);
}
void read_ranges(wire::Reader& in, std::vector<Want::Range>& ranges) {
  const uint16_t count = in.u16();
  in.require(count <= want_ranges_max);
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    Want::Range range;
    range.first = in.u64();
    range.count = in.u64();
    in.require(is_piece_range(range.first, range.count));
    ranges.push_back(range);
  }
}
void read(wire::Reader& in, Want& m) {
  m.index = in.u64();
  read_ranges(in, m.ranges);
}
void read(wire::Reader& in, Holes& m) {
  m.index = in.u64();
  read_ranges(in, m.ranges);
}
void read(wire::Reader& in, Resend& m) {
  m.index = in.u64();
  m.piece = in.u64();
  m.lane_session = in.u64();
  m.n = in.u64();
  in.require(m.piece == Resend::whole || m.piece < pieces_per_file_max);
}
void read(wire::Reader& in, FileEnd& m) {
  m.index = in.u64();
  m.outcome = read_enum(in, SourceOutcome::unreadable);
  m.size_bytes = in.u64();
  m.has_digest = read_bool(in);
  if (!m.has_digest) return;
  m.digest.low = in.u64();
  m.digest.high = in.u64();
}
void read(wire::Reader& in, FileResults& m) {
  const uint16_t count = in.u16();
  in.require(count <= file_results_max);
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    FileResult result;
    result.index = in.u64();
    result.kind = read_enum(in, ErrorKind::bug);
    result.error_number = static_cast<int32_t>(in.u32());
    m.results.push_back(result);
  }
}
void read(wire::Reader& in, Durable& m) {
  m.bytes = in.u64();
  m.files = in.u64();
}
void read(wire::Reader& in, End& m) {
  m.entries = in.u64();
  m.unlisted_failed = in.u64();
  m.unlisted_vanished = in.u64();
}
void read(wire::Reader& in, Summary& m) {
  m.files_ok = in.u64();
  m.files_unchanged = in.u64();
  m.files_failed = in.u64();
  m.bytes = in.u64();
  if (!in.ok() || in.done()) return;
  m.setid_refused = in.u64();
  in.require(m.setid_refused > 0 && m.setid_refused <= m.files_failed);
}
void read(wire::Reader&, Bye&) {}
void read(wire::Reader& in, Alive& m) {
  m.steps = in.u64();
  m.silent_ms = in.u64();
}
void read(wire::Reader& in, Abort& m) {
  m.kind = read_enum(in, ErrorKind::bug);
  m.message = in.text16(abort_message_bytes_max);
}
void read(wire::Reader& in, Unlisted& m) {
  const uint8_t vanished = in.u8();
  in.require(vanished <= 1);
  m.vanished = vanished == 1;
  m.path = in.text16(unlisted_path_bytes_max);
  m.reason = in.text16(unlisted_reason_bytes_max);
}
void read(wire::Reader& in, Ask& m) { m.limit = in.u64(); }
void read(wire::Reader& in, Queued& m) { m.before = in.u32(); }
void read(wire::Reader& in, HandshakePart& m) { m.bytes = in.text16(handshake_part_bytes_max); }
void read(wire::Reader& in, Itemized& m) {
  m.first_index = in.u64();
  const uint16_t count = in.u16();
  in.require(count <= itemized_runs_max);
  uint64_t covered = 0;
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    Itemized::Run run;
    run.count = in.u32();
    run.items = in.u16();
    covered += run.count;
    in.require(run.count > 0 && covered <= entries_outstanding_max && (run.items & ~items_known) == 0);
    m.runs.push_back(run);
  }
  in.require(m.first_index <= ~uint64_t{0} - covered);
}

void read_hashes(wire::Reader& in, std::vector<Hash128>& hashes, size_t most) {
  const uint16_t count = in.u16();
  in.require(count <= most);
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    Hash128 hash;
    hash.low = in.u64();
    hash.high = in.u64();
    hashes.push_back(hash);
  }
}

void read(wire::Reader& in, Compare& m) {
  m.index = in.u64();
  m.first = in.u64();
  m.count = in.u64();
  read_hashes(in, m.hashes, compare_hashes_max);
  in.require(is_piece_range(m.first, m.count) && (m.hashes.empty() || m.hashes.size() == m.count));
}
void read(wire::Reader& in, Same& m) {
  m.index = in.u64();
  read_ranges(in, m.ranges);
}

void read(wire::Reader& in, TeamSeat& m) { m.is_helper = read_bool(in); }
void read(wire::Reader& in, ToRead& m) {
  const uint16_t count = in.u16();
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    ToRead::File file;
    file.index = in.u64();
    file.size_bytes = in.u64();
    file.version = in.u64();
    file.mtime_s = static_cast<int64_t>(in.u64());
    file.mtime_ns = in.u32();
    file.is_shared = read_bool(in);
    file.path = in.text16(to_read_path_bytes_max);
    in.require(file.path.empty() || is_safe_relative_path(file.path));
    in.require(file.mtime_ns < 1'000'000'000 && file.index != ~uint64_t{0});
    m.files.push_back(std::move(file));
  }
}
void read(wire::Reader& in, Give& m) {
  const uint16_t count = in.u16();
  in.require(count <= give_runs_max);
  for (uint16_t i = 0; in.ok() && i < count; ++i) {
    Give::Run run;
    run.first = in.u64();
    run.count = in.u32();
    in.require(run.count > 0 && run.count <= entries_outstanding_max && run.first <= ~uint64_t{0} - run.count);
    m.runs.push_back(run);
  }
}
void read(wire::Reader& in, Elsewhere& m) {
  m.index = in.u64();
  read_ranges(in, m.ranges);
}
void read(wire::Reader& in, TeamEnded& m) {
  m.kind = read_enum(in, ErrorKind::bug);
  m.files_ok = in.u64();
  m.files_unchanged = in.u64();
  m.files_failed = in.u64();
  m.bytes = in.u64();
}

void copy_bytes(Bytes from, std::span<uint8_t> to) {
  std::transform(from.begin(), from.end(), to.begin(), [](std::byte b) { return std::to_integer<uint8_t>(b); });
}

void read(wire::Reader& in, AskPlace& m) { m.index = in.u64(); }
void read(wire::Reader& in, SharedPlace& m) {
  m.index = in.u64();
  m.size_bytes = in.u64();
  const Bytes token = in.bytes(m.token.size());
  m.name = in.text16(name_bytes_max);
  in.require(!m.name.empty() && is_safe_relative_path(m.name) && m.name.find('/') == std::string::npos);
  if (in.ok()) copy_bytes(token, m.token);
}
void read(wire::Reader& in, PlaceState& m) {
  m.index = in.u64();
  m.is_open = read_bool(in);
  m.reason = in.text16(place_reason_bytes_max);
}
void read(wire::Reader& in, Placed& m) {
  m.index = in.u64();
  m.first = in.u64();
  read_hashes(in, m.hashes, placed_hashes_max);
  in.require(is_piece_range(m.first, m.hashes.size()));
}
void read(wire::Reader& in, PlaceEnded& m) { m.index = in.u64(); }

void read_proof(wire::Reader& hello_in, Bytes value, Hello& hello) {
  wire::Reader in(value);
  hello.dial = in.u64();
  const Bytes proof = in.bytes(hello.proof.size());
  hello_in.require(in.done() && hello.dial != 0 && hello.sealed && hello.session != 0);
  if (in.done()) copy_bytes(proof, hello.proof);
}

void read_early(wire::Reader& hello_in, Bytes value, Hello& hello) {
  wire::Reader in(value);
  hello_in.require(hello.session == 0 && !value.empty() && value.size() <= hello_early_bytes_max);
  while (in.ok() && in.remaining() > 0) {
    const Bytes message = in.bytes16();
    in.require(!message.empty());
    hello.early.emplace_back(message.begin(), message.end());
  }
  hello_in.require(in.done());
}

// Makes `message` the alternative with that index and reads it; false: no such alternative.
template <size_t... Is>
bool read_alternative(wire::Reader& in, size_t index, Message& message, std::index_sequence<Is...> /*all*/) {
  return ((Is == index && (read(in, message.emplace<Is>()), true)) || ...);
}

}  // namespace

Result<Decoded> decode(Bytes bytes) {
  if (bytes.size() < message_header_bytes + message_check_bytes || bytes.size() > session_message_bytes_max) {
    return fail(ErrorKind::protocol, "session message: impossible length");
  }
  const Bytes checked = bytes.first(bytes.size() - message_check_bytes);
  wire::Reader tail(bytes.last(message_check_bytes));
  if (tail.u32() != static_cast<uint32_t>(xxh3_64(checked))) return fail(ErrorKind::protocol, "session message: bad check");
  wire::Reader in(checked);
  const uint8_t kind = in.u8();
  in.require(in.u8() == 0);
  in.require(in.u16() == checked.size() - message_header_bytes);
  Decoded decoded;
  decoded.sequence = in.u64();
  constexpr auto all = std::make_index_sequence<std::variant_size_v<Message>>();
  if (kind == 0 || !read_alternative(in, kind - size_t{1}, decoded.message, all)) {
    return fail(ErrorKind::protocol, "session message: unknown kind");
  }
  // Lane messages have no number, session messages have one.
  in.require(is_lane_message(decoded.message) == (decoded.sequence == 0));
  if (!in.done()) return fail(ErrorKind::protocol, "session message: malformed");
  return decoded;
}

Result<Hello> decode_hello(Bytes bytes) {
  wire::Reader in(bytes);
  in.require(in.u32() == hello_magic);
  const uint16_t version = in.u16();
  if (!in.ok()) return fail(ErrorKind::protocol, "not a ccixfer session");
  if (version != session_version) {
    return fail(ErrorKind::protocol, fmt::format("session version {} is not ours ({})", version, session_version));
  }
  Hello hello;
  hello.direction = read_enum(in, Direction::pull);
  const uint8_t flags = in.u8();
  in.require((flags & ~(hello_flag_sealed | hello_flag_moves)) == 0);
  hello.moves = (flags & hello_flag_moves) != 0;
  hello.sealed = (flags & hello_flag_sealed) != 0;
  copy_bytes(in.bytes(hello.transfer.size()), hello.transfer);
  hello.session = in.u64();
  hello.lane = in.u16();
  in.require(hello.lane < lanes_max && (hello.session != 0 || hello.lane == 0));
  TlvReader tlvs(in.bytes16());
  while (const std::optional<Tlv> tlv = tlvs.next()) {
    if (tlv->type == hello_tlv_proof) {
      read_proof(in, tlv->value, hello);
    } else if (tlv->type == hello_tlv_early) {
      read_early(in, tlv->value, hello);
    } else {
      tlvs.skip(*tlv);
    }
  }
  in.require(tlvs.ok());
  const size_t checked = in.position();
  in.require(in.ok() && in.u32() == static_cast<uint32_t>(xxh3_64(bytes.first(checked))));
  if (!in.done()) return fail(ErrorKind::protocol, "malformed session hello");
  if (tlvs.unknown_mandatory() != 0) return fail(ErrorKind::protocol, words_of_unknown("hello", tlvs.unknown_mandatory()));
  return hello;
}

}  // namespace ccixfer::session

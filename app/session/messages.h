// The messages of a session, each at most session_message_bytes_max on the wire: kind u8, flags u8, length u16, sequence u64,
// payload (little-endian; TLVs where noted), check u32 (low half of XXH3-64 of all before it). Encoders and decoders are pure.
//
// Two families. Lane messages (lane_open, credit, ask) concern the lane that they travel on and die with it. Session messages go
// through the Link's control channel: numbered, sent on the lowest live lane, sent again on another lane when theirs dies,
// delivered once and in order.
//
// "Source" is the side that has the files, "destination" the side that gets them; "dialler" opened the lanes. Push: the source
// dials. Pull: the destination dials. Deviation from the first design (pull by RMA read): a routed connection puts both ways, so
// pull is a push over lanes that the destination dialled, and stages 1-11 are the same code both ways.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/session/limits.h"
#include "core/base/bytes.h"
#include "core/base/hash.h"
#include "core/base/result.h"

namespace ccixfer::session {

using TransferId = std::array<uint8_t, 16>;  // random, chosen by the dialler, stable over retries of one command

enum class Direction : uint8_t { push = 0, pull = 1 };

// Connect data of every lane. Behind the fixed part stand TLVs (tlv.h); this version defines none.
struct Hello {
  Direction direction = Direction::push;
  TransferId transfer{};
  uint64_t session = 0;  // 0: a new session (then lane == 0); else the number the acceptor gave in `opened`
  uint16_t lane = 0;
  bool sealed = false;  // false: --insecure. Both ends must agree
  bool moves = false;   // the lane is there already, on a path that is going: the old connection's puts may end
};

// Options of a transfer that both ends must know. Bits of Open::options.
enum Option : uint32_t {
  option_recursive = 1,
  option_links = 2,
  option_permissions = 4,
  option_times = 8,
  option_owner = 16,  // -a: all five
  option_checksum = 32,
  option_dry_run = 64,
  option_directory = 128 /* the destination names a directory */,
};

struct OpenPart {  // dialler -> acceptor, the first session messages: a part of the encoded Open (open.h)
  uint32_t total_bytes = 0;
  uint32_t offset_bytes = 0;
  std::string bytes;
};
struct Opened {          // acceptor -> dialler
  uint64_t session = 0;  // != 0
  uint32_t lanes_max = 0;
};
struct LaneOpen {             // destination -> source, on each new lane: where to put
  uint64_t lane_session = 0;  // random; stands in every segment trailer of this lane
  uint64_t mailbox_base = 0;  // stripe s is mailbox base + s
  uint64_t key = 0;
  uint32_t stripe_count = stripes;
};
struct Credit {  // destination -> source, on its lane: puts with n < `limit` may go out. Never decreases
  uint64_t limit = 0;
  bool ask = false;  // others wait for buffers too: say with Ask when a segment is ready and none is left of this
};
enum class Verdict : uint8_t {
  done = 0,  // nothing to send: directory or link made, or the file is unchanged (see `unchanged`)
  unchanged = 1,
  send = 2,    // whole
  pieces = 3,  // some pieces are here already: a Want with the missing ones precedes this Answer
  failed = 4,  // cannot be made; a FileResult with the reason precedes
  make = 5,    // dry run: a directory or link would be made, or replaced; of a file `send` says so
  change = 6,  // dry run: it would get another mode, owner or time, and nothing else
};
struct Answer {  // destination -> source: runs of verdicts for entries first_index ..., in index order over the session
  struct Run {
    uint32_t count = 0;
    Verdict verdict = Verdict::done;
  };
  uint64_t first_index = 0;
  std::vector<Run> runs;
};
struct Want {  // destination -> source: pieces [first, first+count) of a file lack; several messages add up
  uint64_t index = 0;
  struct Range {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  std::vector<Range> ranges;
};
// destination -> source: a segment arrived damaged, or a sync failed. Two forms:
//  by file:    index, and piece or `whole` (the file of a pack, read and sent again). A piece is sent again with the bytes it
//              had (the destination compares its hash); an earlier FileEnd stays good, unless the source sends another that says
//              otherwise.
//  by segment: index == by_segment; lane_session and n name the put that arrived damaged (its trailer or its list of files
//              cannot be trusted): the source sends the same entries segment again, or every file, or the piece, of that put
//              that has not ended. Not known any more: nothing to do.
struct Resend {
  static constexpr uint64_t whole = ~uint64_t{0};
  static constexpr uint64_t by_segment = ~uint64_t{0};
  uint64_t index = 0;
  uint64_t piece = whole;
  uint64_t lane_session = 0;
  uint64_t n = 0;
};
enum class SourceOutcome : uint8_t { ok = 0, changed = 1, vanished = 2, unreadable = 3 };
struct FileEnd {  // source -> destination: no (more) data of this file comes. ok only after the second stat agreed
  uint64_t index = 0;
  SourceOutcome outcome = SourceOutcome::ok;
  uint64_t size_bytes = ~uint64_t{0};  // its length, when the entry said unknown (~0: standard input); else ~0
  bool has_digest = false;             // the source read every piece: its digest, to be compared
  Hash128 digest;
};
struct FileResult {  // destination -> source: the end of entry `index`, durable if ok. Idempotent
  uint64_t index = 0;
  ErrorKind kind = ErrorKind::ok;
  int32_t error_number = 0;  // errno, 0: none
};
struct FileResults {
  std::vector<FileResult> results;
};
struct Durable {  // destination -> source: payload bytes of this session known durable, less those of files that failed since
  uint64_t bytes = 0;
  uint64_t files = 0;
};
struct End {  // source -> destination: that many entries there were; no more come
  uint64_t entries = 0;
  uint64_t unlisted_failed = 0;  // what it could not even list (an unreadable directory): no entry tells of these
  uint64_t unlisted_vanished = 0;
};
struct Summary {  // destination -> source: every entry ended, directories have their times, all synced
  uint64_t files_ok = 0, files_unchanged = 0, files_failed = 0, bytes = 0;
};
struct Alive {  // either way, while jobs are in the disk: progress when `steps` moved, else how long the disk has not answered
  uint64_t steps = 0;
  uint64_t silent_ms = 0;
};
struct Bye {};  // source -> destination: the summary arrived; lanes may go
struct Abort {  // either way: the session ends now, for everybody; resumable
  ErrorKind kind = ErrorKind::bug;
  std::string message;  // at most 512 bytes
};
// Whether a session can end in the middle with that kind. `ok` and the partial results are what a whole session leads to: each side
// counts those itself, and takes no peer's word for them.
[[nodiscard]] bool ends_a_session(ErrorKind kind);
// What an Abort of the peer (`who`) means to us: its own kind and words, or protocol when its kind ends no session.
[[nodiscard]] Error error_of(const Abort& abort, std::string_view who);

struct Unlisted {  // source -> destination: what it could not list, by name; the first unlisted_named_max of those that End counts
  bool vanished = false;
  std::string path;    // its last unlisted_path_bytes_max bytes
  std::string reason;  // at most unlisted_reason_bytes_max
};

struct Ask {  // source -> destination, on its lane: all credit up to `limit` is used, and a segment is ready
  uint64_t limit = 0;
};
// acceptor -> dialler, instead of Opened, while the session waits for its turn. It comes again, also with the same number, as long
// as the sessions that it waits for get on.
struct Queued {
  uint32_t before = 0;  // sessions that come before it; 0: the next that ends makes room
};

using Message = std::variant<OpenPart, Opened, LaneOpen, Credit, Answer, Want, Resend, FileEnd, FileResults, Durable, End, Summary,
                             Bye, Abort, Unlisted, Alive, Ask, Queued>;

// The place of an alternative in Message, from 1, is its kind on the wire: append only.
// The sequence of lane messages is 0, of all others it is not.
[[nodiscard]] bool is_lane_message(const Message& message);
[[nodiscard]] std::vector<std::byte> encode(const Message& message, uint64_t sequence);  // CHECKs that it fits; Abort's text is cut
struct Decoded {
  Message message;
  uint64_t sequence = 0;
};
[[nodiscard]] Result<Decoded> decode(Bytes bytes);  // ErrorKind::protocol
[[nodiscard]] std::vector<std::byte> encode(const Hello& hello);
[[nodiscard]] Result<Hello> decode_hello(Bytes bytes);

// Cuts long lists into messages that fit.
[[nodiscard]] std::vector<Message> cut(const Answer& answer);
[[nodiscard]] std::vector<Message> cut(const Want& want);
[[nodiscard]] std::vector<Message> cut(const FileResults& results);

}  // namespace ccixfer::session

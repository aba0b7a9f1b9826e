// The messages of a session, each at most session_message_bytes_max on the wire: kind u8, flags u8,
// length u16, sequence u64, payload, check u32 (low half of XXH3-64 of everything before it), all
// little-endian. Encoders and decoders are pure. README.md says who sends which message, and when.
//
// Lane messages (LaneOpen, Credit, Ask) concern the lane that they travel on and die with it. All
// others are session messages: they go through the Link's control channel, which numbers them, sends
// them on the lowest live lane, sends them again when that lane dies, and delivers each once and in
// order.
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

// Connect data of every lane. Behind the fixed part stand TLVs (tlv.h). Two are defined: the proof of a
// later connection of a sealed session, and the first words of a new one.
struct Hello {
  Direction direction = Direction::push;
  TransferId transfer{};
  uint64_t session = 0;  // 0: a new session, and lane is 0; else the number that Opened gave
  uint16_t lane = 0;
  bool sealed = false;  // false: --insecure; both ends must agree
  // A sealed session that has a number: which of the dialler's connections this is, from 1 and never
  // the same one twice, and the proof that it is of this session (session_keys.h). Else 0.
  uint64_t dial = 0;
  std::array<uint8_t, 32> proof{};
  bool moves = false;  // the path of this lane is going: the puts of its old connection may end there
  // Of a new session: its first session messages as they are sent, so that they need not wait until the connection is accepted.
  // They come over the lane as well: whoever knows nothing of this field misses nothing. At most hello_early_bytes_max with two
  // bytes for each.
  std::vector<std::vector<std::byte>> early{};
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
  option_update = 1u << 14,           // files that are newer at the destination stay
  option_size_only = 1u << 15,        // files of the same size are unchanged
  option_ignore_existing = 1u << 16,  // what is there stays
  option_one_file_system = 1u << 17,  // what is in directories of other file systems is not sent
  option_verify = 1u << 21,           // the destination reads back what it wrote before it counts as durable
  option_itemize = 1u << 22,          // the destination tells what it does to each entry
  option_hard_links = 1u << 24,       // names of one file at the source are names of one file at the destination
  option_acls = 1u << 25,             // access control lists are kept
  option_xattrs = 1u << 26,           // extended attributes are kept
  option_inplace = 1u << 28,          // files that are there are written themselves: no staging, no rename
  option_whole_file = 1u << 27,       // changed files are sent whole: the destination compares nothing
  option_specials = 1u << 31,         // devices, FIFOs and sockets are made
  option_numeric_ids = 1u << 29,      // owners keep their numbers, whatever their names are
  option_sparse = 1u << 30,           // runs of zeros become holes
};

// dialler -> acceptor, the first session messages: a part of the encoded Open (open.h).
struct OpenPart {
  uint32_t total_bytes = 0;
  uint32_t offset_bytes = 0;
  std::string bytes;
};
struct Opened {          // acceptor -> dialler
  uint64_t session = 0;  // != 0
  uint32_t lanes_max = 0;
  bool took_first_entries = false;  // those of the Open are the session's first; else they come in a segment
};
struct LaneOpen {             // destination -> source, on each new lane: where to put
  uint64_t lane_session = 0;  // random; stands in every segment trailer of this lane
  uint64_t mailbox_base = 0;  // stripe s is mailbox base + s
  uint64_t key = 0;
  uint32_t stripe_count = stripes;
};
// destination -> source, on its lane: puts with n < `limit` may go out. The limit never falls.
struct Credit {
  uint64_t limit = 0;
  bool ask = false;  // buffers are scarce: the source sends Ask when a segment is ready and no credit is left
};
enum class Verdict : uint8_t {
  done = 0,  // nothing to send: directory or link made, or the file is unchanged (see `unchanged`)
  unchanged = 1,
  send = 2,     // whole
  pieces = 3,   // some pieces are here already: a Want with the missing ones precedes this Answer
  failed = 4,   // cannot be made; a FileResult with the reason precedes
  make = 5,     // dry run: a directory or link would be made, or replaced; of a file `send` says so
  change = 6,   // dry run: it would get another mode, owner or time, and nothing else
  compare = 7,  // as send, or behind a Want as pieces; but each piece only once a Compare names it
  link = 8,  // a further name of a file: it becomes a link to that one, and a FileResult tells when; a Resend: it is wanted itself
  elsewhere = 9,  // of a team: wanted, and a Give or a ToRead says later who sends it
  shared = 10,    // of a team: as compare, without hashes; all members send pieces, and the leader tells its holes when it opens it
  delivered = 11,  // of a team: as unchanged, but an earlier session of this transfer brought it
  left_out = 12,   // a device, and the receiver is not root: there is none, or another one
  kept = 13,       // as done or unchanged: --update or --ignore-existing leaves what stands there, whatever the source has
};
// destination -> source: runs of verdicts for the entries from first_index on. Over the session they
// come in the order of the indices.
struct Answer {
  struct Run {
    uint32_t count = 0;
    Verdict verdict = Verdict::done;
  };
  uint64_t first_index = 0;
  std::vector<Run> runs;
};
// destination -> source: these pieces of a file are missing. Several messages add up.
struct Want {
  uint64_t index = 0;
  struct Range {
    uint64_t first = 0;
    uint64_t count = 0;
  };
  std::vector<Range> ranges;
};
// destination -> source: a segment arrived damaged, or a sync failed. There are two forms.
// By file: the index, and a piece or `whole`, which is a file of a pack. A piece comes again with the
// bytes that it had, and the destination compares its hash. An earlier FileEnd stays good unless the
// source sends another one.
// By segment: index is by_segment, and lane_session and n name the put whose trailer or list of files
// cannot be trusted. The source sends its entries segment again, or its piece, or those of its files
// that have not ended. It ignores a put that it does not remember any more.
struct Resend {
  static constexpr uint64_t whole = ~uint64_t{0};
  static constexpr uint64_t by_segment = ~uint64_t{0};
  uint64_t index = 0;
  uint64_t piece = whole;
  uint64_t lane_session = 0;
  uint64_t n = 0;
};
enum class SourceOutcome : uint8_t { ok = 0, changed = 1, vanished = 2, unreadable = 3 };
// source -> destination: no more data of this file comes. It is ok only if the status of the file was
// the same after reading.
struct FileEnd {
  uint64_t index = 0;
  SourceOutcome outcome = SourceOutcome::ok;
  uint64_t size_bytes = ~uint64_t{0};  // its length, when the entry said unknown (~0: standard input); else ~0
  bool has_digest = false;             // the source read every piece: its digest, to be compared
  Hash128 digest;
};
// destination -> source: the end of entry `index`; ok means durable. Idempotent.
struct FileResult {
  uint64_t index = 0;
  ErrorKind kind = ErrorKind::ok;
  int32_t error_number = 0;  // errno, 0: none
};
struct FileResults {
  std::vector<FileResult> results;
};
// destination -> source: bytes of this session that are durable, less those of files that failed since.
struct Durable {
  uint64_t bytes = 0;
  uint64_t files = 0;
};
// source -> destination: there were so many entries, and no more come.
struct End {
  uint64_t entries = 0;
  uint64_t unlisted_failed = 0;  // what it could not even list, so that no entry tells of it
  uint64_t unlisted_vanished = 0;
};
// destination -> source: every entry has ended, directories have their times, everything is synced.
struct Summary {
  uint64_t files_ok = 0, files_unchanged = 0, files_failed = 0, bytes = 0;
  uint64_t setid_refused = 0;  // of files_failed: what is here without its set-ID bits, as of words_of_no_setid
};
// Either way, while jobs are in the disk: how many steps they made, and for how long there was none.
struct Alive {
  uint64_t steps = 0;
  uint64_t silent_ms = 0;
};
struct Bye {};  // source -> destination: the summary arrived; the lanes may go
struct Abort {  // either way: the session ends now for both sides, and can be resumed
  ErrorKind kind = ErrorKind::bug;
  std::string message;  // encode() cuts it to 512 bytes
};
// Whether a session can end in the middle with that kind. `ok` and the partial results are the ends of
// a whole session: each side counts those itself and does not believe a peer.
[[nodiscard]] bool ends_a_session(ErrorKind kind);
// What an Abort of the peer (`who`) means to us: its own kind and words, or protocol if its kind ends
// no session.
[[nodiscard]] Error error_of(const Abort& abort, std::string_view who);

// source -> destination: the name of something that it could not list. The first unlisted_named_max of
// those that End counts are named.
struct Unlisted {
  bool vanished = false;
  std::string path;    // its last unlisted_path_bytes_max bytes
  std::string reason;  // at most unlisted_reason_bytes_max
};

// source -> destination, on its lane: all credit up to `limit` is used, and a segment is ready.
struct Ask {
  uint64_t limit = 0;
};
// acceptor -> dialler, before Opened, while the session waits for its turn. It comes again, even with
// the same number, as long as the sessions before it make progress.
struct Queued {
  uint32_t before = 0;  // so many sessions come before it; 0: the next one that ends makes room
};

// Either way, the first messages of a sealed session, and the only ones that travel without a seal
// besides an Abort that says why there is none: a part of what the TLS handshake says.
struct HandshakePart {
  std::string bytes;
};

// destination -> source, with option_itemize and before the Answer to the same entries: what is done to them.
struct Itemized {
  struct Run {
    uint32_t count = 0;
    uint16_t items = 0;  // item.h
  };
  uint64_t first_index = 0;
  std::vector<Run> runs;
};

// destination -> source, of a file with the verdict compare: these pieces of it may be read now. Each piece
// comes once. With hashes, one a piece: the file that is there has a piece of that hash in its place. The
// source answers each of those with Same or with a segment. Bound: compared_pieces_max have no answer yet.
struct Compare {
  uint64_t index = 0;
  uint64_t first = 0;
  uint64_t count = 0;
  std::vector<Hash128> hashes;  // none, or `count`
};
// source -> destination: these pieces of a wanted file are holes at the source, and no segment brings them. Several add up.
struct Holes {
  uint64_t index = 0;
  std::vector<Want::Range> ranges;
};
// source -> destination: these pieces have the hash that Compare said.
struct Same {
  uint64_t index = 0;
  std::vector<Want::Range> ranges;
};

// destination -> source: what --delete has done since the last one; the counts are those of the session so far. It comes before the
// Summary.
struct Deletions {
  struct Name {
    bool is_directory = false;
    bool goes_on = false;  // in the next one
    std::string part;      // of a path, below the session's path
  };
  uint64_t deleted = 0, failed = 0;
  uint64_t skipped = 0;  // beyond --max-delete
  std::vector<Name> names;
};

// acceptor -> dialler of a team (open.h), before Opened: which seat it has. A helper lists nothing; it sends what ToRead names.
struct TeamSeat {
  bool is_helper = false;
};
// destination -> helper: these files are to be sent by it, whole. The leader has listed them.
struct ToRead {
  struct File {
    uint64_t index = 0;
    uint64_t size_bytes = 0;
    uint64_t version = 0;  // what is read is of that version, or refused
    int64_t mtime_s = 0;
    uint32_t mtime_ns = 0;
    bool is_shared = false;  // others send pieces of it too: each piece is wanted once a Compare names it
    std::string path;        // as the entry has it; at most to_read_path_bytes_max
  };
  std::vector<File> files;
};
// destination -> leader: it sends these files itself, whole. Their verdict was `elsewhere`.
struct Give {
  struct Run {
    uint64_t first = 0;
    uint32_t count = 0;
  };
  std::vector<Run> runs;
};
// destination -> a member of a team: these pieces of a file that it sends in part have come from others. Several add up.
struct Elsewhere {
  uint64_t index = 0;
  std::vector<Want::Range> ranges;
};
// destination -> helper: the transfer of its team has ended so.
struct TeamEnded {
  ErrorKind kind = ErrorKind::ok;
  uint64_t files_ok = 0, files_unchanged = 0, files_failed = 0, bytes = 0;
};

// --- Several receivers of one file system (README.md): pieces of a shared file that another receiver writes.
// What proves that a receiver sees the file system of the one that owns the file, and may write into it. Random, of one file.
using PlaceToken = std::array<uint8_t, 16>;
// helper -> destination: it has a second receiver, which can write pieces of this shared file. Where is it?
struct AskPlace {
  uint64_t index = 0;
};
// destination -> helper -> second receiver: the staged file.
struct SharedPlace {
  uint64_t index = 0;
  uint64_t size_bytes = 0;
  PlaceToken token{};
  std::string name;  // in the staging directory; at most name_bytes_max
};
// second receiver -> helper: whether it can write there. One that was open may close, with what was not placed.
struct PlaceState {
  uint64_t index = 0;
  bool is_open = false;
  std::string reason;  // of one that is not; at most place_reason_bytes_max
};
// second receiver -> helper -> destination: pieces from `first` on are in the staged file, durable, and have these hashes.
struct Placed {
  uint64_t index = 0;
  uint64_t first = 0;
  std::vector<Hash128> hashes;
};
// helper -> second receiver: nothing more comes for this file.
struct PlaceEnded {
  uint64_t index = 0;
};

using Message = std::variant<OpenPart, Opened, LaneOpen, Credit, Answer, Want, Resend, FileEnd, FileResults, Durable, End, Summary,
                             Bye, Abort, Unlisted, Alive, Ask, Queued, HandshakePart, Itemized, Compare, Same, Holes, Deletions,
                             TeamSeat, ToRead, Give, Elsewhere, TeamEnded, AskPlace, SharedPlace, PlaceState, Placed, PlaceEnded>;

// The place of an alternative in Message, from 1, is its kind on the wire, so new ones go to the end.
// Lane messages have sequence 0, all others have another.
[[nodiscard]] bool is_lane_message(const Message& message);
[[nodiscard]] std::vector<std::byte> encode(const Message& message, uint64_t sequence);  // CHECKs that it fits; cuts Abort's text
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
[[nodiscard]] std::vector<Message> cut(const Holes& holes);
[[nodiscard]] std::vector<Message> cut(const FileResults& results);
[[nodiscard]] std::vector<Message> cut(const Itemized& itemized);
[[nodiscard]] std::vector<Message> cut(const Deletions& deletions);
[[nodiscard]] std::vector<Message> cut(const ToRead& orders);
[[nodiscard]] std::vector<Message> cut(const Give& given);
[[nodiscard]] std::vector<Message> cut(const Elsewhere& pieces);

}  // namespace ccixfer::session

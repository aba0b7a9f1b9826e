// What the dialler asks of the acceptor, the first message of a session. It is longer than a message
// may be, so it travels in OpenParts.
// On the wire: options u32, then TLVs: the path, and a ticket. The decoder takes a peer's bytes.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/filter/path_list.h"
#include "app/filter/rules.h"
#include "app/session/messages.h"
#include "core/trust/ticket.h"

namespace ccixfer::session {

// That the dialler has a ticket of the acceptor's: its number, and the proof that it knows the secret (core/trust/ticket.h).
struct TicketProof {
  trust::TicketNumber number{};
  trust::Mac proof{};
};

// --backup: what is replaced is kept. `directory`: relative to the session's path, or with a slash in front from the root; "": each
// beside its file.
struct BackupWish {
  std::string directory;
  std::string suffix;
};

// The processes of one transfer that share its work (--stripe): a team. All of them dial, and the first one that the acceptor
// opens leads.
struct TeamWish {
  std::array<uint8_t, 16> name{};  // the same for all of the team
  uint64_t member = 0;             // random, of this process: it is the same one that comes again
  uint16_t part = 0, parts = 0;    // which one it is, from 1, and of how many
  uint64_t agreement = 0;          // see agreement_of
  std::string version;             // of the program, at most team_version_bytes_max
};
inline constexpr size_t team_version_bytes_max = 64;
// All of a team must have asked for the same, and must see the same files or directories as its sources: half of a hash of each.
[[nodiscard]] constexpr uint64_t agreement_of(uint64_t hash_of_asked, uint64_t hash_of_seen) {
  return hash_of_asked >> 32 << 32 | hash_of_seen >> 32;
}
[[nodiscard]] constexpr bool asks_for_the_same(uint64_t agreement, uint64_t other) { return agreement >> 32 == other >> 32; }
inline constexpr uint16_t team_parts_max = 4096;

inline constexpr size_t link_dest_max = 20;  // as rsync has it

// Of a push: the entries that its source lists first, as an entries segment has them. They save the round trip in which the source
// waits for a place to put that segment. `Opened` says whether the acceptor took them; one that does not know of them skips them.
struct FirstEntries {
  uint32_t count = 0;
  std::vector<std::byte> bytes{};
};

struct Open {
  uint32_t options = 0;                 // Option bits; the acceptor refuses those that it does not know
  std::string path;                     // push: below the receiver's root. pull: below the served directory. At most path_bytes_max
  std::optional<TicketProof> ticket{};  // of a sealed session only
  // Of a pull: what is not to be sent. Of a push with `deletes`: what is not to be deleted.
  std::optional<filter::Rules> rules{};
  std::optional<filter::PathList> list{};  // of a pull: what of the directory `path` is sent
  std::optional<uint64_t> deletes{};       // --delete: what the source does not have goes, so many things at most
  std::vector<std::string> link_dest{};    // of a push: older trees, as of BackupWish::directory
  std::optional<BackupWish> backup{};      // of a push
  std::optional<uint8_t> compress{};       // the source compresses: at this level, 0: at one that it chooses
  std::optional<TeamWish> team{};          // of a push: it is one of several processes
  // Of a push: this session only brings pieces of files that the dialler, as a helper, shares in its session with another receiver.
  // The acceptor, a second receiver, writes them into that one's staged files (README.md, "Several receivers of one file system").
  bool is_second = false;
  FirstEntries first{};  // of a push; none: they come in a segment
  // Of a peer: the first TLV that must be understood and that this version does not know; 0: none.
  // The acceptor refuses the session. It is not sent.
  uint16_t unknown_mandatory = 0;
};

[[nodiscard]] std::vector<Message> cut(const Open& open);  // CHECKs that the path fits
// How many bytes of first entries the Open has room for, if all of it is to travel with the request for the first lane.
[[nodiscard]] size_t room_for_first_entries(const Open& open);

// Puts the parts of an Open together again, at most open_bytes_max of it. The parts come in order,
// which the control channel promises.
class OpenJoiner {
 public:
  // The whole comes once, with its last part. nullopt: more parts are to come, or failed().
  [[nodiscard]] std::optional<Open> add(const OpenPart& part);
  [[nodiscard]] bool failed() const { return failed_; }  // the parts contradict one another, or the whole is malformed

 private:
  std::string bytes_;
  uint32_t total_bytes_ = 0;
  bool complete_ = false;
  bool failed_ = false;
};

}  // namespace ccixfer::session

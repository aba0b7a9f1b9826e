// The pieces of one file that comes in pieces: which are here, which of those are durable, and the
// staged file that they are in.
// Guarantee: after a failed sync nothing counts that was not durable before it, because the kernel
// may have dropped any such byte and calls it clean; that includes what was being written while the
// sync ran.
// Protocol thread; the staged file is used by jobs.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "app/recv/ledger.h"
#include "app/recv/pieces.h"

namespace ccixfer::recv {

class FilePieces {
 public:
  enum class Arrived : uint8_t {
    here,     // it is here already, or is being written
    changed,  // it had another hash before: the source's file has changed
    wanted,   // it is to be written now
  };

  explicit FilePieces(std::shared_ptr<StagedFile> staged) : staged_(std::move(staged)) {}

  // A piece that an earlier run left durable.
  void found(const Ledger::Piece& piece);
  [[nodiscard]] Arrived arrive(uint64_t piece, const Hash128& hash);
  // They are holes in the staged file, of that size.
  struct Holes {
    uint64_t bytes = 0;        // of those that are news
    bool has_changed = false;  // one had another hash before
  };
  [[nodiscard]] Holes holes(const session::Want::Range& range, uint64_t size_bytes);
  // How many syncs have failed: written() is told what it was when the writing began.
  [[nodiscard]] uint32_t losses() const { return losses_; }
  // False: a sync failed since the writing began, and the piece has to come again.
  [[nodiscard]] bool written(uint64_t piece, uint32_t losses_before);
  void not_written(uint64_t piece);

  // What an older file has in the place of a piece, and whether the staged file has it too by now. Until the source says that the
  // piece is the same, or sends another one, the piece is absent.
  struct Candidate {
    Hash128 hash;
    bool is_copied = false;
    uint32_t losses = 0;  // when the copying began
  };
  // It is being read, and perhaps copied: nothing else writes there meanwhile.
  void begin_candidate(uint64_t piece) { table_.set_state(piece, PieceState::writing); }
  void end_candidate(uint64_t piece, const std::optional<Candidate>& candidate);  // none: there is nothing that could be the same
  [[nodiscard]] size_t candidates() const { return candidates_.size(); }
  // The source says that it is the same; it is being written now. nullopt: it is no candidate.
  [[nodiscard]] std::optional<Candidate> take_candidate(uint64_t piece);

  [[nodiscard]] bool has_unsynced() const { return !unsynced_.empty(); }
  [[nodiscard]] uint64_t unsynced_bytes(uint64_t size_bytes) const;
  // What is written and in no sync yet; it is in one now.
  [[nodiscard]] std::vector<Ledger::Piece> take_unsynced();
  void synced(const std::vector<Ledger::Piece>& pieces);
  // The sync with these pieces failed. Out: what has to come again.
  [[nodiscard]] std::vector<uint64_t> sync_failed(const std::vector<Ledger::Piece>& pieces);
  [[nodiscard]] std::vector<uint64_t> lose_unsynced();
  [[nodiscard]] std::vector<Ledger::Piece> unsynced() const;
  // The disk has something else in the place of these. They have to come again.
  void damaged(const std::vector<uint64_t>& pieces);

  [[nodiscard]] const PieceTable& table() const { return table_; }
  [[nodiscard]] const std::shared_ptr<StagedFile>& staged() const { return staged_; }

 private:
  [[nodiscard]] Arrived hole(uint64_t piece, const Hash128& hash);

  PieceTable table_;
  const std::shared_ptr<StagedFile> staged_;
  std::map<uint64_t, Candidate> candidates_;
  std::vector<uint64_t> unsynced_;
  uint32_t losses_ = 0;
};

}  // namespace ccixfer::recv

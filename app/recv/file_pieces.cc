#include "app/recv/file_pieces.h"

#include <algorithm>

#include "app/session/holes.h"
#include "core/base/check.h"

namespace ccixfer::recv {

void FilePieces::found(const Ledger::Piece& piece) {
  CHECK(table_.expect(piece.number, piece.hash));
  table_.set_state(piece.number, PieceState::durable);
}

FilePieces::Arrived FilePieces::arrive(uint64_t piece, const Hash128& hash) {
  if (table_.state(piece) != PieceState::absent) return Arrived::here;
  if (!table_.expect(piece, hash)) return Arrived::changed;
  candidates_.erase(piece);
  table_.set_state(piece, PieceState::writing);
  return Arrived::wanted;
}

void FilePieces::end_candidate(uint64_t piece, const std::optional<Candidate>& candidate) {
  table_.set_state(piece, PieceState::absent);
  if (candidate) candidates_.insert_or_assign(piece, *candidate);
}

std::optional<FilePieces::Candidate> FilePieces::take_candidate(uint64_t piece) {
  const auto found = candidates_.find(piece);
  if (found == candidates_.end()) return std::nullopt;
  const Candidate candidate = found->second;
  candidates_.erase(found);
  if (!table_.expect(piece, candidate.hash)) return std::nullopt;
  table_.set_state(piece, PieceState::writing);
  return candidate;
}

FilePieces::Holes FilePieces::holes(const session::Want::Range& range, uint64_t size_bytes) {
  Holes found;
  const uint64_t end = range.first + range.count;
  const uint64_t whole_end = std::min(end, size_bytes / session::piece_bytes);  // the last piece may be shorter
  for (uint64_t at = range.first; at < end;) {
    if (const uint64_t count = at < whole_end ? table_.unknown(at, whole_end) : 0; count > 0) {
      candidates_.erase(candidates_.lower_bound(at), candidates_.lower_bound(at + count));
      table_.add_holes(at, count);
      found.bytes += count * session::piece_bytes;
      at += count;
      continue;
    }
    const uint64_t length = piece_length(size_bytes, at);
    const Arrived arrived = hole(at, session::hash_of_zeros(length));
    if (arrived == Arrived::wanted) found.bytes += length;
    found.has_changed = found.has_changed || arrived == Arrived::changed;
    ++at;
  }
  return found;
}

FilePieces::Arrived FilePieces::hole(uint64_t piece, const Hash128& hash) {
  const Arrived arrived = arrive(piece, hash);
  if (arrived == Arrived::wanted) table_.set_state(piece, PieceState::durable);
  return arrived;
}

bool FilePieces::written(uint64_t piece, uint32_t losses_before) {
  if (losses_before != losses_) {
    not_written(piece);
    return false;
  }
  table_.set_state(piece, PieceState::written);
  unsynced_.push_back(piece);
  return true;
}

void FilePieces::not_written(uint64_t piece) { table_.set_state(piece, PieceState::absent); }

uint64_t FilePieces::unsynced_bytes(uint64_t size_bytes) const {
  uint64_t bytes = 0;
  for (const uint64_t piece : unsynced_) bytes += piece_length(size_bytes, piece);
  return bytes;
}

std::vector<Ledger::Piece> FilePieces::unsynced() const {
  std::vector<Ledger::Piece> pieces;
  pieces.reserve(unsynced_.size());
  for (const uint64_t piece : unsynced_) pieces.push_back({piece, table_.hash(piece)});
  return pieces;
}

std::vector<Ledger::Piece> FilePieces::take_unsynced() {
  std::vector<Ledger::Piece> pieces = unsynced();
  unsynced_.clear();
  return pieces;
}

void FilePieces::damaged(const std::vector<uint64_t>& pieces) {
  for (const uint64_t piece : pieces) {
    std::erase(unsynced_, piece);
    table_.set_state(piece, PieceState::absent);
  }
}

void FilePieces::synced(const std::vector<Ledger::Piece>& pieces) {
  for (const Ledger::Piece& piece : pieces) table_.set_state(piece.number, PieceState::durable);
}

std::vector<uint64_t> FilePieces::sync_failed(const std::vector<Ledger::Piece>& pieces) {
  // What was written while the sync ran was dropped with the rest, and the next sync would say that
  // it is durable.
  for (const Ledger::Piece& piece : pieces) unsynced_.push_back(piece.number);
  return lose_unsynced();
}

std::vector<uint64_t> FilePieces::lose_unsynced() {
  ++losses_;
  std::vector<uint64_t> lost = std::exchange(unsynced_, {});
  for (const uint64_t piece : lost) table_.set_state(piece, PieceState::absent);
  return lost;
}

}  // namespace ccixfer::recv

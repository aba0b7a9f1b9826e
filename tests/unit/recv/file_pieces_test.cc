// Which pieces of a file are here and durable, with syncs that fail.
#include "app/recv/file_pieces.h"

#include <catch2/catch.hpp>

#include "app/session/holes.h"
#include "tests/unit/recv/parts.h"

namespace ccixfer::recv {
namespace {

using Arrived = FilePieces::Arrived;
using test::hash_of;

TEST_CASE("file_pieces__piece_that_comes_twice__is_wanted_once_and_again_only_after_a_loss") {
  FilePieces pieces(nullptr);
  CHECK(pieces.arrive(4, hash_of(1)) == Arrived::wanted);
  CHECK(pieces.arrive(4, hash_of(1)) == Arrived::here);
  pieces.not_written(4);
  CHECK(pieces.arrive(4, hash_of(2)) == Arrived::changed);
  CHECK(pieces.arrive(4, hash_of(1)) == Arrived::wanted);
  CHECK(pieces.written(4, pieces.losses()));
  CHECK(pieces.arrive(4, hash_of(1)) == Arrived::here);
  CHECK(pieces.table().written() == 1);
}

TEST_CASE("file_pieces__sync_that_succeeds__makes_durable_what_it_took_and_nothing_else") {
  FilePieces pieces(nullptr);
  pieces.found({0, hash_of(9)});
  CHECK(pieces.arrive(0, hash_of(9)) == Arrived::here);
  for (const uint64_t piece : {1u, 2u}) {
    CHECK(pieces.arrive(piece, hash_of(piece)) == Arrived::wanted);
    CHECK(pieces.written(piece, 0));
  }
  CHECK(pieces.unsynced_bytes(2 * session::piece_bytes + 7) == session::piece_bytes + 7);
  const std::vector<Ledger::Piece> taken = pieces.take_unsynced();
  REQUIRE(taken.size() == 2);
  CHECK(taken[1].number == 2);
  CHECK(taken[1].hash == hash_of(2));
  CHECK_FALSE(pieces.has_unsynced());
  CHECK(pieces.table().state(1) == PieceState::written);
  CHECK(pieces.arrive(3, hash_of(3)) == Arrived::wanted);
  CHECK(pieces.written(3, 0));
  pieces.synced(taken);
  CHECK(pieces.table().state(1) == PieceState::durable);
  CHECK(pieces.table().state(3) == PieceState::written);
  CHECK(pieces.has_unsynced());
}

TEST_CASE("file_pieces__sync_fails__all_that_is_not_durable_is_lost_with_what_is_written") {
  FilePieces pieces(nullptr);
  pieces.found({0, hash_of(0)});
  for (const uint64_t piece : {1u, 2u, 3u}) CHECK(pieces.arrive(piece, hash_of(piece)) == Arrived::wanted);
  CHECK(pieces.written(1, 0));
  const std::vector<Ledger::Piece> in_sync = pieces.take_unsynced();
  CHECK(pieces.written(2, 0));  // while the sync runs
  const uint32_t before = pieces.losses();
  CHECK(pieces.sync_failed(in_sync) == std::vector<uint64_t>{2, 1});
  CHECK(pieces.table().state(0) == PieceState::durable);
  CHECK(pieces.table().state(1) == PieceState::absent);
  CHECK(pieces.table().state(2) == PieceState::absent);
  CHECK_FALSE(pieces.written(3, before));
  CHECK(pieces.table().state(3) == PieceState::absent);
  CHECK_FALSE(pieces.has_unsynced());
  CHECK(pieces.arrive(3, hash_of(3)) == Arrived::wanted);
  CHECK(pieces.written(3, pieces.losses()));
}

TEST_CASE("file_pieces__holes__count_what_is_news_and_see_what_was_another_piece") {
  FilePieces pieces(nullptr);
  const uint64_t size_bytes = 9 * session::piece_bytes + 5;
  CHECK(pieces.arrive(3, hash_of(3)) == Arrived::wanted);
  CHECK(pieces.arrive(5, session::hash_of_zeros(session::piece_bytes)) == Arrived::wanted);
  pieces.not_written(5);
  const FilePieces::Holes found = pieces.holes({1, 9}, size_bytes);
  CHECK(found.bytes == 7 * session::piece_bytes + 5);  // all but the one that is being written
  CHECK_FALSE(found.has_changed);
  CHECK(pieces.table().written() == 8);
  CHECK(pieces.table().end() == 10);
  CHECK(pieces.arrive(2, hash_of(2)) == Arrived::here);
  CHECK_FALSE(pieces.has_unsynced());
  CHECK(pieces.holes({1, 9}, size_bytes).bytes == 0);
  pieces.not_written(3);
  const FilePieces::Holes again = pieces.holes({0, 4}, size_bytes);
  CHECK(again.has_changed);
  CHECK(again.bytes == session::piece_bytes);
}

}  // namespace
}  // namespace ccixfer::recv

#include "transports/rdma/pieces.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ccixfer::rdma {
namespace {

bool overlap(Bytes a, Bytes b) { return a.data() < b.data() + b.size() && b.data() < a.data() + a.size(); }

}  // namespace

Pieces::Pieces(Engine& engine, RdmaNet& net, const RegisteredMemory& memory)
    : engine_(engine),
      net_(net),
      memory_(memory),
      piece_bytes_(std::min(piece_bytes_max, net.work_bytes_max())),
      staging_(net, piece_bytes_) {}

void Pieces::post(Connection& c) {
  if (c.pair == 0 || c.withdrawn) return;
  const uint32_t most = std::min(pieces_in_flight_max, net_.reads_max(c.pair));
  while (!c.blocked && !c.waits_for_staging && c.pieces < most) {
    const std::optional<RmaIn::Piece> piece = c.served.next_piece(piece_bytes_, engine_.target());
    if (!piece || !post_one(c, *piece)) return;
  }
}

// False: it is asked for again later.
bool Pieces::post_one(Connection& c, const RmaIn::Piece& piece) {
  const std::optional<Registration> known =
      piece.lent ? memory_.around(piece.memory, piece.write, c.served.found_before(piece.slot)) : std::nullopt;
  if (!known && !staging_.is_there()) {
    c.served.refuse(piece, Status::no_memory, engine_.target());
    return true;
  }
  if (!known && !staging_.has_free()) {
    c.waits_for_staging = true;
    for_staging_.push_back(c.id.index);
    return false;
  }
  const SlotName name = pieces_.take();
  Piece& mine = pieces_[name.index];
  mine = {c.id.index, piece.slot, piece.write, !known, 0, piece.offset_bytes, piece.memory, c.pair};
  if (mine.staged) {
    mine.staging = staging_.take();
    mine.local = staging_.bytes(mine.staging).first(piece.memory.size());
    if (!mine.write) std::memcpy(mine.local.data(), piece.memory.data(), mine.local.size());
  }
  const Work work{name.packed(), mine.local, known ? known->local_key : staging_.local_key(), piece.address, piece.key};
  if (!(mine.write ? net_.post_read(c.pair, work) : net_.post_write(c.pair, work))) {
    release(name.index);
    c.blocked = true;
    return false;
  }
  if (!mine.write) engine_.counters().add(Counter::bytes_out, mine.local.size());
  ++c.pieces;
  c.served.posted(piece, mine.local.size());
  return true;
}

void Pieces::release(uint32_t index) {
  if (pieces_[index].staged) {
    staging_.give_back(pieces_[index].staging);
    for (const uint32_t waiting : std::exchange(for_staging_, {})) {
      Connection* c = engine_.at(waiting);
      if (c != nullptr && std::exchange(c->waits_for_staging, false)) engine_.touch(*c);
    }
  }
  pieces_.release(index);
}

void Pieces::completed(Connection& c, uint64_t tag, WorkStatus status) {
  const SlotName name = SlotName::of(tag);
  if (pieces_.find(name) == nullptr) return;
  const Piece piece = pieces_[name.index];
  const bool good = status == WorkStatus::success;
  if (good && piece.write) {
    engine_.counters().add(Counter::bytes_in, piece.local.size());
    c.received_bytes += piece.local.size();
  }
  if (good && !piece.write) c.delivered_bytes += piece.local.size();
  --c.pieces;
  c.served.moved(piece.slot, piece.offset_bytes, piece.local.size(), good,
                 piece.staged && piece.write ? Bytes(piece.local) : Bytes{}, engine_.target());
  release(name.index);
  engine_.touch(c);
  if (status == WorkStatus::remote_access) return engine_.violation(c, "the memory that it announced is not to be reached");
  if (status == WorkStatus::local_access) engine_.lose(c, Status::error, "this end's card cannot use the memory");
}

void Pieces::forget(Connection& c) {
  if (c.pieces == 0) return;
  c.pieces = 0;
  for (uint32_t index = 0; index < pieces_.size(); ++index) {
    if (pieces_.is_live(index) && pieces_[index].connection == c.id.index) release(index);
  }
}

void Pieces::withdraw(Bytes memory) {
  if (pieces_.in_use() == 0) return;
  for (uint32_t index = 0; index < pieces_.size(); ++index) {
    // What the card reads is lent, which the table of memory knows.
    if (!pieces_.is_live(index) || !pieces_[index].write || pieces_[index].staged) continue;
    if (!overlap(pieces_[index].local, memory)) continue;
    const Piece& piece = pieces_[index];
    if (net_.await(piece.pair, pieces_.name_of(index).packed(), withdraw_wait_max)) continue;
    Connection& c = *engine_.at(piece.connection);
    net_.close(c.pair);
    c.withdrawn = true;
    forget(c);
    engine_.touch_from_above(c);
  }
}

}  // namespace ccixfer::rdma

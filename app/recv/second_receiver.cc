#include "app/recv/second_receiver.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "app/recv/pieces.h"
#include "app/session/message_wire.h"
#include "app/session/session_keys.h"
#include "core/base/check.h"

namespace ccixfer::recv {

using session::SegmentHeader;

namespace {

// In words for whoever started the processes.
std::string why_not(int error) {
  switch (error) {
    case -ENOENT:
    case -ENOTDIR:
      return "the file is not there: it serves another directory, or another file system, than the first receiver";
    case -EPERM:
      return "the first receiver does not share this file, or not any more";
    case -ENOTSUP:
      return "this file system has no locks that other hosts see: mount it with them (Lustre: flock; NFS: without nolock "
             "and local_lock)";
    default:
      return std::generic_category().message(-error);
  }
}

}  // namespace

struct SecondReceiver::Writing {
  uint64_t index = 0;
  ReceivedSegment arrival;
  SegmentHeader header;
  std::shared_ptr<JoinedShare> share;
  uint64_t bytes = 0;
  session::Decompressed opened = session::Decompressed::ok;
  int error = 0;
};

SecondReceiver::SecondReceiver(const SecondReceiverParts& parts)
    : link_(parts.link),
      opener_(link_.keys() != nullptr ? std::make_unique<session::DataOpener>(link_.keys()->data(trust::SealKey::Use::open))
                                      : nullptr),
      buffers_max_(parts.pool.count()),
      root_(parts.root),
      jobs_(parts.work, wake_),
      outbox_([this](const session::Message& message) { link_.post(message); }),
      lanes_(link_, parts.mailboxes, parts.pool, parts.entropy, parts.turns, parts.rate),
      liveness_(forever) {}

SecondReceiver::~SecondReceiver() { CHECK(idle()); }

void SecondReceiver::start(Instant now) {
  now_ = now;
  liveness_.start(now);
  for (const session::LaneIndex lane : link_.live_lanes()) {
    if (!lanes_.is_live(lane)) on_lane_up(lane);
  }
}

void SecondReceiver::turn(Instant now) {
  now_ = now;
  wake_.clear();
  while (!inbox_.empty()) receive(inbox_.take());
  if (finished()) {
    lanes_.close_all();
    for (auto& [index, place] : places_) leave(place);
    places_.clear();
    return;
  }
  if (link_.messages_delivered()) outbox_.delivered();
  sync_those_due();
  outbox_.flush_requests();
  lanes_.turn(now, buffers_max_, inbox_.held());
  liveness_.look(now, jobs_.running(), jobs_.ended());
  const std::optional<session::Alive> alive = liveness_.take_alive(now);
  if (alive && link_.messages_delivered()) outbox_.post(*alive);
}

Instant SecondReceiver::next_deadline() const {
  if (wake_.is_set()) return now_;
  if (finished()) return never;
  Instant at = std::min(lanes_.next_deadline(), liveness_.next_deadline());
  for (const auto& [index, place] : places_) {
    if (!place.unsynced.empty() && !place.is_syncing && !outbox_.is_full())
      at = std::min(at, after(place.unsynced_since, place_sync_interval));
  }
  return at;
}

void SecondReceiver::on_completion(const rvma::Completion& completion) {
  std::optional<ReceivedSegment> arrival = lanes_.take(completion);
  if (!arrival) return;
  liveness_.made_progress();
  inbox_.add(std::move(*arrival));
  wake_.set();
}

// --- Places

void SecondReceiver::open_place(const session::SharedPlace& wanted) {
  if (wanted.size_bytes == 0 || wanted.size_bytes > file_bytes_max) return reject("a place of an impossible file");
  if (outbox_.is_full()) return reject("more places than it takes answers for");
  if (places_.size() >= places_open_max) return outbox_.post(session::PlaceState{wanted.index, false, "too many files are open"});
  const auto [at, is_new] = places_.try_emplace(wanted.index);
  if (!is_new) return reject("a place that it has named before");
  at->second.size_bytes = wanted.size_bytes;
  struct Opening {
    std::shared_ptr<JoinedShare> share;
    int error = 0;
  };
  const auto job = std::make_shared<Opening>();
  jobs_.submit([root = root_, wanted, job] { job->error = root->join(wanted, job->share); },
               [this, index = wanted.index, job] { opened(index, job->share, job->error); });
}

void SecondReceiver::opened(uint64_t index, const std::shared_ptr<JoinedShare>& share, int error) {
  const auto at = places_.find(index);
  if (at == places_.end()) return;
  if (error < 0) return close_place(index, error);
  at->second.share = share;
  if (!finished()) outbox_.post(session::PlaceState{index, true, ""});
  forget_if_done(index);
}

void SecondReceiver::leave(Place& place) {
  if (!place.share) return;
  place.share->retire();
  place.share->end_writes(place.unsynced.size());
}

void SecondReceiver::close_place(uint64_t index, int error) {
  const auto at = places_.find(index);
  if (at == places_.end()) return;
  leave(at->second);
  places_.erase(at);
  if (!finished()) outbox_.post(session::PlaceState{index, false, why_not(error)});
}

void SecondReceiver::forget_if_done(uint64_t index) {
  const auto at = places_.find(index);
  if (at == places_.end() || !at->second.is_ended || !at->second.share) return;
  if (at->second.writing == 0 && at->second.unsynced.empty() && !at->second.is_syncing) places_.erase(at);
}

// --- Pieces

void SecondReceiver::receive(ReceivedSegment arrival) {
  if (finished()) return inbox_.release(arrival);
  const Result<SegmentHeader> header = arrival.header;
  const bool is_here =
      header && header->session == link_.session() && header->lane_session == arrival.lane_session && header->n == arrival.n;
  if (!is_here) {
    // Damaged, or bytes that belong elsewhere.
    if (++damaged_in_a_row_ > damaged_segments_max) reject("nothing but damaged segments");
    outbox_.ask_for_put(arrival.lane_session, arrival.n);
    return inbox_.release(arrival);
  }
  if (header->kind == session::SegmentKind::void_) return inbox_.release(arrival);
  if (header->kind != session::SegmentKind::piece) {
    reject("something else than pieces");
    return inbox_.release(arrival);
  }
  const auto at = places_.find(header->index);
  if (at == places_.end()) return inbox_.release(arrival);  // of one that was closed: the source has heard that
  Place& place = at->second;
  const bool fits = header->data_bytes > 0 && header->sequence < piece_count(place.size_bytes) &&
                    header->content_bytes() == piece_length(place.size_bytes, header->sequence);
  if (!fits || !place.share) {
    reject(fits ? "a piece of a file that is not open" : "a piece that is not of its file");
    return inbox_.release(arrival);
  }
  if (!place.busy.insert(header->sequence).second) return inbox_.release(arrival);  // a lane was lost, and brought it all the same
  write(place, std::move(arrival), *header);
}

void SecondReceiver::write(Place& place, ReceivedSegment arrival, const SegmentHeader& header) {
  ++place.writing;
  const auto job = std::make_shared<Writing>();
  job->index = header.index;
  job->arrival = std::move(arrival);
  job->header = header;
  job->share = place.share;
  job->bytes = header.content_bytes();
  jobs_.submit([this, job] { write_in_job(*job); },
               [this, job] {
                 inbox_.release(job->arrival);
                 written(*job);
               });
}

// All of it is opened, and has its hash, before the first byte is written: so what is written late is never garbage.
void SecondReceiver::write_in_job(Writing& job) {
  SegmentHeader header = job.header;
  MutableBytes segment = job.arrival.buffer.bytes();
  bool is_intact = false;
  if (header.is_compressed()) {
    job.opened = session::decompress(segment, header, opener_.get(), workspaces_);
    is_intact = job.opened == session::Decompressed::ok && session::open_data(segment, header).has_value();
  } else {
    segment = segment.first(static_cast<size_t>(job.arrival.length_bytes));
    is_intact = session::open_data(segment, header, opener_.get()).has_value();
  }
  if (!is_intact) {
    if (job.opened == session::Decompressed::ok) job.opened = session::Decompressed::damaged;
    return;
  }
  if (job.error = job.share->begin_write(); job.error < 0) return;
  at_writer();
  const Bytes data = Bytes(segment).first(static_cast<size_t>(header.data_bytes));
  job.error = write_all(root_->files(), job.share->fd(), data, header.sequence * session::piece_bytes);
  if (job.error < 0) job.share->end_writes(1);
}

void SecondReceiver::written(const Writing& job) {
  const bool is_written = job.opened == session::Decompressed::ok && job.error >= 0;
  const auto at = places_.find(job.index);
  if (at == places_.end() || at->second.share != job.share) {  // it was closed: the source sends the piece elsewhere
    if (is_written) job.share->end_writes(1);
    return;
  }
  Place& place = at->second;
  --place.writing;
  if (is_written) {
    damaged_in_a_row_ = 0;
    if (place.unsynced.empty()) place.unsynced_since = now_;
    place.unsynced.push_back({job.header.sequence, job.header.hash, job.bytes});
    place.unsynced_bytes += job.bytes;
    return;
  }
  place.busy.erase(job.header.sequence);
  if (job.opened == session::Decompressed::malformed) return abort({ErrorKind::protocol, words_of_malformed});
  if (job.opened == session::Decompressed::ok) return close_place(job.index, job.error);
  if (++damaged_in_a_row_ > damaged_segments_max) return reject("nothing but damaged segments");
  outbox_.ask_for_piece(job.index, job.header.sequence);
  forget_if_done(job.index);
}

// When nothing else is to be done: at once, because somebody waits for the last pieces.
void SecondReceiver::sync_those_due() {
  if (outbox_.is_full()) return;
  const bool has_time = jobs_.running() == 0 && inbox_.empty();
  for (auto& [index, place] : places_) {
    if (place.unsynced.empty() || place.is_syncing) continue;
    const bool is_due = place.unsynced_bytes >= place_sync_bytes || now_ - place.unsynced_since >= place_sync_interval;
    if (is_due || has_time) sync(index, place);
  }
}

void SecondReceiver::sync(uint64_t index, Place& place) {
  place.is_syncing = true;
  place.unsynced_bytes = 0;
  place.unsynced_since = never;
  const auto pieces = std::make_shared<std::vector<Piece>>(std::exchange(place.unsynced, {}));
  const auto error = std::make_shared<int>(0);
  jobs_.submit(
      [root = root_, share = place.share, pieces, error] {
        *error = root->files().fsync(share->fd());
        share->end_writes(pieces->size());
      },
      [this, index, share = place.share, pieces, error] {
        const auto at = places_.find(index);
        if (at == places_.end() || at->second.share != share) return;
        at->second.is_syncing = false;
        for (const Piece& piece : *pieces) at->second.busy.erase(piece.number);
        synced(index, *pieces, *error);
      });
}

// After a failure nothing is known of what was written since the last sync, also not of what is being written now.
void SecondReceiver::synced(uint64_t index, const std::vector<Piece>& pieces, int error) {
  if (error < 0) return close_place(index, error);
  tell_placed(index, pieces);
  forget_if_done(index);
}

void SecondReceiver::tell_placed(uint64_t index, std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.number < b.number; });
  liveness_.made_progress();
  session::Placed news;
  const auto post = [&] {
    if (!news.hashes.empty() && !finished()) outbox_.post(news);
    news.hashes.clear();
  };
  for (const Piece& piece : pieces) {
    const bool follows = !news.hashes.empty() && news.first + news.hashes.size() == piece.number;
    if (!follows || news.hashes.size() == session::placed_hashes_max) post();
    if (news.hashes.empty()) news = {index, piece.number, {}};
    news.hashes.push_back(piece.hash);
    bytes_placed_ += piece.bytes;
  }
  post();
}

// --- What the link says

void SecondReceiver::on_lane_up(session::LaneIndex lane) {
  if (!finished()) lanes_.up(lane);
}

void SecondReceiver::on_lane_down(session::LaneIndex lane) { lanes_.down(lane); }

void SecondReceiver::on_lane_message(session::LaneIndex lane, const session::Message& message) {
  const auto* ask = std::get_if<session::Ask>(&message);
  if (ask == nullptr || !lanes_.asked(lane, ask->limit)) reject("a lane message that makes no sense");
}

void SecondReceiver::on_message(const session::Message& message) {
  if (finished()) return;
  wake_.set();
  liveness_.made_progress();
  if (std::holds_alternative<session::Alive>(message)) return;
  if (const auto* place = std::get_if<session::SharedPlace>(&message)) {
    open_place(*place);
  } else if (const auto* ended = std::get_if<session::PlaceEnded>(&message)) {
    const auto at = places_.find(ended->index);
    if (at == places_.end()) return;  // it was closed
    at->second.is_ended = true;
    forget_if_done(ended->index);
  } else if (const auto* abort = std::get_if<session::Abort>(&message)) {
    error_ = session::error_of(*abort, "the sender");
  } else if (std::holds_alternative<session::Bye>(message)) {
    is_bye_said_ = true;
  } else {
    reject("a message that is for the first receiver");
  }
}

void SecondReceiver::on_link_lost(const Error& error) {
  outbox_.close();
  if (!finished()) error_ = error;
  wake_.set();
}

void SecondReceiver::abort(const Error& error) {
  if (finished()) return;
  outbox_.post(session::Abort{error.kind, error.message});
  error_ = error;
  wake_.set();
}

void SecondReceiver::reject(std::string_view why) { abort({ErrorKind::protocol, "the sender sent " + std::string(why)}); }

}  // namespace ccixfer::recv

#include "app/recv/piece_comparer.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::recv {

using session::Want;

void PieceComparer::add(const Decision& decision) {
  Compared compared;
  compared.task = decision.task;
  compared.older = decision.older;
  compared.rest.assign(decision.wants.rbegin(), decision.wants.rend());
  compared_.push_back(std::move(compared));
}

PieceComparer::Compared* PieceComparer::find(uint64_t index) {
  const auto found =
      std::find_if(compared_.begin(), compared_.end(), [&](const Compared& one) { return one.task->index == index; });
  return found == compared_.end() ? nullptr : &*found;
}

void PieceComparer::turn() {
  size_t ahead = 0;
  uint32_t running = 0;
  for (auto at = compared_.begin(); at != compared_.end();) {
    Compared& compared = *at;
    FileInWork* file = files_.find(compared.task->index);
    const bool is_wanted = file != nullptr && file->takes_content();
    const size_t unanswered = is_wanted && file->pieces() != nullptr ? file->pieces()->candidates() : 0;
    if (unanswered < compared.unanswered) compared.differing += static_cast<uint32_t>(compared.unanswered - unanswered);
    compared.unanswered = unanswered;
    if (!is_wanted) compared.rest.clear();
    ahead += unanswered + compared.running;
    running += compared.running;
    while (!compared.rest.empty() && ahead < compared_ahead_max && running < comparing_jobs_max && !outbox_.is_full()) {
      if (!begin_next(compared, *file)) continue;
      ++ahead;
      ++running;
    }
    if (!compared.rest.empty()) return;
    const bool is_over = compared.running == 0 && compared.unanswered == 0;
    at = is_over ? compared_.erase(at) : std::next(at);
  }
}

// False: no job was needed.
bool PieceComparer::begin_next(Compared& compared, FileInWork& file) {
  Want::Range& range = compared.rest.back();
  const uint64_t piece = range.first;
  const FileTask& task = *compared.task;
  if (!compared.older->may_have(task.size_bytes, piece)) {
    outbox_.post(session::Compare{task.index, piece, range.count, {}});
    compared.rest.pop_back();
    return false;
  }
  ++range.first;
  if (--range.count == 0) compared.rest.pop_back();
  FilePieces& pieces = files_.pieces_of(file);
  if (pieces.table().state(piece) != PieceState::absent) return false;  // it came though nobody has asked for it
  pieces.begin_candidate(piece);
  FilePieces::Candidate candidate;
  const bool copies = !task.in_place && compared.differing < differing_in_a_row_max;
  candidate.is_copied = copies || task.in_place;  // in place it is where it belongs
  candidate.losses = pieces.losses();
  file.hold();
  ++compared.running;
  submit(file, compared, piece, copies, [this, index = task.index, piece, candidate](const OlderFile::Taken& outcome) {
    taken(index, piece, candidate, outcome);
  });
  return true;
}

template <typename Done>
void PieceComparer::submit(FileInWork& file, const Compared& compared, uint64_t piece, bool copies, Done done) {
  struct Work {
    FileTaskRef task;
    std::shared_ptr<OlderFile> older;
    std::shared_ptr<StagedFile> staged;
    uint64_t piece = 0;
    bool copies = false;
    OlderFile::Taken outcome;
  };
  auto work = std::make_shared<Work>();
  work->task = compared.task;
  work->older = compared.older;
  work->staged = file.pieces()->staged();
  work->piece = piece;
  work->copies = copies;
  jobs_.submit([this, work] { work->outcome = take_(*work->older, work->staged, work->copies, *work->task, work->piece); },
               [work, done = std::move(done)] { done(work->outcome); });
}

void PieceComparer::taken(uint64_t index, uint64_t piece, FilePieces::Candidate candidate, const OlderFile::Taken& outcome) {
  FileInWork* file = files_.find(index);
  CHECK(file != nullptr);
  file->let_go();
  Compared* compared = find(index);
  CHECK(compared != nullptr);
  --compared->running;
  const bool has_it = outcome.hash.has_value();
  if (has_it) candidate.hash = *outcome.hash;
  file->pieces()->end_candidate(piece, has_it ? std::optional(candidate) : std::nullopt);
  if (is_fatal(outcome.error_number)) session_.fail(fatal_error(outcome.error_number, file->task().path));
  if (!session_.has_failed() && file->takes_content()) {
    session::Compare message{index, piece, 1, {}};
    if (has_it) message.hashes.push_back(candidate.hash);
    if (has_it) ++compared->unanswered;
    outbox_.post(message);
  }
  files_.on_job_ended(index);
}

void PieceComparer::on_same(const session::Same& same, uint64_t entries_decided) {
  if (same.index >= entries_decided) return session_.reject("pieces of a file that has no verdict are the same");
  for (const Want::Range& range : same.ranges) {
    for (uint64_t piece = range.first; piece < range.first + range.count; ++piece) {
      FileInWork* file = files_.find(same.index);
      if (file == nullptr || !file->takes_content()) return;  // it has failed
      const auto candidate = file->pieces() != nullptr ? file->pieces()->take_candidate(piece) : std::nullopt;
      if (!candidate) return session_.reject("a piece is the same that was not compared");
      Compared* compared = find(same.index);
      CHECK(compared != nullptr);
      --compared->unanswered;
      compared->differing = 0;
      if (candidate->is_copied) {
        is_here(*file, piece, candidate->losses);
      } else {
        copy(*file, *compared, piece, candidate->hash);
      }
    }
  }
}

// It was only hashed.
void PieceComparer::copy(FileInWork& file, const Compared& compared, uint64_t piece, const Hash128& hash) {
  file.hold();
  const auto done = [this, index = compared.task->index, piece, hash,
                     losses = file.pieces()->losses()](const OlderFile::Taken& outcome) {
    FileInWork* held = files_.find(index);
    CHECK(held != nullptr);
    held->let_go();
    if (is_fatal(outcome.error_number)) session_.fail(fatal_error(outcome.error_number, held->task().path));
    if (outcome.hash == hash) return is_here(*held, piece, losses);
    // The older file has changed, or this one could not be written.
    held->pieces()->not_written(piece);
    if (!session_.has_failed() && !held->failure()) session_.ask_for_piece(index, piece);
    files_.on_job_ended(index);
  };
  submit(file, compared, piece, true, done);
}

void PieceComparer::is_here(FileInWork& file, uint64_t piece, uint32_t losses) {
  const uint64_t index = file.task().index;
  if (file.pieces()->written(piece, losses)) {
    files_.on_written(file, piece_length(file.task().size_bytes, piece));
  } else if (!session_.has_failed() && !file.failure()) {
    session_.ask_for_piece(index, piece);
  }
  files_.on_job_ended(index);
}

}  // namespace ccixfer::recv

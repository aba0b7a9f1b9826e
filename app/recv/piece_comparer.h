// Files of which the destination has an older version: tells the source, piece by piece, the hash of what is here. The source sends
// only what differs.
// A job hashes each piece of the older file and copies it into the staged file in the same pass, because the same piece is the
// usual case. Where many pieces in a row differed, the next ones are only hashed, and copied if they turn out to be the same.
// In: files with the verdict `compare`, and Same messages. Out: Compare messages; pieces that are written, told to the FileHandler
// as if they had come from the source.
// Bounds: session::compared_pieces_max pieces are named and not answered, or in jobs; one descriptor for each file of those.
// Protocol thread; the older file and the staged one are used by jobs.
#pragma once
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "app/recv/entries.h"
#include "app/recv/file_handler.h"
#include "app/recv/outbox.h"
#include "app/recv/session_handler.h"
#include "app/recv/session_jobs.h"

namespace ccixfer::recv {

inline constexpr uint32_t compared_ahead_max = 64;      // pieces in jobs or named and not answered
inline constexpr uint32_t comparing_jobs_max = 4;       // that name pieces
inline constexpr uint32_t differing_in_a_row_max = 16;  // after so many, pieces are hashed and not copied yet

static_assert(compared_ahead_max <= session::compared_pieces_max);

class PieceComparer {
 public:
  // What a job does with one piece of the older file: hashes it and, with `copies`, writes it to its place.
  using Take = std::function<OlderFile::Taken(OlderFile& older, const std::shared_ptr<StagedFile>& staged, bool copies,
                                              const FileTask& task, uint64_t piece)>;
  PieceComparer(SessionJobs& jobs, Take take, FileHandler& files, Outbox& outbox, SessionHandler& session)
      : jobs_(jobs), take_(std::move(take)), files_(files), outbox_(outbox), session_(session) {}
  PieceComparer(const PieceComparer&) = delete;
  PieceComparer& operator=(const PieceComparer&) = delete;

  void add(const Decision& decision);  // with `older`; its file is in work
  void turn();
  // The entries before `entries_decided` have their verdict.
  void on_same(const session::Same& same, uint64_t entries_decided);

 private:
  // A file with pieces that were not named yet, or not answered.
  struct Compared {
    FileTaskRef task;
    std::shared_ptr<OlderFile> older;
    std::vector<session::Want::Range> rest;  // pieces that no job has begun with; the first ones stand last
    uint32_t running = 0;                    // jobs under way that name pieces
    uint32_t differing = 0;                  // how many of the last pieces differed in a row, as far as the source has answered
    size_t unanswered = 0;                   // pieces named and not answered, when we looked last
  };
  [[nodiscard]] bool begin_next(Compared& compared, FileInWork& file);
  template <typename Done>
  void submit(FileInWork& file, const Compared& compared, uint64_t piece, bool copies, Done done);
  void taken(uint64_t index, uint64_t piece, FilePieces::Candidate candidate, const OlderFile::Taken& outcome);
  void copy(FileInWork& file, const Compared& compared, uint64_t piece, const Hash128& hash);
  void is_here(FileInWork& file, uint64_t piece, uint32_t losses);
  [[nodiscard]] Compared* find(uint64_t index);

  SessionJobs& jobs_;
  const Take take_;
  FileHandler& files_;
  Outbox& outbox_;
  SessionHandler& session_;
  std::list<Compared> compared_;  // those that have begun are in front
};

}  // namespace ccixfer::recv

#include "app/recv/pieces.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "app/recv/at_rest.h"
#include "app/recv/same_file.h"
#include "app/recv/shared_place.h"
#include "app/session/entry.h"
#include "app/session/holes.h"
#include "app/session/segment.h"
#include "core/base/check.h"
#include "core/base/log.h"

namespace ccixfer::recv {
namespace {

bool is_written(PieceState state) { return state == PieceState::written || state == PieceState::durable; }

// All of a piece, or nothing: a short file is a damaged one.
bool read_piece(ports::FileSystem& files, int fd, MutableBytes into, uint64_t offset_bytes) {
  while (!into.empty()) {
    const int64_t got = files.pread(fd, into, offset_bytes);
    if (got <= 0) return false;
    into = into.subspan(static_cast<size_t>(got));
    offset_bytes += static_cast<uint64_t>(got);
  }
  return true;
}

constexpr uint32_t staged_mode = 0600;
constexpr uint32_t owner_may_write = 0200;

// The first run that begins behind the piece.
template <typename Runs>
auto run_behind(Runs& runs, uint64_t piece) {
  return std::upper_bound(runs.begin(), runs.end(), piece, [](uint64_t at, const auto& run) { return at < run.first; });
}

// Its mode is the final one if the run before ended between that and the rename, or the rename was refused.
bool make_writable(OpenedRoot& root, const std::string& name) {
  const int fd = root.files.open(root.staging, name, {}, 0);
  if (fd < 0) return false;
  const HeldFile file(root.files, fd);
  return root.files.set_mode(fd, staged_mode) >= 0;
}

}  // namespace

PieceTable::Chunk& PieceTable::chunk_of(uint64_t piece) {
  std::unique_ptr<Chunk>& chunk = chunks_[piece - piece % chunk_pieces];
  if (!chunk) chunk = std::make_unique<Chunk>();
  return *chunk;
}

const PieceTable::Chunk* PieceTable::find(uint64_t piece) const {
  const auto found = chunks_.find(piece - piece % chunk_pieces);
  return found != chunks_.end() ? found->second.get() : nullptr;
}

bool PieceTable::is_hole(uint64_t piece) const {
  const auto behind = run_behind(holes_, piece);
  return behind != holes_.begin() && piece < std::prev(behind)->end;
}

void PieceTable::add_holes(uint64_t first, uint64_t count) {
  CHECK(count > 0 && unknown(first, first + count) == count);
  const uint64_t end = first + count;
  auto behind = run_behind(holes_, first);
  const bool joins_next = behind != holes_.end() && behind->first == end;
  if (behind != holes_.begin() && std::prev(behind)->end == first) {
    std::prev(behind)->end = joins_next ? behind->end : end;
    if (joins_next) holes_.erase(behind);
  } else if (joins_next) {
    behind->first = first;
  } else {
    holes_.insert(behind, {first, end});
  }
  written_ += count;
  end_ = std::max(end_, end);
}

uint64_t PieceTable::unknown(uint64_t first, uint64_t end) const {
  if (is_hole(first)) return 0;
  const auto behind = run_behind(holes_, first);
  if (behind != holes_.end()) end = std::min(end, behind->first);
  for (auto at = chunks_.lower_bound(first - first % chunk_pieces); at != chunks_.end() && at->first < end; ++at) {
    const Chunk& chunk = *at->second;
    for (uint64_t piece = std::max(first, at->first); piece < std::min(end, at->first + chunk_pieces); ++piece) {
      const auto index = static_cast<size_t>(piece % chunk_pieces);
      if (chunk.has_hash[index] || chunk.states[index] != PieceState::absent) return piece - first;
    }
  }
  return end - first;
}

PieceState PieceTable::state(uint64_t piece) const {
  if (is_hole(piece)) return PieceState::durable;
  const Chunk* chunk = find(piece);
  return chunk != nullptr ? chunk->states[piece % chunk_pieces] : PieceState::absent;
}

void PieceTable::set_state(uint64_t piece, PieceState state) {
  CHECK(!is_hole(piece));
  PieceState& now = chunk_of(piece).states[piece % chunk_pieces];
  if (is_written(now)) --written_;
  now = state;
  if (is_written(now)) ++written_;
  end_ = std::max(end_, piece + 1);
}

bool PieceTable::expect(uint64_t piece, const Hash128& hash) {
  if (is_hole(piece)) return hash == session::hash_of_zeros(session::piece_bytes);
  Chunk& chunk = chunk_of(piece);
  const auto at = static_cast<size_t>(piece % chunk_pieces);
  if (chunk.has_hash[at]) return chunk.hashes[at] == hash;
  chunk.has_hash[at] = true;
  chunk.hashes[at] = hash;
  return true;
}

Hash128 PieceTable::hash(uint64_t piece) const {
  if (is_hole(piece)) return session::hash_of_zeros(session::piece_bytes);
  const Chunk* chunk = find(piece);
  CHECK(chunk != nullptr && chunk->has_hash[piece % chunk_pieces]);
  return chunk->hashes[piece % chunk_pieces];
}

Hash128 PieceTable::digest(uint64_t count) const {
  session::FileDigest digest;
  for (uint64_t piece = 0; piece < count; ++piece) digest.add(hash(piece));
  return digest.take();
}

StagedFile::StagedFile(OpenedRoot& root, const FileTask& task, bool resumed, KnownDirectories* directories, const Owner* owner)
    : root_(root),
      directories_(directories),
      owner_(owner),
      key_(task.key),
      in_place_(task.in_place),
      device_(task.device),
      inode_(task.inode),
      path_(task.path),
      name_(in_place_ ? std::string(split_path(task.path).name) : staged_name(task.key, task.version)),
      mode_((task.attributes.mode & 0777u) | 0600u),
      sparse_(task.sparse),
      size_bytes_(task.size_bytes),
      exists_(resumed) {
  CHECK(!in_place_ || (directories_ != nullptr && owner_ != nullptr));
}

Claims::Use StagedFile::in_use() { return in_place_ ? root_.claims.use(key_, *owner_) : Claims::Use::not_needed(); }

int StagedFile::open_in_place() {
  if (!parent_) {
    JobDirectories directories(*directories_);
    HeldDirectoryRef parent;
    if (const int error = directories.open(split_path(path_).parent, parent); error < 0) return error;
    root_.disk->look_at(parent);
    parent_ = std::move(parent);
  }
  const int fd = open_to_write_over(root_.files, parent_->fd(), name_, device_, inode_);
  if (fd < 0) return fd;
  // Its pieces were compared, and some written, in the file of the verdict: another one has none of them.
  const int error = check_same_file(root_.files, fd, device_, inode_);
  if (error >= 0) return fd;
  root_.files.close(fd);
  return error;
}

int open_to_write_over(ports::FileSystem& files, int parent, const std::string& name, uint64_t device, uint64_t inode) {
  const ports::OpenFlags for_writing{.mode = ports::OpenMode::read_write};
  const int opened = files.open(parent, name, for_writing, 0);
  if (opened != -EACCES) return opened;
  const int fd = files.open(parent, name, {}, 0);
  if (fd < 0) return opened;
  const HeldFile file(files, fd);
  ports::FileStat stat;
  if (check_same_file(files, fd, device, inode) < 0 || files.fstat(fd, stat) < 0) return opened;
  if (files.set_mode(fd, stat.mode | owner_may_write) < 0) return opened;
  const int writable = files.open(parent, name, for_writing, 0);
  // What is open stays so. Whatever ends us from here on, the file has the mode that it had.
  const int restored = files.set_mode(fd, stat.mode);
  if (writable < 0 || restored >= 0) return writable;
  files.close(writable);
  return restored;
}

int StagedFile::open_descriptor() {
  if (in_place_) return open_in_place();
  const ports::OpenFlags flags{.mode = ports::OpenMode::read_write, .create = !exists_, .truncate = !exists_};
  return root_.judged(root_.files.open(root_.staging, name_, flags, mode_));
}

// What an earlier run left has its final mode, which may let nobody write. Without its pieces it is worthless.
bool StagedFile::makes_way() {
  if (in_place_) return false;
  return exists_ ? make_writable(root_, name_) : root_.files.unlink_at(root_.staging, name_, false) >= 0;
}

int StagedFile::hold() {
  if (file_) return 0;
  int fd = open_descriptor();
  if (fd == -EACCES && makes_way()) fd = open_descriptor();
  if (fd < 0) return fd;
  exists_ = true;
  file_ = std::make_shared<HeldFile>(root_.files, fd);
  return 0;
}

int StagedFile::open(HeldFileRef& out) {
  const std::lock_guard lock(mutex_);
  if (const int error = hold(); error < 0) return error;
  out = file_;
  return 0;
}

void forget_cached(ports::FileSystem& files, const HeldFile& open) {
  ports::FileStat stat;
  if (files.fstat(open.fd(), stat) >= 0) files.drop_cached(open.fd(), 0, stat.size_bytes);
}

int StagedFile::sync() {
  HeldFileRef open;
  {
    const std::lock_guard lock(mutex_);
    if (const int error = hold(); error < 0) return error;
    open = file_;
    written_.store(false);
  }
  const int error = root_.files.fsync(open->fd());
  if (error >= 0) return error;
  forget_cached(root_.files, *open);
  const std::lock_guard lock(mutex_);
  if (file_ == open) file_.reset();
  return error;
}

void StagedFile::piece_ends_at(uint64_t end_bytes) {
  uint64_t before = written_to_.load();
  while (before < end_bytes && !written_to_.compare_exchange_weak(before, end_bytes)) {
  }
}

uint64_t StagedFile::length_bytes() const { return size_bytes_ != size_unknown ? size_bytes_ : written_to_.load(); }

int StagedFile::lengthen(const HeldFile& open) {
  if (!sparse_) return 0;
  const Claims::Use use = in_use();
  if (!use.may()) return -EBUSY;
  const std::lock_guard lock(writing_);  // what is written beyond that meanwhile would be cut off
  ports::FileStat stat;
  if (const int error = root_.files.fstat(open.fd(), stat); error < 0) return error;
  return stat.size_bytes < length_bytes() ? root_.files.truncate(open.fd(), length_bytes()) : 0;
}

int StagedFile::write(const HeldFile& open, Bytes data, uint64_t offset_bytes) {
  at_writer();
  const Claims::Use use = in_use();
  if (!use.may()) return -EBUSY;
  std::unique_lock lock(writing_, std::defer_lock);
  if (root_.one_writer_a_file || (sparse_ && size_bytes_ == size_unknown)) lock.lock();
  const int error =
      sparse_ ? write_sparse(root_.files, open.fd(), data, offset_bytes) : write_all(root_.files, open.fd(), data, offset_bytes);
  written_.store(true);  // after the bytes: a sync that began before may have missed them
  return error;
}

// What an earlier session may have left there goes. Where the file system makes no holes it is overwritten.
int StagedFile::make_holes(const std::vector<session::Want::Range>& pieces, uint64_t size_bytes) {
  HeldFileRef held;
  if (const int error = open(held); error < 0) return error;
  const Claims::Use use = in_use();
  if (!use.may()) return -EBUSY;
  const int fd = held->fd();
  session::HoleFinder finder(root_.files, fd);
  const std::vector<std::byte> zeros(session::piece_bytes);
  for (const session::Want::Range& range : pieces) {
    const uint64_t at_bytes = range.first * session::piece_bytes;
    const uint64_t end_bytes = std::min((range.first + range.count) * session::piece_bytes, size_bytes);
    if (finder.is_hole(at_bytes, end_bytes - at_bytes)) continue;
    written_.store(true);
    if (root_.files.make_hole(fd, at_bytes, end_bytes - at_bytes) >= 0) continue;
    for (uint64_t at = at_bytes; at < end_bytes; at += zeros.size()) {
      const Bytes part = Bytes(zeros).first(static_cast<size_t>(std::min<uint64_t>(zeros.size(), end_bytes - at)));
      if (const int error = write(*held, part, at); error < 0) return error;
    }
  }
  return 0;
}

void StagedFile::let_go() {
  const std::lock_guard lock(mutex_);
  // Closed now, a failure to write back what came since the sync could be told to nobody.
  if (file_.use_count() == 1 && !written_.load()) file_.reset();
}

void StagedFile::remove() {
  const std::lock_guard lock(mutex_);
  file_.reset();
  if (exists_ && !in_place_) remove_staged(root_, name_);
  exists_ = false;
}

void at_writer() { trace_stage("[stage 9] writer"); }

int write_all(ports::FileSystem& files, int fd, Bytes data, uint64_t offset_bytes) {
  while (!data.empty()) {
    const int64_t wrote = files.pwrite(fd, data, offset_bytes);
    if (wrote < 0) return static_cast<int>(wrote);
    if (wrote == 0) return -ENOSPC;
    data = data.subspan(static_cast<size_t>(wrote));
    offset_bytes += static_cast<uint64_t>(wrote);
  }
  return 0;
}

int write_sparse(ports::FileSystem& files, int fd, Bytes data, uint64_t offset_bytes) {
  constexpr size_t block_bytes = 4096;
  const auto length_at = [&](size_t at) { return std::min(block_bytes - (offset_bytes + at) % block_bytes, data.size() - at); };
  const auto is_zero = [&](size_t at) { return at < data.size() && session::is_all_zeros(data.subspan(at, length_at(at))); };
  const auto write = [&](size_t from, size_t end) {
    return write_all(files, fd, data.subspan(from, end - from), offset_bytes + from);
  };
  std::optional<bool> is_hole;  // all of it, before the first byte
  size_t from = 0;              // of what is to be written
  for (size_t at = 0; at < data.size();) {
    if (!is_zero(at)) {
      at += length_at(at);
      continue;
    }
    if (!is_hole) is_hole = session::HoleFinder(files, fd).is_hole(offset_bytes, data.size());
    size_t end = at;
    while (is_zero(end)) end += length_at(end);
    if (*is_hole || files.make_hole(fd, offset_bytes + at, end - at) >= 0) {
      if (const int error = write(from, at); error < 0) return error;
      from = end;
    }
    at = end;
  }
  return write(from, data.size());
}

PieceWritten write_piece(StagedFile& staged, MutableBytes segment, const session::SegmentHeader& header,
                         const session::DataOpener* opener) {
  PieceWritten outcome;
  HeldFileRef open;
  int failure = staged.open(open);
  if (failure >= 0) {
    outcome.is_damaged = !session::open_data_in_blocks(segment, header, opener, [&](Bytes block, uint64_t at_bytes) {
      failure = staged.write(*open, block, header.sequence * session::piece_bytes + at_bytes);
      return failure >= 0;
    });
  }
  outcome.error_number = failure < 0 ? -failure : 0;
  if (failure >= 0 && !outcome.is_damaged) staged.piece_ends_at(header.sequence * session::piece_bytes + header.data_bytes);
  return outcome;
}

PieceWritten write_compressed_piece(StagedFile& staged, MutableBytes buffer, const session::SegmentHeader& header,
                                    const session::DataOpener* opener, session::Workspaces& workspaces) {
  session::SegmentHeader plain = header;
  const session::Decompressed outcome = session::decompress(buffer, plain, opener, workspaces);
  if (outcome == session::Decompressed::ok) return write_piece(staged, buffer, plain, nullptr);
  const bool is_damaged = outcome == session::Decompressed::damaged;
  return {is_damaged, 0, !is_damaged};
}

int find_damaged(OpenedRoot& root, const Owner& owner, StagedFile& staged, const std::vector<Ledger::Piece>& pieces,
                 std::vector<uint64_t>& damaged) {
  HeldFileRef open;
  int error = staged.open(open);
  if (error >= 0) error = staged.lengthen(*open);
  if (error < 0) return error;
  DiskReader reader(root.files);
  reader.begin(staged.directory(), staged.name(), open->fd());
  for (const Ledger::Piece& piece : pieces) {
    owner.step();
    // Not by the length that the file has: it may be too short, and one that is written in place may still be too long.
    const uint64_t bytes = piece_length(staged.length_bytes(), piece.number);
    const AtRest found = reader.compare(piece.number * session::piece_bytes, bytes, piece.hash);
    if (found == AtRest::unreadable) return -reader.error_number();
    if (found == AtRest::damaged) damaged.push_back(piece.number);
  }
  return 0;
}

namespace {

Ledger::Addition addition_of(OpenedRoot& root, const Owner& owner, const SyncFile& file) {
  Ledger::Addition addition{file.task->ledger_file(), file.task->path, file.pieces};
  addition.size_bytes = file.task->size_bytes == size_unknown ? 0 : file.task->size_bytes;
  addition.peer = owner.peer;
  ports::FileStat stat;
  if (root.files.stat_at(root.staging, file.staged->name(), stat, false) >= 0) addition.now_s = stat.ctime.seconds;
  return addition;
}

}  // namespace

std::optional<Error> sync_pieces(OpenedRoot& root, const Owner& owner, std::vector<SyncFile>& batch, bool verify) {
  std::vector<Ledger::Addition> additions;
  for (SyncFile& file : batch) {
    owner.step();
    int error = file.staged->sync();
    if (error >= 0 && verify) error = find_damaged(root, owner, *file.staged, file.pieces, file.damaged);
    if (error < 0) {
      file.error_number = -error;
      continue;
    }
    std::erase_if(file.pieces, [&](const Ledger::Piece& piece) {
      return std::find(file.damaged.begin(), file.damaged.end(), piece.number) != file.damaged.end();
    });
    // What is in place is found there by its content.
    if (!file.pieces.empty() && !file.staged->is_in_place()) additions.push_back(addition_of(root, owner, file));
    if (file.let_go) file.staged->let_go();
  }
  // The names of new staged files, before rows point to them.
  if (const int error = root.files.fsync(root.staging); error < 0) {
    for (SyncFile& file : batch) file.error_number = file.error_number != 0 ? file.error_number : -error;
    return std::nullopt;
  }
  const bool was_there = root.check() == 0;
  if (was_there) {
    if (const auto added = root.ledger->add(additions); !added) return added.error();
  }
  if (!was_there || root.check() < 0) return fatal_error(ESTALE, root.path);  // else what is durable could not be found again
  return std::nullopt;
}

std::vector<Ledger::Piece> read_back(OpenedRoot& root, const FileTask& task, const Owner& owner, bool verify) {
  std::vector<Ledger::Piece> good;
  const auto rows = root.ledger->pieces(task.ledger_file());
  if (!rows || rows->empty()) return good;
  const std::string name = staged_name(task.key, task.version);
  const int fd = root.files.open(root.staging, name, {}, 0);
  if (fd < 0) return good;
  const HeldFile file(root.files, fd);
  const uint64_t count = piece_count(task.size_bytes);
  std::vector<std::byte> buffer(verify ? 0 : session::piece_bytes);
  std::optional<DiskReader> disk;
  if (verify) disk.emplace(root.files).begin(root.staging, name, fd);
  for (const Ledger::Piece& piece : *rows) {
    if (piece.number >= count) continue;
    const uint64_t offset_bytes = piece.number * session::piece_bytes;
    const uint64_t bytes = piece_length(task.size_bytes, piece.number);
    bool is_good = false;
    if (disk) {
      is_good = disk->compare(offset_bytes, bytes, piece.hash) == AtRest::same;
    } else {
      const MutableBytes data = MutableBytes(buffer).first(static_cast<size_t>(bytes));
      is_good = read_piece(root.files, fd, data, offset_bytes) && xxh3_128(data) == piece.hash;
    }
    if (is_good) good.push_back(piece);
    owner.step();
  }
  return good;
}

std::vector<session::Want::Range> missing_ranges(const std::vector<Ledger::Piece>& present, uint64_t count) {
  std::vector<session::Want::Range> ranges;
  uint64_t next = 0;
  for (const Ledger::Piece& piece : present) {
    if (piece.number > next) ranges.push_back({next, piece.number - next});
    next = piece.number + 1;
  }
  if (next < count) ranges.push_back({next, count - next});
  return ranges;
}

std::optional<Hash128> digest_of(ports::FileSystem& files, int fd, uint64_t size_bytes, const Owner& owner) {
  session::FileDigest digest;
  const uint64_t count = piece_count(size_bytes);
  std::vector<std::byte> buffer(static_cast<size_t>(std::min<uint64_t>(size_bytes, session::piece_bytes)));
  session::HoleRuns holes(session::find_holes(files, fd, size_bytes));
  for (uint64_t piece = 0; piece < count; ++piece) {
    if (holes.has(piece)) {
      digest.add(session::hash_of_zeros(piece_length(size_bytes, piece)));
      continue;
    }
    const MutableBytes data = MutableBytes(buffer).first(static_cast<size_t>(piece_length(size_bytes, piece)));
    if (!read_piece(files, fd, data, piece * session::piece_bytes)) return std::nullopt;
    digest.add(xxh3_128(data));
    owner.step();
  }
  return digest.take();
}

}  // namespace ccixfer::recv

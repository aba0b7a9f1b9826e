#include "app/send/reader.h"

#include <algorithm>
#include <cerrno>

#include "app/session/entry.h"
#include "app/session/holes.h"
#include "app/session/limits.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/memory/file_view.h"

namespace ccixfer::send {
void at_reader() { trace_stage("[stage 2] reader"); }

namespace {

using ports::FileStat;
using ports::FileType;
using session::SourceOutcome;

ReadOutcome of_errno(int64_t result) {
  const int error = static_cast<int>(-result);
  if (error == ENOENT || error == ENOTDIR) return {SourceOutcome::vanished, 0};
  // A link stands where a file or directory was listed; or a file server has lost its handle, and what is there now is listed anew.
  if (error == ELOOP || error == EXDEV || error == ESTALE) return {SourceOutcome::changed, 0};
  return {SourceOutcome::unreadable, error};
}

// Reads until `into` is full or the file ends; bytes, or -errno.
int64_t read_all(ports::FileSystem& files, int fd, MutableBytes into, uint64_t offset_bytes) {
  at_reader();
  size_t got = 0;
  while (got < into.size()) {
    const int64_t bytes = files.pread(fd, into.subspan(got), offset_bytes + got);
    if (bytes < 0) return bytes;
    if (bytes == 0) break;
    got += static_cast<size_t>(bytes);
  }
  return static_cast<int64_t>(got);
}

bool promised(const FileStat& stat, const Listed& listed) {
  return stat.type == FileType::regular && stat.size_bytes == listed.size_bytes && stat.mtime == listed.mtime;
}

// A small file is read in one go, so what counts is that it was the same before and after, and of the size and time that the
// other end will give it: a new link count or mode since the walk changes neither. Over a link stands another's file, whose size
// and time whoever made the link has given the listed one.
ReadOutcome read_small(ports::FileSystem& files, const SourcePlace& place, const Listed& listed, MutableBytes into,
                       std::atomic<uint64_t>* steps) {
  const auto [fd, over_link] = open_place(files, place, steps);
  if (fd < 0) return of_errno(fd);
  const bool exact = listed.exact || over_link;
  ReadOutcome outcome{SourceOutcome::changed, 0};
  for (int tries = 0; tries < read_tries_max; ++tries) {
    FileStat before;
    FileStat behind;
    int result = files.fstat(fd, before);
    if (result >= 0 && (!promised(before, listed) || (exact && version_of(before) != listed.version))) break;
    if (result >= 0 && files.outwait(before.ctime)) {
      if (steps != nullptr) steps->fetch_add(1, std::memory_order_relaxed);
      continue;
    }
    int64_t bytes = result;
    if (result >= 0) bytes = read_all(files, fd, into, 0);
    if (bytes >= 0) result = files.fstat_fresh(fd, behind);
    if (bytes < 0 || result < 0) {
      outcome = of_errno(bytes < 0 ? bytes : result);
      break;
    }
    if (static_cast<uint64_t>(bytes) != listed.size_bytes || version_of(before) != version_of(behind)) continue;
    outcome = {};
    break;
  }
  files.close(fd);
  return outcome;
}

ReadOutcome check(ports::FileSystem& files, int fd, const Listed& listed, FileStat& stat) {
  const int result = files.fstat_fresh(fd, stat);
  if (result < 0) return of_errno(result);
  if (!promised(stat, listed) || version_of(stat) != listed.version) return {SourceOutcome::changed, 0};
  return {};
}

// One component after the other, each of which may be a link; the last one with `all` only.
int open_over_links(ports::FileSystem& files, const SourcePlace& place, std::atomic<uint64_t>* steps) {
  ports::OpenFlags on_the_way;
  on_the_way.follow = on_the_way.directory = true;
  ports::OpenFlags flags;
  flags.follow = place.follow == Follow::all;
  flags.pauses = steps;
  std::string_view rest = place.name;
  int at = place.directory;
  while (true) {
    const size_t slash = place.directory < 0 ? std::string_view::npos : rest.find('/');
    const bool last = slash == std::string_view::npos;
    const int fd = files.open(at, rest.substr(0, slash), last ? flags : on_the_way, 0);
    if (at != place.directory) files.close(at);
    if (fd < 0 || last) return fd;
    at = fd;
    rest.remove_prefix(slash + 1);
  }
}

OpenedPlace open_at(ports::FileSystem& files, const SourcePlace& place, std::atomic<uint64_t>* steps) {
  ports::OpenFlags flags;
  flags.no_link = place.directory < 0;
  flags.pauses = steps;
  const int fd = files.open(place.directory, place.name, flags, 0);
  const bool leads_on = place.follow == Follow::all || (place.follow == Follow::on_the_way && place.directory >= 0);
  if (fd != -ELOOP || !leads_on) return {fd};
  return {open_over_links(files, place, steps), true};
}

}  // namespace

OpenedPlace open_place(ports::FileSystem& files, const SourcePlace& place, std::atomic<uint64_t>* steps) {
  OpenedPlace opened = open_at(files, place, steps);
  for (const SourcePlace::Other& other : place.others) {
    if (opened.fd != -ENOENT && opened.fd != -ENOTDIR) break;
    opened = open_at(files, {other.directory, other.name, other.follow}, steps);
  }
  return opened;
}

void read_pack(ports::FileSystem& files, Pack& pack, MutableBytes buffer, std::atomic<uint64_t>* steps,
               session::DataSealer* sealer) {
  CHECK(pack.planned_bytes <= buffer.size());
  session::SealingPass pass(sealer);
  Xxh3Blocks hasher;
  size_t at = 0;
  for (PackItem& item : pack.items) {
    const MutableBytes content = buffer.subspan(at + session::pack_record_bytes, item.listed.size_bytes);
    const std::string_view name = std::string_view(pack.names).substr(item.name_at, item.name_bytes);
    item.result = read_small(files, {item.directory, name, item.follow, item.others}, item.listed, content, steps);
    if (steps != nullptr) steps->fetch_add(1, std::memory_order_relaxed);
    if (item.result.outcome != SourceOutcome::ok) continue;
    const session::PackRecord record{item.index, static_cast<uint32_t>(content.size()), xxh3_128(content), content};
    session::put_pack_record(buffer.subspan(at, session::pack_record_bytes), record);
    const MutableBytes whole = buffer.subspan(at, session::pack_record_bytes + content.size());
    hasher.update(whole);
    pass.update(whole);
    at += whole.size();
    pack.content_bytes += content.size();
    ++pack.count;
  }
  pack.data_bytes = static_cast<uint32_t>(at);
  pack.hash = hasher.digest();
  pack.mark = pass.finish();
}

int open_listed(ports::FileSystem& files, const SourcePlace& place, const Listed& listed, ReadOutcome& result,
                std::atomic<uint64_t>* steps) {
  const int fd = open_place(files, place, steps).fd;
  FileStat stat;
  do {
    result = fd < 0 ? of_errno(fd) : check(files, fd, listed, stat);
  } while (result.outcome == SourceOutcome::ok && files.outwait(stat.ctime));
  if (result.outcome == SourceOutcome::ok) return fd;
  if (fd >= 0) files.close(fd);
  return -1;
}

ReadOutcome check_listed(ports::FileSystem& files, int fd, const Listed& listed) {
  FileStat stat;
  return check(files, fd, listed, stat);
}

PieceRead read_piece(ports::FileSystem& files, int fd, uint64_t piece, uint64_t file_bytes, MutableBytes buffer,
                     session::DataSealer* sealer) {
  const uint64_t offset = piece * session::piece_bytes;
  CHECK(offset < file_bytes);
  PieceRead read;
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(session::piece_bytes, file_bytes - offset));
  session::SealingPass pass(sealer);
  Xxh3Blocks hasher;
  for (uint32_t at = 0; at < length;) {
    const MutableBytes block = buffer.subspan(at, std::min<size_t>(hash_block_bytes, length - at));
    const int64_t bytes = read_all(files, fd, block, offset + at);
    if (bytes < 0) {
      read.result = of_errno(bytes);
      return read;
    }
    if (static_cast<size_t>(bytes) < block.size()) {
      read.result = {SourceOutcome::changed, 0};
      return read;
    }
    hasher.update(block);
    pass.update(block);
    at += static_cast<uint32_t>(block.size());
  }
  read.data_bytes = length;
  read.hash = hasher.digest();
  read.mark = pass.finish();
  return read;
}

PieceRead show_or_read_piece(ports::FileSystem& files, int fd, uint64_t piece, uint64_t file_bytes, memory::Loan& buffer) {
  const uint64_t offset = piece * session::piece_bytes;
  CHECK(offset < file_bytes);
  if (buffer.may_show() && file_bytes - offset >= session::piece_bytes) {  // the last page of a file would not be full of it
    const MutableBytes view = buffer.bytes().first(session::piece_bytes);
    if (files.show(fd, view, offset) == 0) {
      at_reader();
      buffer.shows_file(view.size());
      const PieceRead read{{}, session::piece_bytes, xxh3_128(view), {}};
      if (memory::is_whole(view)) return read;
      buffer.hide();
    }
  }
  return read_piece(files, fd, piece, file_bytes, buffer.bytes());
}

bool digest_file(ports::FileSystem& files, const SourcePlace& place, const Listed& listed, MutableBytes buffer, Hash128& digest,
                 std::atomic<uint64_t>& steps) {
  if (pieces_of(listed.size_bytes) > digest_pieces_max) return false;  // a hole of any size costs nothing at the source
  ReadOutcome result;
  const int fd = open_listed(files, place, listed, result, &steps);
  if (fd < 0) return false;
  std::vector<Hash128> hashes;
  hashes.reserve(pieces_of(listed.size_bytes));
  session::HoleRuns holes(session::find_holes(files, fd, listed.size_bytes));
  for (uint64_t piece = 0; piece < pieces_of(listed.size_bytes) && result.outcome == SourceOutcome::ok; ++piece) {
    if (holes.has(piece)) {
      const uint64_t length_bytes = std::min<uint64_t>(session::piece_bytes, listed.size_bytes - piece * session::piece_bytes);
      hashes.push_back(session::hash_of_zeros(length_bytes));
      continue;
    }
    const PieceRead read = read_piece(files, fd, piece, listed.size_bytes, buffer);
    result = read.result;
    hashes.push_back(read.hash);
    steps.fetch_add(1, std::memory_order_relaxed);
  }
  if (result.outcome == SourceOutcome::ok) result = check_listed(files, fd, listed);
  files.close(fd);
  if (result.outcome != SourceOutcome::ok) return false;
  digest = session::file_digest(hashes);
  return true;
}

}  // namespace ccixfer::send

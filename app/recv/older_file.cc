#include "app/recv/older_file.h"

#include <algorithm>
#include <vector>

#include "core/base/hash.h"

namespace ccixfer::recv {
namespace {

constexpr size_t block_bytes = 256u << 10;  // stays in the cache from the read to the write

}  // namespace

HeldFileRef OlderFile::open() {
  const std::lock_guard lock(mutex_);
  if (was_opened_) return file_;
  was_opened_ = true;
  std::string_view name = path_;
  HeldFileRef directory = top_;
  if (!directory) {
    HeldDirectoryRef parent;
    JobDirectories seen(directories_);
    if (seen.open(split_path(path_).parent, parent) < 0) return nullptr;
    name = split_path(path_).name;
    directory = parent;
  }
  const int fd = root_.files.open(directory->fd(), name, {}, 0);
  if (fd < 0) return nullptr;
  auto file = std::make_shared<HeldFile>(root_.files, fd);
  ports::FileStat stat;
  if (root_.files.fstat(fd, stat) >= 0 && stat.type == ports::FileType::regular) file_ = std::move(file);
  return file_;
}

// False: the bytes have to be read and written.
bool OlderFile::clone(const HeldFile& from, StagedFile& staged, const HeldFile& to, uint64_t offset_bytes, uint64_t bytes) {
  if (!clones_.load(std::memory_order_relaxed)) return false;
  const bool is_cloned = root_.files.clone_range(from.fd(), offset_bytes, to.fd(), offset_bytes, bytes) >= 0;
  if (is_cloned) staged.was_written();
  // The last piece, which ends within a block, may be refused where the others are not.
  if (!is_cloned && bytes == session::piece_bytes) clones_.store(false, std::memory_order_relaxed);
  return is_cloned;
}

OlderFile::Taken OlderFile::copy(const HeldFile& from, StagedFile* staged, const HeldFileRef& to, uint64_t offset_bytes,
                                 uint64_t bytes, const Owner& owner) {
  Taken taken;
  std::vector<std::byte> buffer(std::min<uint64_t>(block_bytes, bytes));
  Xxh3Blocks hash;
  for (uint64_t at = 0; at < bytes;) {
    const MutableBytes block = MutableBytes(buffer).first(static_cast<size_t>(std::min<uint64_t>(buffer.size(), bytes - at)));
    const int64_t got = root_.files.pread(from.fd(), block, offset_bytes + at);
    if (got <= 0) return taken;
    const Bytes data = block.first(static_cast<size_t>(got));
    hash.update(data);
    const int error = staged != nullptr ? staged->write(*to, data, offset_bytes + at) : 0;
    if (error < 0) {
      taken.error_number = -error;
      return taken;
    }
    at += data.size();
  }
  owner.step();
  taken.hash = hash.digest();
  return taken;
}

OlderFile::Taken OlderFile::take(StagedFile* staged, uint64_t file_bytes, uint64_t piece, const Owner& owner) {
  const HeldFileRef from = open();
  if (!from) return {};
  HeldFileRef to;
  const int error = staged != nullptr ? staged->open(to) : 0;
  if (error < 0) return {std::nullopt, -error};
  const uint64_t offset_bytes = piece * session::piece_bytes;
  const uint64_t bytes = piece_length(file_bytes, piece);
  // What was cloned is hashed where it is now: the older file may have changed since.
  if (staged != nullptr && clone(*from, *staged, *to, offset_bytes, bytes))
    return copy(*to, nullptr, nullptr, offset_bytes, bytes, owner);
  return copy(*from, staged, to, offset_bytes, bytes, owner);
}

}  // namespace ccixfer::recv

#include "app/recv/at_rest.h"

#include <algorithm>
#include <cerrno>
#include <new>

namespace ccixfer::recv {
namespace {

constexpr std::align_val_t alignment{ports::direct_block_bytes};

}  // namespace

void DiskReader::Free::operator()(std::byte* memory) const { ::operator delete(memory, alignment); }

DiskReader::DiskReader(ports::FileSystem& files)
    : files_(files), memory_(static_cast<std::byte*>(::operator new(at_rest_buffer_bytes, alignment))) {}
DiskReader::~DiskReader() = default;

MutableBytes DiskReader::block() const { return {memory_.get(), at_rest_buffer_bytes}; }

void DiskReader::begin(int directory, std::string_view name, int open) {
  directory_ = directory;
  name_ = name;
  open_ = open;
  own_.reset();
  error_number_ = 0;
  fd_ = files_.open(directory, name, {.direct = true}, 0);
  is_direct_ = fd_ >= 0;
  if (is_direct_) own_ = std::make_unique<HeldFile>(files_, fd_);
}

int DiskReader::open_plainly() {
  is_direct_ = false;
  own_.reset();
  fd_ = open_ >= 0 ? open_ : files_.open(directory_, name_, {}, 0);
  if (open_ < 0 && fd_ >= 0) own_ = std::make_unique<HeldFile>(files_, fd_);
  return std::min(fd_, 0);
}

// As many of the bytes as there are; the block may hold more behind them, of a direct read.
int64_t DiskReader::read(uint64_t offset_bytes, uint64_t bytes) {
  const auto wanted = static_cast<size_t>(std::min<uint64_t>(bytes, at_rest_buffer_bytes));
  if (is_direct_) {
    const size_t whole = (wanted + ports::direct_block_bytes - 1) / ports::direct_block_bytes * ports::direct_block_bytes;
    const int64_t got = files_.pread(fd_, block().first(whole), offset_bytes);
    if (got != -EINVAL) return std::min<int64_t>(got, static_cast<int64_t>(wanted));
  }
  if (is_direct_ || fd_ < 0) {  // some say only at the first read that they have no direct ones
    if (const int error = open_plainly(); error < 0) return error;
  }
  files_.drop_cached(fd_, offset_bytes, wanted);
  int64_t done = 0;
  while (done < static_cast<int64_t>(wanted)) {
    const auto at = static_cast<uint64_t>(done);
    const int64_t got = files_.pread(fd_, block().first(wanted).subspan(static_cast<size_t>(at)), offset_bytes + at);
    if (got < 0) return got;
    if (got == 0) break;
    done += got;
  }
  return done;
}

AtRest DiskReader::compare(uint64_t offset_bytes, uint64_t bytes, const Hash128& hash) {
  Xxh3Blocks found;
  while (bytes > 0) {
    const int64_t got = read(offset_bytes, bytes);
    if (got < 0 && got != -EIO) {
      error_number_ = static_cast<int>(-got);
      return AtRest::unreadable;
    }
    // A direct read ends short at the end of the file only, or in the middle of a block that cannot be gone on from.
    const bool is_last = static_cast<uint64_t>(std::max<int64_t>(got, 0)) == bytes;
    if (got <= 0 || (!is_last && static_cast<uint64_t>(got) % ports::direct_block_bytes != 0)) return AtRest::damaged;
    found.update(Bytes(block()).first(static_cast<size_t>(got)));
    offset_bytes += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
  return found.digest() == hash ? AtRest::same : AtRest::damaged;
}

}  // namespace ccixfer::recv

#include "app/receipt/describe.h"

#include <vector>

namespace ccixfer::receipt {
namespace {

using ports::FileStat;
using ports::FileType;

class Opened {
 public:
  Opened(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  ~Opened() {
    if (fd_ >= 0) files_.close(fd_);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  ports::FileSystem& files_;
  const int fd_;
};

bool is_same(const FileStat& a, const FileStat& b) {
  return a.inode == b.inode && a.size_bytes == b.size_bytes && a.mtime == b.mtime && a.ctime == b.ctime;
}

// All of the file, as long as it is `size_bytes` long.
bool read_digest(ports::FileSystem& files, int fd, uint64_t size_bytes, const Subject& subject, trust::Sha256Digest& out) {
  trust::Sha256 hash;
  std::vector<std::byte> buffer(static_cast<size_t>(std::min<uint64_t>(size_bytes, read_bytes)));
  for (uint64_t at = 0; at < size_bytes;) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(buffer.size(), size_bytes - at));
    const int64_t got = files.pread(fd, MutableBytes(buffer).first(wanted), at);
    if (got <= 0) return false;
    hash.update(Bytes(buffer).first(static_cast<size_t>(got)));
    at += static_cast<uint64_t>(got);
    if (subject.step) subject.step();
    if (subject.stop && subject.stop()) return false;
  }
  out = hash.digest();
  return true;
}

bool describe_link(ports::FileSystem& files, const Subject& subject, Entry& out) {
  const size_t slash = subject.below.rfind('/');
  std::string_view name = subject.below;
  int directory = subject.directory;
  if (slash != std::string_view::npos && subject.directory >= 0) {
    directory = files.open(subject.directory, subject.below.substr(0, slash), {.directory = true, .anchor = true}, 0);
    if (directory < 0) return false;
    name = subject.below.substr(slash + 1);
  }
  const Opened parent(files, directory == subject.directory ? -1 : directory);
  out.mode = 0;
  return files.readlink_at(directory, name, out.target) > 0;
}

}  // namespace

bool describe(ports::FileSystem& files, const Subject& subject, Entry& out) {
  out.type = subject.type;
  out.sha256.reset();
  if (subject.type == EntryType::link) return describe_link(files, subject, out);
  const bool is_directory = subject.type == EntryType::directory;
  const int fd = subject.open
                     ? subject.open(is_directory)
                     : files.open(subject.directory, subject.below, {.directory = is_directory, .anchor = is_directory}, 0);
  const Opened file(files, fd);
  FileStat before;
  if (fd < 0) {  // what nobody may read is there all the same
    if (fd != -EACCES || is_directory || subject.below.find('/') != std::string_view::npos) return false;
    if (files.stat_at(subject.directory, subject.below, before, false) < 0 || before.type != FileType::regular) return false;
    out.mode = before.mode;
    out.size_bytes = before.size_bytes;
    out.mtime = before.mtime;
    return true;
  }
  if (files.fstat(fd, before) < 0) return false;
  if (before.type != (is_directory ? FileType::directory : FileType::regular)) return false;
  out.mode = before.mode;
  if (is_directory) return true;
  out.size_bytes = before.size_bytes;
  out.mtime = before.mtime;
  if (subject.is_wanted && !subject.is_wanted(before)) return true;
  trust::Sha256Digest digest{};
  FileStat behind;
  const bool is_read = read_digest(files, fd, before.size_bytes, subject, digest);
  if (is_read && files.fstat(fd, behind) >= 0 && is_same(before, behind)) out.sha256 = digest;
  return true;
}

}  // namespace ccixfer::receipt

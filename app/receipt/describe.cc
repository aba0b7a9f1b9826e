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

constexpr int read_tries_max = 4;

bool has_same_content(const FileStat& a, const FileStat& b) {
  return a.inode == b.inode && a.size_bytes == b.size_bytes && a.mtime == b.mtime;
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

// The directory that it stands in, and its name there.
class Place {
 public:
  Place(ports::FileSystem& files, const Subject& subject)
      : slash_(subject.directory >= 0 ? subject.below.rfind('/') : std::string_view::npos),
        directory_(is_alone()
                       ? subject.directory
                       : files.open(subject.directory, subject.below.substr(0, slash_), {.directory = true, .anchor = true}, 0)),
        opened_(files, is_alone() ? -1 : directory_),
        name_(is_alone() ? subject.below : subject.below.substr(slash_ + 1)) {}
  [[nodiscard]] bool is_open() const { return is_alone() || directory_ >= 0; }
  [[nodiscard]] int directory() const { return directory_; }
  [[nodiscard]] std::string_view name() const { return name_; }

 private:
  [[nodiscard]] bool is_alone() const { return slash_ == std::string_view::npos; }
  const size_t slash_;
  const int directory_;
  const Opened opened_;
  const std::string_view name_;
};

bool describe_link(ports::FileSystem& files, const Subject& subject, Entry& out) {
  const Place place(files, subject);
  out.mode = 0;
  return place.is_open() && files.readlink_at(place.directory(), place.name(), out.target) > 0;
}

void take_status(const FileStat& stat, Entry& out) {
  out.mode = stat.mode;
  if (out.type != EntryType::file) return;
  out.size_bytes = stat.size_bytes;
  out.mtime = stat.mtime;
}

// What nobody may read is there all the same, and a look from the directory tells what it is.
bool describe_unreadable(ports::FileSystem& files, const Subject& subject, Entry& out) {
  const Place place(files, subject);
  FileStat stat;
  if (!place.is_open() || files.stat_at(place.directory(), place.name(), stat, false) < 0) return false;
  take_status(stat, out);
  return stat.type == FileType::regular;
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
  if (fd < 0) return fd == -EACCES && !is_directory && describe_unreadable(files, subject, out);
  if (files.fstat(fd, before) < 0) return false;
  if (before.type != (is_directory ? FileType::directory : FileType::regular)) return false;
  // A further name, which --hard-links or --link-dest of another transfer may give it at any time, changes its change time.
  for (int tries = 0; tries < read_tries_max; ++tries) {
    take_status(before, out);
    if (is_directory || (subject.is_wanted && !subject.is_wanted(before))) return true;
    trust::Sha256Digest digest{};
    FileStat behind;
    if (!read_digest(files, fd, before.size_bytes, subject, digest) || files.fstat(fd, behind) < 0) return true;
    if (!has_same_content(before, behind)) return true;
    if (before.ctime == behind.ctime) {
      out.sha256 = digest;
      return true;
    }
    before = behind;
  }
  return true;
}

}  // namespace ccixfer::receipt

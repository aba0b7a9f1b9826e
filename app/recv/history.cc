#include "app/recv/history.h"

#include <vector>

#include "app/recv/held.h"
#include "app/recv/pieces.h"

namespace ccixfer::recv {
namespace {

constexpr uint32_t history_mode = 0600;
constexpr std::string_view new_name = "history.jsonl.new";

int64_t read_all(ports::FileSystem& files, int fd, MutableBytes into, uint64_t offset_bytes) {
  size_t done = 0;
  while (done < into.size()) {
    const int64_t got = files.pread(fd, into.subspan(done), offset_bytes + done);
    if (got < 0) return got;
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return static_cast<int64_t>(done);
}

// The younger half of what `fd` has, from the beginning of a line.
int keep_half(OpenedRoot& root, int fd, uint64_t size_bytes) {
  ports::FileSystem& files = root.files;
  std::vector<std::byte> kept(static_cast<size_t>(history_bytes_max / 2));
  const uint64_t from = size_bytes > kept.size() ? size_bytes - kept.size() : 0;
  const int64_t got = read_all(files, fd, kept, from);
  if (got < 0) return static_cast<int>(got);
  size_t begin = 0;
  while (begin < static_cast<size_t>(got) && kept[begin] != std::byte{'\n'}) ++begin;
  begin = std::min(begin + 1, static_cast<size_t>(got));
  files.unlink_at(root.staging, new_name, false);
  const int to =
      files.open(root.staging, new_name, {.mode = ports::OpenMode::write, .create = true, .exclusive = true}, history_mode);
  if (to < 0) return to;
  const HeldFile file(files, to);
  int error = write_all(files, to, Bytes(kept).first(static_cast<size_t>(got)).subspan(begin), 0);
  if (error >= 0) error = files.fsync(to);
  return error >= 0 ? files.rename_at(root.staging, new_name, root.staging, history_name) : error;
}

int add_line(OpenedRoot& root, const std::string& line, bool may_shorten) {
  ports::FileSystem& files = root.files;
  const int fd = files.open(root.staging, history_name, {.mode = ports::OpenMode::read_write, .create = true}, history_mode);
  if (fd < 0) return fd;
  const HeldFile file(files, fd);
  ports::FileStat stat;
  if (const int error = files.fstat(fd, stat); error < 0) return error;
  if (may_shorten && stat.size_bytes + line.size() > history_bytes_max) {
    if (const int error = keep_half(root, fd, stat.size_bytes); error < 0) return error;
    return add_line(root, line, false);
  }
  std::string text = line + "\n";
  std::array<std::byte, 1> last{std::byte{'\n'}};
  if (stat.size_bytes > 0 && files.pread(fd, last, stat.size_bytes - 1) == 1 && last[0] != std::byte{'\n'}) text.insert(0, "\n");
  const int error = write_all(files, fd, as_bytes(text), stat.size_bytes);
  return error >= 0 ? files.fsync(fd) : error;
}

}  // namespace

int add_history(OpenedRoot& root, const std::string& line) {
  const std::lock_guard lock(root.history);
  int error = add_line(root, line, true);
  if (error >= 0) error = root.files.fsync(root.staging);
  return error;
}

}  // namespace ccixfer::recv

#include "app/send/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

namespace ccixfer::send {
namespace {

constexpr size_t length_bytes = 2;  // before each name of a run
constexpr uint32_t spool_mode = 0600;
constexpr int name_tries_max = 64;
constexpr size_t merged_part = 8;  // a merged list is that much shorter than one that is read: its runs have buffers besides

void put_record(std::string& out, std::string_view name) {
  out.push_back(static_cast<char>(name.size() & 0xff));
  out.push_back(static_cast<char>(name.size() >> 8));
  out.append(name);
}

}  // namespace

void NameList::clear() {
  text_.clear();
  spans_.clear();
  next_ = 0;
}

void NameList::add(std::string_view name) {
  spans_.push_back({static_cast<uint32_t>(text_.size()), static_cast<uint32_t>(name.size())});
  text_.append(name);
}

void NameList::sort() {
  std::sort(spans_.begin(), spans_.end(), [this](const Span& a, const Span& b) { return at(a) < at(b); });
}

std::string NameList::keep_smallest(size_t count) {
  count = std::min(count, spans_.size());
  const auto last = spans_.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::nth_element(spans_.begin(), last, spans_.end(), [this](const Span& a, const Span& b) { return at(a) < at(b); });
  std::string greatest(at(*last));
  spans_.resize(count);
  std::string kept;
  kept.reserve(text_.size());
  for (Span& span : spans_) {
    const auto start = static_cast<uint32_t>(kept.size());
    kept.append(at(span));
    span.at = start;
  }
  text_ = std::move(kept);
  return greatest;
}

bool NameSpool::open(ports::FileSystem& files) {
  if (directory_.empty()) return false;
  for (int i = 0; i < name_tries_max && fd_ < 0; ++i) {
    const std::string name = fmt::format("{}/ccixfer-names-{:x}-{}", directory_, reinterpret_cast<uintptr_t>(this), i);
    fd_ = files.open(ports::FileSystem::no_directory, name,
                     {.mode = ports::OpenMode::read_write, .create = true, .exclusive = true}, spool_mode);
    if (fd_ >= 0) files.unlink_at(ports::FileSystem::no_directory, name, false);
    if (fd_ < 0 && fd_ != -EEXIST) break;
  }
  if (fd_ < 0) directory_.clear();  // once is enough
  return fd_ >= 0;
}

int64_t NameSpool::append(ports::FileSystem& files, std::string_view bytes) {
  if (!open(files)) return -1;
  for (size_t done = 0; done < bytes.size();) {
    const int64_t wrote = files.pwrite(fd_, as_bytes(bytes.substr(done)), end_ + done);
    if (wrote <= 0) {
      give_up_from(files, end_);
      return -1;
    }
    done += static_cast<size_t>(wrote);
  }
  const uint64_t at = end_;
  end_ += bytes.size();
  return static_cast<int64_t>(at);
}

bool NameSpool::read(ports::FileSystem& files, uint64_t at, size_t bytes, std::string& into) const {
  into.resize(bytes);
  for (size_t done = 0; done < bytes;) {
    const MutableBytes rest = std::as_writable_bytes(std::span(into)).subspan(done);
    const int64_t got = files.pread(fd_, rest, at + done);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

void NameSpool::give_up_from(ports::FileSystem& files, uint64_t at) {
  if (fd_ < 0 || at >= end_) return;
  if (files.truncate(fd_, at) >= 0) end_ = at;
}

void NameSpool::close(ports::FileSystem& files) {
  if (fd_ >= 0) files.close(fd_);
  fd_ = -1;
  directory_.clear();
}

void DirectoryNames::Run::let_go() {
  at += taken;
  taken = 0;
  std::string().swap(buffer);  // an empty one that is assigned would leave it its memory
}

size_t DirectoryNames::memory_bytes() const {
  size_t bytes = list_.memory_bytes();
  for (const Run& run : runs_) bytes += run.buffer.capacity();
  return bytes;
}

uint64_t DirectoryNames::spooled_to() const {
  uint64_t end = 0;
  for (const Run& run : runs_) end = std::max(end, run.end);
  return end;
}

std::string_view DirectoryNames::next(ports::FileSystem& files, NameSpool& spool, size_t list_bytes_max,
                                      const std::function<int()>& fd, int& error, const PartRead& part_read) {
  error = 0;
  grown_ = false;
  while (true) {
    while (!list_.empty()) {
      const std::string_view name = list_.take();
      if (is_taken(name)) continue;  // a file system may give one twice
      last_.assign(name);
      return last_;
    }
    grown_ = true;
    if (merge(files, spool, list_bytes_max)) continue;
    if (!more_) return {};
    error = fd();
    if (error >= 0) error = read(files, spool, error, list_bytes_max, part_read);
    if (error < 0) return {};
  }
}

int DirectoryNames::read(ports::FileSystem& files, NameSpool& spool, int fd, size_t list_bytes_max, const PartRead& part_read) {
  list_.clear();
  runs_.clear();
  more_ = false;
  bool spools = true;
  const auto take = [&](std::string_view name) {
    if (!spools || is_taken(name)) return;
    list_.add(name);
    if (list_.used_bytes() >= list_bytes_max) spools = spool_list(files, spool);
  };
  int result = 1;
  for (bool from_start = true; result > 0 && spools; from_start = false) {
    result = files.read_directory_part(fd, from_start, take);
    part_read();
  }
  if (result >= 0 && spools && !runs_.empty() && !list_.empty()) spools = spool_list(files, spool);
  if (result < 0) list_.clear(), runs_.clear();
  if (result < 0 || spools) {
    list_.sort();
    return std::min(result, 0);
  }
  runs_.clear();
  return read_smallest(files, fd, list_bytes_max, part_read);
}

int DirectoryNames::read_smallest(ports::FileSystem& files, int fd, size_t list_bytes_max, const PartRead& part_read) {
  list_.clear();
  std::string greatest;  // of those kept, when some were not
  const auto take = [&](std::string_view name) {
    if (is_taken(name)) return;
    if (more_ && name > greatest) return;  // behind names that were given up: for the next list
    list_.add(name);
    if (list_.used_bytes() < list_bytes_max) return;
    greatest = list_.keep_smallest(std::max<size_t>(list_.count() / 2, 1));
    more_ = true;
  };
  int result = 1;
  for (bool from_start = true; result > 0; from_start = false) {
    result = files.read_directory_part(fd, from_start, take);
    part_read();
  }
  if (result < 0) list_.clear();
  list_.sort();
  return result;
}

// What is left of the list becomes a run.
bool DirectoryNames::spool_list(ports::FileSystem& files, NameSpool& spool) {
  if (runs_.size() == spool_runs_max) return false;
  list_.sort();
  std::string records;
  records.reserve(list_.used_bytes());
  while (!list_.empty()) {
    const std::string_view name = list_.take();
    if (name.size() + length_bytes > spool_read_bytes) return false;
    put_record(records, name);
  }
  list_.clear();
  const int64_t at = spool.append(files, records);
  if (at < 0) return false;
  runs_.push_back({static_cast<uint64_t>(at), static_cast<uint64_t>(at) + records.size(), {}, 0});
  return true;
}

void DirectoryNames::let_go(ports::FileSystem& files, NameSpool& spool) {
  for (Run& run : runs_) run.let_go();
  if (!list_.empty() && !spool_list(files, spool)) {
    runs_.clear();
    more_ = true;
  }
  NameList none;
  std::swap(list_, none);
}

bool DirectoryNames::head(ports::FileSystem& files, const NameSpool& spool, Run& run, std::string_view& name) {
  const auto length = [&run] {
    const auto byte = [&run](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(run.buffer[run.taken + i])); };
    return length_bytes + byte(0) + (byte(1) << 8);
  };
  if (run.taken + length_bytes > run.buffer.size() || run.taken + length() > run.buffer.size()) {
    run.at += run.taken;
    run.taken = 0;
    const auto bytes = static_cast<size_t>(std::min<uint64_t>(spool_read_bytes, run.end - run.at));
    if (!spool.read(files, run.at, bytes, run.buffer)) return false;
    if (bytes < length_bytes || length() > bytes) return false;
  }
  name = std::string_view(run.buffer).substr(run.taken + length_bytes, length() - length_bytes);
  return true;
}

bool DirectoryNames::merge(ports::FileSystem& files, NameSpool& spool, size_t list_bytes_max) {
  if (runs_.empty()) return false;
  list_.clear();
  if (!merge_list(files, spool, list_bytes_max / merged_part)) {
    list_.clear();
    runs_.clear();
    more_ = true;
  }
  return !list_.empty();
}

bool DirectoryNames::merge_list(ports::FileSystem& files, const NameSpool& spool, size_t bytes_max) {
  using Head = std::pair<std::string_view, Run*>;
  const auto later = [](const Head& a, const Head& b) { return a.first > b.first; };
  std::vector<Head> heads;
  for (Run& run : runs_) {
    std::string_view name;
    if (run.over()) continue;
    if (!head(files, spool, run, name)) return false;
    heads.emplace_back(name, &run);
  }
  std::make_heap(heads.begin(), heads.end(), later);
  while (!heads.empty() && list_.used_bytes() < std::max<size_t>(bytes_max, 1)) {
    std::pop_heap(heads.begin(), heads.end(), later);
    auto& [name, run] = heads.back();
    list_.add(name);
    run->taken += length_bytes + name.size();
    if (run->over()) {
      heads.pop_back();
    } else {
      if (!head(files, spool, *run, name)) return false;
      std::push_heap(heads.begin(), heads.end(), later);
    }
  }
  std::erase_if(runs_, [](const Run& run) { return run.over(); });
  return true;
}

}  // namespace ccixfer::send

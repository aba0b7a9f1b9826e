#include "app/recv/path_store.h"

#include <algorithm>
#include <array>
#include <span>

#include "app/recv/pieces.h"
#include "core/base/hash.h"

namespace ccixfer::recv {
namespace {

constexpr size_t block_hashes = 512;  // 4 KiB

uint64_t hash_of(std::string_view path) { return xxh3_64(as_bytes(path)); }

}  // namespace

bool NamelessFile::open() {
  if (file_) return true;
  if (has_failed_ || root_.staging < 0) return false;
  const std::string name = root_.temporary_name();
  const int fd =
      root_.files.open(root_.staging, name, {.mode = ports::OpenMode::read_write, .create = true, .exclusive = true}, 0600);
  has_failed_ = fd < 0;
  if (fd < 0) return false;
  root_.files.unlink_at(root_.staging, name, false);
  file_ = std::make_shared<HeldFile>(root_.files, fd);
  return true;
}

int64_t NamelessFile::append(Bytes bytes) {
  if (!open()) return -1;
  if (write_all(root_.files, file_->fd(), bytes, end_) < 0) {
    has_failed_ = true;
    return -1;
  }
  const auto at = static_cast<int64_t>(end_);
  end_ += bytes.size();
  return at;
}

bool NamelessFile::read(uint64_t at, MutableBytes into) const {
  for (size_t done = 0; done < into.size();) {
    const int64_t got = root_.files.pread(file_->fd(), into.subspan(done), at + done);
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

void PathSet::add(std::string_view path) {
  hashes_.push_back(hash_of(path));
  sorted_ = false;
  if (hashes_.size() % run_max_ == 0) spill();
}

void PathSet::spill() {
  std::sort(hashes_.begin(), hashes_.end());
  sorted_ = true;
  const int64_t at = file_.append(std::as_bytes(std::span(hashes_)));
  if (at < 0) return;
  Run run;
  run.at = static_cast<uint64_t>(at);
  run.count = hashes_.size();
  for (size_t i = 0; i < hashes_.size(); i += block_hashes) run.firsts.push_back(hashes_[i]);
  runs_.push_back(std::move(run));
  hashes_.clear();
}

bool PathSet::is_in(const Run& run, uint64_t hash) const {
  const auto after = std::upper_bound(run.firsts.begin(), run.firsts.end(), hash);
  if (after == run.firsts.begin()) return false;
  const size_t first = static_cast<size_t>(after - run.firsts.begin() - 1) * block_hashes;
  std::array<uint64_t, block_hashes> block{};
  const std::span hashes = std::span(block).first(std::min(block_hashes, run.count - first));
  if (!file_.read(run.at + first * sizeof(uint64_t), std::as_writable_bytes(hashes))) return true;
  return std::binary_search(hashes.begin(), hashes.end(), hash);
}

bool PathSet::contains(std::string_view path) {
  if (!sorted_) std::sort(hashes_.begin(), hashes_.end());
  sorted_ = true;
  const uint64_t hash = hash_of(path);
  if (std::binary_search(hashes_.begin(), hashes_.end(), hash)) return true;
  return std::any_of(runs_.begin(), runs_.end(), [&](const Run& run) { return is_in(run, hash); });
}

void PathLog::add(std::string_view path) {
  text_.append(path).push_back('\0');
  if (text_.size() < bytes_max_) return;
  const int64_t at = file_.append(as_bytes(text_));
  if (at < 0) return;
  parts_.push_back({static_cast<uint64_t>(at), text_.size()});
  text_.clear();
}

bool PathLog::next(std::string& path) {
  while (read_to_ >= reading_.size()) {
    read_to_ = 0;
    if (parts_read_ < parts_.size()) {
      const Part& part = parts_[parts_read_++];
      reading_.resize(part.bytes);
      failed_ = !file_.read(part.at, std::as_writable_bytes(std::span(reading_.data(), reading_.size())));
      if (failed_) return false;
    } else if (!text_taken_ && !text_.empty()) {
      reading_ = std::move(text_);
      text_taken_ = true;
    } else {
      return false;
    }
  }
  const size_t end = reading_.find('\0', read_to_);
  path.assign(reading_, read_to_, end - read_to_);
  read_to_ = end + 1;
  return true;
}

}  // namespace ccixfer::recv

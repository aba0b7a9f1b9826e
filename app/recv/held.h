// Descriptors that are held open, and how many of directories may be.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>

#include "core/ports/file_system.h"

namespace ccixfer::recv {

// An open descriptor; closed with its last holder.
class HeldFile {
 public:
  HeldFile(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  ~HeldFile() { files_.close(fd_); }
  HeldFile(const HeldFile&) = delete;
  HeldFile& operator=(const HeldFile&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  ports::FileSystem& files_;
  int fd_;
};
using HeldFileRef = std::shared_ptr<HeldFile>;

// While it is held no other one has its device and inode number.
struct HeldDirectory : HeldFile {
  HeldDirectory(ports::FileSystem& files, int fd) : HeldFile(files, fd) {}
  ports::FileIdentity identity;
};
using HeldDirectoryRef = std::shared_ptr<HeldDirectory>;

// How many directories the sessions below one root keep open beyond the job that uses them. Thread-safe.
class HeldBudget {
 public:
  // A quarter of what the process may have open: the rest is for connections and files.
  explicit HeldBudget(size_t descriptors_max) : max_(descriptors_max / 4 < most ? descriptors_max / 4 : most) {}
  [[nodiscard]] size_t session_max() const { return max_ / 4; }
  [[nodiscard]] bool take() {
    if (taken_.fetch_add(1) < max_) return true;
    taken_.fetch_sub(1);
    return false;
  }
  void give(size_t count) { taken_.fetch_sub(count); }
  [[nodiscard]] size_t taken() const { return taken_.load(); }

 private:
  static constexpr size_t most = 4096;
  const size_t max_;
  std::atomic<size_t> taken_{0};
};

}  // namespace ccixfer::recv

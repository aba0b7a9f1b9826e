// A temporary directory, and a FileSystem over the real one in which a test makes single calls fail.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <string>

#include "core/host/file_system.h"

namespace ccixfer::recv::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ccixfer-recv-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] std::string path(const std::string& below = {}) const { return below.empty() ? path_ : path_ + "/" + below; }
  [[nodiscard]] bool has(const std::string& below) const {
    return std::filesystem::exists(std::filesystem::symlink_status(path(below)));
  }
  [[nodiscard]] std::string read(const std::string& below) const {
    std::ifstream in(path(below), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& below, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path(below)).parent_path());
    std::ofstream(path(below), std::ios::binary) << content;
  }

 private:
  std::string path_;
};

// `hook` is asked before each call with its name and its file name (or ""): 0 or -errno. `write_max` makes writes short.
class FaultyFiles final : public ports::FileSystem {
 public:
  std::function<int(std::string_view call, std::string_view name)> hook;
  size_t write_max = ~size_t{0};
  std::function<void()> writing;  // inside each write, by its thread
  size_t descriptors = 1024;

  int open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) override {
    return fault("open", name, [&] { return files_.open(directory, name, flags, permissions); });
  }
  int close(int fd) override {
    const int error = files_.close(fd);
    return fault("close", "", [&] { return error; });
  }
  int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) override {
    return fault("pread", "", [&] { return files_.pread(fd, into, offset_bytes); });
  }
  int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) override {
    if (writing) writing();
    return fault("pwrite", "", [&] { return files_.pwrite(fd, from.first(std::min(from.size(), write_max)), offset_bytes); });
  }
  int fstat(int fd, ports::FileStat& out) override { return files_.fstat(fd, out); }
  int stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) override {
    return fault("stat_at", name, [&] { return files_.stat_at(directory, name, out, follow); });
  }
  int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) override {
    return files_.read_directory_part(fd, from_start, entry);
  }
  int mkdir_at(int directory, std::string_view name, uint32_t permissions) override {
    return fault("mkdir_at", name, [&] { return files_.mkdir_at(directory, name, permissions); });
  }
  int symlink_at(std::string_view target, int directory, std::string_view name) override {
    return files_.symlink_at(target, directory, name);
  }
  int64_t readlink_at(int directory, std::string_view name, std::string& out) override {
    return files_.readlink_at(directory, name, out);
  }
  int rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) override {
    return fault("rename_at", to, [&] { return files_.rename_at(from_directory, from, to_directory, to); });
  }
  int unlink_at(int directory, std::string_view name, bool is_directory) override {
    return files_.unlink_at(directory, name, is_directory);
  }
  int truncate(int fd, uint64_t size_bytes) override { return files_.truncate(fd, size_bytes); }
  int set_mode(int fd, uint32_t permissions) override {
    return fault("set_mode", "", [&] { return files_.set_mode(fd, permissions); });
  }
  int set_owner(int fd, uint32_t uid, uint32_t gid) override {
    return fault("set_owner", "", [&] { return files_.set_owner(fd, uid, gid); });
  }
  int set_mtime(int fd, ports::FileTime mtime) override {
    return fault("set_mtime", "", [&] { return files_.set_mtime(fd, mtime); });
  }
  int set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) override {
    return files_.set_link_owner_at(directory, name, uid, gid);
  }
  int set_link_mtime_at(int directory, std::string_view name, ports::FileTime mtime) override {
    return files_.set_link_mtime_at(directory, name, mtime);
  }
  int fsync(int fd) override {
    return fault("fsync", "", [&] { return files_.fsync(fd); });
  }
  int syncfs(int fd) override {
    return fault("syncfs", "", [&] { return 0 * fd; });  // tests make no power cut here: spare the machine its real disks
  }
  size_t descriptors_max() override { return descriptors; }
  int space(int fd, ports::SpaceInfo& out) override { return files_.space(fd, out); }
  int identify(int directory, std::string_view name, ports::FileIdentity& out) override {
    return fault("identify", name, [&] { return files_.identify(directory, name, out); });
  }
  int get_acl(int fd, bool inherited, std::string& out) override { return files_.get_acl(fd, inherited, out); }
  int set_acl(int fd, bool inherited, std::string_view acl) override {
    return fault("set_acl", "", [&] { return files_.set_acl(fd, inherited, acl); });
  }

 private:
  template <typename Call>
  auto fault(std::string_view call, std::string_view name, Call then) -> decltype(then()) {
    if (hook) {
      const std::lock_guard lock(mutex_);
      if (const int error = hook(call, name); error != 0) return error;
    }
    return then();
  }
  host::PosixFileSystem files_;
  std::mutex mutex_;
};

}  // namespace ccixfer::recv::test

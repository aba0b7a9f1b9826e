// A temporary directory, and a FileSystem over the real one in which a test makes single calls fail.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

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

// `hook` is asked before each call with its name and its file name (or ""): 0 or -errno; more than 0: it went well, and is not
// made. `write_max` and `read_max` make writes and reads short. `given` is what was given to files, in words.
class FaultyFiles final : public ports::FileSystem {
 public:
  std::function<int(std::string_view call, std::string_view name)> hook;
  size_t write_max = ~size_t{0};
  size_t read_max = ~size_t{0};
  std::optional<std::string> told_acl;  // what every file and directory is said to have
  bool read_only = false;
  std::function<void(ports::SpaceInfo&)> tells;           // what the file system says of itself
  std::function<ports::FileTime(ports::FileTime)> keeps;  // what becomes of a time that is given
  std::vector<std::string> given;
  uint32_t foreign_group = ~uint32_t{0};  // this process has each other one
  std::function<void()> writing;          // inside each write, by its thread
  size_t descriptors = 1024;
  uint64_t mounted_inode = 0;  // what has it is of another file system

  int open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) override {
    return fault("open", name, [&] { return files_.open(directory, name, flags, permissions); });
  }
  int close(int fd) override {
    const int error = files_.close(fd);
    return fault("close", "", [&] { return error; });
  }
  int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) override {
    return fault("pread", "", [&] { return files_.pread(fd, into.first(std::min(into.size(), read_max)), offset_bytes); });
  }
  int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) override {
    if (writing) writing();
    return fault("pwrite", "", [&] { return files_.pwrite(fd, from.first(std::min(from.size(), write_max)), offset_bytes); });
  }
  int fstat(int fd, ports::FileStat& out) override {
    return fault("fstat", "", [&] { return seen(files_.fstat(fd, out), out); });
  }
  int stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) override {
    return fault("stat_at", name, [&] { return seen(files_.stat_at(directory, name, out, follow), out); });
  }
  int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) override {
    return fault("read_directory", "", [&] { return files_.read_directory_part(fd, from_start, entry); });
  }
  int mkdir_at(int directory, std::string_view name, uint32_t permissions) override {
    return fault("mkdir_at", name, [&] { return files_.mkdir_at(directory, name, permissions); });
  }
  int symlink_at(std::string_view target, int directory, std::string_view name) override {
    return fault("symlink_at", name, [&] { return files_.symlink_at(target, directory, name); });
  }
  int64_t readlink_at(int directory, std::string_view name, std::string& out) override {
    return files_.readlink_at(directory, name, out);
  }
  int link_at(int from_directory, std::string_view from, int to_directory, std::string_view to) override {
    return fault("link_at", to, [&] { return files_.link_at(from_directory, from, to_directory, to); });
  }
  int rename_at(int from_directory, std::string_view from, int to_directory, std::string_view to) override {
    return fault("rename_at", to, [&] { return files_.rename_at(from_directory, from, to_directory, to); });
  }
  int make_special_at(int directory, std::string_view name, ports::SpecialKind kind, uint64_t device,
                      uint32_t permissions) override {
    return fault("make_special_at", name, [&] { return files_.make_special_at(directory, name, kind, device, permissions); });
  }
  int set_mode_at(int directory, std::string_view name, uint32_t permissions) override {
    note(fmt::format("mode {:o}", permissions));
    return fault("set_mode_at", name, [&] { return files_.set_mode_at(directory, name, permissions); });
  }
  int unlink_at(int directory, std::string_view name, bool is_directory) override {
    return fault("unlink_at", name, [&] { return files_.unlink_at(directory, name, is_directory); });
  }
  int truncate(int fd, uint64_t size_bytes) override {
    return fault("truncate", "", [&] { return files_.truncate(fd, size_bytes); });
  }
  int set_mode(int fd, uint32_t permissions) override {
    note(fmt::format("mode {:o}", permissions));
    return fault("set_mode", "", [&] { return files_.set_mode(fd, permissions); });
  }
  int set_owner(int fd, uint32_t uid, uint32_t gid) override {
    note(fmt::format("owner {} {}", static_cast<int32_t>(uid), static_cast<int32_t>(gid)));
    return fault("set_owner", "", [&] { return files_.set_owner(fd, uid, gid); });
  }
  int set_mtime(int fd, ports::FileTime mtime) override {
    note(fmt::format("time {}.{:09}", mtime.seconds, mtime.nanoseconds));
    return fault("set_mtime", "", [&] { return files_.set_mtime(fd, keeps ? keeps(mtime) : mtime); });
  }
  bool has_group(uint32_t gid) override { return gid != foreign_group; }
  int owner_of_name(bool is_group, std::string_view name, uint32_t& id) override {
    return fault("owner_of_name", name, [&] { return files_.owner_of_name(is_group, name, id); });
  }
  int set_link_owner_at(int directory, std::string_view name, uint32_t uid, uint32_t gid) override {
    note(fmt::format("link's owner {} {}", uid, gid));
    return fault("set_link_owner_at", name, [&] { return files_.set_link_owner_at(directory, name, uid, gid); });
  }
  int set_link_mtime_at(int directory, std::string_view name, ports::FileTime mtime) override {
    note(fmt::format("link's time {}.{:09}", mtime.seconds, mtime.nanoseconds));
    return fault("set_link_mtime_at", name, [&] { return files_.set_link_mtime_at(directory, name, mtime); });
  }
  int fsync(int fd) override {
    return fault("fsync", "", [&] { return files_.fsync(fd); });
  }
  int drop_cached(int fd, uint64_t offset_bytes, uint64_t bytes) override {
    return fault("drop_cached", "", [&] { return files_.drop_cached(fd, offset_bytes, bytes); });
  }
  int next_data(int fd, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes) override {
    return files_.next_data(fd, from_bytes, begin_bytes, end_bytes);
  }
  int syncfs(int fd) override {
    return fault("syncfs", "", [&] { return 0 * fd; });  // tests make no power cut here: spare the machine its real disks
  }
  size_t descriptors_max() override { return descriptors; }
  int space(int fd, ports::SpaceInfo& out) override {
    const int error = files_.space(fd, out);
    out.read_only = out.read_only || read_only;
    if (tells) tells(out);
    return error;
  }
  int lock(int fd, Lock lock) override {
    return fault("lock", "", [&] { return files_.lock(fd, lock); });
  }
  int identify(int directory, std::string_view name, ports::FileIdentity& out) override {
    return fault("identify", name, [&] { return files_.identify(directory, name, out); });
  }
  int get_acl(int fd, bool inherited, std::string& out) override {
    if (!told_acl) return files_.get_acl(fd, inherited, out);
    out = *told_acl;
    return 0;
  }
  int set_acl(int fd, bool inherited, std::string_view acl) override {
    return fault("set_acl", "", [&] { return files_.set_acl(fd, inherited, acl); });
  }
  int list_attributes(int fd, std::vector<std::string>& names) override { return files_.list_attributes(fd, names); }
  int get_attribute(int fd, std::string_view name, std::string& value) override { return files_.get_attribute(fd, name, value); }
  int set_attribute(int fd, std::string_view name, std::string_view value) override {
    return fault("set_attribute", name, [&] { return files_.set_attribute(fd, name, value); });
  }
  int remove_attribute(int fd, std::string_view name) override {
    return fault("remove_attribute", name, [&] { return files_.remove_attribute(fd, name); });
  }

 private:
  int seen(int result, ports::FileStat& stat) const {
    if (result >= 0 && stat.inode == mounted_inode) ++stat.device;
    return result;
  }
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    given.push_back(std::move(what));
  }
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

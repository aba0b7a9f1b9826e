// Inside of sim_file_system: the tree of a simulated disk, the walk of names through it, and its open files. Not for other rooms.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "transports/sim/sim_file_system.h"
#include "transports/sim/sim_inode.h"

namespace ccixfer::sim {

struct OpenFile {
  InodePtr inode;
  ports::OpenMode mode = ports::OpenMode::read;
  bool direct = false;
  ports::FileSystem::Lock lock = ports::FileSystem::Lock::none;
  std::string name;                    // as opened
  std::vector<std::string> listing{};  // of a directory that is read in parts
  size_t listed = 0;
  uint64_t file_errors_seen = 0;
  uint64_t volume_errors_seen = 0;
};

// One file system of the disk: the first holds the root, others are mounted below it.
struct Volume {
  InodePtr root;
  Journal journal;
  ErrorSequence errors;                       // of any of its files
  std::vector<std::weak_ptr<Inode>> written;  // files that may have dirty pages
};

// Where a name leads: `error` (-errno), or the directory that holds the last component and what is there (null: nothing).
struct Place {
  int error = 0;
  InodePtr parent;
  std::string last;
  InodePtr node;
};

// It is one struct because a crash, a name and a page may each change any part of the disk.
struct SimFileSystem::Impl final : public NodePart {
  Impl(World& owner, NodeId node_id, const FileSystemOptions& fs_options);
  ~Impl() override { world.remove_part(node, this); }

  World& world;
  const NodeId node;
  FileSystemOptions options;
  Random random;
  InodePtr root;
  std::vector<Volume> volumes;
  std::map<int, OpenFile> open_files;
  int next_fd = 10'000;  // far from real descriptors, so that a mix-up shows
  uint64_t next_inode = 2;
  uint64_t next_generation = 2;
  std::vector<uint64_t> free_numbers;  // of inodes that are gone; the last is given out next
  uint64_t used_pages = 0;
  uint64_t used_inodes = 1;
  uint64_t calls = 0;
  bool is_down = false;
  uint64_t freeze_at_call = ~uint64_t{0};
  std::function<void()> on_freeze;
  std::function<int(std::string_view, std::string_view)> hook;
  std::function<void(std::string_view, const std::string&)> watch;

  // Every call begins here: counts, lets the hook speak. Not 0: the call fails with it.
  int enter(std::string_view call, std::string_view name);
  int enter_fd(std::string_view call, int fd, OpenFile*& file);  // and looks the descriptor up
  void changed(std::string_view call, const InodePtr& directory, std::string_view name);
  [[nodiscard]] OpenFile* find(int fd);

  // `beneath`: as openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, but `follow_last` lets the last one be a link.
  Place walk(InodePtr start, std::string_view path, bool beneath, bool follow_last, int links_left = 40);
  Place locate(int directory, std::string_view name, bool follow);                   // for open
  Place locate_at(int directory, std::string_view name, bool follow);                // for *_at: one component below a descriptor
  InodePtr create(const Inode& parent, ports::FileType type, uint32_t permissions);  // null: no inodes
  [[nodiscard]] Volume& volume_of(const Inode& inode) { return volumes[inode.volume]; }
  void note_written(const InodePtr& inode);
  void lose(Inode& inode);              // its dirty pages; whoever has it open is to be told
  void fail_writeback(Volume& volume);  // of some of its files
  void write_back_in_background();      // fails by chance
  void link(const InodePtr& directory, const std::string& name, const InodePtr& child);
  void touch(Inode& inode, bool data);
  [[nodiscard]] ports::FileTime kept_time(ports::FileTime time) const;
  void charge(Inode& inode);   // after its pages changed
  void release(Inode& inode);  // when its last name and descriptor are gone
  // After a crash: memory is what the disk has. What was gone and is back may find its number taken.
  void recover(const InodePtr& directory, std::set<uint64_t>& numbers);
  void bring_to_disk(Inode& inode);
  void sync_below(const InodePtr& directory);  // within its file system
  void sync_volume(size_t index);
  void on_crash() override;
  void stat(const Inode& inode, ports::FileStat& out) const;
  [[nodiscard]] uint64_t capacity_pages() const { return options.capacity_bytes / page_bytes; }
};

[[nodiscard]] std::string path_of(const InodePtr& directory, std::string_view name);

}  // namespace ccixfer::sim

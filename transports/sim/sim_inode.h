// Inside of sim_file_system: a file, directory or link with what is in memory (`now`) and what is on the disk (`durable`), and
// the journal of name changes between the two. Not for other rooms.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/ports/file_system.h"
#include "transports/sim/random.h"

namespace ccixfer::sim {

inline constexpr size_t page_bytes = 16u << 10;
inline constexpr size_t sector_bytes = 512;  // what a disk writes whole

using Page = std::array<std::byte, page_bytes>;
using PagePtr = std::shared_ptr<Page>;  // null: a hole

struct Meta {
  uint32_t mode = 0;
  uint32_t uid = 0, gid = 0;
  uint64_t size_bytes = 0;
  ports::FileTime mtime, ctime;
};

// The kernel's errseq_t: that data could not be written is told once to each descriptor that was open when it happened, and to
// the first one opened later if nobody was told before.
class ErrorSequence {
 public:
  void note() {
    if (seen_) ++count_;
    seen_ = false;
  }
  [[nodiscard]] uint64_t sample() const { return seen_ ? count_ : count_ - 1; }  // when a descriptor is opened
  [[nodiscard]] bool check_and_advance(uint64_t& since) {                        // true: an error to tell
    if (since == count_) return false;
    since = count_;
    seen_ = true;
    return true;
  }
  void forget() { seen_ = true; }  // what it belongs to leaves the memory

 private:
  uint64_t count_ = 0;
  bool seen_ = true;
};

struct Inode;
using InodePtr = std::shared_ptr<Inode>;
using Entries = std::map<std::string, InodePtr, std::less<>>;

struct Inode {
  uint64_t number = 0;      // reused
  uint64_t generation = 0;  // never
  size_t volume = 0;        // the file system it is on
  ports::FileType type = ports::FileType::regular;
  Meta now, durable;
  std::vector<PagePtr> pages, durable_pages;
  std::vector<bool> dirty;           // by page; a page that is clean after a failed fsync is lost all the same
  std::string target;                // of a symlink
  Entries entries, durable_entries;  // of a directory
  std::weak_ptr<Inode> parent;       // of a directory, for `..`
  std::string name;                  // in the parent
  uint32_t links = 1;
  uint32_t opens = 0;
  size_t charged_pages = 0;  // of the file system's capacity
  ErrorSequence errors;      // of its data
  bool listed = false;       // among those that may have dirty pages

  [[nodiscard]] size_t read(MutableBytes into, uint64_t offset_bytes, bool from_disk = false) const;
  void write(Bytes from, uint64_t offset_bytes, bool keeps_no_zeros = false);
  void truncate(uint64_t size_bytes);
  [[nodiscard]] size_t allocated_pages() const;

  void sync();  // fsync: data and metadata reach the disk
  // The same on a disk that damages a page now and then.
  void sync(Random& random, double decay_chance);
  [[nodiscard]] bool is_dirty() const;
  void lose_dirty();  // a failed write-back: the pages count as clean and never reach the disk
  // Clean pages leave the memory: what is read then is what the disk has.
  void evict() { evict(0, pages.size()); }
  void evict(size_t first_page, size_t end_page);
  void crash(Random& random);  // what was not synced is dropped, kept, or torn

 private:
  void set_size(uint64_t size_bytes);
};

// Changes of names in order; each is atomic (a rename changes two names at once).
class Journal {
 public:
  struct Change {
    InodePtr directory;
    std::string name;
    InodePtr node;  // null: the name is removed
  };
  void add(std::vector<Change> operation) { log_.push_back(std::move(operation)); }
  void sync_all();
  // All that concerns this directory, and what must come before it; with `ordered` everything older too, as a journalling file
  // system in fact does (POSIX promises only the directory).
  void sync_directory(const Inode& directory, bool ordered);
  void crash(Random& random);  // nothing, all, a prefix or a subset of the rest reaches the disk

 private:
  using Operation = std::vector<Change>;
  template <typename Wanted>
  void apply_wanted(Wanted&& wanted);  // the operations that are wanted, and older ones on the same names
  static void apply(const Operation& operation);
  std::vector<Operation> log_;
};

}  // namespace ccixfer::sim

// A scripted destination in place of session::Link: this test links its own Link, whose puts and posts arrive here at once and
// whose callbacks are made from turn(). By itself it behaves as a destination should, in memory; knobs make it misbehave.
#pragma once
#include <catch2/catch.hpp>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/send/source.h"
#include "app/session/entry.h"
#include "app/session/limits.h"
#include "app/session/segment.h"
#include "core/host/file_system.h"

namespace ccixfer::send_test {

using session::LaneIndex;
using session::Verdict;

// Jobs run when reaped, in order or the newest first.
class QueuePool final : public ports::WorkPool {
 public:
  explicit QueuePool(ports::FileSystem& files) : files_(files) {}
  void submit(std::unique_ptr<ports::Job> job) override { jobs_.push_back(std::move(job)); }
  size_t reap() override;
  [[nodiscard]] size_t in_flight() const override { return jobs_.size(); }
  [[nodiscard]] int os_handle() const override { return -1; }
  bool newest_first = false;

 private:
  ports::FileSystem& files_;
  std::deque<std::unique_ptr<ports::Job>> jobs_;
};

// Counts descriptors and lets a test fail or disturb calls.
class WatchedFiles final : public ports::FileSystem {
 public:
  std::function<int(std::string_view call, std::string_view name)> hook = [](std::string_view, std::string_view) { return 0; };
  std::function<void(int fd)> after_pread = [](int) {};
  std::function<void(int fd)> after_show;  // none: files are not shown but read
  std::string stream;                      // what standard input gives, some bytes at a time and nothing every other time
  size_t stream_at = 0;
  size_t stream_chunk = 1u << 16;
  int open_now = 0;
  int open_most = 0;
  int directory_reads = 0;              // from the start
  std::vector<std::string> more_names;  // in each directory, besides those that are there
  int bad_descriptors = 0;              // calls that were given one that was not open
  size_t names_read = 0;
  size_t write_max = ~size_t{0};
  bool tells_holes = false;                 // else all of a file is data
  bool keeps_attributes = false;            // as NFS: fstat gives what was there first, until it is asked afresh
  bool owner_above_root = false;            // all is said to belong to user 6 and group 7
  uint64_t written_to = 0;                  // the furthest end of a write
  std::map<uint64_t, uint64_t> devices;     // by inode: what stands on another device than it does
  std::map<uint64_t, std::string> remarks;  // by inode: the value of user.remark
  void mount(const std::string& place);     // that directory and all that is in it are on a device of their own

  int open(int directory, std::string_view name, ports::OpenFlags flags, uint32_t permissions) override;
  int close(int fd) override;
  int64_t pread(int fd, MutableBytes into, uint64_t offset_bytes) override;
  int64_t read_stream(int fd, MutableBytes into) override;
  int64_t pwrite(int fd, Bytes from, uint64_t offset_bytes) override;
  int next_data(int fd, uint64_t from_bytes, uint64_t& begin_bytes, uint64_t& end_bytes) override {
    return tells_holes ? real_.next_data(fd, from_bytes, begin_bytes, end_bytes)
                       : FileSystem::next_data(fd, from_bytes, begin_bytes, end_bytes);
  }
  int fstat(int fd, ports::FileStat& out) override;
  int fstat_fresh(int fd, ports::FileStat& out) override;
  std::set<std::string, std::less<>> unlisted;  // directories of that name let nobody read their names
  std::function<bool(ports::FileTime change)> waits_out = [](ports::FileTime) { return false; };
  bool outwait(const ports::FileTime& change) override { return waits_out(change); }
  int show(int fd, MutableBytes at, uint64_t offset_bytes) override;
  int stat_at(int directory, std::string_view name, ports::FileStat& out, bool follow) override;
  int list_attributes(int fd, std::vector<std::string>& names) override;
  int get_attribute(int fd, std::string_view name, std::string& value) override;
  int read_directory_part(int fd, bool from_start, const std::function<void(std::string_view name)>& entry) override;
  int mkdir_at(int, std::string_view, uint32_t) override { return -EROFS; }
  int symlink_at(std::string_view, int, std::string_view) override { return -EROFS; }
  int64_t readlink_at(int directory, std::string_view name, std::string& out) override {
    return real_.readlink_at(directory, name, out);
  }
  int rename_at(int, std::string_view, int, std::string_view) override { return -EROFS; }
  int unlink_at(int directory, std::string_view name, bool is_directory) override;  // what walks spool to
  int truncate(int fd, uint64_t size_bytes) override { return real_.truncate(fd, size_bytes); }
  int set_mode(int, uint32_t) override { return -EROFS; }
  int set_owner(int, uint32_t, uint32_t) override { return -EROFS; }
  int set_mtime(int, ports::FileTime) override { return -EROFS; }
  int set_link_owner_at(int, std::string_view, uint32_t, uint32_t) override { return -EROFS; }
  int name_of_owner(bool is_group, uint32_t, std::string& name) override {
    name = is_group ? "many" : "somebody";
    return hook("name_of_owner", name);
  }
  int set_link_mtime_at(int, std::string_view, ports::FileTime) override { return -EROFS; }
  int fsync(int) override { return -EROFS; }
  int syncfs(int) override { return -EROFS; }
  int space(int, ports::SpaceInfo&) override { return -EROFS; }

 private:
  int as_told(int result, ports::FileStat& out) const;
  host::PosixFileSystem real_;
  std::map<int, ports::FileStat> kept_;  // by descriptor
};

class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  [[nodiscard]] std::string path(const std::string& name = "") const { return name.empty() ? root_ : root_ + "/" + name; }
  void file(const std::string& name, std::string_view content) const;
  void file_of(const std::string& name, uint64_t size_bytes) const;  // of pattern()
  void directory(const std::string& name) const;

 private:
  std::string root_;
};
[[nodiscard]] std::string pattern(uint64_t size_bytes);  // no two 4 MiB pieces alike

struct Put {
  LaneIndex lane = 0;
  uint64_t context = 0;
  uint64_t mailbox = 0, key = 0, epoch = 0;
  std::vector<std::byte> bytes;
  session::SegmentHeader header;
};

struct ReceivedFile {
  session::Entry entry;
  Verdict verdict = Verdict::done;
  std::map<uint64_t, std::string> pieces;
  std::optional<std::string> packed;
  std::optional<session::FileEnd> end;
  std::vector<session::Want::Range> wanted;  // of the verdict `pieces`
  bool ended = false;
  [[nodiscard]] bool is_complete() const;  // its end is here, and so are the pieces that were wanted
  bool bad = false;
};

// Where the Link of this test program leads: what is put and posted on it arrives here at once.
class LinkEnd {
 public:
  LinkEnd();
  virtual ~LinkEnd();
  LinkEnd(const LinkEnd&) = delete;
  LinkEnd& operator=(const LinkEnd&) = delete;
  [[nodiscard]] session::Link& link() { return *link_; }

  size_t queue_room = 4096;
  bool delivered = true;  // what Link::messages_delivered says
  bool sent = true;       // and Link::messages_sent
  std::vector<session::Message> posted;
  std::vector<LaneIndex> closed;
  std::vector<std::pair<LaneIndex, session::Ask>> asks;

  virtual Status on_put(LaneIndex lane, uint64_t offset, uint64_t length, uint64_t mailbox, uint64_t key, uint64_t epoch,
                        uint64_t context) = 0;
  virtual void on_post(const session::Message& message) { posted.push_back(message); }

 private:
  std::unique_ptr<session::Link> link_;
};

class FakeReceiver final : public LinkEnd {
 public:
  FakeReceiver();

  // Knobs.
  std::function<Verdict(const session::Entry&, uint64_t index)> decide;
  std::function<std::vector<session::Want::Range>(uint64_t index)> want = [](uint64_t) {
    return std::vector<session::Want::Range>{};
  };
  std::function<Status(const Put&)> put_status = [](const Put&) {
    return Status::success;
  };                                                                                    // as reported; not success: not placed
  std::function<Status(LaneIndex)> accept = [](LaneIndex) { return Status::success; };  // what Link::put says
  std::function<bool(const Put&)> damaged = [](const Put&) { return false; };           // placed, then asked for again
  uint64_t credit_window = 4;
  bool by_turns = false;  // the source is to ask
  bool answering = true;
  bool giving_results = true;
  size_t puts_per_turn = 1000;
  uint64_t failures_in_summary = 0;
  std::optional<uint64_t> bytes_of_result;  // durable with each file; none: what came of it

  // What came.
  std::map<uint64_t, ReceivedFile> entries;  // by index
  std::vector<Put> puts;                     // as issued (without bytes after they were handled)
  uint64_t outstanding_most = 0;
  uint64_t outstanding = 0;
  bool bye = false;
  std::optional<session::Abort> abort;
  [[nodiscard]] const ReceivedFile* by_path(const std::string& path, session::EntryType type = session::EntryType::file) const;
  [[nodiscard]] std::string content(const std::string& path) const;
  [[nodiscard]] static std::string content_of(const ReceivedFile& file);
  [[nodiscard]] bool every_number_placed(LaneIndex lane) const;  // 0 to the greatest that was put: an epoch would wait for a gap
  [[nodiscard]] size_t count(session::SegmentKind kind) const;

  // The world.
  void lane_up(LaneIndex lane);
  void grant(LaneIndex lane, uint64_t limit);
  void lane_down(LaneIndex lane, Status status = Status::disconnected);
  void turn();
  void take_first(std::vector<session::Entry> listed);  // that came with the Open
  void say(const session::Message& message) { to_source_.push_back(message); }
  [[nodiscard]] size_t in_air() const { return in_air_.size(); }
  MutableBytes memory;  // the pool's
  send::Source* source = nullptr;

  // From the Link.
  Status on_put(LaneIndex lane, uint64_t offset, uint64_t length, uint64_t mailbox, uint64_t key, uint64_t epoch,
                uint64_t context) override;
  void on_post(const session::Message& message) override;

 private:
  struct Lane {
    bool up = false;
    session::LaneOpen where;
    uint64_t placed = 0;
    std::set<uint64_t> numbers;  // put
    std::set<uint64_t> placed_numbers;
    uint64_t limit = 0;
  };
  void place(Put& put);
  void place_entries(Put& put);
  void ask_again(const Put& put);
  void finish(ReceivedFile& file, uint64_t index, ErrorKind kind);
  void flush();

  std::map<LaneIndex, Lane> lanes_;
  std::deque<Put> in_air_;
  std::deque<session::Message> to_source_;
  std::map<uint64_t, std::vector<session::Entry>> waiting_;  // entries segments by first index
  uint64_t next_index_ = 0;
  uint64_t answered_ = 0;
  std::set<uint64_t> open_;
  uint64_t bytes_ = 0;
  std::optional<uint64_t> end_;
  bool summary_ = false;
};

struct FileSeen {
  std::string path, status, reason;
  uint64_t bytes = 0;
};

class SeenByUser final : public send::SourceObserver {
 public:
  std::vector<FileSeen> files;
  std::vector<std::string> warnings, failures;
  std::vector<std::string> items;  // "letters name", in order
  void on_item(const session::ItemLine& item) override { items.push_back(item.letters + " " + item.name + item.target); }
  void on_file(std::string_view path, uint64_t bytes, std::string_view status, std::string_view reason) override {
    files.push_back({std::string(path), std::string(status), std::string(reason), bytes});
  }
  std::vector<std::string> failed_again;
  void on_failed_again(std::string_view path) override { failed_again.emplace_back(path); }
  void on_warning(std::string_view line) override { warnings.emplace_back(line); }
  void on_failure(std::string_view line) override { failures.emplace_back(line); }
  [[nodiscard]] const FileSeen* find(const std::string& path) const;
};

// A source with all that it needs. Lane 0 is up.
struct Bench {
  explicit Bench(const send::SourceOptions& options, uint32_t buffers = 8);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  void start();
  void step();                          // one turn of everything
  void run(size_t steps_max = 100000);  // until finished; REQUIREs it
  void run_until(const std::function<bool()>& condition, size_t steps_max = 100000);
  [[nodiscard]] session::Tally tally() const { return source->tally(); }

  WatchedFiles files;
  QueuePool work{files};
  Counters counters;
  memory::Pool pool;
  FakeReceiver receiver;
  SeenByUser seen;
  std::unique_ptr<send::Source> source;
  const Instant began{std::chrono::hours(5)};  // clocks do not begin at 0
  Instant now = began;
};

[[nodiscard]] send::SourceOptions options_of(std::vector<std::string> sources, uint32_t bits = 0);
inline constexpr uint32_t archive =
    session::option_recursive | session::option_links | session::option_permissions | session::option_times | session::option_owner;

}  // namespace ccixfer::send_test

// Lists what is to be sent: depth first, the names of a directory in byte order, the entry of a
// directory before its content and its `leave` after it. Each step() gives at most one batch, so the
// walk pauses wherever its reader wants. It looks at walk_step_names_max names at most, so the batch
// may have no records where much is excluded.
//
// Memory: one list of names for each level, at most walk_names_bytes_max each and
// walk_names_total_bytes_max together; more names go through a spool (names.h). At most
// walk_descriptors_max levels are held open; the others are opened again by their path below the
// source.
//
// Not thread-safe, but not tied to a thread: one step() runs at a time, in the work pool.
// Errors: select() refuses a source that is not there (source_selection) or that leaves the served
// directory (not_authorised). What goes wrong later is a record of the batch: `failed` counts as a
// failed file, `vanished` as a vanished one, and `warning` as nothing.
//
// README.md has the rules for directories as sources, for several sources and for standard input.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/filter/path_list.h"
#include "app/filter/scope.h"
#include "app/send/entry_details.h"
#include "app/send/names.h"
#include "app/session/entry.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::send {

inline constexpr uint32_t walk_batch_entries_max = 1024;
inline constexpr uint32_t walk_batch_text_bytes = 256u << 10;
inline constexpr uint32_t walk_step_names_max = 4096;
inline constexpr size_t walk_names_bytes_max = 8u << 20;
inline constexpr size_t walk_names_total_bytes_max = 24u << 20;
inline constexpr size_t walk_descriptors_max = 64;
inline constexpr std::string_view stream_name = "-";  // standard input, when nothing is served
inline constexpr int stream_fd = 0;

struct WalkOptions {
  std::vector<std::string> sources;
  int served_root = -1;                                      // >= 0: sources are below it, and links are never followed out of it
  std::function<bool(std::string_view)> may_be_served = {};  // whether a path below it may; empty: each may
  bool links = false;                                        // keep symbolic links; else follow them
  bool specials = false;                                     // devices, FIFOs and sockets too
  DetailsWish details = {};
  bool directory = false;       // the destination names a directory: a single file keeps its name
  std::string spool_directory;  // for names that are too many for memory; "": such directories are read more than once
  std::optional<filter::PathList> list = {};  // of the one source, a directory: what of it is sent
  bool one_file_system = false;        // what is in directories of other ones than the source's, or the name's, is not listed
  bool tells_listed = false;           // each leave says whether the directory was listed in full
  filter::Rules rules = {};            // what they exclude is not listed, and what is in it not looked at
  std::string working_directory = {};  // absolute, for sources that are named relative to it
  size_t names_bytes_max = walk_names_bytes_max;
  size_t names_total_bytes_max = walk_names_total_bytes_max;
  uint32_t batch_entries_max = walk_batch_entries_max;
};

struct WalkRecord {
  enum class Kind : uint8_t { entry, warning, failed, vanished };
  Kind kind = Kind::entry;
  session::EntryType type = session::EntryType::file;
  bool has_digest = false;
  bool is_linked = false;  // as of session::Entry
  bool is_whole = false;   // leave: all names were listed
  uint32_t source = 0;
  uint32_t path_at = 0, path_bytes = 0;  // in WalkBatch::text
  // entry: target of a link; leave: names that are there too, each with a NUL behind it; else: the reason in words
  uint32_t more_at = 0, more_bytes = 0;
  uint32_t linked_to_at = 0, linked_to_bytes = 0;
  uint32_t owners_at = 0, user_bytes = 0, group_bytes = 0;  // their names, one behind the other
  uint32_t extended_at = 0, extended_bytes = 0;             // as session::encode_extended has it
  bool has_extended = false;
  ports::FileStat stat;
  Hash128 digest;
};

struct WalkBatch {
  std::string text;
  std::vector<WalkRecord> records;
  uint32_t sources_walked = 0;      // sources before this one are listed completely
  bool wants_root = false;          // stopped because no further source directory may be opened now
  std::optional<Error> error = {};  // the walk cannot go on: a file of rules is wrong
  bool done = false;
  [[nodiscard]] std::string_view path(const WalkRecord& record) const;
  [[nodiscard]] std::string_view more(const WalkRecord& record) const;
  [[nodiscard]] std::string_view linked_to(const WalkRecord& record) const;
  [[nodiscard]] std::string_view user(const WalkRecord& record) const;
  [[nodiscard]] std::string_view group(const WalkRecord& record) const;
  [[nodiscard]] std::string_view extended(const WalkRecord& record) const;
};

// Which symbolic links are followed when a file of a source is opened: none, those on the way to it, or it too. With no directory
// those on the way are the user's, and always followed.
enum class Follow : uint8_t { none, on_the_way, all };

// How a file of a source is opened: `name` below `directory`.
struct SourcePlace {
  int directory = ports::FileSystem::no_directory;
  std::string_view name;
  Follow follow = Follow::none;
  // Where it is looked for next when nothing is there, in this order: several sources may have a file of that path.
  struct Other {
    int directory = ports::FileSystem::no_directory;
    std::string name;
    Follow follow = Follow::none;
  };
  std::vector<Other> others = {};
};

class Walk {
 public:
  explicit Walk(WalkOptions options);
  // Each name that is looked at, and each part of a directory that is read, counts there: on a slow disk a step takes long.
  void count_steps(std::atomic<uint64_t>& steps) { steps_ = &steps; }
  // Once, before the first step: looks at every source as the user named it.
  [[nodiscard]] Result<void> select(ports::FileSystem& files);
  // In place of steps, for who lists nothing and reads what others have listed: opens every source that is a directory.
  [[nodiscard]] Result<void> open_roots(ports::FileSystem& files);
  // Fills `out`; the walk is over when out.done. `may_open_root`: whether the next source directory may be opened.
  void step(ports::FileSystem& files, WalkBatch& out, bool may_open_root);
  // Where the file with that entry path stands. The views live as long as the walk and `path`. After open_roots() all sources are
  // looked through in their order, since who lists them knows which one has it; a name "" is where none can have it.
  [[nodiscard]] SourcePlace place(uint32_t source, std::string_view path) const;
  [[nodiscard]] bool is_directory(uint32_t source) const { return sources_[source].type == ports::FileType::directory; }
  [[nodiscard]] bool is_stream(uint32_t source) const { return sources_[source].stream; }
  [[nodiscard]] const std::string& given(uint32_t source) const { return sources_[source].given; }
  // The name of what a SRC names; "": it has none, or what is in it is meant.
  [[nodiscard]] static std::string own_name(std::string_view given);
  // Gives up the root descriptor of a source whose entries have all ended; -1: there is none.
  [[nodiscard]] int take_root(uint32_t source);
  void close(ports::FileSystem& files);  // everything that is still open

 private:
  struct Source {
    std::string given;
    std::string name;         // under which it is sent; "" when the session's path names it, or when it is what is in a directory
    bool is_content = false;  // a directory is named as what is in it: with a slash behind
    ports::FileType type = ports::FileType::regular;
    bool stream = false;
    ports::FileStat stat;
    int root = -1;
    int missing = 0;  // the error of one that is not there, or cannot be opened in its turn, beside others: nothing of it is sent
  };
  // For a destination that deletes.
  struct Listed {
    bool is_whole = true;
    std::string left_out;  // as of WalkRecord; at most left_out_bytes_max
  };
  struct Frame {
    int fd = -1;
    size_t path_bytes = 0;           // this directory's path is path_[0, path_bytes)
    ports::FileStat stat;            // as sent: of the first source that has it
    uint64_t device = 0, inode = 0;  // of this one
    DirectoryNames names;
    std::vector<uint32_t> earlier;  // earlier sources that list this directory too
    Listed listed = {};
    filter::PathList::Range range = {};  // of the list: what is below this directory
    bool from_list = false;              // only what `range` names is sent of this directory
    bool one_level = false;              // its names are sent, directories among them empty, but for what `range` names
    bool seeks_absent = false;           // its names are listed: which of the range are not among them?
  };

  // What earlier sources have where a directory stands.
  struct Merged {
    std::vector<uint32_t> sources;         // that list a directory there
    std::optional<ports::FileStat> first;  // of the first that has one, whose attributes are sent
    uint32_t first_source = 0;
    [[nodiscard]] const ports::FileStat& sent(const ports::FileStat& own) const { return first ? *first : own; }
  };

  [[nodiscard]] SourcePlace place_in(const Source& source, std::string_view path) const;
  [[nodiscard]] static bool may_have(const Source& source, std::string_view path);
  [[nodiscard]] int open_source(ports::FileSystem& files, const Source& source) const;
  [[nodiscard]] int open_below(ports::FileSystem& files, int root, std::string_view path) const;
  // Opens the directory in which a name below the served root stands, without following links, and
  // gives the name there; "": it is the served root itself.
  [[nodiscard]] int open_parent(ports::FileSystem& files, std::string_view given, std::string_view& name) const;
  [[nodiscard]] int stat_source(ports::FileSystem& files, const std::string& given, bool follow, ports::FileStat& out) const;
  // Where a served name with a slash behind it leads, each link on the way followed. -EXDEV, -ELOOP: out of what may be served.
  [[nodiscard]] int lead_on(ports::FileSystem& files, std::string& path) const;
  void follow_served(ports::FileSystem& files, Source& source, int& result) const;
  [[nodiscard]] int64_t read_link_of(ports::FileSystem& files, const std::string& given, std::string& target) const;
  void begin_source(ports::FileSystem& files, WalkBatch& out);
  void advance(ports::FileSystem& files, WalkBatch& out);
  void count_step() const {
    if (steps_ != nullptr) steps_->fetch_add(1, std::memory_order_relaxed);
  }
  using Child = filter::PathList::Child;
  // `child`: what the list says of it.
  void take(ports::FileSystem& files, WalkBatch& out, std::string_view name, Child* child);
  [[nodiscard]] int look(ports::FileSystem& files, std::string_view name, Child* child, ports::FileStat& stat) const;
  [[nodiscard]] bool may_lead_on(const Child* child) const;
  void take_directory(ports::FileSystem& files, WalkBatch& out, std::string_view name, const ports::FileStat& stat,
                      const Merged& merged, const Child* child);
  // How the list goes on in a directory. False: the directory is sent alone.
  [[nodiscard]] bool choose(Frame& frame, const Child& child) const;
  void take_link(ports::FileSystem& files, WalkBatch& out, std::string_view name, const ports::FileStat& stat);
  // These names of the list will be told, each with that error.
  void lose(const filter::PathList::Range& below, int error);
  void seek_absent(ports::FileSystem& files, WalkBatch& out, int directory);
  void leave(ports::FileSystem& files, WalkBatch& out);
  void bound_names(ports::FileSystem& files);
  void hold(Frame&& frame, ports::FileSystem& files, WalkBatch& out);
  [[nodiscard]] bool begin_rules(ports::FileSystem& files, const Source& source, WalkBatch& out);
  [[nodiscard]] std::string rules_begin_at(const Source& source) const;
  // The rules of the earlier sources that may have what is in this one; they follow the directory in hand.
  [[nodiscard]] Result<void> begin_earlier_rules(ports::FileSystem& files);
  [[nodiscard]] Result<void> enter_earlier_rules(ports::FileSystem& files, uint32_t source, std::string_view directory);
  // The directory of that path in an earlier source; or -errno.
  [[nodiscard]] int open_earlier(ports::FileSystem& files, uint32_t source, std::string_view path) const;
  void end_with(WalkBatch& out, const Error& error);
  [[nodiscard]] bool is_loop(const ports::FileStat& stat) const;
  // Looks for path_ in the earlier sources. True: the path is theirs, or may be, and the reason was given.
  [[nodiscard]] bool taken_earlier(ports::FileSystem& files, WalkBatch& out, bool is_directory, Merged& merged);
  void emit(WalkBatch& out, session::EntryType type, const ports::FileStat& stat, std::string_view target = {});
  // The entry with what it tells besides its status.
  void emit_whole(ports::FileSystem& files, WalkBatch& out, session::EntryType type, const ports::FileStat& stat,
                  const EntryDetails::Place& place, std::string_view target = {});
  // A directory that stands at `place`, with the status and attributes of the first source that has it.
  void emit_directory(ports::FileSystem& files, WalkBatch& out, const Merged& merged, const ports::FileStat& own,
                      const EntryDetails::Place& place);
  void tell(WalkBatch& out, WalkRecord::Kind kind, std::string_view reason);
  void tell_errno(WalkBatch& out, int error);
  void fail_name(WalkBatch& out, std::string_view name, std::string_view reason);
  void fail_name(WalkBatch& out, std::string_view name, int error);
  void leave_out(WalkBatch& out, std::string_view name, std::string_view reason);
  void is_there(std::string_view name);
  void emit_leave(WalkBatch& out, const ports::FileStat& stat, const Listed& listed);

  WalkOptions options_;
  bool follow_ = false;
  std::vector<Source> sources_;
  std::map<std::string, uint32_t, std::less<>> file_names_;  // of sources that are files, up to this one: who had it first
  std::map<uint32_t, filter::Scope> earlier_rules_;          // of sources that are directories
  uint32_t current_ = 0;                                     // source
  bool is_listed_by_another_ = false;                        // open_roots()
  bool root_sent_ = false;                                   // the entry "" went out; its leave comes last
  ports::FileStat root_stat_;
  Listed root_listed_;  // of all sources that are contents of directories
  bool over_ = false;
  std::string path_;  // of the entry in hand
  std::vector<Frame> stack_;
  filter::PathList::Range lost_ = {};  // of the list: below what cannot be entered, and not told yet
  int lost_error_ = 0;
  filter::Scope scope_;
  NameSpool spool_;
  EntryDetails details_;
  std::string target_;
  std::atomic<uint64_t>* steps_ = nullptr;
};

// A number that changes whenever the content of the file may have changed. What was sent of one
// version is never completed from another.
[[nodiscard]] uint64_t version_of(const ports::FileStat& stat);

}  // namespace ccixfer::send

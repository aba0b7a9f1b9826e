// The decisions on one segment of entries. Private to entries.cc and the six decide_*.cc, which implement it.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/recv/entries.h"

namespace ccixfer::recv {

[[nodiscard]] bool is_special(session::EntryType type);  // a device, FIFO or socket
[[nodiscard]] bool is_same_special(const session::Entry& entry, const ports::FileStat& stat);
// Of the same letter: rsync says of a FIFO where a socket stood that its content differs, and of a device where a FIFO stood that
// it is new.
[[nodiscard]] bool is_special_of_kind(const session::Entry& entry, const ports::FileStat& stat);

// The parent's descriptor is kept from entry to entry: a walk stays in one directory for long.
class EntryDecider::Job {
 public:
  explicit Job(EntryDecider& session)
      : session_(session), root_(session.root_), files_(session.root_.files), directories_(session.directories_) {}

  std::optional<Error> prepare_base();
  std::optional<Error> look_again();
  Decision decide(const session::Entry& entry, uint64_t index);
  [[nodiscard]] std::optional<Error>& fatal() { return fatal_; }

 private:
  [[nodiscard]] bool base_is_directory();
  [[nodiscard]] bool base_leads_to_directory();
  [[nodiscard]] int would_make_directories(const std::string& path);
  [[nodiscard]] static Error passes_link(const std::string& path);
  [[nodiscard]] bool dry() const { return session_.policy_.has(session::option_dry_run); }
  int make_directories(const std::string& path);
  int open_parent(std::string_view parent);
  // No other session places anything at the path until the next entry is decided: what is made there first has a name that says
  // which path it is for.
  [[nodiscard]] bool claim(const std::string& path);
  static Decision& failed(Decision& decision, int negative_errno);
  Decision& failed_or_fatal(Decision& decision, int negative_errno);

  [[nodiscard]] bool came_from_earlier_source(const Decision& decision) const {
    return session_.earlier_ != nullptr && session_.earlier_->have(decision.path);
  }
  void place(const session::Entry& entry, uint64_t index, Decision& decision);
  void decide_directory(const session::Entry& entry, uint64_t index, Decision& decision);
  [[nodiscard]] bool unlock(const std::string& path, uint32_t mode);
  void decide_symlink(const session::Entry& entry, Decision& decision);
  [[nodiscard]] bool is_settled(const session::Entry& entry, int found, const ports::FileStat& stat, const ports::FileStat* there,
                                Decision& decision);
  [[nodiscard]] bool is_in_locked(const Decision& decision);
  void decide_in_missing_directory(const session::Entry& entry, Decision& decision);
  [[nodiscard]] bool take_from_older(const session::Entry& entry, const OlderTrees::Match& older, const ports::FileStat* there,
                                     Decision& decision);
  void decide_leave(uint64_t index, Decision& decision);
  void decide_file(const session::Entry& entry, uint64_t index, Decision& decision);
  [[nodiscard]] int look_for(const std::string& path, std::string_view name, ports::FileStat& stat);
  int place_symlink(const session::Entry& entry, const std::string& path);
  [[nodiscard]] bool may_not_be_made(const session::Entry& entry, Decision& decision);
  void decide_special(const session::Entry& entry, Decision& decision);
  [[nodiscard]] int make_special(const session::Entry& entry, std::string_view temporary);
  int place_special(const session::Entry& entry, const std::string& path);
  [[nodiscard]] int finish_special(const session::Entry& entry, std::string_view name);
  void finish_symlink(const session::Entry& entry, std::string_view name, const ports::FileStat* stat);
  // Where something stands whose status is known: `name` in a directory.
  struct Where {
    int directory = -1;
    std::string_view name;
  };
  [[nodiscard]] session::Items changes_of(const session::Entry& entry, const ports::FileStat& stat, Where where);
  [[nodiscard]] session::Items extended_changes(const session::Entry& entry, const ports::FileStat& stat, Where where);
  [[nodiscard]] bool may_give_group(uint32_t gid);
  [[nodiscard]] bool loses_setid(const session::Entry& entry);
  [[nodiscard]] bool would_be_anothers(const session::Entry& entry, const Decision& decision) const;
  [[nodiscard]] session::Items done_to(const session::Entry& entry) const;
  // `done`: of item_sent, item_made and item_content. `there`: what stays, or is replaced by its like; nullptr: it is new.
  [[nodiscard]] session::Items items_of(session::Items done, const session::Entry& entry, const ports::FileStat* there) {
    return items_of(done, entry, there, here_);
  }
  [[nodiscard]] session::Items items_of(session::Items done, const session::Entry& entry, const ports::FileStat* there,
                                        Where where);
  [[nodiscard]] bool differs(const session::Entry& entry, const ports::FileStat& stat) { return differs(entry, stat, here_); }
  [[nodiscard]] bool differs(const session::Entry& entry, const ports::FileStat& stat, Where where);
  [[nodiscard]] bool has_time(const session::Entry& entry, const ports::FileStat& stat);
  [[nodiscard]] bool is_unchanged(const session::Entry& entry, int parent, std::string_view name, const ports::FileStat& stat);
  [[nodiscard]] bool set_attributes_of_unchanged(const session::Entry& entry, std::string_view name, const ports::FileStat& stat,
                                                 Decision& decision);
  [[nodiscard]] bool has_content(const session::Entry& entry, int parent, std::string_view name, const ports::FileStat& stat);
  // What the older trees have like it, and the links that are made of it (decide_older.cc).
  [[nodiscard]] std::optional<OlderTrees::Match> find_older(const session::Entry& entry, const std::string& path);
  [[nodiscard]] std::optional<Likeness> likeness(const session::Entry& entry, const OlderTrees::Candidate& candidate);
  [[nodiscard]] session::Items items_of_new(session::Items done, const session::Entry& entry,
                                            const std::optional<OlderTrees::Match>& older);
  [[nodiscard]] bool is_others_too(const session::Entry& entry, const ports::FileStat& stat);
  [[nodiscard]] int link_name(int from_directory, std::string_view from, const std::string& path, bool is_new);
  [[nodiscard]] bool stays(const session::Entry& entry, const ports::FileStat& stat) const;
  [[nodiscard]] bool is_what_source_has(const session::Entry& entry, const std::string& path, const ports::FileStat& stat);
  [[nodiscard]] int make_room(const std::string& path, std::string_view name);
  // An empty directory may stand at the path. 0 or -errno, and then `temporary` is still there.
  [[nodiscard]] int replace_by(std::string_view temporary, const std::string& path);
  // Of a dry run: what stands there cannot be kept, so it stays, and the entry fails. `there`: nullptr, nothing does.
  [[nodiscard]] bool would_fail(const ports::FileStat* there, Decision& decision,
                                Backups::Before before = Backups::Before::replaced) const;
  [[nodiscard]] bool was_delivered(const session::Entry& entry, const std::string& path, const ports::FileStat& stat);
  // `in_place`: the file that is written into; nullptr: a new one is staged.
  void begin_task(const session::Entry& entry, uint64_t index, const ports::FileStat* in_place, Decision& decision);
  void resume(const FileTask& task, Decision& decision);
  void compare_with(const FileTask& task, std::shared_ptr<OlderFile> older, const ports::FileStat& stat, Decision& decision);
  // Names of a file that has several (decide_linked.cc).
  void decide_linked(const session::Entry& entry, uint64_t index, Decision& decision);
  [[nodiscard]] bool becomes_link(const session::Entry& entry, uint64_t index, Decision& decision);
  [[nodiscard]] bool would_become_link(const session::Entry& entry, Decision& decision);
  [[nodiscard]] bool link_at_once(const session::Entry& entry, const ports::FileStat* there, bool is_new, Decision& decision);
  void note_leader(const session::Entry& entry, const Decision& decision);
  [[nodiscard]] std::string path_of_first(const session::Entry& entry, const LinkedNames::Found& found) const;
  [[nodiscard]] int look_at_first(const std::string& path, HeldDirectoryRef& directory, ports::FileStat& stat);
  [[nodiscard]] bool is_first_like(const session::Entry& entry, const HeldDirectory& directory, std::string_view name,
                                   const ports::FileStat& stat);

  EntryDecider& session_;
  OpenedRoot& root_;
  ports::FileSystem& files_;
  JobDirectories directories_;
  std::string parent_path_;
  HeldDirectoryRef parent_;
  std::optional<Error> fatal_;
  std::optional<Claim> claim_;
  Where here_;               // the path of the entry that is decided
  std::string leads_;        // the first name of the file whose name is decided; "": it has one name
  bool stays_ = false;       // what stands there was left as it is ...
  bool is_sources_ = false;  // ... and is what the source has: most likely an earlier run of the command brought it
};

}  // namespace ccixfer::recv

// One name of the directory in hand: what it is, whether it is meant, and what is sent of it.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "app/send/walk.h"
#include "app/send/walk_parts.h"
#include "app/session/limits.h"
#include "app/session/reserved.h"

namespace ccixfer::send {

using ports::FileStat;
using ports::FileType;
using session::EntryType;
using Kind = WalkRecord::Kind;

namespace {

EntryType type_of_special(const FileStat& stat) {
  const bool is_device = stat.special == ports::SpecialKind::character || stat.special == ports::SpecialKind::block;
  return is_device ? EntryType::device : EntryType::special;
}

}  // namespace

bool Walk::choose(Frame& frame, const Child& child) const {
  if (child.listed && options_.list->is_whole()) return true;
  frame.one_level = child.content;
  frame.from_list = !child.content;
  frame.range = child.below;
  return child.content || !child.below.empty();
}

// The list names what is in it, or below it. In a push a link to a directory is as good as the directory then.
bool Walk::may_lead_on(const Child* child) const {
  return child != nullptr && (child->content || !child->below.empty()) && options_.served_root < 0;
}

int Walk::look(ports::FileSystem& files, std::string_view name, Child* child, FileStat& stat) const {
  const int directory = stack_.back().fd;
  const int result = files.stat_at(directory, name, stat, follow_);
  if (!may_lead_on(child) || result < 0 || stat.type != FileType::symlink) return result;
  FileStat there;
  const int led = files.stat_at(directory, name, there, true);
  if (led < 0 || there.type != FileType::directory) return child->listed || led >= 0 ? result : led;
  stat = there;
  child->listed = child->content;  // a link that is listed without a slash gives way to what is named below it
  return led;
}

void Walk::take(ports::FileSystem& files, WalkBatch& out, std::string_view name, Child* child) {
  const int directory = stack_.back().fd;
  if (!path_.empty()) path_.push_back('/');
  path_.append(name);
  FileStat stat;
  const int result = look(files, name, child, stat);
  const bool may_be_directory = result >= 0 && stat.type == FileType::directory;
  const bool is_excluded = scope_.excludes(path_, may_be_directory) || (result < 0 && scope_.excludes(path_, true));
  // On the way to what is listed no rule is asked. What is excluded may be on the way all the same, and no more.
  if (is_excluded && child != nullptr && !child->below.empty()) child->listed = child->content = false;
  const bool is_on_the_way = child != nullptr && !child->listed && !child->below.empty();
  if (is_excluded && !is_on_the_way) return;
  if (session::is_reserved_name(name)) return leave_out(out, name, "left out: a name that receivers keep for themselves");
  if (path_.size() > session::path_bytes_max) return fail_name(out, name, "the path is too long");
  if (child != nullptr && !may_be_directory) lose(child->below, result < 0 ? result : -ENOTDIR);
  if (is_on_the_way && !may_be_directory) {
    if (result != -ENOENT) is_there(name);
    return;
  }
  if (result < 0 && stack_.back().from_list) return tell(out, Kind::failed, words(result));  // a name that was given is no chance
  if (result < 0) {
    if (follow_ && files.stat_at(directory, name, stat, false) >= 0 && stat.type == FileType::symlink) {
      return fail_name(out, name, "a symbolic link that leads nowhere");
    }
    return fail_name(out, name, result);
  }
  const bool is_left_out = stat.type == FileType::other && !(options_.specials && stat.special != ports::SpecialKind::none);
  if (is_left_out) return leave_out(out, name, "skipping non-regular file");
  if (stat.type == FileType::symlink && !options_.links)
    return fail_name(out, name, "a symbolic link of a served directory is not followed: pull with -a to keep it");
  Merged merged;
  if (sources_.size() > 1 && taken_earlier(files, out, may_be_directory, merged)) return;
  if (may_be_directory) return take_directory(files, out, name, stat, merged, child);
  if (stat.type == FileType::symlink) return take_link(files, out, name, stat);
  if (stat.type == FileType::other) return emit_whole(files, out, type_of_special(stat), stat, {});
  emit_whole(files, out, EntryType::file, stat, {-1, directory, name, follow_});
}

void Walk::take_link(ports::FileSystem& files, WalkBatch& out, std::string_view name, const FileStat& stat) {
  const int64_t length = files.readlink_at(stack_.back().fd, name, target_);
  if (length < 0) return fail_name(out, name, static_cast<int>(length));
  if (target_.empty() || target_.size() > session::path_bytes_max) return fail_name(out, name, "the link's target is too long");
  emit_whole(files, out, EntryType::symlink, stat, {}, target_);
}

void Walk::lose(const filter::PathList::Range& below, int error) {
  lost_ = below;
  lost_error_ = error;
}

bool Walk::is_loop(const FileStat& stat) const {
  return std::any_of(stack_.begin(), stack_.end(),
                     [&stat](const Frame& frame) { return frame.inode == stat.inode && frame.device == stat.device; });
}

void Walk::take_directory(ports::FileSystem& files, WalkBatch& out, std::string_view name, const FileStat& stat,
                          const Merged& merged, const Child* child) {
  Frame frame;
  frame.stat = merged.sent(stat);
  frame.device = stat.device;
  frame.inode = stat.inode;
  frame.earlier = merged.sources;
  if (child != nullptr && !choose(frame, *child)) {
    emit_directory(files, out, merged, stat, {-1, stack_.back().fd, name, follow_});
    emit_leave(out, frame.stat, {false, {}});
    return;
  }
  // A file system that is mounted there: the directory alone, as it stands, and what else is named in it. A name that is given
  // begins a walk, so it may stand on any file system, and so may what is on the way to it.
  if (options_.one_file_system && child == nullptr && stat.device != stack_.back().device) {
    if (options_.list) frame.range = options_.list->find(options_.list->all(), path_).below;
    if (frame.range.empty()) {
      emit_directory(files, out, merged, stat, {-1, stack_.back().fd, name, follow_});
      emit_leave(out, frame.stat, {false, {}});
      return;
    }
    frame.from_list = true;
  }
  frame.listed.is_whole = !frame.from_list;
  const bool loops = follow_ && is_loop(stat);
  const int fd = loops ? -ELOOP : open_directory(files, stack_.back().fd, name, follow_ || may_lead_on(child), !frame.from_list);
  if (fd < 0) lose(child != nullptr ? child->below : frame.range, fd);
  const bool is_asked_for = child == nullptr || child->listed;  // else what is below it is told in its place
  if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) {        // something else stands there by now
    if (is_asked_for && loops) return fail_name(out, name, "a symbolic link to a directory that it is in");
    if (is_asked_for) return fail_name(out, name, fd);
    if (fd != -ENOENT) is_there(name);
    return;
  }
  emit_directory(files, out, merged, stat, {fd});
  if (fd < 0) {  // it is made at the other end, but what is in it is not known
    if (is_asked_for) tell_errno(out, fd);
    emit_leave(out, frame.stat, {false, {}});
    return;
  }
  frame.fd = fd;
  hold(std::move(frame), files, out);
}

}  // namespace ccixfer::send

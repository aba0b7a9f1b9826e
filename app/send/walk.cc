#include "app/send/walk.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "app/filter/rules_file.h"
#include "app/send/walk_parts.h"
#include "app/send/walk_rules.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::send {
namespace {

using ports::FileStat;
using ports::FileType;
using ports::OpenFlags;
using session::EntryType;
using Kind = WalkRecord::Kind;

constexpr uint32_t stream_mode = 0644;
constexpr size_t left_out_bytes_max = 16u << 10;
constexpr uint64_t size_unknown = ~uint64_t{0};
constexpr unsigned links_followed_max = 40;  // as the kernel follows

std::string_view without_slashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

std::string_view base_name(std::string_view path) {
  path = without_slashes(path);
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// A name below the served directory as one that openat2 can judge: no slash in front, behind or doubled, and no `.`.
std::string served_name(std::string_view given) {
  std::string name;
  while (!given.empty()) {
    const size_t slash = given.find('/');
    const std::string_view component = given.substr(0, slash);
    given.remove_prefix(slash == std::string_view::npos ? given.size() : slash + 1);
    if (component.empty() || component == ".") continue;
    if (!name.empty()) name += '/';
    name += component;
  }
  return name;
}

}  // namespace

uint64_t version_of(const FileStat& stat) {
  // No device, whose number is another after each mount of NFS, btrfs and ZFS: the change time, which nobody can set, tells the
  // files of a path apart. Not so where there are only whole seconds of it: the made-up times of images (squashfs, ISO 9660) and
  // the oldest file systems, whose inode numbers begin anew in each of them.
  const bool has_change_time = stat.ctime.nanoseconds != 0;
  const std::array<uint64_t, 7> fields = {has_change_time ? 0 : stat.device,
                                          stat.inode,
                                          stat.size_bytes,
                                          static_cast<uint64_t>(stat.mtime.seconds),
                                          stat.mtime.nanoseconds,
                                          static_cast<uint64_t>(stat.ctime.seconds),
                                          stat.ctime.nanoseconds};
  return xxh3_64(std::as_bytes(std::span(fields)));
}

// rsync's rule: `dir/` sends what is in the directory, `dir` the directory itself too, under its name.
std::string Walk::own_name(std::string_view given) {
  const std::string_view name = base_name(given);
  const bool content = given.empty() || given.back() == '/' || name == "." || name == "..";
  return content ? std::string() : std::string(name);
}

Walk::Walk(WalkOptions options)
    : options_(std::move(options)),
      follow_(!options_.links && options_.served_root < 0),
      scope_(std::move(options_.rules), filter::Side::sender),
      spool_(options_.spool_directory),
      details_(options_.details) {
  for (const std::string& given : options_.sources) {
    Source source;
    source.given = options_.served_root < 0 ? given : served_name(given);
    if (options_.directory) source.name = own_name(given);
    source.is_content = own_name(given).empty();
    sources_.push_back(std::move(source));
  }
}

int Walk::open_parent(ports::FileSystem& files, std::string_view given, std::string_view& name) const {
  const size_t slash = given.rfind('/');
  name = slash == std::string_view::npos ? given : given.substr(slash + 1);
  return files.open(options_.served_root, slash == std::string_view::npos ? "." : given.substr(0, slash), directory_flags(false),
                    0);
}

int Walk::stat_source(ports::FileSystem& files, const std::string& given, bool follow, FileStat& out) const {
  if (options_.served_root < 0) return files.stat_at(ports::FileSystem::no_directory, given, out, follow);
  std::string_view name;
  const int fd = open_parent(files, given, name);
  if (fd < 0) return fd;
  const int result = name.empty() ? files.fstat(fd, out) : files.stat_at(fd, name, out, false);
  files.close(fd);
  return result;
}

int64_t Walk::read_link_of(ports::FileSystem& files, const std::string& given, std::string& target) const {
  if (options_.served_root < 0) return files.readlink_at(ports::FileSystem::no_directory, given, target);
  std::string_view name;
  const int fd = open_parent(files, given, name);
  if (fd < 0) return fd;
  const int64_t length = files.readlink_at(fd, name, target);
  files.close(fd);
  return length;
}

// Whoever may read one directory may have put the link there, so nothing is looked at but what may be served, and what the name
// itself is below.
int Walk::lead_on(ports::FileSystem& files, std::string& path) const {
  std::string done, left = path;
  for (unsigned links = 0; !left.empty();) {
    const size_t slash = left.find('/');
    const std::string component = left.substr(0, slash);
    left.erase(0, slash == std::string::npos ? slash : slash + 1);
    if (component.empty() || component == ".") continue;
    if (component == "..") {
      if (done.empty()) return -EXDEV;
      done.erase(done.find('/') == std::string::npos ? 0 : done.rfind('/'));
      continue;
    }
    if (!done.empty()) done += '/';
    done += component;
    const bool is_above = (path + '/').starts_with(done + '/');
    if (!is_above && options_.may_be_served && !options_.may_be_served(done)) return -EXDEV;
    FileStat stat;
    if (const int result = stat_source(files, done, false, stat); result < 0) return result;
    if (stat.type != FileType::symlink) continue;
    if (++links > links_followed_max) return -ELOOP;
    std::string target;
    if (const int64_t length = read_link_of(files, done, target); length < 0) return static_cast<int>(length);
    if (target.starts_with('/')) return -EXDEV;
    done.erase(done.find('/') == std::string::npos ? 0 : done.rfind('/'));
    left = target + '/' + left;
  }
  if (options_.may_be_served && !options_.may_be_served(done)) return -EXDEV;
  path = std::move(done);
  return 0;
}

void Walk::follow_served(ports::FileSystem& files, Source& source, int& result) const {
  if (!source.is_content || result < 0 || source.stat.type != FileType::symlink) return;
  std::string place = source.given;
  FileStat stat;
  int led = lead_on(files, place);
  if (led == 0) led = stat_source(files, place, false, stat);
  if (led == -EXDEV || led == -ELOOP) result = led;
  if (led < 0 || stat.type != FileType::directory) return;
  source.given = std::move(place);
  source.stat = stat;
}

Result<void> Walk::select(ports::FileSystem& files) {
  const bool named = sources_.size() == 1 && !options_.directory;
  const Source* without = nullptr;  // the first that is not there
  size_t there = 0;
  for (Source& source : sources_) {
    const std::string shown = printable(source.given);
    if (options_.served_root < 0 && source.given == stream_name) {
      if (!named)
        return fail(ErrorKind::source_selection, "standard input: it has no name of its own: name one file as the destination");
      if (const int result = files.fstat(stream_fd, source.stat); result < 0) {
        return fail(ErrorKind::source_selection, "standard input: " + words(result));
      }
      source.stream = true;
      source.stat.mode = stream_mode;
      source.stat.size_bytes = size_unknown;
      ++there;
      continue;
    }
    if (options_.served_root >= 0 && !session::is_safe_relative_path(source.given)) {
      return fail(ErrorKind::not_authorised, shown + ": not below the served directory");
    }
    // A link to a directory, with a slash behind, is the directory. Any other link is sent as one with -a only.
    int result = stat_source(files, source.given, true, source.stat);
    if (options_.served_root >= 0) follow_served(files, source, result);
    if (options_.served_root < 0 && options_.links &&
        (result < 0 || source.stat.type != FileType::directory || !source.is_content)) {
      result = stat_source(files, source.given, false, source.stat);
    }
    // In a push no directory is served, and a loop of links is a source like another that cannot be looked at.
    const bool leads_out = options_.served_root >= 0 && (result == -EXDEV || result == -ELOOP);
    if (leads_out) return fail(ErrorKind::not_authorised, shown + ": not below the served directory");
    source.missing = std::min(result, 0);
    if (source.missing < 0) {
      if (without == nullptr) without = &source;
      continue;
    }
    ++there;
    source.type = source.stat.type;
    if (source.type == FileType::other || (source.type == FileType::symlink && !options_.links)) {
      return fail(ErrorKind::source_selection,
                  shown + ": neither a file nor a directory: name one, or the directory that it is in with -a");
    }
    if (source.type == FileType::directory) continue;
    if (!named) source.name = std::string(base_name(source.given));
  }
  // As rsync: the others are sent, and this one has failed.
  if (there == 0 && without != nullptr) {
    return fail(ErrorKind::source_selection, printable(without->given) + ": " + words(without->missing));
  }
  return {};
}

Result<void> Walk::open_roots(ports::FileSystem& files) {
  is_listed_by_another_ = true;
  for (Source& source : sources_) {
    if (source.type != FileType::directory) continue;
    const int root = open_source(files, source);
    if (root < 0) return fail(ErrorKind::source_selection, printable(source.given) + ": " + words(root));
    source.root = root;
  }
  return {};
}

// What a source's entry paths are relative to: the directory itself, or its parent when it is sent under its name.
int Walk::open_source(ports::FileSystem& files, const Source& source) const {
  std::string_view path = source.given;
  OpenFlags flags = directory_flags(options_.served_root < 0);
  flags.anchor = options_.list.has_value();  // names below it are given
  if (!source.name.empty()) {
    flags.anchor = true;  // a process that is confined to its sources may not list what is beside them
    path = without_slashes(path);
    const size_t slash = path.rfind('/');
    path = slash == std::string_view::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  }
  if (options_.served_root < 0) return files.open(ports::FileSystem::no_directory, path, flags, 0);
  return files.open(options_.served_root, path.empty() ? "." : path, flags, 0);
}

// Component by component where links are followed, for a link may stand anywhere in the path; else in one call.
int Walk::open_below(ports::FileSystem& files, int root, std::string_view path) const {
  if (path.empty()) return files.open(root, ".", directory_flags(false), 0);
  if (!follow_ && !(options_.list && options_.served_root < 0)) return files.open(root, path, directory_flags(false), 0);
  int at = root;
  while (true) {
    const size_t slash = path.find('/');
    const int next = files.open(at, path.substr(0, slash), directory_flags(true), 0);
    if (at != root) files.close(at);
    if (next < 0 || slash == std::string_view::npos) return next;
    at = next;
    path.remove_prefix(slash + 1);
  }
}

int Walk::take_root(uint32_t source) { return std::exchange(sources_[source].root, -1); }

void Walk::close(ports::FileSystem& files) {
  for (Frame& frame : stack_) {
    if (frame.fd >= 0) files.close(frame.fd);
  }
  stack_.clear();
  spool_.close(files);
  for (Source& source : sources_) {
    if (source.root >= 0) files.close(std::exchange(source.root, -1));
  }
  over_ = true;
}

void Walk::emit(WalkBatch& out, EntryType type, const FileStat& stat, std::string_view target) {
  WalkRecord record;
  record.kind = Kind::entry;
  record.type = type;
  record.source = std::min<uint32_t>(current_, static_cast<uint32_t>(sources_.size()) - 1);
  record.path_at = static_cast<uint32_t>(out.text.size());
  record.path_bytes = static_cast<uint32_t>(path_.size());
  out.text.append(path_);
  record.more_at = static_cast<uint32_t>(out.text.size());
  record.more_bytes = static_cast<uint32_t>(target.size());
  out.text.append(target);
  record.stat = stat;
  out.records.push_back(record);
}

void Walk::emit_whole(ports::FileSystem& files, WalkBatch& out, EntryType type, const FileStat& stat,
                      const EntryDetails::Place& place, std::string_view target) {
  emit(out, type, stat, target);
  if (const std::string problem = details_.add(files, out, place); !problem.empty()) tell(out, Kind::failed, problem);
}

void Walk::tell(WalkBatch& out, Kind kind, std::string_view reason) {
  emit(out, EntryType::file, FileStat{}, reason);
  out.records.back().kind = kind;
}

// Nothing but ENOENT means that it is gone: a file server that loses its handles says ESTALE of what is still there.
void Walk::tell_errno(WalkBatch& out, int error) { tell(out, error == -ENOENT ? Kind::vanished : Kind::failed, words(error)); }

// A name of the directory in hand that gets no entry.
void Walk::fail_name(WalkBatch& out, std::string_view name, std::string_view reason) {
  tell(out, Kind::failed, reason);
  is_there(name);
}

void Walk::fail_name(WalkBatch& out, std::string_view name, int error) {
  tell_errno(out, error);
  if (error != -ENOENT) is_there(name);
}

void Walk::step(ports::FileSystem& files, WalkBatch& out, bool may_open_root) {
  trace_stage("[stage 1] walk");
  const uint32_t entries_max = options_.batch_entries_max;
  uint32_t looks = 0;
  while (!over_ && out.records.size() < entries_max && out.text.size() < walk_batch_text_bytes && looks++ < walk_step_names_max) {
    count_step();
    if (!lost_.empty()) {
      path_ = options_.list->take_path(lost_);
      tell(out, Kind::failed, words(lost_error_));
    } else if (!stack_.empty()) {
      advance(files, out);
    } else if (current_ < sources_.size()) {
      if (sources_[current_].type == FileType::directory && !may_open_root) {
        out.wants_root = true;
        break;
      }
      begin_source(files, out);
      may_open_root = may_open_root && sources_.size() == 1;  // one more a step: the owner counts them between steps
    } else {
      path_.clear();
      if (root_sent_) emit_leave(out, root_stat_, root_listed_);
      over_ = true;
    }
  }
  out.sources_walked = current_;
  out.done = over_;
}

void Walk::end_with(WalkBatch& out, const Error& error) {
  out.error = error;
  over_ = true;
}

// The absolute place to which the names of a source are relative.
std::string Walk::rules_begin_at(const Source& source) const {
  std::string place = absolute_place(options_.served_root < 0 ? options_.working_directory : "", source.given);
  if (source.type == FileType::directory && source.name.empty()) return place;
  const size_t slash = place.rfind('/');
  place.resize(slash == std::string::npos ? 0 : slash);
  return place;
}

// False: the source is not to be sent.
bool Walk::begin_rules(ports::FileSystem& files, const Source& source, WalkBatch& out) {
  if (scope_.is_empty() || source.stream) return true;
  const bool is_directory = source.type == FileType::directory;
  const bool is_content = is_directory && source.name.empty();
  if (current_ == 0 && options_.served_root >= 0) {
    auto above = rules_above(files, options_.served_root, scope_.rules(), absolute_place("", source.given));
    if (!above) {
      end_with(out, above.error());
      return false;
    }
    scope_.set_above(std::move(*above));
  }
  auto begun = scope_.begin(rules_begin_at(source));
  if (begun) begun = begin_earlier_rules(files);
  if (!begun) {
    end_with(out, begun.error());
    return false;
  }
  return is_content || !scope_.excludes(base_name(source.given), is_directory);
}

void Walk::begin_source(ports::FileSystem& files, WalkBatch& out) {
  Source& source = sources_[current_];
  if (source.missing < 0) {
    path_ = source.given;
    tell(out, Kind::failed, words(source.missing));
    root_listed_.is_whole = false;  // it may have had anything
    ++current_;
    return;
  }
  path_ = source.name;
  if (!begin_rules(files, source, out)) {
    ++current_;
    return;
  }
  if (source.type != FileType::directory) {
    Merged none;
    if (!file_names_.emplace(source.name, current_).second) {
      tell(out, Kind::warning, "named by several sources: the first is sent");
    } else if (current_ == 0 || !taken_earlier(files, out, false, none)) {
      if (source.type == FileType::symlink) {
        const int64_t length = read_link_of(files, source.given, target_);
        if (length < 0) {
          tell_errno(out, static_cast<int>(length));
        } else {
          emit_whole(files, out, EntryType::symlink, source.stat, {}, target_);
        }
      } else {
        const SourcePlace at = place(current_, {});
        emit_whole(files, out, EntryType::file, source.stat,
                   {-1, at.directory, source.stream ? std::string_view() : at.name, at.follow == Follow::all});
      }
    }
    ++current_;
    return;
  }
  const bool is_named = !source.name.empty();
  const bool lists = !options_.list || options_.list->has_top();
  source.root = open_source(files, source);
  FileStat stat;
  Frame frame;
  Merged merged;
  int result = source.root;
  if (result >= 0) {
    result = frame.fd =
        open_directory(files, source.root, is_named ? std::string_view(source.name) : ".", is_named && follow_, lists);
  }
  if (result >= 0) result = files.fstat(frame.fd, stat);
  if (options_.list) {
    frame.from_list = !options_.list->has_top();
    frame.one_level = options_.list->has_top() && !options_.list->is_whole();
    frame.range = options_.list->all();
    root_listed_.is_whole = root_listed_.is_whole && !frame.from_list;
  }
  if (result >= 0 && is_named) {
    if (current_ > 0 && taken_earlier(files, out, true, merged)) {
      files.close(frame.fd);
      ++current_;
      return;
    }
    emit_directory(files, out, merged, stat, {frame.fd});
  } else if (result >= 0 && !root_sent_ && (!options_.list || options_.list->names_top())) {
    root_sent_ = true;
    root_stat_ = stat;
    emit_whole(files, out, EntryType::directory, stat, {frame.fd});
  }
  if (result < 0) {
    if (frame.fd >= 0) files.close(frame.fd);
    // What was listed by its name is told by it, so that it can be listed again.
    if (options_.list) lose(frame.range, result);
    if (!frame.from_list || frame.range.empty()) {
      path_ = source.given;
      tell_errno(out, result);
    }
    source.missing = result;
    root_listed_.is_whole = false;
    ++current_;
    return;
  }
  frame.stat = merged.sent(stat);
  frame.device = stat.device;
  frame.inode = stat.inode;
  frame.earlier = std::move(merged.sources);
  for (uint32_t i = 0; i < current_ && !is_named; ++i) {
    if (sources_[i].type == FileType::directory) frame.earlier.push_back(i);
  }
  hold(std::move(frame), files, out);
}

void Walk::hold(Frame&& frame, ports::FileSystem& files, WalkBatch& out) {
  frame.path_bytes = path_.size();
  stack_.push_back(std::move(frame));
  if (!scope_.is_empty()) {
    const int fd = stack_.back().fd;
    const auto read = [&](const std::string& name) { return filter::read_rules(files, fd, name, options_.served_root < 0); };
    auto entered = scope_.enter(path_, read);
    for (const uint32_t source : stack_.back().earlier) {
      if (entered && !path_.empty()) entered = enter_earlier_rules(files, source, path_);
    }
    if (!entered) end_with(out, entered.error());
  }
  if (stack_.size() <= walk_descriptors_max) return;
  Frame& far = stack_[stack_.size() - 1 - walk_descriptors_max];
  if (far.fd >= 0) files.close(std::exchange(far.fd, -1));
}

void Walk::bound_names(ports::FileSystem& files) {
  size_t total = 0;
  for (const Frame& frame : stack_) total += frame.names.memory_bytes();
  for (size_t i = 0; i + 1 < stack_.size() && total > options_.names_total_bytes_max; ++i) {
    DirectoryNames& names = stack_[i].names;
    total -= names.memory_bytes();
    names.let_go(files, spool_);
  }
}

void Walk::advance(ports::FileSystem& files, WalkBatch& out) {
  Frame& frame = stack_.back();
  path_.resize(frame.path_bytes);
  const auto open = [&] {
    if (frame.fd < 0) frame.fd = open_below(files, sources_[current_].root, path_);
    return frame.fd;
  };
  int error = 0;
  if (frame.from_list) {
    if (frame.range.empty()) return leave(files, out);
    error = open();
    if (error < 0) {
      lose(frame.range, error);
      return leave(files, out);
    }
    Child child = options_.list->take(frame.range, path_);
    return take(files, out, child.name, &child);
  }
  if (frame.seeks_absent) return seek_absent(files, out, open());
  const std::string_view name = frame.names.next(files, spool_, options_.names_bytes_max, open, error, [this] { count_step(); });
  if (frame.names.grown()) bound_names(files);
  if (error >= 0 && !name.empty()) error = open();
  if (error < 0) tell_errno(out, error);
  if (error < 0) stack_.back().listed.is_whole = false;
  frame.seeks_absent = error >= 0 && name.empty() && !frame.range.empty();
  if (frame.seeks_absent) return;
  if (error < 0 || name.empty()) return leave(files, out);
  if (!frame.one_level) return take(files, out, name, nullptr);
  Child child = options_.list->find(frame.range, path_.empty() ? std::string(name) : path_ + "/" + std::string(name));
  take(files, out, name, &child);
}

// A name that was given and is not there is told, also where its directory was listed.
void Walk::seek_absent(ports::FileSystem& files, WalkBatch& out, int directory) {
  Frame& frame = stack_.back();
  if (directory < 0) lose(frame.range, directory);
  if (directory < 0 || frame.range.empty()) return leave(files, out);
  const Child child = options_.list->take(frame.range, path_);
  FileStat stat;
  const int error = files.stat_at(directory, child.name, stat, false);
  if (error >= 0) return;
  lose(child.below, error);
  if (!child.listed) return;
  if (!path_.empty()) path_.push_back('/');
  path_.append(child.name);
  tell(out, Kind::failed, words(error));
}

void Walk::leave(ports::FileSystem& files, WalkBatch& out) {
  Frame& frame = stack_.back();
  if (frame.fd >= 0) files.close(frame.fd);
  const FileStat stat = frame.stat;
  const Listed listed = std::move(frame.listed);
  const std::vector<uint32_t> earlier = std::move(frame.earlier);
  stack_.pop_back();
  if (!scope_.is_empty()) {
    scope_.leave();
    for (const uint32_t source : earlier) {
      if (!path_.empty()) earlier_rules_.at(source).leave();
    }
  }
  uint64_t spooled = 0;
  for (const Frame& above : stack_) spooled = std::max(spooled, above.names.spooled_to());
  spool_.give_up_from(files, spooled);
  // The leave of "" comes last of all: several sources share it.
  if (path_.empty() && root_sent_) {
    root_listed_.is_whole = root_listed_.is_whole && listed.is_whole;
    root_listed_.left_out += listed.left_out;
  } else if (!path_.empty()) {
    emit_leave(out, stat, listed);
  }
  if (stack_.empty()) ++current_;
}

// It has no entry, and stands here all the same.
void Walk::leave_out(WalkBatch& out, std::string_view name, std::string_view reason) {
  tell(out, Kind::warning, reason);
  is_there(name);
}

// The destination deletes no file of that name.
void Walk::is_there(std::string_view name) {
  Listed& listed = stack_.back().listed;
  listed.is_whole = listed.is_whole && listed.left_out.size() + name.size() < left_out_bytes_max;
  if (listed.is_whole) listed.left_out.append(name).push_back('\0');
}

void Walk::emit_leave(WalkBatch& out, const FileStat& stat, const Listed& listed) {
  const bool tells = options_.tells_listed && listed.is_whole && listed.left_out.size() <= left_out_bytes_max;
  emit(out, EntryType::leave, stat, tells ? std::string_view(listed.left_out) : std::string_view{});
  out.records.back().is_whole = tells;
}

}  // namespace ccixfer::send

#include "tests/sim/team.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/seeds.h"

namespace ccixfer::testing {

using simulate::Dialler;
using simulate::DialPlan;
using simulate::Listener;

namespace {

const std::string top = "/src", root = "/dst", path = "tree";

// Where change times are whole seconds a file's version has the number of the device in it, which differs from node to node.
sim::WorldOptions world_with_change_times(uint64_t seed) {
  sim::WorldOptions options = world_of(seed);
  options.wall_start_ns += 1;
  return options;
}

}  // namespace

TeamWorld::TeamWorld(uint64_t seed, const TeamOptions& options)
    : options_(options), sides_(seed, world_with_change_times(seed), options.link, options.router) {
  build();
}

TeamWorld::~TeamWorld() {
  over_ = true;
  for (const Member& member : members_) {
    if (world_.alive(member.site->node)) world_.crash(member.site->node);
    if (member.dialler) member.dialler->bury();
  }
  for (Second& second : seconds_) {
    if (world_.alive(second.site->node)) world_.crash(second.site->node);
    if (second.receiver) second.receiver->bury();
    second.receiver.reset();
  }
  if (world_.alive(receiver_site_->node)) world_.crash(receiver_site_->node);
  if (receiver_) receiver_->bury();
}

void TeamWorld::build() {
  receiver_site_ = sides_.destination(0);
  receiver_site_->work = options_.receiver_work;
  receiver_site_->files.make_directory(root);
  listen();
  uri_ = receiver_->uri();
  seconds_.reserve(options_.seconds);
  for (uint16_t i = 0; i < options_.seconds; ++i) add_second(i);
  const uint64_t tree_seed = random_.next();
  for (uint16_t i = 0; i < options_.members; ++i) add_member(i, tree_seed);
}

void TeamWorld::add_second(uint16_t number) {
  Second& second = seconds_.emplace_back();
  second.site = sides_.destination(number + 1u);
  second.disk = std::make_unique<MountedDisk>(receiver_site_->files);
  second.disk->on_write = [this](int fd) { check_write(fd); };
  second.site->parallel = second.disk.get();
  second.site->work = options_.second_work;
  listen(second);
  second.uri = second.receiver->uri();
}

void TeamWorld::listen(Second& second) {
  simulate::ListenPlan plan{false, root};
  plan.shares_root = true;
  second.receiver = std::make_unique<Listener>(*second.site, plan);
  if (second.receiver->error() && world_.alive(receiver_site_->node)) {
    violated("a second receiver cannot open the directory: " + second.receiver->error()->message);
  }
}

// A second receiver writes into staged files only: whatever it was held up by, not into one that has its final name by now.
void TeamWorld::check_write(int fd) {
  ports::FileStat file;
  if (receiver_site_->files.fstat(fd, file) < 0 || file.links == 0) return;
  for (const auto& [name, entry] : receiver_site_->files.tree(root + "/.ccixfer")) {
    if (entry.stat.inode == file.inode) return;
  }
  violated("a second receiver wrote into a file that was committed");
}

void TeamWorld::crash_second(size_t index) {
  Second& second = seconds_[index];
  if (over_ || !world_.alive(second.site->node)) return;
  ++faults_;
  world_.crash(second.site->node);
  second.disk->node_crashed();
  second.receiver->bury();
  second.receiver.reset();
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, index] {
    if (over_) return;
    world_.restart(seconds_[index].site->node);
    listen(seconds_[index]);
  });
}

// The disks of the members are filled alike: the same tree, with the same inodes and times.
void TeamWorld::add_member(uint16_t number, uint64_t tree_seed) {
  Member& member = members_.emplace_back();
  member.site = sides_.source(number);
  sim::Random random(tree_seed);
  simulate::make_tree(random, member.site->files, top, options_.tree);
  for (unsigned i = 0; i < options_.more_large; ++i) {
    const std::string content((4u << 20) + 1 + i, static_cast<char>('A' + i % 26));
    member.site->files.put(fmt::format("{}/large{}", top, i), content, 0644, ports::FileTime{1'600'000'000, i});
  }
  for (const auto& [name, entry] : member.site->files.tree(top)) {
    if (entry.stat.type == ports::FileType::regular) allowed_[name].insert(entry.content);
    const sim::Tree first = members_.front().site->files.tree(top);
    const auto other = first.find(name);
    const bool is_alike =
        other != first.end() && other->second.stat.inode == entry.stat.inode && other->second.content == entry.content;
    if (!is_alike) violated("the members do not see the same tree");
  }
}

void TeamWorld::violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void TeamWorld::listen() {
  simulate::ListenPlan plan{false, root};
  plan.team = options_.limits;
  receiver_ = std::make_unique<Listener>(*receiver_site_, plan);
  if (receiver_->error()) violated("the directory cannot be opened: " + receiver_->error()->message);
}

void TeamWorld::start(size_t index) {
  Member& member = members_[index];
  take_end(member);
  member.result.reset();
  member.is_gone = false;
  DialPlan plan = archive_plan(uri_, path, options_.lanes);
  plan.directory = top;
  session::TeamWish& team = plan.team.emplace();
  team.name.fill(7);
  team.member = random_.next() | 1;
  team.part = static_cast<uint16_t>(index + 1);
  team.parts = options_.members;
  team.version = "sim";
  if (const size_t which = index % (seconds_.size() + 1); which > 0) plan.second_uri = seconds_[which - 1].uri;
  member.dialler = std::make_unique<Dialler>(*member.site, plan);
}

// The process has ended, or is to be destroyed: what it did stays known.
void TeamWorld::take_end(Member& member) {
  if (!member.dialler) return;
  if (member.dialler->ended()) member.result = member.dialler->result();
  member.bytes_sent += member.dialler->tally().bytes_sent + member.dialler->bytes_to_second();
  member.bytes_to_second += member.dialler->bytes_to_second();
  if (!world_.alive(member.site->node)) member.dialler->bury();
  member.dialler.reset();
}

void TeamWorld::crash_member(size_t index) {
  Member& member = members_[index];
  if (over_ || !world_.alive(member.site->node)) return;
  ++faults_;
  world_.crash(member.site->node);
  take_end(member);
  member.site->files.mount();
  member.is_gone = !member.result;
  const bool returns = random_.chance(options_.returns_chance);
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, index, returns] {
    if (over_) return;
    world_.restart(members_[index].site->node);
    if (returns && members_[index].is_gone) start(index);
  });
}

void TeamWorld::crash_receiver() {
  if (over_ || !world_.alive(receiver_site_->node)) return;
  ++faults_;
  world_.crash(receiver_site_->node);
  receiver_->bury();
  receiver_.reset();
  receiver_site_->files.mount();
  for (size_t i = 0; i < seconds_.size(); ++i) crash_second(i);  // what they had open was this disk
  check_names("after a crash");
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this] {
    if (over_) return;
    world_.restart(receiver_site_->node);
    listen();
  });
}

void TeamWorld::interrupt(size_t index) {
  Member& member = members_[index];
  if (over_ || !member.dialler || member.dialler->ended()) return;
  ++faults_;
  member.dialler->interrupt();
}

// On all nodes at once, as on a parallel file system.
void TeamWorld::change_a_file() {
  const sim::Tree tree = members_.front().site->files.tree(top);
  std::vector<std::string> names;
  for (const auto& [name, entry] : tree) {
    if (entry.stat.type == ports::FileType::regular && !entry.content.empty()) names.push_back(name);
  }
  if (over_ || names.empty()) return;
  const std::string& name = names[static_cast<size_t>(random_.below(names.size()))];
  std::string content = tree.at(name).content;
  content[static_cast<size_t>(random_.below(content.size()))] ^= 1;
  if (random_.chance(0.5)) content += "more";
  const ports::FileTime mtime{1'700'000'001 + int64_t(changes_), 9};
  for (const Member& member : members_) member.site->files.put(top + "/" + name, content, 0644, mtime);
  allowed_[name].insert(content);
  ++faults_;
  ++changes_;
}

void TeamWorld::plan_faults() {
  const auto somebody = [this] { return static_cast<size_t>(random_.below(members_.size())); };
  const auto strike = [this](std::function<void()> fault) { sides_.sometime(options_.faults_within, std::move(fault)); };
  for (unsigned i = 0; i < options_.crashes; ++i) strike([this, at = somebody()] { crash_member(at); });
  for (unsigned i = 0; i < options_.receiver_crashes; ++i) strike([this] { crash_receiver(); });
  for (unsigned i = 0; i < options_.second_crashes && !seconds_.empty(); ++i) {
    strike([this, at = static_cast<size_t>(random_.below(seconds_.size()))] { crash_second(at); });
  }
  for (unsigned i = 0; i < options_.interrupts; ++i) strike([this, at = somebody()] { interrupt(at); });
  for (unsigned i = 0; i < options_.changes; ++i) strike([this] { change_a_file(); });
  for (unsigned i = 0; i < options_.resets; ++i) {
    strike([this, at = static_cast<size_t>(random_.below(members_.size() + 1))] {
      ++faults_;
      sides_.fabric.reset_all(at < members_.size() ? members_[at].site->node : receiver_site_->node);
    });
  }
  sides_.plan_mending(options_.link);
}

bool TeamWorld::run_members() {
  const auto ended = [this] {
    return !violation_.empty() || std::all_of(members_.begin(), members_.end(), [](const Member& member) {
      return member.is_gone || member.result || (member.dialler && member.dialler->ended());
    });
  };
  const std::string wrong = sides_.run(ended, "processes");
  if (!wrong.empty()) violated(wrong);
  return violation_.empty();
}

void TeamWorld::check_names(const char* when) {
  const std::string foreign = foreign_content(receiver_site_->files.tree(root + "/" + path), allowed_);
  if (!foreign.empty()) violated(fmt::format("{}: {}", when, foreign));
}

bool TeamWorld::is_quiet() const { return faults_ == 0 && sides_.fabric.resets() == 0; }

// The power of the receiver goes right at the end: what was said to have arrived is there.
void TeamWorld::judge() {
  over_ = true;
  if (world_.alive(receiver_site_->node)) world_.crash(receiver_site_->node);
  if (receiver_site_->files.down()) receiver_site_->files.mount();
  check_names("at the end");
  const std::string differs =
      simulate::difference(members_.front().site->files.tree(top), receiver_site_->files.tree(root + "/" + path), true);
  if (!differs.empty()) violated(differs);
}

TeamResult TeamWorld::run() {
  const Instant began = world_.now();
  for (size_t i = 0; i < members_.size(); ++i) {
    world_.at(after(world_.now(), random_.between(Duration(0), options_.starts_within)), [this, i] {
      if (!members_[i].dialler && !members_[i].result && !members_[i].is_gone && world_.alive(members_[i].site->node)) start(i);
    });
  }
  plan_faults();
  TeamResult result;
  if (run_members()) {
    result.took = world_.now() - began;
    bool is_whole = options_.changes == 0;  // else a change may have come when the file had been sent
    for (Member& member : members_) {
      take_end(member);
      result.bytes_sent += member.bytes_sent;
      result.bytes_to_seconds += member.bytes_to_second;
      if (member.bytes_sent > 0) ++result.senders;
      if (!member.result) {
        is_whole = false;  // its node crashed: the others have done its part, or nobody was left
        continue;
      }
      const ErrorKind kind = member.result->kind;
      if (kind == ErrorKind::ok) continue;
      is_whole = false;
      const bool is_honest = (kind == ErrorKind::interrupted && options_.interrupts > 0) ||
                             ((kind == ErrorKind::partial || kind == ErrorKind::vanished) &&
                              options_.crashes + options_.receiver_crashes + options_.changes > 0) ||
                             (kind == ErrorKind::partial && !seconds_.empty() && !is_quiet());  // one still wrote into a file
      if (!is_honest) violated(fmt::format("a process ended with {}", member.result->message));
    }
    // All that ended well say that the whole tree is there, whoever sent it.
    const bool any_is_well = std::any_of(members_.begin(), members_.end(), [](const Member& member) {
      return member.result && member.result->kind == ErrorKind::ok;
    });
    if (any_is_well && changes_ == 0) {
      if (world_.alive(receiver_site_->node)) check_names("when a process had ended well");
      const std::string differs =
          simulate::difference(members_.front().site->files.tree(top), receiver_site_->files.tree(root + "/" + path), true);
      if (!differs.empty()) violated("a process had ended well: " + differs);
    }
    if (!is_whole && violation_.empty()) {  // whoever was killed, or had names held by a dead session, is run again
      ++result.again;
      static_cast<void>(world_.run_for(mended_within));
      for (size_t i = 0; i < members_.size(); ++i) {
        if (!world_.alive(members_[i].site->node)) world_.restart(members_[i].site->node);
        start(i);
      }
      if (run_members()) {
        for (Member& member : members_) {
          take_end(member);
          if (member.result->kind != ErrorKind::ok) violated("run again, it ended with " + member.result->message);
        }
      }
    }
    if (violation_.empty()) judge();
  }
  for (const auto& [name, entry] : members_.front().site->files.tree(top)) {
    if (entry.stat.type == ports::FileType::regular) result.bytes += entry.content.size();
  }
  if (is_quiet() && violation_.empty() && result.bytes_sent < result.bytes) violated("less was sent than the tree has");
  result.violation = violation_;
  result.faults = faults_ + static_cast<unsigned>(sides_.fabric.resets());
  result.events = world_.events();
  return result;
}

}  // namespace ccixfer::testing

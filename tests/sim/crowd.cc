#include "tests/sim/crowd.h"

#include <fmt/format.h>

#include <algorithm>

#include "tests/sim/seeds.h"

namespace ccixfer::testing {

using simulate::Dialler;
using simulate::DialPlan;
using simulate::Listener;
using simulate::Site;

namespace {

const std::string top = "/src", root = "/dst";
// Three SRC of each command: a directory, the content of one, and a file.
const std::string whole = "zz-whole", content = "zz-content", single = "zz-single";

}  // namespace

Crowd::Crowd(uint64_t seed, const CrowdOptions& options)
    : options_(options), sides_(seed, world_of(seed), options.link, options.router) {
  build();
}

Crowd::~Crowd() {
  over_ = true;
  for (const Source& source : sources_) {
    if (world_.alive(source.site->node)) world_.crash(source.site->node);
  }
  for (const Destination& destination : destinations_) {
    if (world_.alive(destination.site->node)) world_.crash(destination.site->node);
    if (destination.listener) destination.listener->bury();
  }
  for (const Command& command : commands_) {
    if (command.dialler) command.dialler->bury();
  }
}

void Crowd::build() {
  for (size_t i = 0; i < options_.destinations; ++i) {
    Destination& destination = destinations_.emplace_back();
    destination.site = sides_.destination(i, options_.disk);
    destination.site->files.make_directory(root);
    listen(destination);
  }
  for (size_t i = 0; i < options_.sources; ++i) add_source(i);
  for (size_t i = 0; i < options_.sources; ++i) add_commands(i);
}

void Crowd::add_source(size_t index) {
  Source& source = sources_.emplace_back();
  source.site = sides_.source(index);
  sim::SimFileSystem& files = source.site->files;
  files.make_directory(top);
  for (const std::string& name : {whole, content}) simulate::make_tree(random_, files, top + "/" + name, options_.tree);
  files.put(top + "/" + single, fmt::format("the file of source {}", index), 0600,
            ports::FileTime{1'600'000'000 + int64_t(index), 5});
  files.sync_all();
  for (const auto& [path, entry] : files.tree(top)) {
    if (path == whole || path.starts_with(whole + "/") || path == single) source.arrives.emplace(path, entry);
    if (path.starts_with(content + "/")) source.arrives.emplace(path.substr(content.size() + 1), entry);
  }
}

// To one destination, or to several at once.
void Crowd::add_commands(size_t source) {
  size_t destination = static_cast<size_t>(random_.below(destinations_.size()));
  const size_t count = random_.chance(options_.both_chance) ? std::min<size_t>(2, destinations_.size()) : 1;
  for (size_t i = 0; i < count; ++i, destination = (destination + 1) % destinations_.size()) {
    Command command{source, destination, fmt::format("p{}", source), false, nullptr, std::nullopt};
    if (!commands_.empty() && random_.chance(options_.rival_chance)) {
      Command& other = commands_[static_cast<size_t>(random_.below(commands_.size()))];
      if (other.source != source) {
        command.destination = other.destination;
        command.path = other.path;
        command.is_rival = other.is_rival = true;
      }
    }
    for (const auto& [path, entry] : sources_[source].arrives) {
      if (entry.stat.type == ports::FileType::regular) {
        destinations_[command.destination].allowed[command.path + "/" + path].insert(entry.content);
      }
    }
    commands_.push_back(std::move(command));
  }
}

void Crowd::violated(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void Crowd::listen(Destination& destination) {
  destination.listener = std::make_unique<Listener>(*destination.site, simulate::ListenPlan{false, root});
  if (destination.listener->error()) violated("the directory cannot be opened: " + destination.listener->error()->message);
}

void Crowd::start(Command& command) {
  DialPlan plan = archive_plan(destinations_[command.destination].listener->uri(), command.path, options_.lanes);
  for (const std::string& name : {whole, content + "/", single}) plan.sources.push_back(top + "/" + name);
  command.dialler = std::make_unique<Dialler>(*sources_[command.source].site, plan);
}

void Crowd::crash_source(size_t index) {
  Site& site = *sources_[index].site;
  if (over_ || !world_.alive(site.node)) return;
  ++faults_;
  world_.crash(site.node);
  for (Command& command : commands_) {
    if (command.source != index || !command.dialler) continue;
    if (command.dialler->ended()) command.result = command.dialler->result();
    command.dialler->bury();
    command.dialler.reset();
  }
  site.files.mount();
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, &site, index] {
    if (over_) return;
    world_.restart(site.node);
    for (Command& command : commands_) {
      const bool can = command.source == index && !command.result && destinations_[command.destination].listener;
      if (can) start(command);
    }
  });
}

void Crowd::crash_destination(size_t index) {
  Destination& destination = destinations_[index];
  if (over_ || !world_.alive(destination.site->node)) return;
  ++faults_;
  world_.crash(destination.site->node);
  destination.listener->bury();
  destination.listener.reset();
  destination.site->files.mount();
  check_names(destination, "after a crash");
  world_.at(after(world_.now(), random_.between(Duration(0), down_max)), [this, &destination] {
    if (over_) return;
    world_.restart(destination.site->node);
    listen(destination);
    for (Command& command : commands_) {  // those that could not be started meanwhile
      const bool can = !command.result && !command.dialler && &destinations_[command.destination] == &destination;
      if (can && world_.alive(sources_[command.source].site->node)) start(command);
    }
  });
}

void Crowd::plan_faults() {
  const auto strike = [this](std::function<void()> fault) { sides_.sometime(options_.faults_within, std::move(fault)); };
  for (unsigned i = 0; i < options_.crashes; ++i) {
    if (random_.chance(0.5)) {
      strike([this, at = static_cast<size_t>(random_.below(sources_.size()))] { crash_source(at); });
    } else {
      strike([this, at = static_cast<size_t>(random_.below(destinations_.size()))] { crash_destination(at); });
    }
  }
  for (unsigned i = 0; i < options_.resets; ++i) {
    const size_t at = static_cast<size_t>(random_.below(sources_.size() + destinations_.size()));
    const Site& site = at < sources_.size() ? *sources_[at].site : *destinations_[at - sources_.size()].site;
    strike([this, &site] {
      ++faults_;
      sides_.fabric.reset_all(site.node);
    });
  }
  sides_.plan_mending(options_.link);
}

bool Crowd::run_commands() {
  const auto ended = [this] {
    return !violation_.empty() || std::all_of(commands_.begin(), commands_.end(), [](const Command& command) {
      return command.result || (command.dialler && command.dialler->ended());
    });
  };
  const std::string wrong = sides_.run(ended, "commands");
  if (!wrong.empty()) violated(wrong);
  return violation_.empty();
}

void Crowd::check_names(const Destination& destination, const char* when) {
  const std::string foreign = foreign_content(destination.site->files.tree(root), destination.allowed);
  if (!foreign.empty()) violated(fmt::format("{}: {}", when, foreign));
}

// The power of all destinations goes right at the end: what was said to have arrived is there, from each source to each
// destination.
void Crowd::judge() {
  over_ = true;
  for (const Destination& destination : destinations_) {
    if (world_.alive(destination.site->node)) world_.crash(destination.site->node);
    if (destination.site->files.down()) destination.site->files.mount();
    check_names(destination, "at the end");
  }
  for (const Command& command : commands_) {
    if (command.is_rival) continue;
    const Site& site = *destinations_[command.destination].site;
    const std::string differs =
        simulate::difference(sources_[command.source].arrives, site.files.tree(root + "/" + command.path), true);
    if (!differs.empty()) violated(fmt::format("S{} to D{}: {}", command.source, command.destination, differs));
  }
}

CrowdResult Crowd::run() {
  for (Command& command : commands_) {
    world_.at(after(world_.now(), random_.between(Duration(0), Duration(std::chrono::milliseconds(500)))), [this, &command] {
      const bool can = !command.dialler && !command.result && destinations_[command.destination].listener;
      if (can && world_.alive(sources_[command.source].site->node)) start(command);
    });
  }
  plan_faults();
  CrowdResult result;
  if (run_commands()) {
    // Whoever had names held by its own dead session, or by a rival, is run again.
    static_cast<void>(world_.run_for(mended_within));
    for (Command& command : commands_) {
      if (!command.result) command.result = command.dialler->result();
      const ErrorKind kind = command.result->kind;
      if (kind == ErrorKind::ok) continue;
      ++result.failed_at_first;
      const bool is_honest = command.is_rival || options_.crashes > 0;
      if (kind != ErrorKind::partial || !is_honest) violated(fmt::format("a command ended with {}", command.result->message));
      command.result.reset();
      command.dialler.reset();
      start(command);
    }
    if (run_commands()) {
      for (const Command& command : commands_) {
        const Error end = command.result ? *command.result : command.dialler->result();
        if (!command.is_rival && end.kind != ErrorKind::ok) violated("run again, it ended with " + end.message);
      }
      judge();
    }
  }
  result.commands = static_cast<unsigned>(commands_.size());
  result.rivals =
      static_cast<unsigned>(std::count_if(commands_.begin(), commands_.end(), [](const Command& c) { return c.is_rival; }));
  result.violation = violation_;
  result.faults = faults_ + static_cast<unsigned>(sides_.fabric.resets());
  result.events = world_.events();
  return result;
}

}  // namespace ccixfer::testing

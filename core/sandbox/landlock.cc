#include "core/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "core/sandbox/steps.h"
#include "core/sandbox/system_places.h"

namespace ccixfer::sandbox {
namespace {

// Of ABI 2 and earlier the header has the names.
constexpr uint64_t fs_truncate = 1u << 14;                                        // ABI 3
constexpr uint64_t fs_ioctl_dev = 1u << 15;                                       // ABI 5
constexpr uint64_t net_bind_tcp = 1u << 0, net_connect_tcp = 1u << 1;             // ABI 4
constexpr uint64_t scope_abstract_unix_socket = 1u << 0, scope_signal = 1u << 1;  // ABI 6

constexpr uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
constexpr uint64_t making = LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM;
constexpr uint64_t removing = LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE;
// Made only where trees are written, which may have them. Devices get no orders anywhere.
constexpr uint64_t special =
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK;
constexpr uint64_t of_files =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE | fs_truncate;

constexpr int abi_that_moves = 2;  // between directories: LANDLOCK_ACCESS_FS_REFER
constexpr int abi_known = 6;       // what comes later restricts nothing that we ask for

struct RulesetAttributes {  // as the kernel has it since ABI 6; an older one takes a part from its beginning
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

size_t attributes_bytes(int abi) {
  if (abi >= 6) return sizeof(RulesetAttributes);
  return abi >= 4 ? offsetof(RulesetAttributes, scoped) : offsetof(RulesetAttributes, handled_access_net);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  const int fd_;
};

// Whatever is not there cannot be reached either; a descriptor's worth of missing memory is something else.
bool is_out_of_reach(int error) { return error != EMFILE && error != ENFILE && error != ENOMEM; }

Result<void> allow(int ruleset, const Place& place, const Handled& handled) {
  const Descriptor at(::open(place.path.c_str(), O_PATH | O_CLOEXEC));
  if (at.get() < 0) return is_out_of_reach(errno) ? Result<void>() : failed_step(place.path);
  struct stat stat {};
  if (::fstat(at.get(), &stat) != 0) return failed_step(place.path);
  landlock_path_beneath_attr rule{};
  rule.parent_fd = at.get();
  rule.allowed_access = allowed_at(place.access, S_ISDIR(stat.st_mode), handled);
  if (rule.allowed_access == 0) return {};
  if (::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0) return {};
  // EBADFD: a pipe, say, which no ruleset restricts.
  return errno == EBADFD ? Result<void>() : failed_step(place.path);
}

bool writes_trees(const Plan& plan) {
  return std::any_of(plan.places.begin(), plan.places.end(), [](const Place& place) { return place.access == Access::write; });
}

}  // namespace

int landlock_abi() {
  const long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

Handled handled_by(const Plan& plan, int abi) {
  Handled handled;
  handled.files = LANDLOCK_ACCESS_FS_WRITE_FILE | making | removing | special;
  if (!plan.executes) handled.files |= LANDLOCK_ACCESS_FS_EXECUTE;
  if (!plan.reads_everything) handled.files |= reading;
  if (abi >= 2) handled.files |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3) handled.files |= fs_truncate;
  if (abi >= 5) handled.files |= fs_ioctl_dev;
  if (abi >= 4 && !plan.dials) handled.tcp |= net_connect_tcp;
  if (abi >= 4 && !plan.listens) handled.tcp |= net_bind_tcp;
  if (abi >= 6) handled.scoped = scope_signal;
  if (abi >= 6 && !plan.shares_memory) handled.scoped |= scope_abstract_unix_socket;
  return handled;
}

uint64_t allowed_at(Access access, bool is_directory, const Handled& handled) {
  uint64_t allowed = 0;
  switch (access) {
    case Access::read:
      allowed = reading;
      break;
    case Access::change:
      allowed = reading | LANDLOCK_ACCESS_FS_WRITE_FILE | fs_truncate;
      break;
    case Access::write:
      allowed = reading | making | special | removing | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REFER | fs_truncate;
      break;
    case Access::files:
      allowed = LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | fs_truncate;
      break;
    case Access::remove:
      allowed = removing;
      break;
  }
  if (!is_directory) allowed &= of_files;
  return allowed & handled.files;
}

std::string lacks_of_abi(int abi) {
  std::string lacks;
  const auto lack = [&](int since, std::string_view what) {
    if (abi < since) lacks += fmt::format("{}{}", lacks.empty() ? "" : ", ", what);
  };
  lack(3, "cutting files short");
  lack(4, "TCP ports");
  lack(5, "orders to devices");
  lack(6, "signals, abstract sockets");
  static_assert(abi_known == 6);
  return lacks;
}

Result<void> restrict_files(const Plan& plan, int abi, Report& report) {
  if (abi == 0) {
    report.missing.emplace_back(
        "files are not confined: this kernel, or the container, offers no Landlock (Linux 5.13, CONFIG_SECURITY_LANDLOCK, lsm=)");
    return {};
  }
  if (abi < abi_that_moves && writes_trees(plan)) {
    report.missing.emplace_back(
        "files are not confined: this kernel's Landlock (ABI 1) refuses to move files between directories: use Linux 5.19 or "
        "later");
    return {};
  }
  const Handled handled = handled_by(plan, abi);
  const RulesetAttributes attributes{handled.files, handled.tcp, handled.scoped};
  const Descriptor ruleset(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, attributes_bytes(abi), 0)));
  if (ruleset.get() < 0) return failed_step("landlock_create_ruleset");
  for (const std::vector<Place>& places : {system_places(plan), plan.places}) {
    for (const Place& place : places) {
      if (auto allowed = allow(ruleset.get(), place, handled); !allowed) return allowed;
    }
  }
  if (::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) != 0) {
    if (errno != E2BIG) return failed_step("landlock_restrict_self");
    report.missing.emplace_back("files are not confined: too many Landlock rulesets are in force already");  // sixteen
    return {};
  }
  report.confines_files = true;
  std::string words =
      fmt::format("files: Landlock (ABI {}) confines {}", abi, plan.reads_everything ? "writing" : "reading and writing");
  if ((handled.tcp & net_connect_tcp) != 0) words += ", no connection is opened";
  if ((handled.tcp & net_bind_tcp) != 0) words += ", no port is bound";
  report.in_force.push_back(std::move(words));
  if (const std::string lacks = lacks_of_abi(abi); !lacks.empty())
    report.missing.push_back(fmt::format("this kernel's Landlock (ABI {}) does not restrict {}", abi, lacks));
  return {};
}

}  // namespace ccixfer::sandbox

#include "core/sandbox/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "core/sandbox/steps.h"

namespace ccixfer::sandbox {
namespace {

constexpr uint64_t bit(int capability) { return uint64_t{1} << capability; }

constexpr std::array<std::pair<int, const char*>, 7> names{{{CAP_CHOWN, "CAP_CHOWN"},
                                                            {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
                                                            {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
                                                            {CAP_FOWNER, "CAP_FOWNER"},
                                                            {CAP_FSETID, "CAP_FSETID"},
                                                            {CAP_MKNOD, "CAP_MKNOD"},
                                                            {CAP_SETFCAP, "CAP_SETFCAP"}}};

std::string words(uint64_t kept) {
  std::string list;
  for (const auto& [capability, name] : names) {
    if ((kept & bit(capability)) != 0) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
  }
  return list;
}

using Sets = std::array<__user_cap_data_struct, 2>;  // 32 capabilities each

__user_cap_header_struct header_of_self() { return {_LINUX_CAPABILITY_VERSION_3, 0}; }

// Nobody gets back what is not in it. Only who has CAP_SETPCAP may; for others it bounds nothing, as they start no program.
void empty_bounding_set() {
  for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) return;
  }
}

}  // namespace

uint64_t kept_capabilities(FileRights rights) {
  switch (rights) {
    case FileRights::own:
      return 0;
    case FileRights::read_all:
      return bit(CAP_DAC_READ_SEARCH);
    case FileRights::write_all:
      return bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER);
    case FileRights::write_all_with_owners:
      return bit(CAP_DAC_OVERRIDE) | bit(CAP_FOWNER) | bit(CAP_CHOWN) | bit(CAP_FSETID) | bit(CAP_MKNOD) | bit(CAP_SETFCAP);
  }
  return 0;
}

Result<void> drop_capabilities(FileRights rights, Report& report) {
  empty_bounding_set();
  static_cast<void>(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0));  // capset empties it, too
  auto header = header_of_self();
  Sets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return failed_step("capget");
  uint64_t kept = 0;
  bool changes = false;
  for (size_t i = 0; i < sets.size(); ++i) {
    const auto wanted = sets[i].permitted & static_cast<uint32_t>(kept_capabilities(rights) >> (32 * i));
    changes = changes || sets[i].permitted != wanted || sets[i].effective != wanted || sets[i].inheritable != 0;
    sets[i] = {wanted, wanted, 0};
    kept |= uint64_t{wanted} << (32 * i);
  }
  // A service manager's list of system calls may lack the call: there is nothing to change then, as a rule.
  if (changes && ::syscall(SYS_capset, &header, sets.data()) != 0) {
    if (errno != EPERM && errno != ENOSYS) return failed_step("capset");
    report.missing.emplace_back("capabilities stay as they are: capset is refused by what started this process");
    return {};
  }
  report.in_force.push_back(kept == 0 ? "capabilities: none"
                                      : fmt::format("capabilities: {}, for files of other accounts", words(kept)));
  return {};
}

}  // namespace ccixfer::sandbox

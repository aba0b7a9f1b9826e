// What the kernel promises of private memory (proc_sys_vm(5), overcommit_memory).
#pragma once
#include <string>

namespace ccixfer::host {

// Whether private memory counts when it is mapped, and no more is given than there is. Then memory that gave way to the pages of a
// file may not be had again. Asked before the process is confined.
[[nodiscard]] bool counts_private_memory(const std::string& setting = "/proc/sys/vm/overcommit_memory");

}  // namespace ccixfer::host

// What a process reads of the system whatever it works on: libraries that are loaded late, time zones, random devices, and with
// Plan::dials what the names of hosts are looked up with (nsswitch, resolv.conf, hosts, the sockets of caches).
// These are files of the system's packages. Of /etc a process of root gets single files only, because it owns those that are secret
// (/etc/shadow, the keys of sshd); another account gets all of /etc that it may read, so that a resolv.conf that is replaced later
// is still read.
#pragma once
#include <vector>

#include "core/sandbox/plan.h"

namespace ccixfer::sandbox {

[[nodiscard]] std::vector<Place> system_places(const Plan& plan);

}  // namespace ccixfer::sandbox

#include "tests/unit/eth/own_lan.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <cstdlib>
#include <system_error>

namespace ccixfer::testing {
namespace {

bool write_file(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  return close(fd) == 0 && written;
}

// "": this process is in a network namespace of its own.
std::string enter_namespaces() {
  if (unshare(CLONE_NEWNET) == 0) return {};
  const auto user = geteuid();
  const auto group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
    return fmt::format("no network namespace can be made: {}: run this as root, or allow user namespaces to ordinary accounts",
                       std::generic_category().message(errno));
  if (!write_file("/proc/self/setgroups", "deny") || !write_file("/proc/self/uid_map", fmt::format("0 {} 1", user)) ||
      !write_file("/proc/self/gid_map", fmt::format("0 {} 1", group)))
    return "the user namespace cannot be set up";
  return {};
}

bool run_shell(const std::string& commands) { return std::system(("set -e\n" + commands).c_str()) == 0; }

// A bridge forwards only after it has noticed that a port's other end is up, which takes the kernel a moment.
bool make_lan() {
  std::string commands = "ip link add lan type bridge\nip link set lan up\n";
  for (int number = 0; number < lan_ports; ++number) {
    commands += fmt::format(
        "ip link add port{0} address {1} type veth peer name plug{0}\nip link set plug{0} master lan up\nip link set port{0} up\n",
        number, lan_mac(number));
  }
  commands += fmt::format(
      "for i in $(seq 1000); do\n  [ \"$(bridge link show | grep -c 'state forwarding')\" = {} ] && exit 0\n  sleep "
      "0.01\ndone\nexit 1\n",
      lan_ports);
  return run_shell(commands);
}

// An RDMA device may be seen in the first namespace only, so tests of it stay there.
std::string enter() {
  if (std::getenv("CCIXFER_NO_LAN") != nullptr) return "CCIXFER_NO_LAN is set, so the test has no Ethernet of its own";
  const std::string why = enter_namespaces();
  if (!why.empty()) return why;
  return run_shell("ip link set lo up\n") ? std::string() : "no loopback in the new network namespace: is iproute2 installed?";
}

// Before main(), when there is one thread for certain. "": there is a network.
const std::string why_there_is_none = enter();

void need_lan() {
  static bool made = false;
  if (!why_there_is_none.empty()) FAIL(why_there_is_none);
  if (!made) made = make_lan();
  if (!made) FAIL("the test's own Ethernet cannot be made: does this kernel have veth and bridge?");
}

}  // namespace

std::string lan_mac(int number) { return fmt::format("02:00:00:00:01:{:02x}", number); }

std::string lan_port(int number) {
  REQUIRE((number >= 0 && number < lan_ports));
  need_lan();
  return fmt::format("port{}", number);
}

void lan_shell(const std::string& commands) {
  need_lan();
  CAPTURE(commands);
  REQUIRE(run_shell(commands));
}

}  // namespace ccixfer::testing

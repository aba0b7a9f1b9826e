// An Ethernet of this test process alone: a network namespace with a bridge, and ports with MAC addresses that are known. It needs
// root, or an account that may make user namespaces. The namespaces are entered before main(), because a process that has threads
// can make no user namespace, and they end with the process. Where they cannot be made, a test that needs the network
// fails and says why.
#pragma once
#include <string>

namespace ccixfer::testing {

inline constexpr int lan_ports = 8;

// The interface of a port: 0 to lan_ports - 1. Each is on the one network, has the MTU 1,500 and the MAC 02:00:00:00:01:0N, with N
// its number. Fails the test where there is no network.
[[nodiscard]] std::string lan_port(int number);
[[nodiscard]] std::string lan_mac(int number);

// Runs commands of a shell, as `ip link set ...`, as the network's root; fails the test when one fails.
void lan_shell(const std::string& commands);

}  // namespace ccixfer::testing

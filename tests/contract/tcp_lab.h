// Endpoints over real sockets of the loopback interface. Time is the machine's plus what pass() added.
#pragma once
#include "tests/contract/lab.h"

namespace ccixfer::contract {
[[nodiscard]] std::unique_ptr<Lab> make_tcp_lab(bool secured = false);
}

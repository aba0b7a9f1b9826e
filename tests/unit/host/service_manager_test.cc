// What systemd is told, over a socket that the test listens at.
#include "core/host/service_manager.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/host/notify_socket.h"
#include "tests/unit/host/temp_dir.h"

namespace ccixfer::host {
namespace {

using namespace std::chrono_literals;
using testing::NotifySocket;
using Told = std::vector<std::string>;

constexpr Instant start{100s};

ServiceManager manager_at(const NotifySocket& socket, Duration watchdog = forever) {
  auto manager = ServiceManager::connect(socket.name(), watchdog);
  REQUIRE(manager);
  REQUIRE(*manager);
  return std::move(*manager);
}

struct Fixture {
  testing::TempDir here;
  NotifySocket socket{here.path() + "/notify"};
};

// Until it takes no more: whoever speaks next finds no room.
void fill(const NotifySocket& socket) {
  const Descriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket.name().data(), socket.name().size());
  while (::sendto(fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 1) {
  }
  REQUIRE(errno == EAGAIN);
}

class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

}  // namespace

TEST_CASE_METHOD(Fixture, "service_manager__a_service_from_start_to_stop__says_each_step_with_a_status") {
  ServiceManager manager = manager_at(socket);
  manager.status("too early");
  manager.reloading(start);
  manager.turn(start);
  CHECK(socket.all().empty());
  manager.ready("2 devices");
  CHECK(socket.all() == Told{"READY=1\nSTATUS=2 devices"});
  manager.reloading(start + 1234567ns);
  manager.ready("3 devices");
  CHECK(socket.all() == Told{"RELOADING=1\nMONOTONIC_USEC=100001234", "READY=1\nSTATUS=3 devices"});
  manager.stopping("draining");
  manager.stopping("again");
  manager.ready("late");
  manager.reloading(start);
  manager.status("late");
  manager.turn(start + 10s);
  CHECK(socket.all() == Told{"STOPPING=1\nSTATUS=draining"});
  CHECK(manager.next_deadline() == never);
}

TEST_CASE("service_manager__an_abstract_name__is_a_socket_too") {
  NotifySocket socket("@ccixfer-unit-" + std::to_string(::getpid()));
  ServiceManager manager = manager_at(socket);
  manager.ready("x");
  CHECK(socket.all() == Told{"READY=1\nSTATUS=x"});
}

TEST_CASE_METHOD(Fixture, "service_manager__signs_of_life__come_with_turns_at_half_the_time") {
  ServiceManager manager = manager_at(socket, 10s);
  CHECK(manager.next_deadline() <= start);
  manager.turn(start);
  CHECK(socket.all() == Told{"WATCHDOG=1"});
  CHECK(manager.next_deadline() == start + 5s);
  manager.turn(start + 5s - 1ns);
  CHECK(socket.all().empty());
  manager.turn(start + 5s);
  CHECK(socket.all() == Told{"WATCHDOG=1"});
  manager.turn(start + 60s);  // the loop did not turn meanwhile, and nothing else spoke for it
  CHECK(socket.all() == Told{"WATCHDOG=1"});
  CHECK(manager.next_deadline() == start + 65s);
  manager.stopping("x");  // who hangs in stopping is found too
  manager.turn(start + 65s);
  CHECK(socket.all() == Told{"STOPPING=1\nSTATUS=x", "WATCHDOG=1"});
}

TEST_CASE_METHOD(Fixture, "service_manager__of_a_process_that_is_not_well__gives_no_sign_of_life_until_it_is") {
  ServiceManager manager = manager_at(socket, 10s);
  manager.set_well(false);
  manager.turn(start);
  CHECK(socket.all().empty());
  CHECK(manager.next_deadline() == start + 5s);
  manager.set_well(true);
  manager.turn(start + 5s);
  CHECK(socket.all() == Told{"WATCHDOG=1"});
}

TEST_CASE_METHOD(Fixture, "service_manager__status_that_changes_often__is_told_once_a_second_and_as_it_is_then") {
  ServiceManager manager = manager_at(socket);
  manager.ready("0 sessions");
  manager.status("1 sessions");
  manager.turn(start);
  CHECK(socket.all() == Told{"READY=1\nSTATUS=0 sessions", "STATUS=1 sessions"});
  for (int count = 2; count < 100; ++count) {
    manager.status(std::to_string(count) + " sessions");
    manager.turn(start + 1ms * count);
  }
  CHECK(socket.all().empty());
  CHECK(manager.next_deadline() == start + ServiceManager::status_interval);
  manager.turn(manager.next_deadline());
  CHECK(socket.all() == Told{"STATUS=99 sessions"});
  CHECK(manager.next_deadline() == never);
  manager.status("99 sessions");
  manager.turn(start + 10s);
  CHECK(socket.all().empty());
}

TEST_CASE_METHOD(Fixture, "service_manager__status__is_one_line_of_text_with_a_bound") {
  ServiceManager manager = manager_at(socket);
  manager.ready("a\nWATCHDOG=trigger");
  CHECK(socket.next().find("\nWATCHDOG") == std::string::npos);
  std::string umlauts = "x";
  while (umlauts.size() < 2 * ServiceManager::status_bytes_max) umlauts += "ä";
  manager.ready(umlauts);
  const std::string told = socket.next();
  CHECK(told == "READY=1\nSTATUS=" + umlauts.substr(0, ServiceManager::status_bytes_max - 1));  // whole characters
}

TEST_CASE_METHOD(Fixture, "service_manager__that_has_no_room__is_told_later_in_order_and_holds_nobody_up") {
  ServiceManager manager = manager_at(socket, 10s);
  fill(socket);
  manager.ready("x");
  manager.turn(start);
  CHECK(manager.next_deadline() == start + ServiceManager::retry_interval);
  manager.turn(manager.next_deadline());
  manager.reloading(start);
  for (const std::string& one : socket.all()) REQUIRE(one == "x");
  manager.turn(start + 1s);
  CHECK(socket.all() == Told{"READY=1\nSTATUS=x", "RELOADING=1\nMONOTONIC_USEC=100000000", "WATCHDOG=1"});
  CHECK(manager.next_deadline() == start + 6s);
}

TEST_CASE_METHOD(Fixture, "service_manager__that_never_has_room__costs_a_bounded_memory") {
  ServiceManager manager = manager_at(socket);
  fill(socket);
  for (int count = 0; count < 100; ++count) manager.ready(std::to_string(count));
  for (const std::string& one : socket.all()) REQUIRE(one == "x");
  Told told;
  for (int turn = 0; turn < 4; ++turn) {  // the kernel's queue holds fewer
    manager.turn(start + ServiceManager::retry_interval * turn);
    for (std::string& one : socket.all()) told.push_back(std::move(one));
  }
  CHECK(told.size() == ServiceManager::waiting_max);
  CHECK(told.back() == "READY=1\nSTATUS=99");
}

TEST_CASE("service_manager__that_went_away__is_told_nothing_more") {
  std::optional<Fixture> there(std::in_place);
  ServiceManager manager = manager_at(there->socket, 10s);
  there.reset();
  manager.ready("x");
  manager.turn(start);
  CHECK(manager.next_deadline() == start + 5s);
}

TEST_CASE("service_manager__none__is_told_nothing") {
  ServiceManager manager;
  CHECK_FALSE(manager);
  manager.ready("x");
  manager.status("y");
  manager.stopping("z");
  manager.turn(start);
  CHECK(manager.next_deadline() == never);
}

TEST_CASE_METHOD(Fixture, "service_manager__environment__is_read_once_and_goes") {
  const Variable name("NOTIFY_SOCKET", socket.name());
  const Variable time("WATCHDOG_USEC", "2000000");
  const Variable process("WATCHDOG_PID", std::to_string(::getpid()));
  auto manager = ServiceManager::of_environment();
  REQUIRE(manager);
  manager->turn(start);
  CHECK(manager->next_deadline() == start + 1s);
  CHECK(socket.all() == Told{"WATCHDOG=1"});
  for (const char* variable : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) CHECK(std::getenv(variable) == nullptr);
  auto second = ServiceManager::of_environment();
  REQUIRE(second);
  CHECK_FALSE(*second);
}

TEST_CASE("service_manager__a_socket_that_is_none__is_an_error_that_names_it") {
  for (const std::string& name :
       {std::string("relative"), std::string("vsock:2:1"), std::string("/"), std::string("@"), "/" + std::string(200, 'x')}) {
    const auto manager = ServiceManager::connect(name, forever);
    REQUIRE_FALSE(manager);
    CHECK(manager.error().kind == ErrorKind::usage);
    CHECK(manager.error().message.find(name) != std::string::npos);
  }
  const auto manager = ServiceManager::connect("/nowhere/notify", forever);
  REQUIRE_FALSE(manager);
  CHECK(manager.error().kind == ErrorKind::network);
}

TEST_CASE("service_manager__watchdog__is_for_this_process_or_for_whoever_reads_it") {
  CHECK(watchdog_of(nullptr, nullptr, 7) == forever);
  CHECK(watchdog_of("3000000", nullptr, 7) == 3s);
  CHECK(watchdog_of("3000000", "7", 7) == 3s);
  CHECK(watchdog_of("3000000", "8", 7) == forever);
  CHECK(watchdog_of("3000000", "", 7) == forever);
  CHECK(watchdog_of("0", nullptr, 7) == forever);
  CHECK(watchdog_of("3s", nullptr, 7) == forever);
  CHECK(watchdog_of("-1", nullptr, 7) == forever);
  CHECK(watchdog_of("18446744073709551615", nullptr, 7) == forever);
}

}  // namespace ccixfer::host

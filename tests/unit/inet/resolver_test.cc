// Names to addresses, off the protocol thread, and what is left of the thread.
#include "transports/inet/resolver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "tests/unit/inet/names.h"

namespace ccixfer::inet {
namespace {

struct Wake {
  int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  ~Wake() { ::close(fd); }
  [[nodiscard]] bool rang() const {
    pollfd handle{fd, POLLIN, 0};
    return ::poll(&handle, 1, 60'000) == 1;
  }
};

// By name, as those of earlier cases may still be about to end.
std::set<std::string> threads() {
  std::set<std::string> names;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) names.insert(task.path().filename());
  return names;
}

std::vector<std::string> threads_since(const std::set<std::string>& before) {
  std::vector<std::string> fresh;
  for (const std::string& name : threads()) {
    if (!before.contains(name)) fresh.push_back(name);
  }
  return fresh;
}

std::vector<Resolver::Answer> answers_of(Resolver& resolver, const Wake& wake, size_t count) {
  std::vector<Resolver::Answer> all;
  while (all.size() < count) {
    REQUIRE(wake.rang());
    for (Resolver::Answer& answer : resolver.take()) all.push_back(std::move(answer));
    uint64_t rings = 0;
    static_cast<void>(!::read(wake.fd, &rings, sizeof rings));
  }
  return all;
}

}  // namespace

// getaddrinfo says that nobody has the name where it could open no file and no socket, and a name that nobody has ends a transfer.
TEST_CASE("resolver__no_descriptor_or_memory_to_ask_with__the_name_is_not_unknown_and_the_words_say_why") {
  for (const int problem : {EMFILE, ENFILE, ENOMEM}) {
    const Resolver::Answer answer = unanswered(true, "Host not found", problem);
    CHECK_FALSE(answer.unknown);
    CHECK(answer.reason == "the name cannot be looked up now: " + std::system_category().message(problem));
  }
  for (const int problem : {0, ENOENT, EAGAIN}) {
    const Resolver::Answer answer = unanswered(true, "Host not found", problem);
    CHECK(answer.unknown);
    CHECK(answer.reason == "Host not found");
  }
  CHECK_FALSE(unanswered(false, "try again", EMFILE).unknown);
  CHECK(unanswered(false, "try again", EMFILE).reason == "try again");
}

TEST_CASE("resolver__several_names__each_answered_once_under_its_number_with_its_port") {
  testing::Names names;
  names.give("unknown.test", {});  // a name server of this machine may answer after a minute, or not at all
  const Wake wake;
  Resolver resolver{host::WakeHandle(wake.fd)};
  CHECK(resolver.take().empty());
  REQUIRE(resolver.resolve(7, "127.0.0.1", 80));
  REQUIRE(resolver.resolve(9, "::1", 65535));
  REQUIRE(resolver.resolve(8, "unknown.test", 81));
  std::vector<Resolver::Answer> answers = answers_of(resolver, wake, 3);
  REQUIRE(answers.size() == 3);
  std::sort(answers.begin(), answers.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  CHECK(answers[0].id == 7);
  REQUIRE(answers[0].addresses.size() == 1);
  CHECK(host_of(answers[0].addresses[0]) == "127.0.0.1");
  CHECK(port_of(answers[0].addresses[0]) == 80);
  CHECK(answers[0].reason.empty());
  CHECK_FALSE(answers[0].unknown);
  CHECK(answers[1].id == 8);
  CHECK(answers[1].addresses.empty());
  CHECK_FALSE(answers[1].reason.empty());
  CHECK(answers[1].unknown);
  CHECK(answers[2].id == 9);
  REQUIRE(answers[2].addresses.size() == 1);
  CHECK(host_of(answers[2].addresses[0]) == "::1");
  CHECK(port_of(answers[2].addresses[0]) == 65535);
  CHECK(resolver.take().empty());
}

TEST_CASE("resolver__a_name_that_hangs__does_not_hold_up_another") {
  testing::Names names;
  names.hang("slow.test");
  names.give("fast.test", {"192.0.2.1"});
  const Wake wake;
  Resolver resolver{host::WakeHandle(wake.fd)};
  const size_t asked = names.asked();
  REQUIRE(resolver.resolve(1, "slow.test", 80));
  names.wait_for_questions(asked + 1);
  REQUIRE(resolver.resolve(2, "fast.test", 80));
  const std::vector<Resolver::Answer> answers = answers_of(resolver, wake, 1);
  CHECK(answers[0].id == 2);
  REQUIRE(answers[0].addresses.size() == 1);
  CHECK(host_of(answers[0].addresses[0]) == "192.0.2.1");
  names.let_go("slow.test");
  CHECK(answers_of(resolver, wake, 1)[0].unknown);
}

TEST_CASE("resolver__all_threads_hang_and_one_forgets_its_question__nobody_asks_it") {
  testing::Names names;
  names.hang("slow.test");
  names.give("fast.test", {"192.0.2.1"});
  const Wake wake;
  const std::set<std::string> before = threads();
  Resolver resolver{host::WakeHandle(wake.fd)};
  const size_t asked = names.asked();
  for (uint64_t id = 1; id <= Resolver::threads_max; ++id) REQUIRE(resolver.resolve(id, "slow.test", 80));
  names.wait_for_questions(asked + Resolver::threads_max);
  REQUIRE(resolver.resolve(10, "fast.test", 80));
  REQUIRE(resolver.resolve(11, "fast.test", 81));
  CHECK(threads_since(before).size() == Resolver::threads_max);
  resolver.forget(10);
  resolver.forget(12);  // of which nobody knows
  names.let_go("slow.test");
  const std::vector<Resolver::Answer> answers = answers_of(resolver, wake, Resolver::threads_max + 1);
  CHECK(std::none_of(answers.begin(), answers.end(), [](const auto& answer) { return answer.id == 10; }));
  CHECK(std::any_of(answers.begin(), answers.end(), [](const auto& answer) { return answer.id == 11; }));
  CHECK(names.asked() == asked + Resolver::threads_max + 1);
}

TEST_CASE("resolver__an_answer_that_nobody_took__is_forgotten_too") {
  testing::Names names;
  names.give("fast.test", {"192.0.2.1"});
  const Wake wake;
  Resolver resolver{host::WakeHandle(wake.fd)};
  REQUIRE(resolver.resolve(1, "fast.test", 80));
  REQUIRE(wake.rang());
  resolver.forget(1);
  CHECK(resolver.take().empty());
}

// The thread has nothing to do when the last answer is taken, as that needs what it holds until it waits.
TEST_CASE("resolver__destroyed_while_nobody_asks__its_thread_ends") {
  const Wake wake;
  const std::set<std::string> before = threads();
  {
    Resolver resolver{host::WakeHandle(wake.fd)};
    CHECK(threads_since(before).empty());  // none is started for addresses
    REQUIRE(resolver.resolve(1, "127.0.0.1", 80));
    CHECK(answers_of(resolver, wake, 1).size() == 1);
    REQUIRE(resolver.resolve(2, "127.0.0.1", 80));
    CHECK(answers_of(resolver, wake, 1).size() == 1);
    CHECK(threads_since(before).size() == 1);  // one for all
  }
  while (!threads_since(before).empty()) std::this_thread::yield();
}

TEST_CASE("resolver__without_anybody_to_wake__takes_no_question") {
  Resolver resolver{host::WakeHandle(-1)};
  CHECK_FALSE(resolver.resolve(1, "127.0.0.1", 80));
  CHECK(resolver.take().empty());
}

TEST_CASE("numeric_address__addresses_of_both_kinds_and_nothing_else") {
  Address address;
  REQUIRE(numeric_address("192.0.2.7", 7, address));
  CHECK(address.size == sizeof(sockaddr_in));
  CHECK(host_of(address) == "192.0.2.7");
  CHECK(port_of(address) == 7);
  REQUIRE(numeric_address("2001:db8::7", 65535, address));
  CHECK(address.size == sizeof(sockaddr_in6));
  CHECK(host_of(address) == "2001:db8::7");
  CHECK(port_of(address) == 65535);
  REQUIRE(numeric_address("fe80::1%lo", 9, address));
  sockaddr_in6 scoped{};
  std::memcpy(&scoped, &address.storage, sizeof scoped);
  CHECK(scoped.sin6_scope_id > 0);
  for (const char* name :
       {"", "localhost", "1", "1.2.3", "1.2.3.4.5", "256.0.0.1", "12", "a:b", ":", "1:2", "fd00::x", "fd00:::1"}) {
    INFO(name);
    CHECK_FALSE(numeric_address(name, 1, address));
  }
}

TEST_CASE("resolve_now__an_address__is_itself") {
  const Resolver::Answer answer = resolve_now("127.0.0.1", 4711);
  REQUIRE(answer.addresses.size() == 1);
  CHECK(port_of(answer.addresses[0]) == 4711);
  CHECK_FALSE(answer.unknown);
  CHECK(answer.reason.empty());
}

}  // namespace ccixfer::inet

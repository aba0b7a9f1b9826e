// Waiting for a mailbox's completion by each method, also from another thread.
#include "core/host/completion_wait.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/counters.h"
#include "core/rvma/mailbox_table.h"

using namespace ccixfer;
using namespace ccixfer::host;
using rvma::CompletionRecord;

namespace {

class CountingWaker final : public rvma::RecordWaker {
 public:
  void wake(const std::atomic<uint32_t>* word) override {
    ++wakes;
    futex.wake(word);
  }
  FutexWaker futex;
  uint64_t wakes = 0;
};

// A table with mailbox 1 and a way to complete its head.
struct Target {
  Counters counters;
  CountingWaker waker;
  rvma::MailboxTable table{{}, counters};
  uint64_t operation = 0;

  Target() {
    table.set_waker(&waker);
    REQUIRE(table.open(1, {}) == Status::success);
  }
  void put(std::byte value) {
    ports::RemoteRef ref;
    ref.handle.kind = ports::HandleKind::mailbox;
    ref.handle.number = 1;
    ref.put.source = 1;
    ref.put.operation = ++operation;
    const ports::Admission admission = table.begin_write(1, ref, 8);
    REQUIRE(admission.status == Status::success);
    const MutableBytes span = table.write_span(admission.ticket, 0);
    std::fill(span.begin(), span.end(), value);
    REQUIRE(table.end_write(admission.ticket, true).status == Status::success);
  }
};

std::vector<WaitMethod> methods() {
  std::vector<WaitMethod> all = {WaitMethod::spin, WaitMethod::futex};
  if (cpu_has_umwait()) all.push_back(WaitMethod::umwait);
  return all;
}

// Some thread of ours is asleep in the kernel for this record. It says so before, so the word is the event to wait for.
void until_asleep(const CompletionRecord& record) {
  while (record.sleepers != CompletionRecord::asleep) std::this_thread::yield();
}

}  // namespace

TEST_CASE("completion_wait__complete_already__at_once_whatever_the_method") {
  for (const WaitMethod method : methods()) {
    Target target;
    CompletionRecord record;
    std::vector<std::byte> buffer(8);
    REQUIRE(target.table.post(1, buffer, {.record = &record}) == Status::success);
    CHECK_FALSE(wait(record, {.timeout = Duration::zero(), .spins = 3, .method = method}));
    target.put(std::byte{5});
    CHECK(wait(record, {.spins = 0, .method = method}));
    CHECK(record.buffer == buffer.data());
  }
}

TEST_CASE("completion_wait__nothing_comes__false_after_the_timeout_then_true_for_the_next") {
  for (const WaitMethod method : methods()) {
    Target target;
    CompletionRecord record;
    std::vector<std::byte> buffer(8);
    REQUIRE(target.table.post(1, buffer, {.record = &record}) == Status::success);
    CHECK_FALSE(wait(record, {.timeout = std::chrono::milliseconds(1), .spins = 0, .method = method}));
    target.put(std::byte{5});
    CHECK(wait(record, {.method = method}));
  }
}

TEST_CASE("completion_wait__another_thread__sees_every_byte_and_field_of_each_completion") {
  for (const WaitMethod method : methods()) {
    constexpr uint64_t rounds = 2000;
    Target target;
    std::vector<std::vector<std::byte>> buffers(rounds, std::vector<std::byte>(8));
    const auto records = std::make_unique<CompletionRecord[]>(rounds);
    for (uint64_t i = 0; i < 1000; ++i) REQUIRE(target.table.post(1, buffers[i], {.record = &records[i]}) == Status::success);
    std::atomic<uint64_t> bad{0};
    std::thread waiter([&] {
      for (uint64_t i = 0; i < rounds; ++i) {
        if (!wait(records[i], {.spins = static_cast<uint32_t>(i % 50), .method = method})) ++bad;
        const bool right = records[i].buffer == buffers[i].data() && records[i].epoch == i && records[i].length_bytes == 8 &&
                           records[i].count == 1 && buffers[i] == std::vector<std::byte>(8, static_cast<std::byte>(i));
        if (!right) ++bad;
      }
    });
    for (uint64_t i = 0; i < rounds; ++i) {
      if (i + 1000 < rounds) REQUIRE(target.table.post(1, buffers[i + 1000], {.record = &records[i + 1000]}) == Status::success);
      target.put(static_cast<std::byte>(i));
    }
    waiter.join();
    CHECK(bad == 0);
  }
}

TEST_CASE("completion_wait__asleep_in_the_kernel__woken_and_only_then_a_system_call") {
  Target target;
  CompletionRecord record, other;
  std::vector<std::byte> buffer(8), another(8);
  REQUIRE(target.table.post(1, another, {.record = &other}) == Status::success);
  REQUIRE(target.table.post(1, buffer, {.record = &record}) == Status::success);
  std::atomic<int> woken{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      if (wait(record, {.spins = 0, .method = WaitMethod::futex})) ++woken;
    });
  }
  until_asleep(record);
  target.put(std::byte{1});  // the other record: nobody sleeps on it
  CHECK(target.waker.wakes == 0);
  target.put(std::byte{2});
  for (std::thread& waiter : waiters) waiter.join();
  CHECK(woken == 4);
  CHECK(target.waker.wakes == 1);
}

TEST_CASE("completion_wait__asleep_and_the_mailbox_is_closed__woken_with_cancelled") {
  Target target;
  CompletionRecord record;
  std::vector<std::byte> buffer(8);
  REQUIRE(target.table.post(1, buffer, {.record = &record}) == Status::success);
  std::atomic<bool> woken{false};
  std::thread waiter([&] { woken = wait(record, {.spins = 0, .method = WaitMethod::futex}); });
  until_asleep(record);
  REQUIRE(target.table.close(1) == Status::success);
  waiter.join();
  CHECK(woken);
  CHECK(record.status == Status::cancelled);
}

TEST_CASE("completion_wait__the_best_method__is_what_the_cpu_has") {
  CHECK(best_wait_method() == (cpu_has_umwait() ? WaitMethod::umwait : WaitMethod::futex));
  bool flag = false;  // the kernel's own reading of CPUID
  if (std::FILE* file = std::fopen("/proc/cpuinfo", "r")) {
    char line[8192];
    while (!flag && std::fgets(line, sizeof line, file) != nullptr) flag = std::string(line).find(" waitpkg") != std::string::npos;
    std::fclose(file);
    CHECK(cpu_has_umwait() == flag);
  }
}

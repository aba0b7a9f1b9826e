// What a run measures, and the rows that come out. A plan is made of the text of the command line and is within bounds.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/statistics.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace ccixfer::bench {

inline constexpr uint64_t size_bytes_max = 64u << 20;     // of one operation
inline constexpr uint64_t memory_bytes_max = 256u << 20;  // that one asking side may have at the serving side
inline constexpr uint32_t depth_max = 256;                // operations in flight; also what a transport negotiates at most
inline constexpr uint32_t connections_max = 15'000;
inline constexpr size_t sizes_max = 32;

enum class Test : uint8_t { message_latency, message_rate, rma_write, rma_read, rvma_put, completion, connect, empty_turn };
enum class Wait : uint8_t { poll = 0, spin = 1 };

struct Plan {
  std::vector<Test> tests{Test::connect,  Test::message_latency, Test::message_rate, Test::rma_write,
                          Test::rma_read, Test::rvma_put,        Test::completion};
  uint32_t message_bytes = 64;   // of message-latency, message-rate and completion
  bool sweeps_messages = false;  // message-latency: at each power of two up to the longest message of the path, and at that
  std::vector<uint64_t> sizes_bytes{4u << 10, 64u << 10, 1u << 20, 4u << 20};
  uint32_t depth = 16;
  uint32_t count = 0;  // operations a row; 0: as many as row_time allows
  Duration row_time = std::chrono::seconds(1);
  Duration timeout = std::chrono::seconds(10);  // without any progress
  uint32_t connections = 1000;                  // empty-turn: with one, then with so many
};

// The command line's words; an empty one leaves the default.
struct PlanText {
  std::string tests{}, message_size{}, sizes{}, depth{}, count{}, seconds{}, timeout{}, connections{};
  bool plots = false;  // what is measured is drawn by size: other defaults
};
// usage: an unknown test, a number out of its bounds, nothing that can be drawn; the message names the option.
[[nodiscard]] Result<Plan> make_plan(const PlanText& text);
[[nodiscard]] Result<Wait> parse_wait(std::string_view text);  // usage
[[nodiscard]] std::string_view to_string(Test test);
[[nodiscard]] std::string_view to_string(Wait wait);
[[nodiscard]] std::string test_names();            // all, for people
[[nodiscard]] bool has_bytes_a_second(Test test);  // rma-write, rma-read, rvma-put: measured at each of the plan's sizes

struct Row {
  std::string test;         // message-latency ..., completion-put, completion-message, completion-exchange
  std::string latency_of;   // "half round trip", "connect", "turn"; "": no percentiles
  uint64_t size_bytes = 0;  // of one operation; 0: it has none
  uint32_t depth = 1;       // operations in flight
  uint64_t connections = 1;
  uint64_t count = 0;  // operations measured
  uint64_t again = 0;  // puts that found no buffer posted and went out again
  Duration took{0};
  Percentiles latency;
  double reduction = 0;        // completion-message, -exchange: how much of its median the put saves
  double reduction_paper = 0;  // the paper's figure beside it; 0: none
};

}  // namespace ccixfer::bench

// The transfers that have ended below a root: history.jsonl in its staging directory, one JSON object a line, the oldest first. It
// is for people (ccixfer status --history) and nothing else depends on it. A line is durable when add() returns; one that a crash
// cut off is completed by the next one's line feed, and readers skip it. Bound: history_bytes_max; beyond it the older half of the
// file goes. For jobs; the root's ledger lock keeps other processes out.
#pragma once
#include <string>
#include <string_view>

#include "app/recv/opened_root.h"

namespace ccixfer::recv {

inline constexpr std::string_view history_name = "history.jsonl";
inline constexpr uint64_t history_bytes_max = 4u << 20;

// 0, or -errno.
int add_history(OpenedRoot& root, const std::string& line);  // without a line feed

}  // namespace ccixfer::recv

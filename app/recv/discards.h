// Staged files of packs that will not be committed, by their names in staging: they are removed
// together, by a job in each turn.
// Protocol thread; `remove` runs in a job.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "app/recv/session_jobs.h"

namespace ccixfer::recv {

class Discards {
 public:
  using Remove = std::function<void(const std::vector<std::string>& names)>;
  Discards(SessionJobs& jobs, Remove remove) : jobs_(jobs), remove_(std::move(remove)) {}
  Discards(const Discards&) = delete;
  Discards& operator=(const Discards&) = delete;

  void add(std::string name) { names_.push_back(std::move(name)); }
  [[nodiscard]] bool empty() const { return names_.empty(); }
  void turn() {
    if (names_.empty()) return;
    jobs_.submit([this, names = std::exchange(names_, {})] { remove_(names); }, [] {});
  }

 private:
  SessionJobs& jobs_;
  const Remove remove_;
  std::vector<std::string> names_;
};

}  // namespace ccixfer::recv

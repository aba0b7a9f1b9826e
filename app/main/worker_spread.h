// Which worker of a router gets the next routed connection: the one with the fewest, and among those with equally many they take
// turns. Worker 0 accepts all of them, so it is asked first whether one is for another worker, and later, when the connection is
// proved and can move, for which: the loads may have changed meanwhile.
// In: how many connections each worker has, those on their way to it included, and who can take this one. Pure.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace ccixfer::program {

class WorkerSpread {
 public:
  using LoadOf = std::function<size_t(size_t worker)>;
  using Takes = std::function<bool(size_t worker)>;  // of each but 0, which takes all
  explicit WorkerSpread(LoadOf load_of) : load_of_(std::move(load_of)) {}

  // One has come to worker 0. False: it stays there.
  [[nodiscard]] bool goes_elsewhere(size_t workers, const Takes& takes = everybody) {
    if (*least_loaded(workers, 0, takes) != 0) return true;
    next_ = 1;
    return false;
  }
  // Of one that does not stay: the worker, which is not 0. `could`: who could take it when goes_elsewhere() said so, and still can.
  // It goes to one of these where none takes any more.
  [[nodiscard]] size_t place(size_t workers, const Takes& takes = everybody, const Takes& could = everybody) {
    const std::optional<size_t> best = least_loaded(workers, 1, takes);
    const size_t worker = best ? *best : *least_loaded(workers, 1, could);
    next_ = (worker + 1) % workers;
    return worker;
  }

 private:
  static bool everybody(size_t) { return true; }
  [[nodiscard]] std::optional<size_t> least_loaded(size_t workers, size_t first, const Takes& takes) const {
    std::optional<size_t> best;
    for (size_t i = 0; i < workers; ++i) {
      const size_t worker = (next_ + i) % workers;
      if (worker < first || (worker > 0 && !takes(worker))) continue;
      if (!best || load_of_(worker) < load_of_(*best)) best = worker;
    }
    return best;
  }

  const LoadOf load_of_;
  size_t next_ = 0;  // who is first among those with equally many
};

}  // namespace ccixfer::program

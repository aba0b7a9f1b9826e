// What people and scripts see of one row of a measurement.
#pragma once
#include <string>
#include <vector>

#include "app/bench/plan.h"
#include "app/report/bench_event.h"

namespace ccixfer::program {

[[nodiscard]] std::string bench_head();                                     // over the columns of all rows
[[nodiscard]] std::vector<std::string> bench_lines(const bench::Row& row);  // its columns first, then what there is to say of it
[[nodiscard]] report::BenchRow bench_json(const bench::Row& row);

}  // namespace ccixfer::program

// The frame of every event of --json, and what several of them tell alike. For the makers of events, here and in app/simulate.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ccixfer::report {

struct Counts;  // app/report/events.h
struct JobRun;  // app/report/job_run.h

using Json = nlohmann::ordered_json;

[[nodiscard]] Json begin(std::string_view event, double t);
// ASCII only, so that no terminal or log makes two lines of it.
[[nodiscard]] std::string line(const Json& json);
// As members of the event.
void put_counts(Json& json, const Counts& counts);
void put_run(Json& json, const JobRun& run);

}  // namespace ccixfer::report

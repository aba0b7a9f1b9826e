#include "app/report/job_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/report/json_line.h"
#include "app/report/staged.h"
#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::report {
namespace {

std::string words(const std::string& text) { return is_utf8(text) ? text : printable(text); }

}  // namespace

void put_run(Json& json, const JobRun& run) {
  json["job"] = words(run.job);
  json["destination"] = words(run.destination);
  json["began"] = run.began_s;
  json["ended"] = run.ended_s == 0 ? Json(nullptr) : Json(run.ended_s);
  json["exit"] = run.exit < 0 ? Json(nullptr) : Json(run.exit);
  json["status"] = words(run.status);
  if (!run.reason.empty()) json["reason"] = words(run.reason);
  json["files"] = run.files;
  json["files_unchanged"] = run.files_unchanged;
  json["files_failed"] = run.files_failed;
  json["bytes"] = run.bytes;
  json["bytes_sent"] = run.bytes_sent;
}

std::string run_event(double t, const JobRun& run) {
  Json json = begin("run", t);
  put_run(json, run);
  return line(json);
}

std::string run_line(const JobRun& run) {
  std::string text = fmt::format("{}: {} to {}: {}", time_text(run.began_s), printable(run.job), printable(run.destination),
                                 printable(run.status));
  if (run.exit > 0) text += fmt::format(" ({})", run.exit);
  if (!run.reason.empty()) text += ": " + printable(run.reason);
  if (run.ended_s == 0) return text;
  const std::string time = age_text(std::max<int64_t>(run.ended_s - run.began_s, 0));
  if (run.status == run_killed) return text + ": after " + time;  // nobody has said what it moved
  return text + fmt::format(": {} file{}, {} unchanged, {} failed, {} in {}", run.files, run.files == 1 ? "" : "s",
                            run.files_unchanged, run.files_failed, format_bytes(run.bytes), time);
}

}  // namespace ccixfer::report

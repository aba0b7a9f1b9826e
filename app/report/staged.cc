#include "app/report/staged.h"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

#include "app/report/json_line.h"
#include "core/base/units.h"
#include "core/base/utf8.h"

namespace ccixfer::report {
namespace {

std::string words(std::string_view text) { return is_utf8(text) ? std::string(text) : printable(text); }

std::string text_of(const Json& json, const char* name) {
  const auto at = json.find(name);
  return at != json.end() && at->is_string() ? at->get<std::string>() : std::string();
}
uint64_t count_of(const Json& json, const char* name) {
  const auto at = json.find(name);
  return at != json.end() && at->is_number_unsigned() ? at->get<uint64_t>() : 0;
}

}  // namespace

std::string time_text(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  std::array<char, 32> text{};
  if (::gmtime_r(&time, &parts) == nullptr || parts.tm_year > 8099) return fmt::format("{} s", seconds);
  if (std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%SZ", &parts) == 0) return fmt::format("{} s", seconds);
  return text.data();
}

std::string age_text(int64_t seconds) {
  constexpr int64_t minute = 60, hour = 3600, day = 24 * hour;
  if (seconds < 2 * minute) return fmt::format("{} s", std::max<int64_t>(seconds, 0));
  if (seconds < 2 * hour) return fmt::format("{} min", seconds / minute);
  if (seconds < 2 * day) return fmt::format("{} h", seconds / hour);
  return fmt::format("{} days", seconds / day);
}

std::string staged_event(double t, const Staged& staged) {
  Json json = begin("staged", t);
  if (is_utf8(staged.path)) {
    json["path"] = staged.path;
  } else {
    json["path"] = printable(staged.path);
    json["escaped"] = true;
  }
  json["bytes"] = staged.bytes;
  json["bytes_total"] = staged.bytes_total == 0 ? Json(nullptr) : Json(staged.bytes_total);
  json["peer"] = words(staged.peer);
  json["since"] = staged.since_s == 0 ? Json(nullptr) : Json(staged.since_s);
  json["active"] = staged.active_s;
  return line(json);
}

std::string staged_line(const Staged& staged, int64_t now_s) {
  std::string text = fmt::format("{}: {}", printable(staged.path), format_bytes(staged.bytes));
  if (staged.bytes_total > 0) text += fmt::format(" of {}", format_bytes(staged.bytes_total));
  if (!staged.peer.empty()) text += fmt::format(" from {}", printable(staged.peer));
  if (staged.since_s > 0) text += fmt::format(", since {}", time_text(staged.since_s));
  return text + fmt::format(", last change {} ago", age_text(now_s - staged.active_s));
}

std::optional<HistoryLine> history_line(double t, std::string_view text) {
  const Json noted = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!noted.is_object() || text_of(noted, "transfer").empty()) return std::nullopt;
  Json json = begin("transfer", t);
  for (const auto& [name, value] : noted.items()) json[name] = value;
  HistoryLine out;
  out.event = line(json);
  const std::string path = text_of(noted, "path"), status = text_of(noted, "status"), reason = text_of(noted, "reason");
  out.text = fmt::format(
      "{}: {} from {} into {}: {}: {} file{}, {} unchanged, {} failed, {}",
      time_text(static_cast<int64_t>(count_of(noted, "finished"))), text_of(noted, "direction") == "pull" ? "pull" : "push",
      printable(text_of(noted, "peer")), path.empty() ? std::string("the root") : printable(path),
      status + (reason.empty() ? "" : ": " + printable(reason)), count_of(noted, "files"), count_of(noted, "files") == 1 ? "" : "s",
      count_of(noted, "files_unchanged"), count_of(noted, "files_failed"), format_bytes(count_of(noted, "bytes")));
  return out;
}

}  // namespace ccixfer::report

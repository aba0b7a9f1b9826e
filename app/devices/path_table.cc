#include "app/devices/path_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

namespace ccixfer::program {
namespace {

constexpr size_t host_bytes_max = 128;
constexpr int64_t clock_slack_s = 3600;  // a clock that was set back a little

std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(word.size() + 1, line.size()));
  return word;
}

template <typename T>
bool read_number(std::string_view word, T& value) {
  const auto end = word.data() + word.size();
  const auto [at, problem] = std::from_chars(word.data(), end, value);
  return problem == std::errc() && at == end;
}

bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= host_bytes_max &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
}

}  // namespace

bool PathTable::counts(int64_t at_s) const {
  const int64_t now = now_();
  return at_s >= now - path_life_s && at_s <= now + clock_slack_s;
}

std::optional<reliability::KnownPath> PathTable::recall(std::string_view host) const {
  const auto at = hosts_.find(host);
  if (at == hosts_.end() || !counts(at->second.at_s)) return std::nullopt;
  return at->second.path;
}

void PathTable::remember(std::string_view host, const reliability::KnownPath& path) {
  if (is_host(host)) add(host, {path, now_()});
}

void PathTable::add(std::string_view host, const Known& known) {
  const auto at = hosts_.find(host);
  if (at != hosts_.end()) {
    if (known.at_s >= at->second.at_s) at->second = known;
    return;
  }
  if (hosts_.size() >= path_table_hosts_max) {
    hosts_.erase(
        std::min_element(hosts_.begin(), hosts_.end(), [](const auto& a, const auto& b) { return a.second.at_s < b.second.at_s; }));
  }
  hosts_.emplace(host, known);
}

void PathTable::read(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view host = next_word(line);
    Known known;
    int64_t round_trip_us = 0;
    const bool is_read = read_number(next_word(line), known.path.bytes_per_s) && read_number(next_word(line), round_trip_us) &&
                         read_number(next_word(line), known.at_s) && line.empty();
    if (!is_read || !is_host(host) || round_trip_us <= 0 || round_trip_us > 60'000'000 || !counts(known.at_s)) continue;
    known.path.round_trip = std::chrono::microseconds(round_trip_us);
    add(host, known);
  }
}

std::string PathTable::text() const {
  std::string text;
  for (const auto& [host, known] : hosts_) {
    if (!counts(known.at_s)) continue;
    const auto round_trip = std::chrono::duration_cast<std::chrono::microseconds>(known.path.round_trip);
    text += fmt::format("{} {} {} {}\n", host, known.path.bytes_per_s, std::max<int64_t>(round_trip.count(), 1), known.at_s);
  }
  return text;
}

}  // namespace ccixfer::program

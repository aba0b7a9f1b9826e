#include "app/main/status_teller.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/main/job.h"
#include "app/main/session_trust.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {
namespace {

constexpr double fades_in_s = 3;
constexpr Duration rate_over_max = std::chrono::seconds(10);
constexpr size_t history_read_bytes_max = 256u << 10;  // of its end

}  // namespace

void Rates::begin(Instant now) {
  const Duration passed = round_ == 0 ? rate_over_max : now - now_;
  std::erase_if(seen_, [this](const auto& entry) { return entry.second.round != round_; });
  passed_s_ = passed < rate_over_max ? std::chrono::duration<double>(passed).count() : 0;
  now_ = now;
  ++round_;
}

double Rates::of(const std::string& what, uint64_t bytes) {
  const auto [at, is_new] = seen_.try_emplace(what);
  const Seen before = std::exchange(at->second, {bytes, round_});
  if (is_new || passed_s_ <= 0 || bytes < before.bytes) return -1;
  const double now = static_cast<double>(bytes - before.bytes) / passed_s_;
  const double old_part = before.rate < 0 ? 0 : std::exp(-passed_s_ / fades_in_s);  // segments are durable by megabytes at a time
  return at->second.rate = old_part * before.rate + (1 - old_part) * now;
}

StatusTeller::StatusTeller(const Process& process)
    : process_(process),
      began_(process.loop.now()),
      runs_(process.board != nullptr ? std::make_shared<JobRuns>(job_history_file()) : nullptr) {
  if (process.board != nullptr) process.loop.watch(process.board->asked_handle());
}

report::Status StatusTeller::begin(Instant now) {
  rates_.begin(now);
  report::Status status;
  status.version = program_version;
  status.role = process_.role;
  status.has_names = process_.shows_names;
  status.time_s = wall_time_s();
  status.uptime_s = std::chrono::duration<double>(now - began_).count();
  status.bytes_in = process_.counters.get(Counter::bytes_in);
  status.bytes_out = process_.counters.get(Counter::bytes_out);
  status.in_per_s = rate("in", status.bytes_in);
  status.out_per_s = rate("out", status.bytes_out);
  return status;
}

void StatusTeller::tell(report::Status status, std::function<void(report::Status&)> complete) {
  process_.board->publish([status = std::move(status), complete = std::move(complete), runs = runs_]() mutable {
    if (complete) complete(status);
    status.jobs = runs->look(JobRuns::Clock::now());
    return report::status_json(status);
  });
}

void EndedTransfers::read(int directory, const std::string& name) {
  const host::Descriptor fd(::openat(directory, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return;
  const off_t end = ::lseek(fd.get(), 0, SEEK_END);
  if (end <= 0) return;
  const off_t from = std::max<off_t>(0, end - static_cast<off_t>(history_read_bytes_max));
  std::string text(static_cast<size_t>(end - from), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), from);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  size_t begin = from == 0 ? 0 : std::min(text.find('\n'), text.size() - 1) + 1;  // a line that is cut off is none
  for (size_t stop = 0; (stop = text.find('\n', begin)) != std::string::npos; begin = stop + 1)
    add(text.substr(begin, stop - begin));
}

void EndedTransfers::add(std::string line) {
  lines_.push_back(std::move(line));
  if (lines_.size() > ended_shown_max) lines_.pop_front();
}

}  // namespace ccixfer::program

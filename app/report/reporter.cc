#include "app/report/reporter.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

#include "app/report/line_output.h"
#include "app/report/log_file.h"
#include "app/report/statistics.h"
#include "core/base/log.h"
#include "core/base/units.h"

namespace ccixfer::report {
namespace {

constexpr Duration progress_every = std::chrono::milliseconds(200);  // the contract is at least four a second

constexpr size_t beside_line_max = 100;  // what tells of lines that are left out

constexpr Duration flush_every = std::chrono::milliseconds(20);  // while somebody reads our lines slowly

unsigned terminal_width(int fd) {
  winsize size{};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 10 ? size.ws_col - 1u : 79u;
}

// Source: sd-daemon(3).
const char* priority_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "<7>";
    case LogLevel::info:
      return "<6>";
    case LogLevel::warning:
      return "<4>";
    case LogLevel::error:
      return "<3>";
  }
  return "";
}

}  // namespace

struct Reporter::Impl {
  Impl(const ReporterOptions& given, Instant at)
      : options(given),
        start(at),
        now(at),
        next_progress(at),
        terminal(isatty(given.text_fd) == 1),
        events(given.json_fd, given.told_to_end),
        answers(STDOUT_FILENO, given.told_to_end),
        text(given.text_fd, given.told_to_end, AfterFailure::next) {
    progress_text = !options.quiet && (options.progress || (terminal && !options.json));
  }

  const ReporterOptions options;
  const Instant start;
  Instant now, next_progress;
  bool listens = false;
  std::optional<Instant> first_session;  // of one that listens: until then it moved nothing, and only waited
  const bool terminal;
  bool line_shown = false;
  LineOutput events, answers;
  LineOutput text;        // under text_mutex
  uint64_t left_out = 0;  // lines of a listener
  bool progress_text = false;
  RateMeter meter;
  FileTally files;
  Others others;
  std::unique_ptr<LogFile> log;
  mutable std::mutex text_mutex;  // log lines come from pool threads too

  void put_event(const std::string& line) {
    if (options.json) events.line(line);
  }
  void put_text(std::string_view line, LogLevel level = LogLevel::info) {
    const std::lock_guard lock(text_mutex);
    // Of one that listens, the sessions of all peers would wait.
    if (listens && text.is_full(line.size() + beside_line_max)) {
      ++left_out;
      return;
    }
    if (const uint64_t lost = std::exchange(left_out, 0); lost > 0)
      put_line(fmt::format("ccixfer: {} lines are left out here: nobody read standard error", lost), LogLevel::warning);
    put_line(line, level);
  }
  void put_line(std::string_view line, LogLevel level) {
    std::string whole = options.journal ? priority_of(level) : "";
    if (line_shown) whole += "\r\x1b[K";
    line_shown = false;
    whole += line;
    text.line(whole);
  }
  void show_progress(const std::string& line) {
    const std::lock_guard lock(text_mutex);
    if (text.waiting()) return;  // when its turn came it would be long untrue
    if (terminal) {
      text.put("\r\x1b[K" + line);
      line_shown = true;
    } else {
      text.line(line);
    }
  }
  void flush() {
    events.flush();
    answers.flush();
    const std::lock_guard lock(text_mutex);
    text.flush();
  }
  void flush_all() {
    flush();  // of each what can be had: no output waits for the reader of another
    events.flush_all();
    answers.flush_all();
    const std::lock_guard lock(text_mutex);
    text.flush_all();
  }
  [[nodiscard]] bool waiting() const {
    const std::lock_guard lock(text_mutex);
    return events.waiting() || answers.waiting() || text.waiting();
  }
  // A peer's words, and names of files, are no lines of their own there and move no cursor of whoever looks at it.
  void to_log(LogLevel level, std::string_view line) {
    if (!log) return;
    if (const auto lost = log->write(level, printable(line))) put_text("ccixfer: " + *lost, LogLevel::error);
  }
};

Reporter::Reporter(const ReporterOptions& options, Instant start) : impl_(std::make_unique<Impl>(options, start)) {}

Result<std::unique_ptr<Reporter>> Reporter::create(const ReporterOptions& options, Instant start) {
  std::unique_ptr<Reporter> reporter(new Reporter(options, start));
  Impl& impl = *reporter->impl_;
  if (!options.log_file.empty()) {
    auto log = LogFile::open(options.log_file);
    if (!log) return tl::unexpected(log.error());
    impl.log = std::move(*log);
  }
  const LogLevel shown = options.quiet          ? LogLevel::error
                         : options.verbose >= 2 ? LogLevel::debug
                         : options.verbose == 1 ? LogLevel::info
                                                : LogLevel::warning;
  const LogLevel minimum = impl.log ? std::min(shown, LogLevel::info) : shown;
  set_log_sink(
      [&impl, shown](LogLevel level, std::string_view line) {
        impl.to_log(level, line);
        if (level >= shown) impl.put_text("ccixfer: " + printable(line), level);
      },
      minimum);
  return reporter;
}

Reporter::~Reporter() {
  set_log_sink({}, LogLevel::error);
  impl_->flush_all();
}

void Reporter::set_now(Instant now) {
  impl_->now = now;
  impl_->flush();
}
Instant Reporter::next_deadline() const { return impl_->waiting() ? after(impl_->now, flush_every) : never; }
double Reporter::seconds() const { return std::chrono::duration<double>(impl_->now - impl_->start).count(); }

void Reporter::ready(const std::vector<std::string>& uris) {
  impl_->listens = true;
  impl_->put_event(ready_event(seconds(), uris));
  for (const std::string& uri : uris) {
    impl_->to_log(LogLevel::info, "ready at " + uri);
    if (!impl_->options.quiet && !impl_->options.json) impl_->put_text("ready at " + uri);
  }
}

void Reporter::session(const Session& session) {
  if (impl_->listens && !impl_->first_session) impl_->first_session = impl_->now;
  impl_->put_event(session_event(seconds(), session));
  std::string path;
  for (const Hop& hop : session.path) path += fmt::format(" > {}", hop.node);
  const std::string line = fmt::format("session {} with {}{}", session.transfer, printable(session.peer), printable(path));
  impl_->to_log(LogLevel::info, line);
  if (impl_->options.verbose > 0) impl_->put_text(line);
}

bool Reporter::wants_progress() const { return impl_->options.json || impl_->progress_text; }
Instant Reporter::progress_due() const { return wants_progress() ? impl_->next_progress : never; }

void Reporter::progress(const Moving& moving) {
  Impl& impl = *impl_;
  if (!wants_progress() || impl.now < impl.next_progress) return;
  impl.next_progress = after(impl.now, impl.terminal || impl.options.json ? progress_every : Duration(std::chrono::seconds(1)));
  impl.meter.sample(impl.now, moving.bytes);
  Progress sample{moving.files, moving.bytes, moving.bytes_total, impl.meter.bytes_per_s(), -1, 0, -1, moving.waiting};
  if (moving.stalled >= stall_told_after) {
    sample.stalled_s = std::chrono::duration<double>(moving.stalled).count();
    if (moving.timeout != forever) sample.gives_up_s = std::chrono::duration<double>(moving.timeout).count();
  }
  // Below a byte a second the smoothed rate is only the memory of one: no time of arrival can be told.
  if (sample.stalled_s == 0 && moving.total_known && impl.meter.is_settled() && sample.bytes_per_s >= 1 &&
      moving.bytes_total >= moving.bytes) {
    sample.eta_s = static_cast<double>(moving.bytes_total - moving.bytes) / sample.bytes_per_s;
  }
  impl.put_event(progress_event(seconds(), sample));
  if (impl.progress_text) impl.show_progress(progress_line(sample, moving.total_known, terminal_width(impl.options.text_fd)));
}

void Reporter::file(const File& file) {
  if (impl_->options.json) impl_->put_event(file_event(seconds(), file));  // not built for nothing: there may be millions
  impl_->others.skipped += file.status == "skipped" ? 1u : 0u;
  impl_->others.deleted += file.status == "deleted" ? 1u : 0u;
  if (impl_->options.stats) impl_->files.count(file.status, file.reason);
  const bool has_failed = file.status == "failed";
  if (!has_failed && impl_->options.verbose == 0 && !impl_->log && !impl_->options.list) return;
  std::string line = fmt::format("{} {} ({} bytes)", file.status, printable(file.path), file.bytes);
  if (!file.reason.empty()) line += ": " + printable(file.reason);
  impl_->to_log(has_failed ? LogLevel::warning : LogLevel::info, line);
  if (impl_->options.list) output(line);
  if (has_failed) {  // an error of its own: whoever reads the end's "1 file failed" wants to know which
    impl_->put_text(fmt::format("ccixfer: {}: {}", printable(file.path), printable(file.reason)), LogLevel::error);
  } else if (!impl_->options.list && impl_->options.verbose > (file.status == "unchanged" ? 1u : 0u)) {
    impl_->put_text(line);
  }
}

void Reporter::item(const Item& item) {
  if (impl_->options.json) impl_->put_event(item_event(seconds(), item));
  std::string line = item.letters + ' ' + printable(item.name);
  if (!item.target.empty()) line += (item.letters.front() == 'h' ? " => " : " -> ") + printable(item.target);
  impl_->to_log(LogLevel::info, line);
  output(line);
}

void Reporter::ended(const Ended& ended) {
  impl_->put_event(ended_event(seconds(), ended));
  const std::string line = ended_line(ended);
  const LogLevel level = ended.kind == ErrorKind::ok ? LogLevel::info : LogLevel::warning;
  impl_->to_log(level, line);
  if (!impl_->options.quiet && !impl_->options.json) impl_->put_text(line, level);
}

void Reporter::transfer(const Transfer& transfer) { impl_->put_event(transfer_event(seconds(), transfer)); }

void Reporter::retry(std::string_view reason) {
  impl_->put_event(retry_event(seconds(), reason));
  const std::string line = fmt::format("ccixfer: trying again: {}", printable(reason));
  impl_->to_log(LogLevel::warning, line);
  if (!impl_->options.quiet && !impl_->options.json) impl_->put_text(line, LogLevel::warning);
}

void Reporter::waiting(std::string_view transfer, uint32_t before) {
  impl_->put_event(waiting_event(seconds(), transfer, before));
  const std::string line = before == 0 ? "waiting, next in turn" : fmt::format("waiting, {} before you", before);
  impl_->to_log(LogLevel::info, line);
  if (!impl_->options.quiet && !impl_->options.json) impl_->put_text("ccixfer: " + line);
}

void Reporter::warn(std::string_view line) {
  if (!impl_->options.quiet) return alarm(line);
  impl_->to_log(LogLevel::warning, line);
}

void Reporter::alarm(std::string_view line) {
  impl_->to_log(LogLevel::warning, line);
  impl_->put_text("ccixfer: " + printable(line), LogLevel::warning);
}

void Reporter::info(std::string_view line) {
  impl_->to_log(LogLevel::info, line);
  if (!impl_->options.quiet) impl_->put_text(printable(line));
}

void Reporter::output(std::string_view line) {
  if (!impl_->options.json) impl_->answers.line(printable(line));
}

// A reader that has gone (EPIPE) wants no more, as `head` does. Nor does one that was never there (EBADF) want events of a
// transfer.
std::optional<Error> Reporter::output_problem() const {
  const int error = impl_->options.json ? impl_->events.error() : impl_->answers.error();
  if (error == 0 || error == EPIPE) return std::nullopt;
  if (error == EBADF && impl_->options.json && impl_->options.may_be_unheard) return std::nullopt;
  return Error{ErrorKind::file_io,
               fmt::format("{} cannot be written: {}: what was done is done: give it room, and --log-file for a record",
                           impl_->options.json && impl_->options.json_fd == 2 ? "standard error" : "standard output",
                           std::system_category().message(error))};
}

void Reporter::event(const std::string& line) { impl_->put_event(line); }

void Reporter::error(const Error& error) {
  const std::string line = error_line(error);
  impl_->to_log(LogLevel::error, line);
  impl_->put_text(line, LogLevel::error);
}

void Reporter::stats(const Counters& counters) {
  for (const auto& [name, value] : counter_list(counters)) impl_->put_text(fmt::format("{:>16} {}", value, name));
}

void Reporter::done(Done done, const Counters& counters, bool summary) {
  Impl& impl = *impl_;
  done.counters = counter_list(counters);
  if (done.seconds == 0) done.seconds = std::chrono::duration<double>(impl.now - impl.first_session.value_or(impl.start)).count();
  done.others = impl.others;
  const std::string line = summary_line(done);
  if (summary) impl.to_log(LogLevel::info, fmt::format("{}: {}", error_row(done.kind).name, line));
  // Of a command that fails before anything is done, the line of its error says it all.
  const Counts& counts = done.counts;
  const bool did = done.kind == ErrorKind::ok || counts.files + counts.files_unchanged + counts.files_failed + counts.bytes > 0;
  const bool watched = impl.terminal || impl.options.verbose > 0 || impl.options.progress;
  if (summary && (did || watched) && !impl.options.quiet && !impl.options.json) impl.put_text(line);
  if (impl.options.stats && summary) {
    for (const std::string& text : statistics(done, impl.files)) impl.put_text(text);
  }
  if (impl.options.stats && (!summary || impl.options.verbose > 0)) stats(counters);
  impl.put_event(done_event(seconds(), done));
  impl.flush_all();
}

std::string error_line(const Error& error) {
  const ErrorRow& row = error_row(error.kind);
  std::string text = printable(error.message.empty() ? row.words : error.message);
  return "ccixfer: " + text;
}

std::vector<std::pair<std::string, uint64_t>> counter_list(const Counters& counters) {
  std::vector<std::pair<std::string, uint64_t>> list;
  for (size_t i = 0; i < static_cast<size_t>(Counter::count_); ++i) {
    const auto counter = static_cast<Counter>(i);
    list.emplace_back(to_string(counter), counters.get(counter));
  }
  return list;
}

}  // namespace ccixfer::report

// Everything that the program says: NDJSON on one descriptor, lines for people on another, the log. One object a process, given by
// reference to whoever has something to say. The only place that knows whether there is a terminal.
// Lines for people never hold raw bytes of a peer or of a file name: all text goes through printable().
// Errors: a closed or full output is not an error of the transfer; the rest of that output is dropped. What a slow reader does not
// take waits (line_output.h), and one that listens leaves lines for people out rather than wait. Not thread-safe but log_sink's
// target.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/report/events.h"
#include "app/report/progress_line.h"
#include "core/base/counters.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace ccixfer::report {

struct ReporterOptions {
  bool json = false;
  int json_fd = 1;  // 2 when standard output carries data
  int text_fd = 2;
  bool quiet = false;           // errors only
  unsigned verbose = 0;         // 1: connections, and files but unchanged ones; 2: everything
  bool progress = false;        // -P; on by itself when text_fd is a terminal
  bool list = false;            // each file on standard output (--dry-run)
  bool stats = false;           // what was done, in words, at the end; with -v all counters too
  bool journal = false;         // text_fd is systemd's journal: each line says how grave it is, as sd-daemon(3) has it
  std::string log_file;         // "": none
  bool may_be_unheard = false;  // events are not what the command is for: a closed standard output is no error for them
  // A signal that ends the process came: what is said waits for no reader then. Empty: none ever does. From any thread.
  std::function<bool()> told_to_end = {};
};

// How far a transfer is.
struct Moving {
  uint64_t files = 0, bytes = 0, bytes_total = 0;
  bool total_known = false;
  Duration stalled = Duration(0);  // since the last progress of a transfer that ends after `timeout` of it; 0: not known here
  Duration timeout = forever;
  Waiting waiting = {};
};

class Reporter {
 public:
  // usage: the log file cannot be opened. `start` is t = 0.
  static Result<std::unique_ptr<Reporter>> create(const ReporterOptions& options, Instant start);
  ~Reporter();

  void set_now(Instant now);                    // once a turn
  [[nodiscard]] Instant next_deadline() const;  // lines wait for a slow reader; never: none do
  void ready(const std::vector<std::string>& uris);
  void session(const Session& session);
  void progress(const Moving& moving);  // called as often as one likes: speaks when progress_due()
  [[nodiscard]] Instant progress_due() const;
  [[nodiscard]] bool wants_progress() const;
  void file(const File& file);     // one that failed is an error: a line also under -q
  void item(const Item& item);     // a line of -i, on standard output
  void ended(const Ended& ended);  // a session that was accepted
  void transfer(const Transfer& transfer);
  void retry(std::string_view reason);
  void waiting(std::string_view transfer, uint32_t before);  // at the peer, for its turn
  void warn(std::string_view line);                          // people and log; not under -q
  void alarm(std::string_view line);                         // the same, also under -q: what is lost meanwhile cannot be had later
  void info(std::string_view line);                          // people, not under -q
  void output(std::string_view line);                        // the answer of a command to standard output; dropped under --json
  // Standard output (of events under --json: theirs) took no more, although somebody reads it: a script would miss the rest.
  // file_io.
  [[nodiscard]] std::optional<Error> output_problem() const;
  void event(const std::string& line);  // one ready-made NDJSON line
  void error(const Error& error);       // the one line on standard error
  // The summary line and the statistics (of a transfer), all counters (of what is none), the done event.
  void done(Done done, const Counters& counters, bool summary);
  void stats(const Counters& counters);  // now
  [[nodiscard]] double seconds() const;  // since the start

 private:
  Reporter(const ReporterOptions& options, Instant start);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The line for an error: `ccixfer: WHAT: WHERE: what to do`. A message that already names all three stays as it is.
[[nodiscard]] std::string error_line(const Error& error);
[[nodiscard]] std::vector<std::pair<std::string, uint64_t>> counter_list(const Counters& counters);

}  // namespace ccixfer::report

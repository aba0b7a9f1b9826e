#include "app/main/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "app/job/history.h"
#include "app/main/ended_transfer.h"
#include "app/main/job_options.h"
#include "app/main/repeated_signals.h"
#include "app/main/session_trust.h"
#include "app/main/turn_loop.h"
#include "app/trust/places.h"
#include "app/trust/private_file.h"
#include "core/base/local_kinds.h"
#include "core/base/units.h"
#include "core/host/clock.h"

namespace ccixfer::program {
namespace {

constexpr size_t job_file_bytes_max = 1u << 20;
constexpr const char* system_jobs = "/etc/ccixfer/jobs";

// What travels between the two processes, which are of one program.
struct Told {
  ErrorKind kind = ErrorKind::ok;
  report::Counts counts;
  std::array<char, 512> reason{};
};
static_assert(std::is_trivially_copyable_v<Told>);

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// "": this account has no directory of its own.
std::string own_jobs() {
  const std::string own = policy::places_of_process().configuration;
  return own.empty() ? own : own + "/jobs";
}

Result<std::string> read_whole(const std::string& file) {
  const auto cannot = [&](int problem) {
    return fail(ErrorKind::usage, fmt::format("cannot read the job: {}: {}: name a job of {}{}, or its file", printable(file),
                                              std::strerror(problem), own_jobs().empty() ? "" : own_jobs() + " or ", system_jobs));
  };
  struct stat status {};
  const std::unique_ptr<std::FILE, CloseFile> opened(std::fopen(file.c_str(), "re"));
  if (!opened) return cannot(errno);
  if (::fstat(::fileno(opened.get()), &status) != 0) return cannot(errno);
  if (!S_ISREG(status.st_mode)) return cannot(S_ISDIR(status.st_mode) ? EISDIR : EINVAL);
  std::string text(job_file_bytes_max + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), opened.get()));
  if (std::ferror(opened.get()) != 0) return cannot(EIO);
  if (text.size() > job_file_bytes_max) return cannot(EFBIG);
  return text;
}

Result<std::string> find_job(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  if (!job::is_job_name(name))
    return fail(ErrorKind::usage,
                fmt::format("bad name of a job: '{}': give NAME, or a file as ./{}", printable(name), printable(name)));
  if (const std::string own = own_jobs(); !own.empty()) {
    const std::string file = fmt::format("{}/{}.toml", own, name);
    if (::access(file.c_str(), F_OK) == 0) return file;
  }
  return fmt::format("{}/{}.toml", system_jobs, name);
}

// The options of `ccixfer job` itself are the transfer's.
std::vector<std::string> common_words(const CommonOptions& common) {
  std::vector<std::string> words;
  if (common.config_file) words.push_back("--config=" + *common.config_file);
  if (common.device) words.push_back("--device=" + *common.device);
  if (common.insecure) words.emplace_back("--insecure");
  if (common.json) words.emplace_back("--json");
  if (common.progress) words.emplace_back("--progress");
  if (common.quiet) words.emplace_back("--quiet");
  if (common.stats) words.emplace_back("--stats");
  for (unsigned i = 0; i < common.verbose; ++i) words.emplace_back("--verbose");
  if (!common.log_file.empty()) words.push_back("--log-file=" + common.log_file);
  return words;
}

Result<Command> parse(std::vector<std::string> words, const CommonOptions& common) {
  const std::vector<std::string> own = common_words(common);
  words.insert(words.begin() + 1, own.begin(), own.end());
  std::vector<const char*> argv{"ccixfer"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

// Which option it is that the parser does not like, if it is one alone.
Error blame(const job::JobFile& job, const CommonOptions& common, const Error& problem) {
  for (const job::JobOption& option : job.options) {
    const auto alone = parse(job::command_line_with(job, option), common);
    if (!alone) return {ErrorKind::usage, fmt::format("{}: {}", option.place, alone.error().message)};
  }
  return {ErrorKind::usage, fmt::format("{}: {}", printable(job.file), problem.message)};
}

std::string shown_destination(const job::JobFile& job) {
  const std::string& place = job.is_push ? job.destination : job.sources.front();
  return place.find("://") == std::string::npos ? "ticket" : place;  // which stands for a permission
}

report::JobRun run_of(const PreparedJob& job) {
  report::JobRun run;
  run.job = job.file.name;
  run.destination = shown_destination(job.file);
  run.began_s = wall_time_s();
  return run;
}

void warn(const Error& problem) { std::fputs(("warning: " + report::error_line(problem) + "\n").c_str(), stderr); }

// One that cannot be written costs a warning, and no transfer.
Result<job::History> open_history(const PreparedJob& job) {
  if (auto made = policy::make_directory_of(job.history_file); !made) return tl::unexpected(made.error());
  return job::History::open(job.history_file);
}

tl::unexpected<Error> not_begun(const PreparedJob& job, const Error& why) {
  report::JobRun run = run_of(job);
  run.ended_s = run.began_s;
  run.exit = exit_code(why.kind);
  run.status = error_row(why.kind).name;
  run.reason = why.message;
  auto history = open_history(job);
  const Result<void> noted = history ? history->note(run) : tl::unexpected(history.error());
  if (!noted) warn(noted.error());
  return tl::unexpected(why);
}

// What an exit code says by itself; nullptr: nothing.
const ErrorRow* row_of_exit(int exit) {
  for (size_t kind = 0; kind <= static_cast<size_t>(last_kind); ++kind) {
    const ErrorRow& row = error_row(static_cast<ErrorKind>(kind));
    if (row.exit_code == exit) return &row;
  }
  return nullptr;
}

// Of a transfer that ended before it told anything: its configuration is wrong, or a second signal ended it at once.
void fill_untold(report::JobRun& run) {
  const ErrorRow* row = row_of_exit(run.exit);
  run.status = row != nullptr ? row->name : "failed";
  if (run.exit != 0) run.reason = fmt::format("{}: its standard error says more", row != nullptr ? row->words : "it failed");
}

// What the transfer's process told, and how it ended.
void fill(report::JobRun& run, int wait_status, const std::optional<Told>& told) {
  run.ended_s = std::max(wall_time_s(), run.began_s);  // the clock may have been set back
  if (told) {
    run.status = error_row(told->kind).name;
    run.reason = std::string(told->reason.data());
    run.files = told->counts.files;
    run.files_unchanged = told->counts.files_unchanged;
    run.files_failed = told->counts.files_failed;
    run.bytes = told->counts.bytes;
    run.bytes_sent = told->counts.bytes_sent;
  }
  if (WIFEXITED(wait_status)) {
    run.exit = WEXITSTATUS(wait_status);
    if (!told) fill_untold(run);
    return;
  }
  const int signal = WTERMSIG(wait_status);
  const bool is_ours =
      signal == SIGABRT || signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGSYS;
  const ErrorKind kind = is_ours ? ErrorKind::bug : ErrorKind::interrupted;
  run.exit = exit_code(kind);
  run.status = is_ours ? error_row(kind).name : std::string(report::run_killed);
  run.reason = fmt::format("ended by signal {} ({})", signal, ::sigabbrev_np(signal) != nullptr ? ::sigabbrev_np(signal) : "?");
}

std::optional<Told> read_told(int fd) {
  Told told;
  const ssize_t got = ::read(fd, &told, sizeof told);
  if (got != static_cast<ssize_t>(sizeof told)) return std::nullopt;
  told.reason.back() = '\0';
  return told;
}

sigset_t supervised_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

void pass_on(pid_t child, int signal) {
  sigval value{};
  value.sival_int = passed_on_mark;
  if (::sigqueue(child, signal, value) != 0) ::kill(child, signal);  // too many signals wait, as the limits of the account have it
}

// The same moment decides whether the window is open and when it closes: a minute later "06:00" may be tomorrow's.
Result<void> fix_stop(Command& command, WallTime now) {
  auto* const send = std::get_if<SendCommand>(&command);
  TransferOptions& transfer = send != nullptr ? send->transfer : std::get<ReceiveCommand>(command).transfer;
  if (!transfer.stop_at) return {};
  const auto time = time_of(*transfer.stop_at, now);
  if (!time) return tl::unexpected(time.error());
  transfer.stop_at->fixed = *time;
  return {};
}

// Until the child has ended: its wait status.
int wait_for(pid_t child, const sigset_t& signals) {
  RepeatedSignals repeated;
  const host::SystemClock clock;
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&signals, &info);
    if (signal <= 0 || signal == SIGCHLD) continue;
    // What the terminal sends, the child has got itself; it ends at once at a second one. Of others nobody knows whether it has:
    // the child can tell what we pass on from what came by itself.
    if (info.si_code == SI_KERNEL || repeated.is_repeated(signal, info.si_code, info.si_pid, clock.now())) continue;
    pass_on(child, signal);
  }
}

}  // namespace

std::string job_history_file() {
  const std::string state = policy::places_of_process().state;
  return state.empty() ? "" : state + "/jobs.sqlite";
}

Result<PreparedJob> prepare_job(const JobCommand& command, const std::string& name) {
  const auto file = find_job(name);
  if (!file) return tl::unexpected(file.error());
  const auto text = read_whole(*file);
  if (!text) return tl::unexpected(text.error());
  auto job = job::read_job(*file, *text);
  if (!job) return tl::unexpected(job.error());
  if (!job::is_job_name(job->name))
    return fail(ErrorKind::usage, fmt::format("bad name of a job: {}: name the file LETTERS-AND-DIGITS.toml", printable(*file)));
  if (auto given = check_values_given(*job); !given) return tl::unexpected(given.error());
  auto parsed = parse(job::command_line(*job), command.common);
  if (!parsed) return tl::unexpected(blame(*job, command.common, parsed.error()));
  // What only prints something is no error of a command line, and no run of a job.
  if (transfer_of(*parsed) == nullptr)
    return fail(ErrorKind::usage, fmt::format("the options make no transfer of the job: {}: give those of ccixfer {} alone",
                                              printable(*file), job->is_push ? "send" : "recv"));
  if (auto fine = check_job_options(*job); !fine) return tl::unexpected(fine.error());
  const std::string history = job_history_file();
  if (history.empty())
    return fail(ErrorKind::usage,
                "no place for the lock and the history of jobs: this account has no home: set HOME or STATE_DIRECTORY");
  PreparedJob prepared{std::move(*job), std::move(*parsed), "", history};
  prepared.lock_file = prepared.file.lock.empty()
                           ? fmt::format("{}jobs/{}.lock", history.substr(0, history.rfind('/') + 1), prepared.file.name)
                           : prepared.file.lock;
  return prepared;
}

void JobTeller::tell(const Error& error, const report::Counts& counts) {
  Told told;
  told.kind = error.kind;
  told.counts = counts;
  const size_t size = std::min(error.message.size(), told.reason.size() - 1);
  std::memcpy(told.reason.data(), error.message.data(), size);
  static_cast<void>(!::write(to_.get(), &told, sizeof told));  // into a pipe of ours, which has room
}

Result<JobPart> begin_job(PreparedJob& job, const std::function<WallTime()>& now) {
  let_writes_fail();  // a warning that nobody reads would end both processes
  if (job.file.lock.empty()) {
    if (auto made = policy::make_directory_of(job.lock_file); !made) return tl::unexpected(made.error());
  }
  // Both processes have the lock, so it is held until the last of them is gone.
  auto lock = JobLock::take(job.lock_file);
  if (!lock) return not_begun(job, lock.error());
  keep_time_zone();
  const WallTime begins = now();
  if (job.file.window && !job.file.window->contains(local_minute(begins).minute_of_day)) {
    return not_begun(
        job, {ErrorKind::timeout,
              fmt::format("the window of the job is closed: {}: the next run has to begin within it", job.file.window_place)});
  }
  if (auto fixed = fix_stop(job.command, begins); !fixed) return not_begun(job, fixed.error());
  report::JobRun run = run_of(job);
  std::array<int, 2> pipe_ends{-1, -1};
  if (::pipe2(pipe_ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    return fail(ErrorKind::file_io, fmt::format("cannot begin the job: {}: free some descriptors", std::strerror(errno)));
  host::Descriptor told_here(pipe_ends[0]);
  host::Descriptor told_there(pipe_ends[1]);
  std::fflush(nullptr);
  std::signal(SIGCHLD, SIG_DFL);  // whoever started us may have had it ignored: nobody would learn how the child ended
  const sigset_t signals = supervised_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0)
    return fail(ErrorKind::file_io, fmt::format("cannot begin the job: {}: free some memory or processes", std::strerror(errno)));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // nobody would note how it ended, and a service would begin another one beside it
    if (::getppid() != parent) std::raise(SIGTERM);
    sigaddset(&before, SIGUSR1);  // which may come before the loop of the transfer takes it
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return JobPart{std::nullopt, std::make_unique<JobTeller>(std::move(told_there), std::move(*lock))};
  }
  told_there.reset();
  // The database is opened in this process alone: SQLite does not live through a fork.
  auto history = open_history(job);
  const Result<int64_t> row = history ? history->begin(run) : tl::unexpected(history.error());
  if (!row) warn(row.error());
  const int status = wait_for(child, signals);
  fill(run, status, read_told(told_here.get()));
  if (WIFSIGNALED(status))
    std::fputs((report::error_line({ErrorKind::interrupted, "the transfer's process: " + run.reason}) + "\n").c_str(), stderr);
  if (!row) history = open_history(job);  // what was locked or full may be neither any more
  const Result<void> noted = !history ? tl::unexpected(history.error()) : row ? history->end(*row, run) : history->note_whole(run);
  if (!noted && (row || noted.error().message != row.error().message)) warn(noted.error());
  return JobPart{run.exit, nullptr};
}

}  // namespace ccixfer::program

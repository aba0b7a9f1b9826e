// What a job's file says of options, as a run and a check take it.
#include <sys/stat.h>

#include <cstdlib>

#include "app/main/job.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

// A job `nightly` with these options, of an account whose state goes with the test.
class Nightly {
 public:
  Nightly() {
    const char* before = std::getenv("STATE_DIRECTORY");
    before_ = before == nullptr ? "" : before;
    setenv("STATE_DIRECTORY", here.path("state").c_str(), 1);
    here.write("src/f", "x");
  }
  ~Nightly() { before_.empty() ? unsetenv("STATE_DIRECTORY") : setenv("STATE_DIRECTORY", before_.c_str(), 1); }
  Nightly(const Nightly&) = delete;
  Nightly& operator=(const Nightly&) = delete;

  [[nodiscard]] JobCommand command(const std::string& options) const {
    here.write("nightly.toml", "sources = [\"" + here.path("src/") + "\"]\ndestination = \"tcp://127.0.0.1:7000/d\"\n[options]\n" +
                                   "insecure = true\n" + options + "\n");
    JobCommand command;
    command.names = {here.path("nightly.toml")};
    return command;
  }
  // Without the file's name before it; "": none.
  [[nodiscard]] std::string problem_of_run(const std::string& options) const {
    const auto job = prepare_job(command(options), here.path("nightly.toml"));
    return job ? "" : told(job.error());
  }
  [[nodiscard]] std::string problem_of_check(const std::string& options) const {
    JobCommand checked = command(options);
    checked.common.config_file = here.path("none.toml");
    here.write("none.toml", "");
    const Ran ran([&](const Process& process) { return check_jobs(process, checked); });
    return ran.end.error.kind == ErrorKind::ok ? "" : told(ran.end.error);
  }
  // Of a whole file, which is one line in front of [options].
  [[nodiscard]] std::string check_of(const std::string& front, const std::string& options = "") const {
    JobCommand checked = command("");
    checked.common.config_file = here.path("none.toml");
    here.write("none.toml", "");
    here.write("nightly.toml", front + "\n[options]\ninsecure = true\n" + options + "\n");
    const Error error = Ran([&](const Process& process) { return check_jobs(process, checked); }).end.error;
    const std::string file = here.path("nightly.toml:");
    if (error.kind == ErrorKind::ok) return "";
    CHECK(error.message.starts_with(file));
    return std::string(error_row(error.kind).name) + ": " + error.message.substr(std::min(file.size(), error.message.size()));
  }
  [[nodiscard]] SendCommand sent(const std::string& options) const {
    const auto job = prepare_job(command(options), here.path("nightly.toml"));
    INFO((job ? "" : job.error().message));
    REQUIRE(job);
    return std::get<SendCommand>(job->command);
  }
  TemporaryDirectory here;

 private:
  [[nodiscard]] std::string told(const Error& error) const {
    CHECK(error.kind == ErrorKind::usage);
    const std::string file = here.path("nightly.toml:");
    CHECK(error.message.starts_with(file));
    return error.message.substr(std::min(file.size(), error.message.size()));
  }
  std::string before_;
};

}  // namespace

TEST_CASE("job_options__true_for_an_option_that_takes_a_value__is_named_and_takes_no_other_word") {
  const Nightly job;
  for (const std::string key : {"failed-list", "receipt", "log-file", "backup-dir", "exclude", "link-dest", "suffix", "files-from",
                                "max-delete", "bwlimit", "c", "f"}) {
    const std::string problem = "5: options." + key + ": has no value: give it one in place of true, or leave the key out";
    CHECK(job.problem_of_run(key + " = true") == problem);
    CHECK(job.problem_of_run(key + " = true\nstats = true") == problem);
    CHECK(job.problem_of_check(key + " = true") == problem);
  }
  for (const char* key : {"archive", "delete", "H", "F", "itemize-changes", "verbose"})
    CHECK(job.problem_of_run(std::string(key) + " = true").empty());
  CHECK(job.problem_of_run("receipt = false").empty());
  CHECK(job.problem_of_run("archives = true").find("5: options.archives: bad command line") == 0);
}

TEST_CASE("job_options__a_value_for_an_option_that_takes_none__is_named_and_is_no_source") {
  const Nightly job;
  for (const std::string key : {"compress", "archive", "json"})
    CHECK(job.problem_of_run(key + " = 1") == "5: options." + key + ": takes no value: write true, or leave the key out");
  CHECK(job.problem_of_run("H = 3").find("5: options.H: ") == 0);
  CHECK(job.sent("verbose = 2").common.verbose == 2);
  CHECK(job.sent("compress-level = 3").transfer.sync.compress_level == 3);
}

TEST_CASE("job_options__a_file_of_this_host__has_an_absolute_name") {
  const Nightly job;
  for (const std::string key :
       {"files-from", "exclude-from", "include-from", "failed-list", "log-file", "receipt", "config", "c"}) {
    CHECK(job.problem_of_run(key + " = \"rel/f\"") == "5: options." + key + ": 'rel/f' is relative: give an absolute path");
    CHECK(job.problem_of_run(key + " = \"/abs/f\"").empty());
  }
  for (const std::string rule : {". rel", "merge rel", ".e_rel", "merge,e rel"}) {
    for (const std::string key : {"filter", "f"})
      CHECK(job.problem_of_run(key + " = [\"- *.o\", \"" + rule + "\"]") ==
            "5: options." + key + ": 'rel' is relative: give an absolute path");
  }
  CHECK(job.problem_of_run("filter = [\". /abs\", \": .rules\", \"- rel\"]").empty());
  CHECK(job.problem_of_run("link-dest = \"../older\"\nbackup-dir = \"kept\"").empty());  // beside the destination
}

TEST_CASE("job_options__standard_input__a_job_has_none") {
  const Nightly job;
  for (const std::string key : {"files-from", "exclude-from"})
    CHECK(job.problem_of_run(key + " = \"-\"") == "5: options." + key + ": a job has no standard input: name a file");
  CHECK(job.problem_of_run("filter = \". -\"") == "5: options.filter: a job has no standard input: name a file");
}

TEST_CASE("job_options__a_receipt_that_the_run_could_not_write__is_found_by_the_check") {
  const Nightly job;
  CHECK(job.problem_of_check("receipt = \"/dev/null\"").find("5: options.receipt: --receipt: /dev/null is no regular file") == 0);
  CHECK(job.problem_of_check("receipt = \"/nowhere/r\"").find("5: options.receipt: --receipt: /nowhere/r: ") == 0);
  CHECK(job.problem_of_check("receipt = \"" + job.here.path("r") + "\"").empty());
  CHECK_FALSE(job.here.has("r"));
}

TEST_CASE("job_check__what_a_pull_would_refuse__is_found_with_its_line_and_key") {
  const Nightly job;
  const std::string out = job.here.path("out");
  const auto check = [&](const std::string& sources, const std::string& options = "") {
    return job.check_of("command = \"recv\"\nsources = [" + sources + "]\ndestination = \"" + out + "\"", options);
  };
  const std::string two = "\"tcp://127.0.0.1:1/a/\", \"tcp://127.0.0.1:1/b/\"";
  CHECK(check(two).empty());
  CHECK(check(two, "delete = true") ==
        "usage: 6: options.delete: --delete needs one SRC_URI: pull from each into a directory of its own");
  job.here.write("list", "f\n");
  CHECK(check(two, "files-from = \"" + job.here.path("list") + "\"") ==
        "usage: 6: options.files-from: --files-from needs one SRC_URI: that of a directory");
  CHECK(check("\"tcp://127.0.0.1:1/a\", \"udp://127.0.0.1:1/b\"").starts_with("usage: 2: sources: "));
  CHECK(check("\"cci://1:2:10.0.0.1:7000/a\"").starts_with("usage: 2: sources: "));
  CHECK(check("\"127.0.0.1\"").starts_with("usage: 2: sources: "));
}

TEST_CASE("job_check__sources_and_destinations_that_a_run_cannot_take__are_found_with_line_and_key") {
  const Nightly job;
  const std::string there = job.here.path("src/f"), gone = job.here.path("gone");
  const auto push = [&](const std::string& source, const std::string& destination) {
    return job.check_of("sources = [\"" + source + "\"]\ndestination = \"" + destination + "\"");
  };
  const auto pull_to = [&](const std::string& directory) {
    return job.check_of("command = \"recv\"\nsources = [\"tcp://127.0.0.1:1/a\"]\ndestination = \"" + directory + "\"");
  };
  CHECK(push(there, "tcp://127.0.0.1:1/d").empty());
  CHECK(push(gone, "tcp://127.0.0.1:1/d") ==
        "source_selection: 1: sources: cannot read the source: " + gone + ": No such file or directory: name what can be read");
  CHECK(push(there, "cci://1:2:10.0.0.1:7000/a").starts_with("usage: 2: destination: "));
  CHECK(push(there, "nowhere/d").starts_with("usage: 2: destination: "));
  CHECK(pull_to(gone).empty());
  CHECK(pull_to(there) == "file_io: 3: destination: not a directory: " + there + ": name one that exists, or can be made");
  CHECK(pull_to(gone + "/deep") == "file_io: 3: destination: cannot write the destination: " + gone +
                                       ": No such file or directory: name one that exists, or can be made");
}

TEST_CASE("job_check__a_log_that_the_run_could_not_open__is_named") {
  const Nightly job;
  const auto checked = [&](const std::string& log) { return job.problem_of_check("log-file = \"" + log + "\""); };
  REQUIRE(::mkfifo(job.here.path("pipe").c_str(), 0600) == 0);
  CHECK(checked(job.here.path("pipe")).find("5: options.log-file: cannot write the log: ") == 0);
  CHECK(checked(job.here.path("pipe")).find("it is a FIFO that nobody reads") != std::string::npos);
  CHECK(checked(job.here.path("src")).find("5: options.log-file: cannot write the log: ") == 0);
  CHECK(checked(job.here.path("log")).empty());
  CHECK_FALSE(job.here.has("log"));
}

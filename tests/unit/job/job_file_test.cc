// A job's file becomes a command line; mistakes are named by file, line and key.
#include "app/job/job_file.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::job;

namespace {

using Words = std::vector<std::string>;

constexpr const char* places = "sources = [\"/data/runs/\"]\ndestination = \"tcp://archive.example:7100/runs/\"\n";

std::string problem(const std::string& text) {
  const auto job = read_job("/etc/ccixfer/jobs/nightly.toml", text);
  REQUIRE_FALSE(job);
  CHECK(job.error().kind == ErrorKind::usage);
  CHECK(job.error().message.find('\n') == std::string::npos);
  return job.error().message;
}

Words line_of(const std::string& text) {
  const auto job = read_job("nightly.toml", text);
  INFO((job ? "" : job.error().message));
  REQUIRE(job);
  return command_line(*job);
}

}  // namespace

TEST_CASE("job_file__whole__is_the_command_line_that_it_stands_for") {
  const auto job = read_job("/etc/ccixfer/jobs/nightly.toml", std::string(places) + R"(
lock = "/run/nightly.lock"
on_complete = "logger -t nightly"
[window]
from = "22:00"
until = "06:00"
[options]
archive = true
delete = true
checksum = false
max-delete = 1000
bwlimit = "05:00,500MB/s 06:00,off"
filter = ["+ *.keep", "- *.tmp"]
H = true
link-dest = ["../a", "../b"]
)");
  REQUIRE(job);
  CHECK(job->name == "nightly");
  CHECK(job->lock == "/run/nightly.lock");
  CHECK(job->is_push);
  CHECK(command_line(*job) == Words{"send", "-H", "--archive", "--bwlimit=05:00,500MB/s 06:00,off", "--delete", "--filter=+ *.keep",
                                    "--filter=- *.tmp", "--link-dest=../a", "--link-dest=../b", "--max-delete=1000",
                                    "--stop-at=06:00", "--on-complete=logger -t nightly", "--", "/data/runs/",
                                    "tcp://archive.example:7100/runs/"});
  CHECK(job->options.at(3).place == "/etc/ccixfer/jobs/nightly.toml:11: options.delete");
  CHECK(command_line_with(*job, job->options.at(3)) ==
        Words{"send", "--delete", "--", "/data/runs/", "tcp://archive.example:7100/runs/"});
}

TEST_CASE("job_file__pull__takes_addresses_and_a_directory") {
  CHECK(line_of("command = \"recv\"\nsources = [\"tcp://a:1/x\", \"tcp://b:1/x\"]\ndestination = \"/data\"\n") ==
        Words{"recv", "--", "tcp://a:1/x", "tcp://b:1/x", "/data"});
}

TEST_CASE("job_file__place_that_looks_like_an_option__stays_a_place") {
  const Words words = line_of("sources = [\"/-rf\"]\ndestination = \"--root\"\n");
  CHECK(words == Words{"send", "--", "/-rf", "--root"});
}

TEST_CASE("job_file__window__over_midnight_within_a_day_and_all_day") {
  const auto window = [](const char* from, const char* until) {
    const auto job = read_job("n.toml", std::string(places) + "[window]\nfrom = \"" + from + "\"\nuntil = \"" + until + "\"\n");
    REQUIRE(job);
    return *job;
  };
  const Window night = *window("22:00", "06:00").window;
  CHECK(night.contains(22 * 60));
  CHECK(night.contains(0));
  CHECK(night.contains(6 * 60 - 1));
  CHECK_FALSE(night.contains(6 * 60));
  CHECK_FALSE(night.contains(22 * 60 - 1));
  const Window noon = *window("11:30", "12:00").window;
  CHECK(noon.contains(11 * 60 + 30));
  CHECK_FALSE(noon.contains(12 * 60));
  CHECK_FALSE(noon.contains(0));
  const JobFile always = window("07:00", "07:00");
  CHECK(always.window->contains(7 * 60));
  CHECK(always.window->contains(7 * 60 - 1));
  CHECK(command_line(always).size() == 4);  // and it is not stopped
}

TEST_CASE("job_file__mistakes__are_named_with_file_line_and_key") {
  const std::string file = "/etc/ccixfer/jobs/nightly.toml:";
  const auto told = [&](const std::string& text, const std::string& where, const std::string& what) {
    INFO(text);
    const std::string line = problem(text);
    CHECK(line.starts_with(file + where));
    CHECK(line.find(what) != std::string::npos);
  };
  const std::string both = places;
  told("destination = \"x\"\n", "1: sources", "is missing");
  told("sources = [\"/a\"]\n", "1: destination", "is missing");
  told("sources = []\ndestination = \"x\"\n", "1: sources", "is missing");
  told("sources = [\"data\"]\ndestination = \"x\"\n", "1: sources", "relative");
  told("sources = \"/a\"\ndestination = \"x\"\n", "1: sources", "is not a list");
  told("sources = [\"/a\", \"\"]\ndestination = \"x\"\n", "1: sources", "empty");
  told("command = \"recv\"\nsources = [\"tcp://a:1\"]\ndestination = \"data\"\n", "3: destination", "relative");
  told("command = \"route\"\n" + both, "1: command", "unknown value 'route'");
  told(both + "lock = \"lock\"\n", "3: lock", "relative");
  told(both + "sauces = 1\n", "3: sauces", "unknown key");
  told(both + "[window]\nfrom = \"22:00\"\n", "", "give from and until");
  told(both + "[window]\nfrom = \"24:00\"\nuntil = \"06:00\"\n", "4: window.from", "no time of day");
  told(both + "[window]\nfrom = \"2:00\"\nuntil = \"06:00\"\n", "4: window.from", "no time of day");
  told(both + "[window]\nto = \"22:00\"\n", "4: window.to", "unknown key");
  told(both + "[options]\n\"--delete\" = true\n", "4: options.--delete", "without the dashes");
  told(both + "[options]\nreceipt = \"\"\n", "4: options.receipt", "is empty");
  told(both + "[options]\nexclude = [\"a\", \"\"]\n", "4: options.exclude", "is empty");
  told(both + "[options]\nlock = \"/x\"\n", "4: options.lock", "above the tables");
  told(both + "[options]\nstop-at = \"06:00\"\n", "4: options.stop-at", "[window]");
  told(both + "[options]\nstripe = true\n", "4: options.stripe", "part =");
  told(both + "[options]\nserve = \"/x\"\n", "4: options.serve", "a transfer that ends");
  told(both + "[options]\nhelp = true\n", "4: options.help", "ccixfer-job(1)");
  told(both + "[options]\nh = true\n", "4: options.h", "ccixfer-job(1)");
  told(both + "[options]\nbwlimit = 1.5\n", "4: options.bwlimit", "no value of an option");
  told(both + "[options]\nexclude = [\"a\", 1.5]\n", "4: options.exclude", "is not a string");
  told(both + "[options]\nexclude = [\"a\"]\ninclude = [\"b\"]\n", "5: options.include", "order with exclude");
  told(both + "[options\n", "3", "");
}

TEST_CASE("job_file__names__are_of_jobs_or_of_files") {
  CHECK(is_job_name("nightly-run_2.b"));
  for (const char* name : {"", ".hidden", "-n", "a/b", "a b", "ä"}) CHECK_FALSE(is_job_name(name));
  CHECK_FALSE(is_job_name(std::string(name_bytes_max + 1, 'a')));
  CHECK(name_of_file("/etc/ccixfer/jobs/a.b.toml") == "a.b");
  CHECK(name_of_file("plain") == "plain");
  CHECK(name_of_file(".toml") == ".toml");
}

// The drawing of `bench --plot`: numbers, gnuplot's commands, and failures.
#include "app/main/plot.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;

namespace {

bench::Row row_of(const std::string& test, uint64_t size_bytes, uint64_t count, Duration took) {
  bench::Row row;
  row.test = test;
  row.size_bytes = size_bytes;
  row.count = count;
  row.took = took;
  row.latency.p50 = std::chrono::nanoseconds(1250);
  return row;
}

bench::Plan plan_of(const std::string& tests) { return bench::make_plan({.tests = tests, .plots = true}).value(); }

// A directory with a program `gnuplot` of these lines, first on $PATH while it lasts.
class Stage {
 public:
  explicit Stage(const std::string& lines) {
    here.write("gnuplot", "#!/bin/sh\n" + lines);
    REQUIRE(::chmod(here.path("gnuplot").c_str(), 0755) == 0);
    REQUIRE(::setenv("PATH", (here.path("") + ":" + path_).c_str(), 1) == 0);
  }
  ~Stage() { ::setenv("PATH", path_.c_str(), 1); }
  TemporaryDirectory here;

 private:
  const std::string path_ = std::getenv("PATH");
};

std::vector<std::string> names_in(const TemporaryDirectory& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string problem(const Result<void>& result) { return result ? "" : result.error().message; }

}  // namespace

TEST_CASE("plot__numbers__which_curve_the_size_and_the_figure") {
  using std::chrono::seconds;
  CHECK(plot_numbers(row_of("message-latency", 64, 10, seconds(1))) == "0 64 1.25\n");
  CHECK(plot_numbers(row_of("rma-write", 4096, 1000, seconds(2))) == "1 4096 2.048\n");
  CHECK(plot_numbers(row_of("rma-read", 4096, 1000, seconds(2))) == "2 4096 2.048\n");
  CHECK(plot_numbers(row_of("rvma-put", 4096, 1000, seconds(2))) == "3 4096 2.048\n");
  CHECK(plot_numbers(row_of("rma-read", 4096, 1000, seconds(0))).empty());  // no figure that is no number
  CHECK(plot_numbers(row_of("message-rate", 64, 1000, seconds(2))).empty());
  CHECK(plot_numbers(row_of("completion-put", 64, 1000, seconds(2))).empty());
}

TEST_CASE("plot__command__size_is_logarithmic_and_only_measured_curves_are_drawn") {
  const auto says = [](const std::string& tests, const char* words) {
    return plot_command("/bin/gnuplot", "f.png", "tcp://h:1", plan_of(tests)).find(words) != std::string::npos;
  };
  CHECK(says("message-latency,rma-read", "set logscale x 2"));
  CHECK(says("message-latency,rma-read", "layout 2,1"));
  CHECK(says("message-latency,rma-read", "half round trip"));
  CHECK(says("message-latency,rma-read", "rma-read"));
  CHECK_FALSE(says("message-latency,rma-read", "rma-write"));
  CHECK(says("rma-write,rvma-put", "layout 1,1"));
  CHECK_FALSE(says("rma-write,rvma-put", "half round trip"));
  CHECK(says("message-latency", "layout 1,1"));
  CHECK_FALSE(says("message-latency", "MB/s"));
}

TEST_CASE("plot__path__the_first_that_may_be_run") {
  TemporaryDirectory one, two;
  one.write("tool", "");
  two.write("tool", "");
  REQUIRE(::mkdir(one.path("shelf").c_str(), 0755) == 0);
  const std::string path = one.path("") + ":" + two.path("");
  CHECK(program_on_path("tool", path).empty());
  REQUIRE(::chmod(two.path("tool").c_str(), 0755) == 0);
  CHECK(program_on_path("tool", path) == two.path("") + "/tool");
  REQUIRE(::chmod(one.path("tool").c_str(), 0755) == 0);
  CHECK(program_on_path("tool", path) == one.path("") + "/tool");
  CHECK(program_on_path("shelf", path).empty());  // a directory may be searched, which is no running
  CHECK(program_on_path("tool", "").empty());
}

TEST_CASE("plot__a_place_that_cannot_be__said_before_anything_is_measured") {
  Stage stage("cat");
  const auto refused = [&](const std::string& file) {
    const auto plot = Plot::start(file, "tcp://h:1", plan_of("rma-read"));
    REQUIRE_FALSE(plot);
    CHECK(plot.error().kind == ErrorKind::usage);
    return plot.error().message;
  };
  CHECK(refused(stage.here.path("none/f.png")).find("its directory does not exist") != std::string::npos);
  CHECK(refused(stage.here.path("")).find("it names no file") != std::string::npos);
  CHECK(refused("").find("it names no file") != std::string::npos);
  REQUIRE(::setenv("PATH", stage.here.path("none").c_str(), 1) == 0);
  CHECK(refused(stage.here.path("f.png")).find("install gnuplot-nox") != std::string::npos);
}

TEST_CASE("plot__drawn__the_file_has_what_gnuplot_made_and_odd_names_are_only_names") {
  Stage stage("cat");
  const std::string name = "it's $(touch oops) \"x\".png";
  auto plot = Plot::start(stage.here.path(name), "tcp://it's:1", plan_of("rma-read"));
  REQUIRE(plot);
  (*plot)->add(row_of("rma-read", 4096, 1000, std::chrono::seconds(2)));
  (*plot)->add(row_of("connect", 0, 1000, std::chrono::seconds(2)));
  (*plot)->add(row_of("rma-read", 8192, 1000, std::chrono::seconds(2)));
  CHECK_FALSE(stage.here.has(name));
  CHECK(problem((*plot)->draw()).empty());
  CHECK(stage.here.read(name) == "# curve bytes figure\n2 4096 2.048\n2 8192 4.096\n");
  CHECK(names_in(stage.here) == std::vector<std::string>{"gnuplot", name});
}

TEST_CASE("plot__gnuplot_fails__file_io_and_the_older_file_stays") {
  Stage stage("echo half; exit 3");
  stage.here.write("f.png", "older");
  auto plot = Plot::start(stage.here.path("f.png"), "tcp://h:1", plan_of("rma-read"));
  REQUIRE(plot);
  const auto drawn = (*plot)->draw();
  REQUIRE_FALSE(drawn);
  CHECK(drawn.error().kind == ErrorKind::file_io);
  CHECK(drawn.error().message.find("gnuplot failed") != std::string::npos);
  CHECK(stage.here.read("f.png") == "older");
  CHECK(names_in(stage.here) == std::vector<std::string>{"f.png", "gnuplot"});
}

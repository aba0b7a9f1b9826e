#include "app/main/plot.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "app/main/confinement.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

using bench::Test;

// In the numbers that gnuplot reads each is known by its place here.
constexpr std::array<Test, 4> drawn{Test::message_latency, Test::rma_write, Test::rma_read, Test::rvma_put};

std::string quoted(const std::string& text, const char* quote_within) {
  std::string out = "'";
  for (const char each : text) out += each == '\'' ? quote_within : std::string(1, each);
  return out + "'";
}
std::string for_shell(const std::string& text) { return quoted(text, "'\\''"); }
std::string for_gnuplot(const std::string& text) { return quoted(printable(text), "''"); }

bool is_directory(const std::string& path) {
  struct stat what {};
  return ::stat(path.c_str(), &what) == 0 && S_ISDIR(what.st_mode);
}

Result<void> check_place(const std::string& file) {
  const auto cannot = [&](std::string_view why) {
    return fail(ErrorKind::usage,
                fmt::format("cannot write the drawing: {}: {}: give --plot a file in a directory that is there and "
                            "may be written to",
                            printable(file), why));
  };
  if (file.empty() || file.back() == '/' || is_directory(file)) return cannot("it names no file");
  const std::string directory = directory_of(file);
  if (!is_directory(directory)) return cannot("its directory does not exist");
  if (::access(directory.c_str(), W_OK | X_OK) != 0) return cannot(std::strerror(errno));
  return {};
}

// One panel: the series of it that are measured.
std::string panel(const bench::Plan& plan, size_t first, size_t last, std::string_view axes) {
  std::string curves;
  for (size_t i = first; i <= last; ++i) {
    if (std::find(plan.tests.begin(), plan.tests.end(), drawn[i]) == plan.tests.end()) continue;
    curves += fmt::format("{}$rows using ($1=={} ? $2 : NaN):3 with linespoints linewidth 2 pointtype 7 title '{}'",
                          curves.empty() ? "" : ", ", i, to_string(drawn[i]));
  }
  return curves.empty() ? curves : fmt::format("{}; plot {}; ", axes, curves);
}

}  // namespace

std::string program_on_path(const std::string& name, std::string_view path) {
  while (!path.empty()) {
    const std::string_view directory = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(path.size(), directory.size() + 1));
    const std::string file = fmt::format("{}/{}", directory.empty() ? "." : directory, name);
    if (::access(file.c_str(), X_OK) == 0 && !is_directory(file)) return file;
  }
  return {};
}

std::string plot_command(const std::string& gnuplot, const std::string& file, const std::string& uri, const bench::Plan& plan) {
  const std::string latency = panel(plan, 0, 0, "set xlabel 'bytes of a message'; set ylabel 'us, half round trip (median)'");
  const std::string bandwidth = panel(plan, 1, drawn.size() - 1, "set xlabel 'bytes of an operation'; set ylabel 'MB/s'");
  const int panels = (latency.empty() ? 0 : 1) + (bandwidth.empty() ? 0 : 1);
  // The numbers come once, and every curve is made of them: so they are kept as a table of gnuplot's own.
  const std::string script = fmt::format(
      "set terminal pngcairo noenhanced size 900,{}; set table $rows; plot '/dev/stdin' using 1:2:3 with table; unset table; "
      "set logscale x 2; set format x '%.0b %BB'; set yrange [0:*]; set grid; set key left top; "
      "set multiplot layout {},1 title {}; {}{}unset multiplot",
      500 * panels, panels, for_gnuplot("ccixfer bench " + uri), latency, bandwidth);
  const std::string staged = for_shell(fmt::format("{}.{}.tmp", file, ::getpid()));
  return fmt::format("{} -e {} >{} && mv -f -- {} {} || {{ rm -f -- {}; exit 1; }}", for_shell(gnuplot), for_shell(script), staged,
                     staged, for_shell(file), staged);
}

std::string plot_numbers(const bench::Row& row) {
  const auto found = std::find_if(drawn.begin(), drawn.end(), [&](Test test) { return row.test == to_string(test); });
  if (found == drawn.end()) return {};
  const double seconds = std::chrono::duration<double>(row.took).count();
  if (*found != Test::message_latency && seconds <= 0) return {};
  const double value = *found == Test::message_latency
                           ? std::chrono::duration<double, std::micro>(row.latency.p50).count()
                           : static_cast<double>(row.count) * static_cast<double>(row.size_bytes) / seconds / 1e6;
  return fmt::format("{} {} {:.6g}\n", found - drawn.begin(), row.size_bytes, value);
}

Result<std::unique_ptr<Plot>> Plot::start(const std::string& file, const std::string& uri, const bench::Plan& plan) {
  if (auto fits = check_place(file); !fits) return tl::unexpected(fits.error());
  const char* path = std::getenv("PATH");
  const std::string gnuplot = program_on_path("gnuplot", path == nullptr ? "" : path);
  if (gnuplot.empty()) return fail(ErrorKind::usage, "no gnuplot: --plot draws with it: install gnuplot-nox, or leave --plot out");
  // The helper keeps the directory in which the process was started, so a relative name means the same there.
  const bool is_relative = file.front() != '/';
  auto helper = host::CommandHelper::start(plot_command(gnuplot, is_relative ? "./" + file : file, uri, plan));
  if (!helper) return tl::unexpected(helper.error());
  return std::unique_ptr<Plot>(new Plot(std::move(*helper), file));
}

void Plot::add(const bench::Row& row) { data_ += plot_numbers(row); }

Result<void> Plot::draw() {
  const auto failed = [&](const std::string& why) {
    return fail(ErrorKind::file_io,
                fmt::format("no drawing: {}: {}: run gnuplot by hand to see that it works, and look for room on "
                            "the disk",
                            printable(file_), why));
  };
  if (!helper_->run(data_)) return failed("the helper that runs gnuplot has gone");
  const auto until = std::chrono::steady_clock::now() + plot_patience;
  while (true) {
    for (const int status : helper_->ended()) {
      if (status == 0) return {};
      return failed(status > 0 && WIFEXITED(status) ? fmt::format("gnuplot failed (exit code {})", WEXITSTATUS(status))
                                                    : std::string("gnuplot could not be run to its end"));
    }
    if (helper_->has_gone()) return failed("the helper that runs gnuplot has gone");
    const auto left = until - std::chrono::steady_clock::now();
    if (left <= Duration(0)) return failed("gnuplot takes too long");
    helper_->wait(std::chrono::duration_cast<Duration>(left));
  }
}

}  // namespace ccixfer::program

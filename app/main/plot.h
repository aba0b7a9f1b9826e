// `ccixfer bench --plot`: a drawing of the rows by gnuplot, latency and bandwidth by size. A process that measures starts no
// program, because it is confined; so a helper (core/host/command_helper) is forked before, which knows by then what gnuplot is to
// do and which file is meant. Only numbers are handed to it afterwards, and gnuplot reads them as data: whatever a peer makes of
// this process, it cannot give gnuplot a command. Errors: usage (gnuplot is not on PATH, the file cannot be made there), before
// anything is measured; file_io (gnuplot fails). The file has its name only when it is complete.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "app/bench/plan.h"
#include "core/host/command_helper.h"

namespace ccixfer::program {

inline constexpr Duration plot_patience = std::chrono::seconds(60);  // for gnuplot to draw

class Plot {
 public:
  // Before the process has threads, and before it is confined.
  [[nodiscard]] static Result<std::unique_ptr<Plot>> start(const std::string& file, const std::string& uri,
                                                           const bench::Plan& plan);

  void add(const bench::Row& row);    // one that is not drawn is passed over
  [[nodiscard]] Result<void> draw();  // waits for the file

 private:
  Plot(std::unique_ptr<host::CommandHelper> helper, std::string file) : helper_(std::move(helper)), file_(std::move(file)) {}
  const std::unique_ptr<host::CommandHelper> helper_;
  const std::string file_;
  std::string data_ = "# curve bytes figure\n";  // an empty text would end the helper
};

// The first file of that name in a directory of `path` ($PATH) that may be executed; "": there is none.
[[nodiscard]] std::string program_on_path(const std::string& name, std::string_view path);
[[nodiscard]] std::string plot_command(const std::string& gnuplot, const std::string& file, const std::string& uri,
                                       const bench::Plan& plan);  // for sh -c; the numbers come on its standard input
[[nodiscard]] std::string plot_numbers(const bench::Row& row);    // a line; "": it is not drawn

}  // namespace ccixfer::program

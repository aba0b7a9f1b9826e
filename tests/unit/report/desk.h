// A reporter whose outputs are files that the test reads.
#pragma once
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "app/report/reporter.h"

namespace ccixfer::report {

inline constexpr Instant start{std::chrono::seconds(10)};

// A file in the place of a descriptor; what was written to it.
class Written {
 public:
  Written() : file_(std::tmpfile()) { REQUIRE(file_ != nullptr); }
  ~Written() { std::fclose(file_); }
  Written(const Written&) = delete;
  Written& operator=(const Written&) = delete;
  [[nodiscard]] int fd() const { return fileno(file_); }
  // Since the last call.
  std::string take() {
    std::string text(65536, '\0');
    const ssize_t got = pread(fd(), text.data(), text.size(), read_);
    REQUIRE(got >= 0);
    read_ += got;
    text.resize(static_cast<size_t>(got));
    return text;
  }

 private:
  std::FILE* file_;
  off_t read_ = 0;
};

struct Desk {
  explicit Desk(ReporterOptions options = {}) {
    options.json_fd = events.fd();
    options.text_fd = text.fd();
    auto made = Reporter::create(options, start);
    REQUIRE(made.has_value());
    reporter = std::move(*made);
  }
  Written events, text;
  std::unique_ptr<Reporter> reporter;
};

}  // namespace ccixfer::report

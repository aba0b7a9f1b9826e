// A reporter whose outputs are files that the test reads.
#pragma once
#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "app/report/reporter.h"
#include "tests/unit/report/written.h"

namespace ccixfer::report {

inline constexpr Instant start{std::chrono::seconds(10)};

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

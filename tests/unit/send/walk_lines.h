// What a walk lists, a line for each record.
#pragma once
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "app/filter/rules.h"
#include "app/send/walk.h"
#include "tests/unit/send/fake_receiver.h"

namespace ccixfer::send_test {

using send::Walk;
using send::WalkBatch;
using send::WalkOptions;
using send::WalkRecord;
using session::EntryType;

using Lines = std::vector<std::string>;

struct Listing {
  Lines lines;  // ">dir", "<dir", "file", "link -> target", "! path: reason", "? vanished", "# warning"
  size_t steps = 0;
  WatchedFiles files;
};

[[nodiscard]] inline std::string line_of(const WalkBatch& batch, const WalkRecord& record) {
  const std::string path(batch.path(record));
  const std::string more(batch.more(record));
  if (record.kind == WalkRecord::Kind::failed) return "! " + path + ": " + more;
  if (record.kind == WalkRecord::Kind::vanished) return "? " + path;
  if (record.kind == WalkRecord::Kind::warning) return "# " + path + ": " + more;
  if (record.type == EntryType::directory) return ">" + path;
  if (record.type == EntryType::leave) return "<" + path;
  if (record.type == EntryType::symlink) return path + " -> " + more;
  return path;
}

inline void list(
    Listing& listing, const WalkOptions& options, const std::function<void(size_t step)>& between = [](size_t) {}) {
  Walk walk(options);
  REQUIRE(walk.select(listing.files));
  while (true) {
    WalkBatch batch;
    walk.step(listing.files, batch, true);
    REQUIRE(batch.records.size() <= options.batch_entries_max + 2);  // a directory, its error and its leave come together
    for (const WalkRecord& record : batch.records) listing.lines.push_back(line_of(batch, record));
    between(++listing.steps);
    if (batch.done) break;
  }
  walk.close(listing.files);
  CHECK(listing.files.open_now == 0);
}

[[nodiscard]] inline Lines lines_of(const WalkOptions& options) {
  Listing listing;
  list(listing, options);
  return listing.lines;
}

[[nodiscard]] inline WalkOptions of(std::vector<std::string> sources, bool links = true) {
  WalkOptions options;
  options.sources = std::move(sources);
  options.links = links;
  options.directory = options.sources.size() > 1;
  return options;
}

[[nodiscard]] inline filter::Rules rules_of(const std::vector<std::string>& rules) {
  filter::RulesBuilder builder([](const std::string&) { return Result<std::string>(""); }, false, false);
  for (const std::string& rule : rules) REQUIRE(builder.add_filter(rule));
  return builder.take();
}

[[nodiscard]] inline WalkOptions ruled(std::vector<std::string> sources, const std::vector<std::string>& rules) {
  WalkOptions options = of(std::move(sources));
  options.rules = rules_of(rules);
  return options;
}

}  // namespace ccixfer::send_test

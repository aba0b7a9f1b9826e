// What a peer may bring in one session, by its grant, and what of that is used up. A transfer that begins another session begins
// anew: files that are here already cost nothing then.
// In: the verdicts on entries, and the data that arrived. Out: the error that ends the session, with words for both ends.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "app/recv/entries.h"
#include "core/base/result.h"

namespace ccixfer::recv {

// none: no limit. Zero is a limit too: nothing.
struct Limits {
  std::optional<uint64_t> quota_bytes;
  std::optional<uint64_t> entries_max;  // files, directories, links and special files
  bool setid = true;                    // set-user-ID and set-group-ID bits of its files count
  bool devices = true;                  // it may make devices, sockets and pipes
};

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}

  // not_authorised: too many entries. no_space: their files are more than the quota.
  [[nodiscard]] std::optional<Error> decided(const std::vector<Decision>& decisions);
  // A file was not counted because it was to become a further name of another one. Now its content is wanted, and counts.
  [[nodiscard]] std::optional<Error> wanted(const FileTask& task);
  // no_space: data of files whose length nobody announced are more than the quota.
  [[nodiscard]] std::optional<Error> received(uint64_t bytes);

 private:
  void count(const FileTask& task);
  [[nodiscard]] std::optional<Error> judge_bytes(uint64_t bytes) const;

  const Limits limits_;
  uint64_t entries_ = 0;
  uint64_t announced_bytes_ = 0;  // of files that are to be sent
  uint64_t received_bytes_ = 0;
  bool has_unknown_length_ = false;
};

}  // namespace ccixfer::recv

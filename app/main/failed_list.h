// `--failed-list FILE`: the names of what failed, for --files-from of the next run. While transfers run the names go to a file
// without a name in the temporary directory; finish() puts the list in its place at once, so that nobody reads half of it.
// A later session of a transfer may deliver what an earlier one could not: the last session's word on a name counts. Within one a
// failure stays: a file of which not everything could be read fails, and is delivered all the same. Memory: 16 bytes for each file
// that ended after the first session of a transfer, if anything failed before that.
// Errors: usage: the list cannot be written there; file_io: it could not be written when it came to that.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/host/descriptor.h"

namespace ccixfer::program {

enum class ListFormat : uint8_t {
  lines,           // a name a line; in both one that would be read as a comment begins with ./
  nul_terminated,  // -0
};

class FailedList {
 public:
  // "": none is asked for, and nothing is done.
  [[nodiscard]] static Result<std::unique_ptr<FailedList>> begin(const std::string& file, ListFormat format,
                                                                 const std::string& temporary_directory);
  void session_begins();
  void ended(std::string_view path, std::string_view status);  // as of the events of files
  void failed_again(std::string_view path);                    // in this session as in an earlier one of the transfer
  void transfer_ends();                                        // and another may follow, whose names are those of other files
  // So many more things failed in this session, and their names are not known here.
  void add_unnamed(uint64_t things) { unnamed_ += things; }
  [[nodiscard]] uint64_t unnamed() const { return unnamed_before_ + unnamed_; }  // in the last sessions of the transfers
  // Once. Where no session began the file stays: nothing of what it names was tried again. Names that a line cannot hold are left
  // out; `left_out` says how many.
  [[nodiscard]] Result<void> finish(uint64_t& left_out);
  [[nodiscard]] const std::string& file() const { return file_; }

 private:
  FailedList(std::string file, ListFormat format, host::Descriptor journal);
  void note(char what, std::string_view path);
  void flush();

  const std::string file_;
  const ListFormat format_;
  host::Descriptor journal_;
  std::string buffer_ = {};
  int problem_ = 0;               // errno of the first write that failed
  std::string last_failed_ = {};  // in this session
  uint64_t failed_ = 0, later_words_ = 0;
  uint64_t unnamed_ = 0, unnamed_before_ = 0;  // by this session; by the last ones of earlier transfers
  uint32_t sessions_ = 0;                      // of the transfer that runs
  bool had_session_ = false;
};

}  // namespace ccixfer::program

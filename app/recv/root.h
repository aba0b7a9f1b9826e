// A root that transfers are written below; the sessions of a daemon share it. When an administrator
// moves, removes or replaces it or its staging directory, the sessions at work end as interrupted, and
// the next one opens what is there then.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

struct OpenedRoot;  // app/recv/opened_root.h

struct RootOptions {
  int64_t staging_age_max_s = 14 * int64_t{24 * 3600};  // staged files that nobody changed for so long go when the root is opened
};

class Root {
 public:
  // Opens the directory, which must be there, makes its staging directory, and opens the ledger.
  // file_io: it is read-only or no directory. no_space.
  static Result<std::unique_ptr<Root>> open(ports::FileSystem& files, const std::string& path, const char* sqlite_vfs = nullptr,
                                            const RootOptions& options = {});
  // For a dry run: it makes nothing, and the directory need not be there.
  static Result<std::unique_ptr<Root>> look(ports::FileSystem& files, const std::string& path);
  ~Root();  // removes an empty staging directory again, and leaves the root's mtime as it was
  // For a new session: opens what is there now, if what was open is gone.
  Result<void> renew();
  // From now on this process reaches only what it has opened (core/sandbox): when something else stands at the root's path, renew()
  // fails with this kind, and so does every later session. The staging directory is still renewed.
  void fix(ErrorKind when_replaced) { when_replaced_ = when_replaced; }
  [[nodiscard]] bool is_out_of_reach() const { return out_of_reach_; }
  [[nodiscard]] const std::shared_ptr<OpenedRoot>& opened() const { return opened_; }  // shared with the sessions that began on it

 private:
  std::shared_ptr<OpenedRoot> opened_;
  const char* sqlite_vfs_ = nullptr;
  RootOptions options_;
  std::optional<ErrorKind> when_replaced_;
  bool out_of_reach_ = false;
};

}  // namespace ccixfer::recv

// The directory of a second receiver: the root of another receiver, on a file system that both mount. Nothing of it is opened but
// staged files that the other one shares; there is no ledger here and no lock of one.
// Its staging directory is looked up anew for each of them: it comes and goes with the transfers of the other receiver.
#pragma once
#include <memory>
#include <string>

#include "app/recv/shared_place.h"
#include "core/base/result.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

class SecondRoot {
 public:
  // not_authorised and file_io: it cannot be opened.
  static Result<std::shared_ptr<SecondRoot>> open(ports::FileSystem& files, const std::string& path);
  ~SecondRoot();
  SecondRoot(const SecondRoot&) = delete;
  SecondRoot& operator=(const SecondRoot&) = delete;

  [[nodiscard]] ports::FileSystem& files() const { return files_; }
  // In a job; as JoinedShare::join.
  [[nodiscard]] int join(const session::SharedPlace& place, std::shared_ptr<JoinedShare>& out) const;

 private:
  SecondRoot(ports::FileSystem& files, int fd) : files_(files), fd_(fd) {}
  ports::FileSystem& files_;
  const int fd_;
};

}  // namespace ccixfer::recv

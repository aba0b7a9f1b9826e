// A staged file that several receivers of one file system write to (app/session/README.md, "Several receivers of one file system"):
// the small file beside it, NAME.share, that says so, and the lock that keeps a late writer out.
// Who owns the staged file makes a share and ends it; who writes into it for the owner joins it.
// Functions of jobs. Errors: -errno.
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "app/recv/opened_root.h"
#include "app/session/messages.h"
#include "core/ports/file_system.h"

namespace ccixfer::recv {

inline constexpr std::string_view share_suffix = ".share";
[[nodiscard]] std::string share_name(std::string_view staged);
[[nodiscard]] bool is_share_name(std::string_view name);  // of a staged file that comes in pieces

// From now on whoever knows the token may write into that staged file, up to that size. An older share of it ends. A descriptor of
// the share, on which the owner has a lock alone: as long as it is open others see by it that the owner's locks reach them.
[[nodiscard]] int make_share(ports::FileSystem& files, int staging, const session::SharedPlace& place);
// Nobody writes there any more but the owner, who has the staged file open as `fd`. The lock stays with that descriptor. 0: also
// when there was no share. -EAGAIN: somebody else writes there now.
[[nodiscard]] int end_share(ports::FileSystem& files, int staging, std::string_view staged, int fd);
void remove_staged(const OpenedRoot& root, std::string_view staged);  // a staged file of pieces, and what says that it is shared

// A shared staged file as a second receiver has it open. Thread-safe.
// A piece is written between begin_write and end_writes: meanwhile the owner cannot commit the file.
class JoinedShare {
 public:
  // Takes `staging`, a descriptor, whatever comes of it. -ENOENT: no such file here: it is another file system. -EPERM: the token
  // or the size is another one, or there is no share. -ENOTSUP: there are no locks, or none of the owner's that reach this host.
  [[nodiscard]] static int join(ports::FileSystem& files, int staging, const session::SharedPlace& place,
                                std::shared_ptr<JoinedShare>& out);
  ~JoinedShare();
  JoinedShare(const JoinedShare&) = delete;
  JoinedShare& operator=(const JoinedShare&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  // 0: a piece may be written, and the owner waits. Else the share has ended (-EPERM), or the owner ends it now (-EAGAIN).
  [[nodiscard]] int begin_write();
  void end_writes(size_t count);  // so many that began: they are durable, or are to come again
  void retire();                  // no write begins any more: nobody waits for one

 private:
  JoinedShare(ports::FileSystem& files, int staging, int fd, const session::SharedPlace& place)
      : files_(files), staging_(staging), fd_(fd), place_(place) {}
  [[nodiscard]] int look() const;
  [[nodiscard]] int look_for_owner() const;

  ports::FileSystem& files_;
  const int staging_;
  const int fd_;
  const session::SharedPlace place_;
  std::mutex mutex_;
  size_t writes_ = 0;  // begun
  bool is_retired_ = false;
};

}  // namespace ccixfer::recv

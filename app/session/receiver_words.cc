#include "app/session/receiver_words.h"

#include <fmt/core.h>

#include <system_error>

namespace ccixfer::session {

std::string words_of_receiver_errno(int error_number) {
  switch (error_number) {
    case EBUSY:
      return "another transfer is writing it now: run again when that one has ended";
    case EISDIR:
    case ENOTEMPTY:
      return "a directory that is not empty stands in its place at the receiver";
    case ENOTDIR:
      return "a file stands at the receiver where a directory belongs";
    case EACCES:
    case EPERM:
      return "the receiver may not write there: " + std::generic_category().message(error_number);
    case errno_of_unknown_field:
      return "the receiver's version does not know what this one needs: run the same version at both ends";
    case errno_of_no_devices:
      return "this peer may not make devices, sockets and pipes there: `devices = true` of the receiver's [peer.NAME] allows it";
    case errno_of_same_name:
      return "the receiver's file system ignores case, and another file of this transfer has that name: rename one of them";
    case errno_of_no_backup:
      return "a directory that is not empty, or a file of the source's, stands at the receiver where its backup belongs: "
             "remove it, or use another --suffix";
    default:
      return "at the receiver: " + std::generic_category().message(error_number);
  }
}

std::string words_of_no_setid(uint64_t count) {
  return fmt::format(
      "{} files and directories come without the set-user-ID or set-group-ID bit or the capabilities that they have at the source: "
      "this peer may not bring them (`setid = true` of the receiver's [peer.NAME] allows it), or they would be those of another "
      "owner or group (-a keeps both)",
      count);
}

Error changed_files(uint64_t count) {
  return {ErrorKind::vanished,
          count == 1 ? "a file changed while it was read" : fmt::format("{} files changed while they were read", count)};
}

}  // namespace ccixfer::session

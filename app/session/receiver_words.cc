#include "app/session/receiver_words.h"

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
    default:
      return "at the receiver: " + std::generic_category().message(error_number);
  }
}

}  // namespace ccixfer::session

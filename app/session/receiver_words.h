// What went wrong with a file at the receiver, in words that both ends say: the sender hears an errno only.
#pragma once
#include <string>

namespace ccixfer::session {

[[nodiscard]] std::string words_of_receiver_errno(int error_number);

}  // namespace ccixfer::session

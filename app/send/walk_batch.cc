// The texts of a batch of records stand one behind the other.
#include "app/send/walk.h"

namespace ccixfer::send {

std::string_view WalkBatch::path(const WalkRecord& record) const {
  return std::string_view(text).substr(record.path_at, record.path_bytes);
}
std::string_view WalkBatch::more(const WalkRecord& record) const {
  return std::string_view(text).substr(record.more_at, record.more_bytes);
}
std::string_view WalkBatch::linked_to(const WalkRecord& record) const {
  return std::string_view(text).substr(record.linked_to_at, record.linked_to_bytes);
}
std::string_view WalkBatch::user(const WalkRecord& record) const {
  return std::string_view(text).substr(record.owners_at, record.user_bytes);
}
std::string_view WalkBatch::group(const WalkRecord& record) const {
  return std::string_view(text).substr(record.owners_at + record.user_bytes, record.group_bytes);
}
std::string_view WalkBatch::extended(const WalkRecord& record) const {
  return std::string_view(text).substr(record.extended_at, record.extended_bytes);
}

}  // namespace ccixfer::send

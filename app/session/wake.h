// Whether a source or a destination asks for another turn at once. Whatever changes what another
// object looks at in its part of the turn sets it, because that part may be over.
#pragma once

namespace ccixfer::session {

class Wake {
 public:
  void set() { is_set_ = true; }
  void clear() { is_set_ = false; }
  [[nodiscard]] bool is_set() const { return is_set_; }

 private:
  bool is_set_ = false;
};

}  // namespace ccixfer::session

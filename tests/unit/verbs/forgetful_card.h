// A card that drops the completions of a queue pair when that is destroyed, as drivers of mlx5 and mlx4 do. Soft-RoCE keeps them.
#pragma once

namespace ccixfer::verbs {

// While it lives. Other pairs of the same net may have no completions meanwhile: they would be dropped, too.
class ForgetfulCard {
 public:
  // `is_late`: of a pair that is put into the error state it completes nothing before it has said that it takes no more receive
  // slots for it (IBV_EVENT_QP_LAST_WQE_REACHED), which Soft-RoCE never says.
  explicit ForgetfulCard(bool is_late);
  ~ForgetfulCard();
  ForgetfulCard(const ForgetfulCard&) = delete;
  ForgetfulCard& operator=(const ForgetfulCard&) = delete;
};

}  // namespace ccixfer::verbs

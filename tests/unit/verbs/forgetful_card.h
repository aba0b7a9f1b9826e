// A card that drops the completions of a queue pair when that is destroyed, as drivers of mlx5 and mlx4 do. Soft-RoCE keeps them.
#pragma once

namespace ccixfer::verbs {

// While it lives. Other pairs of the same net may have no completions meanwhile: they would be dropped, too.
class ForgetfulCard {
 public:
  ForgetfulCard();
  ~ForgetfulCard();
  ForgetfulCard(const ForgetfulCard&) = delete;
  ForgetfulCard& operator=(const ForgetfulCard&) = delete;
};

}  // namespace ccixfer::verbs

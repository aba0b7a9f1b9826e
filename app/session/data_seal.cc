#include "app/session/data_seal.h"

namespace ccixfer::session {

SealingPass::SealingPass(DataSealer* sealer) {
  if (sealer == nullptr) return;
  number_ = sealer->next_number_.fetch_add(1, std::memory_order_relaxed);
  key_.emplace(sealer->key_.copy());
  key_->begin(number_, {});
}

DataMark SealingPass::finish() {
  if (!key_) return {};
  return {number_, key_->finish()};
}

OpeningPass::OpeningPass(const DataOpener* opener, const DataMark& mark) : mark_(mark) {
  if (opener == nullptr) return;
  key_.emplace(opener->key_.copy());
  key_->begin(mark.number, {});
}

bool OpeningPass::finish() { return !key_ || key_->finish(mark_.tag); }

}  // namespace ccixfer::session

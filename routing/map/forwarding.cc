#include "routing/map/forwarding.h"

namespace ccixfer::routing {

// Only what the answer depends on, so that peers with many sources share it.
const std::vector<NextHop>& Forwarding::next_hops(SubnetId source, SubnetId in, SubnetId to) {
  Question question{source, in, to, false};
  question.any_source = !map_->has_statics() && source != in && !map_->is_wan(source);
  if (question.any_source) question.source.subnet = 0;
  const auto known = answers_.find(question);
  if (known != answers_.end()) return known->second;
  if (answers_.size() >= answers_max) answers_.clear();
  return answers_.emplace(question, map_->next_hops(router_, source, in, to)).first->second;
}

size_t Forwarding::Mix::operator()(const Question& question) const {
  uint64_t sum = 0;
  for (const uint32_t part : {question.source.as, question.source.subnet, uint32_t{question.any_source}, question.in.as,
                              question.in.subnet, question.to.as, question.to.subnet}) {
    sum = (sum ^ part) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  return static_cast<size_t>(sum);
}

}  // namespace ccixfer::routing

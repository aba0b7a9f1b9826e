#include "routing/router/connection_fragments.h"

#include <utility>

namespace ccixfer::routing {
namespace {

static_assert(classes_max <= 8);  // in_turn_

std::array<uint64_t, 2> key_of(const Exposure& exposure) {
  return {uint64_t{exposure.to} * 2 + (exposure.of_read ? 1 : 0), exposure.cookie};
}

std::array<uint64_t, 2> key_of(const Question& question) { return {question.to, question.cookie}; }

}  // namespace

ConnectionFragments::Queues& ConnectionFragments::queues() {
  if (queues_ == nullptr) queues_ = std::make_unique<Queues>();
  return *queues_;
}

bool ConnectionFragments::remove() { return --known_ == 0 && !std::exchange(to_be_released_, true); }

void ConnectionFragments::release() {
  to_be_released_ = false;
  if (known_ == 0 && queues_ != nullptr && queues_->asked.empty()) queues_.reset();
}

bool ConnectionFragments::wait(uint8_t data_class, const WaitingFragment& fragment) {
  queues().waiting[data_class].push_back(fragment);
  const auto bit = static_cast<uint8_t>(1u << data_class);
  const bool is_new = (in_turn_ & bit) == 0;
  in_turn_ = static_cast<uint8_t>(in_turn_ | bit);
  return is_new;
}

const WaitingFragment* ConnectionFragments::first_waiting(uint8_t data_class) const {
  return queues_ == nullptr || queues_->waiting[data_class].empty() ? nullptr : &queues_->waiting[data_class].front();
}

void ConnectionFragments::drop_first_waiting(uint8_t data_class) { queues_->waiting[data_class].drop_front(); }

std::vector<uint64_t> ConnectionFragments::take_stalled() {
  if (!has_stalled()) return {};
  std::vector<uint64_t> all(queues_->stalled.begin(), queues_->stalled.end());
  queues_->stalled.clear();
  return all;
}

bool ConnectionFragments::expose(const Exposure& exposure, uint64_t fragment) {
  return queues().exposed.emplace(key_of(exposure), fragment).second;
}

uint64_t ConnectionFragments::exposed_as(const Exposure& exposure) const {
  if (queues_ == nullptr) return 0;
  const auto found = queues_->exposed.find(key_of(exposure));
  return found == queues_->exposed.end() ? 0 : found->second;
}

void ConnectionFragments::withdraw(const Exposure& exposure) {
  if (queues_ != nullptr) queues_->exposed.erase(key_of(exposure));
}

bool ConnectionFragments::ask(const Question& question, uint32_t length_bytes) {
  auto& asked = queues().asked;
  return asked.size() < fragments_per_side_max && asked.emplace(key_of(question), length_bytes).second;
}

std::optional<uint32_t> ConnectionFragments::take_question(const Question& question) {
  if (queues_ == nullptr) return std::nullopt;
  const auto found = queues_->asked.find(key_of(question));
  if (found == queues_->asked.end()) return std::nullopt;
  const uint32_t length_bytes = found->second;
  queues_->asked.erase(found);
  return length_bytes;
}

void ConnectionFragments::forget_if_idle() {
  if (!to_be_released_) release();
}

std::vector<uint64_t> ConnectionFragments::take_all() {
  std::vector<uint64_t> all;
  if (queues_ == nullptr) return all;
  for (auto& waiting : queues_->waiting) {
    for (const WaitingFragment& each : waiting) all.push_back(each.fragment);
    waiting.clear();
  }
  for (const auto& [key, fragment] : queues_->exposed) all.push_back(fragment);
  all.insert(all.end(), queues_->stalled.begin(), queues_->stalled.end());
  queues_->stalled.clear();
  return all;
}

}  // namespace ccixfer::routing

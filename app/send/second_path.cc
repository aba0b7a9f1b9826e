#include "app/send/second_path.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace ccixfer::send {

void SecondPath::attach(SecondPathUser* user) {
  CHECK(user == nullptr || user_ == nullptr);
  user_ = user;
  while (!files_.empty()) file_ended(files_.begin()->first);
}

void SecondPath::attach(SecondPathLink* link) {
  CHECK(link == nullptr || link_ == nullptr);
  link_ = link;
  for (auto at = files_.begin(); at != files_.end(); ++at) close(at);
  files_.clear();  // the next session is asked for all of them anew
  by_number_.clear();
  if (user_ != nullptr) user_->on_second_path_news();
}

bool SecondPath::has_unplaced() const {
  return std::any_of(files_.begin(), files_.end(), [](const auto& one) { return !one.second.unplaced.empty(); });
}

std::shared_ptr<const PieceRoute> SecondPath::route_of(uint64_t index) {
  if (link_ == nullptr || user_ == nullptr || is_over_) return nullptr;
  const auto [at, is_new] = files_.try_emplace(index);
  if (is_new) user_->tell_first_receiver(session::AskPlace{index});
  return at->second.route && !link_->load().is_stuck ? at->second.route : nullptr;
}

void SecondPath::on_place(const session::SharedPlace& place) {
  const auto at = files_.find(place.index);
  if (at == files_.end() || link_ == nullptr || at->second.number != 0) return;  // asked for a session that is gone
  at->second.number = next_number_++;
  by_number_[at->second.number] = place.index;
  session::SharedPlace there = place;
  there.index = at->second.number;
  link_->tell_second_receiver(there);
}

void SecondPath::file_ended(uint64_t index) {
  const auto at = files_.find(index);
  if (at == files_.end()) return;
  if (at->second.route) at->second.route->is_closed = true;
  const bool is_known_there = at->second.number != 0 && !at->second.is_refused;
  if (is_known_there && link_ != nullptr) link_->tell_second_receiver(session::PlaceEnded{at->second.number});
  by_number_.erase(at->second.number);
  files_.erase(at);
}

void SecondPath::close(Files::iterator at) {
  if (at->second.route) at->second.route->is_closed = true;
  at->second.route.reset();
  const std::set<uint64_t> unplaced = std::exchange(at->second.unplaced, {});
  if (user_ == nullptr) return;
  if (!unplaced.empty()) user_->on_not_placed(at->first, unplaced);
  user_->on_second_path_news();
}

SecondPath::Files::iterator SecondPath::find_by(uint64_t number) {
  const auto index = by_number_.find(number);
  return index == by_number_.end() ? files_.end() : files_.find(index->second);
}

void SecondPath::piece_goes(uint64_t number, uint64_t piece) {
  const auto at = find_by(number);
  if (at != files_.end()) at->second.unplaced.insert(piece);
}

bool SecondPath::on_state(const session::PlaceState& state) {
  if (state.index == 0 || state.index >= next_number_) return false;
  const auto at = find_by(state.index);
  if (at == files_.end()) return true;  // of a file that has ended
  File& file = at->second;
  if (state.is_open) {
    if (file.route || file.is_refused || link_ == nullptr) return false;
    file.route = std::make_shared<PieceRoute>(PieceRoute{&link_->sink(), link_->wrapping(), file.number, false});
    return true;
  }
  if (std::exchange(file.is_refused, true)) return false;
  if (told_ != state.reason) warn_(state.reason);
  told_ = state.reason;
  close(at);
  return true;
}

// A piece may have gone there twice, when a lane was lost, or have been given up meanwhile: what nobody waits for is passed over.
bool SecondPath::on_placed(const session::Placed& placed) {
  if (placed.index == 0 || placed.index >= next_number_) return false;
  const auto at = find_by(placed.index);
  if (at == files_.end()) return true;
  session::Placed news{at->first, 0, {}};
  const auto tell = [&] {
    if (!news.hashes.empty()) user_->tell_first_receiver(news);
    news.hashes.clear();
  };
  for (size_t i = 0; i < placed.hashes.size(); ++i) {
    if (at->second.unplaced.erase(placed.first + i) == 0) {
      tell();
      continue;
    }
    if (news.hashes.empty()) news.first = placed.first + i;
    news.hashes.push_back(placed.hashes[i]);
  }
  tell();
  return true;
}

bool SecondPath::on_wanted_again(uint64_t number, uint64_t piece) {
  if (number == 0 || number >= next_number_) return false;
  const auto at = find_by(number);
  // It is read once more, and has the route of its file.
  if (at != files_.end() && at->second.unplaced.erase(piece) > 0) user_->on_not_placed(at->first, {piece});
  return true;
}

}  // namespace ccixfer::send

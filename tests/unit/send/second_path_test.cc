// What a helper knows of its second receiver, between two sessions that come and go.
#include "app/send/second_path.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

using namespace ccixfer;
using namespace ccixfer::send;
using session::Message;

namespace {

struct User final : SecondPathUser {
  void on_second_path_news() override { ++news; }
  void tell_first_receiver(const Message& message) override { told.push_back(message); }
  void on_not_placed(uint64_t index, const std::set<uint64_t>& pieces) override {
    for (const uint64_t piece : pieces) again.emplace_back(index, piece);
  }
  int news = 0;
  std::vector<Message> told;
  std::vector<std::pair<uint64_t, uint64_t>> again;
};

struct Second final : SecondPathLink, SegmentSink {
  void tell_second_receiver(const Message& message) override { told.push_back(message); }
  SegmentSink& sink() override { return *this; }
  const Wrapping& wrapping() override { return wrapping_; }
  SecondPathLoad load() const override { return {3, 2, true, is_stuck}; }
  bool is_stuck = false;
  void add(FilledSegment&&) override {}
  std::vector<Message> told;
  Wrapping wrapping_;
};

struct Path {
  Path() : path([this](const std::string& line) { warned.push_back(line); }) {
    path.attach(&user);
    path.attach(&second);
  }
  ~Path() {
    path.attach(static_cast<SecondPathLink*>(nullptr));
    path.attach(static_cast<SecondPathUser*>(nullptr));
  }
  // Asks for it and has it opened: what the second receiver calls it.
  uint64_t open(uint64_t index) {
    CHECK(path.route_of(index) == nullptr);
    path.on_place({index, 100, {1}, "a.part"});
    const uint64_t number = std::get<session::SharedPlace>(second.told.back()).index;
    CHECK(path.on_state({number, true, ""}));
    return number;
  }
  std::vector<std::string> warned;
  User user;
  Second second;
  SecondPath path;
};

}  // namespace

TEST_CASE("second_path__a_file__is_asked_for_once_and_has_a_route_when_it_is_open") {
  Path at;
  CHECK(at.path.route_of(7) == nullptr);
  CHECK(at.path.route_of(7) == nullptr);
  REQUIRE(at.user.told.size() == 1);
  CHECK(std::get<session::AskPlace>(at.user.told[0]).index == 7);
  at.path.on_place({7, 100, {1, 2}, "a.part"});
  const auto place = std::get<session::SharedPlace>(at.second.told.at(0));
  CHECK(place.name == "a.part");
  CHECK(place.token == session::PlaceToken{1, 2});
  CHECK(place.size_bytes == 100);
  CHECK(at.path.route_of(7) == nullptr);
  CHECK(at.path.on_state({place.index, true, ""}));
  const auto route = at.path.route_of(7);
  REQUIRE(route);
  CHECK(route->sink == &at.second);
  CHECK(route->index == place.index);
  CHECK_FALSE(route->is_closed);
}

TEST_CASE("second_path__placed_pieces__are_the_first_receivers_news_by_its_own_index") {
  Path at;
  const uint64_t number = at.open(7);
  at.path.piece_goes(number, 4);
  at.path.piece_goes(number, 5);
  CHECK(at.path.has_unplaced());
  CHECK(at.path.on_placed({number, 4, {{1, 1}, {2, 2}}}));
  const auto news = std::get<session::Placed>(at.user.told.back());
  CHECK(news.index == 7);
  CHECK(news.first == 4);
  CHECK(news.hashes == std::vector<Hash128>{{1, 1}, {2, 2}});
  CHECK_FALSE(at.path.has_unplaced());
  CHECK(at.user.again.empty());
}

TEST_CASE("second_path__pieces_that_nobody_waits_for__are_not_told_and_the_others_are") {
  Path at;
  const uint64_t number = at.open(7);
  for (const uint64_t piece : {uint64_t{3}, uint64_t{5}, uint64_t{6}}) at.path.piece_goes(number, piece);
  CHECK(at.path.on_placed({number, 3, {{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}}));
  REQUIRE(at.user.told.size() == 3);
  CHECK(std::get<session::Placed>(at.user.told[1]).first == 3);
  CHECK(std::get<session::Placed>(at.user.told[1]).hashes == std::vector<Hash128>{{1, 1}});
  CHECK(std::get<session::Placed>(at.user.told[2]).first == 5);
  CHECK(std::get<session::Placed>(at.user.told[2]).hashes == std::vector<Hash128>{{3, 3}, {4, 4}});
  CHECK(at.path.on_placed({number, 3, {{1, 1}}}));  // it had gone there twice
  CHECK(at.path.on_wanted_again(number, 3));
  CHECK(at.user.told.size() == 3);
  CHECK(at.user.again.empty());
}

TEST_CASE("second_path__a_file_that_was_never_named_to_it__makes_no_sense") {
  Path at;
  const uint64_t number = at.open(7);
  CHECK_FALSE(at.path.on_placed({number + 1, 4, {{1, 1}}}));
  CHECK_FALSE(at.path.on_placed({0, 4, {{1, 1}}}));
  CHECK_FALSE(at.path.on_wanted_again(number + 1, 4));
  CHECK_FALSE(at.path.on_state({number + 1, true, ""}));
  CHECK_FALSE(at.path.on_state({number, true, ""}));  // it is open already
}

TEST_CASE("second_path__nothing_moves_there__further_pieces_go_to_the_first_receiver_until_it_does") {
  Path at;
  const uint64_t number = at.open(7);
  at.second.is_stuck = true;
  at.path.load_changed();
  CHECK(at.user.news > 0);
  CHECK(at.path.route_of(7) == nullptr);
  at.second.is_stuck = false;
  const auto route = at.path.route_of(7);
  REQUIRE(route != nullptr);
  CHECK(route->index == number);
}

TEST_CASE("second_path__the_second_receiver_is_lost__what_was_not_placed_goes_to_the_first_and_the_file_is_asked_for_anew") {
  Path at;
  const uint64_t number = at.open(7);
  const auto route = at.path.route_of(7);
  at.path.piece_goes(number, 4);
  at.path.piece_goes(number, 9);
  CHECK(at.path.on_placed({number, 4, {{1, 1}}}));
  at.path.attach(static_cast<SecondPathLink*>(nullptr));
  CHECK(route->is_closed);
  CHECK(at.user.again == std::vector<std::pair<uint64_t, uint64_t>>{{7, 9}});
  CHECK(at.user.news > 0);
  CHECK(at.path.route_of(7) == nullptr);
  CHECK(at.user.told.size() == 2);  // without a second receiver nothing is asked
  Second next;
  at.path.attach(&next);
  CHECK(at.path.route_of(7) == nullptr);
  CHECK(std::get<session::AskPlace>(at.user.told.back()).index == 7);
  at.path.on_place({7, 100, {1}, "a.part"});
  const uint64_t later = std::get<session::SharedPlace>(next.told.at(0)).index;
  CHECK(later != number);  // late news of the session before are not taken for this one's
  at.path.attach(static_cast<SecondPathLink*>(nullptr));
}

TEST_CASE("second_path__a_place_that_is_refused_or_closes__is_told_once_and_not_asked_for_again") {
  Path at;
  const uint64_t number = at.open(7);
  at.path.piece_goes(number, 4);
  CHECK(at.path.on_state({number, false, "no space"}));
  CHECK(at.user.again == std::vector<std::pair<uint64_t, uint64_t>>{{7, 4}});
  CHECK(at.path.route_of(7) == nullptr);
  CHECK_FALSE(at.path.on_state({number, false, "no space"}));
  CHECK(at.path.route_of(8) == nullptr);
  at.path.on_place({8, 100, {1}, "b.part"});
  CHECK(at.path.on_state({std::get<session::SharedPlace>(at.second.told.back()).index, false, "no space"}));
  CHECK(at.warned == std::vector<std::string>{"no space"});
}

TEST_CASE("second_path__a_damaged_piece__is_sent_again_and_has_its_route") {
  Path at;
  const uint64_t number = at.open(7);
  at.path.piece_goes(number, 4);
  CHECK(at.path.on_wanted_again(number, 4));
  CHECK(at.user.again == std::vector<std::pair<uint64_t, uint64_t>>{{7, 4}});
  CHECK(at.path.route_of(7) != nullptr);
  CHECK_FALSE(at.path.has_unplaced());
}

TEST_CASE("second_path__a_file_that_ends__is_closed_there_and_late_news_of_it_are_nothing") {
  Path at;
  const uint64_t number = at.open(7);
  const auto route = at.path.route_of(7);
  at.path.piece_goes(number, 4);
  at.path.file_ended(7);
  CHECK(std::get<session::PlaceEnded>(at.second.told.back()).index == number);
  CHECK(route->is_closed);
  CHECK(at.user.again.empty());
  const size_t told = at.user.told.size();
  CHECK(at.path.on_placed({number, 4, {{1, 1}}}));
  CHECK(at.path.on_state({number, false, "gone"}));
  CHECK(at.path.on_wanted_again(number, 4));
  CHECK(at.user.told.size() == told);
  CHECK(at.user.again.empty());
}

TEST_CASE("second_path__the_first_receivers_session_ends__its_files_are_closed_and_nobody_is_told_of_them") {
  Path at;
  const uint64_t number = at.open(7);
  at.path.piece_goes(number, 4);
  at.path.attach(static_cast<SecondPathUser*>(nullptr));
  CHECK(std::get<session::PlaceEnded>(at.second.told.back()).index == number);
  CHECK(at.path.on_placed({number, 4, {{1, 1}}}));
  CHECK(at.path.route_of(7) == nullptr);
  User next;
  at.path.attach(&next);
  CHECK(at.path.route_of(7) == nullptr);
  CHECK(next.told.size() == 1);
  at.path.attach(static_cast<SecondPathUser*>(nullptr));
}

TEST_CASE("second_path__a_place_that_comes_late__is_not_opened") {
  Path at;
  at.path.on_place({7, 100, {1}, "a.part"});  // nobody asked
  CHECK(at.second.told.empty());
  static_cast<void>(at.path.route_of(7));
  at.path.on_place({7, 100, {1}, "a.part"});
  at.path.on_place({7, 100, {1}, "a.part"});
  CHECK(at.second.told.size() == 1);
}

// Who stands in front of a role: what is its owner's, what is kept for the role, and how each ends.
#include "app/main/forwarder.h"

#include <catch2/catch.hpp>

namespace ccixfer::program {
namespace {

using Words = std::vector<std::string>;

struct Recorder final : session::LinkHandler {
  Words seen;
  void on_lane_up(session::LaneIndex lane) override { seen.push_back("up " + std::to_string(lane)); }
  void on_lane_down(session::LaneIndex lane) override { seen.push_back("down " + std::to_string(lane)); }
  void on_lane_message(session::LaneIndex lane, const session::Message& message) override {
    seen.push_back("lane " + std::to_string(lane) + " message " + std::to_string(message.index()));
  }
  void on_message(const session::Message& message) override { seen.push_back("message " + std::to_string(message.index())); }
  void on_put(session::LaneIndex lane, uint64_t context, Status status) override {
    seen.push_back("put " + std::to_string(lane) + " " + std::to_string(context) +
                   (status == Status::success ? " placed" : " not"));
  }
  void on_link_lost(const Error& error) override { seen.push_back("lost " + error.message); }
};

std::string word(const char* what, size_t index) { return std::string(what) + " " + std::to_string(index); }
std::string of(const std::optional<Error>& error) {
  return error ? std::string(error_row(error->kind).name) + ": " + error->message : "";
}

const session::Message lane_open = session::LaneOpen{};
const session::Message credit = session::Credit{};
const session::Message bye = session::Bye{};
const session::Message durable = session::Durable{};

constexpr const char* malformed = "protocol: the peer's request to open a session is malformed";
constexpr const char* opened_twice = "protocol: the peer opened the session twice, or without a number";

}  // namespace

TEST_CASE("forwarder__what_comes_before_the_role__is_replayed_in_order_without_dead_lanes") {
  Forwarder forwarder;
  forwarder.on_lane_up(0);
  forwarder.on_lane_up(1);
  forwarder.on_lane_message(0, lane_open);
  forwarder.on_message(durable);
  forwarder.on_lane_message(1, lane_open);
  forwarder.on_lane_message(0, credit);
  forwarder.on_put(0, 1, Status::success);  // there is nobody who made one
  forwarder.on_lane_down(1);
  Recorder role;
  forwarder.attach(role);
  CHECK(role.seen == Words{"up 0", word("lane 0 message", lane_open.index()), word("message", durable.index()),
                           word("lane 0 message", credit.index())});
  CHECK_FALSE(forwarder.lost());
}

TEST_CASE("forwarder__with_a_role__all_goes_through_at_once") {
  Forwarder forwarder;
  Recorder role;
  forwarder.attach(role);
  CHECK(role.seen.empty());
  forwarder.on_lane_up(3);
  forwarder.on_lane_message(3, credit);
  forwarder.on_message(bye);
  forwarder.on_message(session::Abort{ErrorKind::no_space, "full"});  // the role's to answer, now
  forwarder.on_put(3, 7, Status::success);
  forwarder.on_put(3, 8, Status::disconnected);
  forwarder.on_lane_down(3);
  forwarder.on_link_lost({ErrorKind::network, "gone"});
  CHECK(role.seen == Words{"up 3", word("lane 3 message", credit.index()), word("message", bye.index()),
                           word("message", session::Message(session::Abort{}).index()), "put 3 7 placed", "put 3 8 not", "down 3",
                           "lost gone"});
  CHECK(of(forwarder.lost()) == "network: gone");
}

TEST_CASE("forwarder__more_than_fits_after_the_role_came__is_not_kept") {
  Forwarder forwarder;
  for (size_t i = 0; i < early_messages_max; ++i) forwarder.on_message(durable);
  CHECK_FALSE(forwarder.lost());
  Recorder role;
  forwarder.attach(role);
  CHECK(role.seen.size() == early_messages_max);
  for (size_t i = 0; i < early_messages_max; ++i) forwarder.on_message(durable);
  CHECK(role.seen.size() == 2 * early_messages_max);
  CHECK_FALSE(forwarder.lost());
}

TEST_CASE("forwarder__flood_before_the_session_is_open__protocol_error") {
  Forwarder forwarder;
  for (size_t i = 0; i < early_messages_max; ++i) forwarder.on_lane_message(0, credit);
  CHECK_FALSE(forwarder.lost());
  forwarder.on_message(durable);
  CHECK(of(forwarder.lost()) == "protocol: the peer sends before the session is open");
}

TEST_CASE("forwarder__the_role_went__what_still_comes_is_dropped") {
  Forwarder forwarder;
  Recorder role;
  forwarder.on_lane_up(0);
  forwarder.attach(role);
  role.seen.clear();
  forwarder.detach();
  for (size_t i = 0; i <= early_messages_max; ++i) forwarder.on_message(durable);
  forwarder.on_lane_message(0, credit);
  forwarder.on_put(0, 1, Status::success);
  forwarder.on_lane_up(1);
  forwarder.on_lane_down(0);
  CHECK_FALSE(forwarder.lost());
  forwarder.on_link_lost({ErrorKind::network, "gone"});
  CHECK(role.seen.empty());
  CHECK(of(forwarder.lost()) == "network: gone");
}

TEST_CASE("forwarder__lost_before_the_role__it_hears_of_it_last_with_the_first_reason") {
  Forwarder forwarder;
  forwarder.on_lane_up(0);
  forwarder.on_message(durable);
  forwarder.on_link_lost({ErrorKind::network, "first"});
  forwarder.on_link_lost({ErrorKind::timeout, "second"});
  forwarder.on_message(session::Abort{ErrorKind::no_space, "third"});
  CHECK(of(forwarder.lost()) == "network: first");
  Recorder role;
  forwarder.attach(role);
  CHECK(role.seen == Words{"up 0", word("message", durable.index()), "lost first"});
}

TEST_CASE("forwarder__open_in_parts__joined_and_bad_parts_end_the_session") {
  const std::string path(session::path_bytes_max, 'p');
  const std::vector<session::Message> parts = session::cut(session::Open{5, path});
  REQUIRE(parts.size() > 1);
  Forwarder good;
  for (const session::Message& part : parts) {
    CHECK_FALSE(good.open());
    good.on_message(part);
  }
  REQUIRE(good.open());
  CHECK(good.open()->path == path);
  CHECK(good.open()->options == 5);
  CHECK_FALSE(good.lost());
  Recorder role;
  good.attach(role);
  CHECK(role.seen.empty());  // the owner's
  good.on_message(parts.front());
  CHECK(of(good.lost()) == malformed);
  CHECK(role.seen == Words{"lost the peer's request to open a session is malformed"});
  REQUIRE(good.open());  // as it was
  CHECK(good.open()->path == path);
  good.on_message(parts.front());
  good.on_message(parts.front());
  CHECK(role.seen.size() == 1);  // once

  Forwarder gap;
  gap.on_message(session::OpenPart{4, 2, "cd"});
  CHECK(of(gap.lost()) == malformed);
  Forwarder huge;
  huge.on_message(session::OpenPart{session::open_bytes_max + 1, 0, "x"});
  CHECK(of(huge.lost()) == malformed);
}

TEST_CASE("forwarder__opened__once_and_with_a_number") {
  Forwarder forwarder;
  CHECK_FALSE(forwarder.opened());
  forwarder.on_message(session::Opened{7, 3});
  REQUIRE(forwarder.opened());
  CHECK(forwarder.opened()->session == 7);
  CHECK(forwarder.opened()->lanes_max == 3);
  CHECK_FALSE(forwarder.lost());
  Recorder role;
  forwarder.attach(role);
  CHECK(role.seen.empty());  // the owner's
  forwarder.on_message(session::Opened{8, 3});
  CHECK(of(forwarder.lost()) == opened_twice);
  CHECK(forwarder.opened()->session == 7);
  CHECK(role.seen == Words{"lost the peer opened the session twice, or without a number"});
  Forwarder none;
  none.on_message(session::Opened{0, 3});
  CHECK(of(none.lost()) == opened_twice);
  CHECK_FALSE(none.opened());
}

TEST_CASE("forwarder__abort_before_the_role__its_reason_or_a_protocol_error") {
  for (const ErrorKind kind : {ErrorKind::ok, ErrorKind::partial, ErrorKind::vanished, ErrorKind::max_delete}) {
    Forwarder forwarder;
    forwarder.on_message(session::Abort{kind, "fine"});
    REQUIRE(forwarder.lost());
    CHECK(forwarder.lost()->kind == ErrorKind::protocol);
  }
  Forwarder honest;
  honest.on_message(session::Abort{ErrorKind::no_space, "full"});
  REQUIRE(honest.lost());
  CHECK(honest.lost()->kind == ErrorKind::no_space);
  CHECK(honest.lost()->message.find("full") != std::string::npos);
  Recorder role;
  honest.attach(role);
  CHECK(role.seen == Words{"lost " + honest.lost()->message});  // and not the Abort as well
}

TEST_CASE("forwarder__place_in_the_queue__is_its_owners_and_each_word_counts") {
  Forwarder forwarder;
  CHECK_FALSE(forwarder.queued());
  CHECK(forwarder.queue_news() == 0);
  forwarder.on_message(session::Queued{3});
  forwarder.on_message(session::Queued{3});  // the same place again: those before it get on
  REQUIRE(forwarder.queued());
  CHECK(forwarder.queued()->before == 3);
  CHECK(forwarder.queue_news() == 2);
  for (int i = 0; i < 1000; ++i) forwarder.on_message(session::Queued{2});
  CHECK(forwarder.queued()->before == 2);
  CHECK_FALSE(forwarder.lost());  // it waits for as long as it takes
  Recorder role;
  forwarder.attach(role);
  CHECK(role.seen.empty());
}

}  // namespace ccixfer::program

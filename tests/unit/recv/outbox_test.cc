// In which order and when the source is told what.
#include "app/recv/outbox.h"

#include <catch2/catch.hpp>

namespace ccixfer::recv {
namespace {

using session::Message;
using session::Verdict;

struct Rig {
  std::vector<Message> posted;
  Outbox outbox{[this](const Message& message) { posted.push_back(message); }};
  template <typename T>
  [[nodiscard]] const T& at(size_t i) const {
    REQUIRE(i < posted.size());
    REQUIRE(std::holds_alternative<T>(posted[i]));
    return std::get<T>(posted[i]);
  }
  void fill() {
    while (!outbox.is_full()) outbox.post(session::Durable{});
    posted.clear();
  }
};

Decision decision_of(Verdict verdict, int error_number = 0) {
  Decision decision;
  decision.verdict = verdict;
  decision.error_number = error_number;
  return decision;
}

TEST_CASE("outbox__answer__wants_and_failures_go_before_the_runs_of_verdicts") {
  Rig rig;
  std::vector<Decision> decisions{decision_of(Verdict::send), decision_of(Verdict::send), decision_of(Verdict::failed, 13),
                                  decision_of(Verdict::pieces)};
  decisions[3].wants = {{2, 5}};
  rig.outbox.answer(10, decisions);
  REQUIRE(rig.posted.size() == 3);
  CHECK(rig.at<session::Want>(0).index == 13);
  CHECK(rig.at<session::Want>(0).ranges.size() == 1);
  const auto& failures = rig.at<session::FileResults>(1).results;
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].index == 12);
  CHECK(failures[0].kind == ErrorKind::file_io);
  CHECK(failures[0].error_number == 13);
  const auto& answer = rig.at<session::Answer>(2);
  CHECK(answer.first_index == 10);
  REQUIRE(answer.runs.size() == 3);
  CHECK(answer.runs[0].count == 2);
  CHECK(answer.runs[1].verdict == Verdict::failed);
}

TEST_CASE("outbox__what_stays__has_a_verdict_of_its_own") {
  Rig rig;
  std::vector<Decision> decisions{decision_of(Verdict::unchanged), decision_of(Verdict::unchanged), decision_of(Verdict::done)};
  decisions[1].stays = decisions[2].stays = true;
  rig.outbox.answer(10, decisions);
  const auto& answer = rig.at<session::Answer>(0);
  REQUIRE(answer.runs.size() == 2);
  CHECK(answer.runs[0].verdict == Verdict::unchanged);
  CHECK(answer.runs[1].verdict == Verdict::kept);
  CHECK(answer.runs[1].count == 2);
}

TEST_CASE("outbox__source_wants_the_items__they_go_before_the_answer") {
  std::vector<Message> posted;
  Outbox outbox([&](const Message& message) { posted.push_back(message); }, true);
  std::vector<Decision> decisions{decision_of(Verdict::send), decision_of(Verdict::send), decision_of(Verdict::done)};
  outbox.answer(10, decisions);
  REQUIRE(posted.size() == 1);  // nothing is done to any of them
  decisions[2].items = session::item_made | session::item_new;
  outbox.answer(13, decisions);
  REQUIRE(posted.size() == 3);
  const auto& itemized = std::get<session::Itemized>(posted[1]);
  CHECK(itemized.first_index == 13);
  REQUIRE(itemized.runs.size() == 2);
  CHECK(itemized.runs[0].count == 2);
  CHECK(itemized.runs[0].items == 0);
  CHECK(itemized.runs[1].items == (session::item_made | session::item_new));
  CHECK(std::holds_alternative<session::Answer>(posted[2]));
  Rig silent;
  silent.outbox.answer(0, decisions);
  CHECK(silent.posted.size() == 1);
}

TEST_CASE("outbox__answer_to_no_entries__is_no_message") {
  Rig rig;
  rig.outbox.answer(0, {});
  CHECK(rig.posted.empty());
}

TEST_CASE("outbox__source_takes_nothing__results_and_requests_wait_for_the_delivery") {
  Rig rig;
  rig.fill();
  rig.outbox.ask_for_put(3, 4);
  rig.outbox.ask_for_piece(8, 9);
  rig.outbox.add_result({6, ErrorKind::vanished, 0});
  rig.outbox.flush_requests();
  rig.outbox.flush_results();
  CHECK(rig.posted.empty());
  CHECK(rig.outbox.has_results());
  rig.outbox.delivered();
  CHECK_FALSE(rig.outbox.is_full());
  rig.outbox.flush_requests();
  rig.outbox.flush_results();
  REQUIRE(rig.posted.size() == 3);
  CHECK(rig.at<session::Resend>(0).index == session::Resend::by_segment);
  CHECK(rig.at<session::Resend>(0).lane_session == 3);
  CHECK(rig.at<session::Resend>(0).n == 4);
  CHECK(rig.at<session::Resend>(1).index == 8);
  CHECK(rig.at<session::Resend>(1).piece == 9);
  CHECK(rig.at<session::FileResults>(2).results.at(0).index == 6);
  CHECK_FALSE(rig.outbox.has_results());
  rig.outbox.flush_results();
  CHECK(rig.posted.size() == 3);
}

TEST_CASE("outbox__many_requests__go_as_far_as_the_bound_and_keep_their_order") {
  Rig rig;
  for (uint64_t piece = 0; piece < 2 * messages_unsent_max; ++piece) rig.outbox.ask_for_piece(1, piece);
  rig.outbox.flush_requests();
  CHECK(rig.posted.size() == messages_unsent_max + 1);
  rig.outbox.delivered();
  rig.outbox.flush_requests();
  REQUIRE(rig.posted.size() == 2 * messages_unsent_max);
  CHECK(rig.at<session::Resend>(2 * messages_unsent_max - 1).piece == 2 * messages_unsent_max - 1);
}

TEST_CASE("outbox__what_is_durable__is_told_when_it_changed_up_or_down") {
  Rig rig;
  rig.outbox.report_durable({0, 0});
  CHECK(rig.posted.empty());
  rig.outbox.report_durable({10, 1});
  rig.outbox.report_durable({10, 1});
  rig.outbox.report_durable({10, 2});
  rig.outbox.report_durable({5, 2});
  CHECK(rig.posted.size() == 3);
  CHECK(rig.at<session::Durable>(2).bytes == 5);
}

TEST_CASE("outbox__link_that_is_gone__nothing_is_posted_and_nothing_waits") {
  Rig rig;
  rig.fill();
  rig.outbox.close();
  CHECK_FALSE(rig.outbox.is_full());
  rig.outbox.ask_for_piece(1, 2);
  rig.outbox.add_result({6, ErrorKind::ok, 0});
  rig.outbox.flush_requests();
  rig.outbox.flush_results();
  CHECK_FALSE(rig.outbox.has_results());
  CHECK(rig.posted.empty());
}

}  // namespace
}  // namespace ccixfer::recv

// The states of a buffer, walked through in full, by the table and by the mailboxes.
#include "core/rvma/buffer_state.h"

#include <map>

#include "tests/unit/rvma/fixture.h"

using namespace ccixfer;
using namespace ccixfer::rvma;

namespace {

constexpr BufferState states[] = {BufferState::queued,  BufferState::filling,   BufferState::closing,
                                  BufferState::revoked, BufferState::published, BufferState::cancelled};
constexpr BufferEvent events[] = {BufferEvent::become_head, BufferEvent::threshold, BufferEvent::revoke, BufferEvent::unused,
                                  BufferEvent::cancel};

// A table whose first buffer is in the state wanted, by the shortest way there. `slow` is bound in filling, closing and revoked; in
// revoked it is in the middle of a fragment.
struct InState {
  Fixture f{{.key = 7, .threshold = 2, .retired_max = 1}};
  Put slow{.operation = 1, .base = 0, .total = 16};
  std::optional<ports::Admission> placing;

  explicit InState(BufferState state) {
    f.post_both();
    if (state == BufferState::queued) return;  // the second buffer is
    REQUIRE(f.put(slow, 0, fill(8, 1)) == Status::success);
    if (state == BufferState::revoked) {
      placing = f.table.begin_write(1, slow.at(8), 4);
      REQUIRE(placing->status == Status::success);
      REQUIRE(f.table.increment_epoch(1) == Status::success);
    }
    if (state == BufferState::closing || state == BufferState::published) {
      REQUIRE(f.put({.operation = 2}, 16, fill(8, 2)) == Status::success);
      REQUIRE(f.put({.operation = 3}, 24, fill(8, 3)) == Status::success);
    }
    if (state == BufferState::published) REQUIRE(f.put(slow, 8, fill(8, 1)) == Status::success);
    if (state == BufferState::cancelled) REQUIRE(f.table.close(1) == Status::success);
  }
};

}  // namespace

TEST_CASE("buffer_state__every_state_and_event__as_the_table_says") {
  const std::map<std::pair<BufferState, BufferEvent>, BufferState> table = {
      {{BufferState::queued, BufferEvent::become_head}, BufferState::filling},
      {{BufferState::queued, BufferEvent::cancel}, BufferState::cancelled},
      {{BufferState::filling, BufferEvent::threshold}, BufferState::closing},
      {{BufferState::filling, BufferEvent::revoke}, BufferState::revoked},
      {{BufferState::closing, BufferEvent::revoke}, BufferState::revoked},
      {{BufferState::closing, BufferEvent::unused}, BufferState::published},
      {{BufferState::revoked, BufferEvent::unused}, BufferState::published},
      {{BufferState::revoked, BufferEvent::cancel}, BufferState::cancelled},
  };
  for (const BufferState state : states) {
    for (const BufferEvent event : events) {
      const auto wanted = table.find({state, event});
      CAPTURE(int(state), int(event));
      CHECK(next_state(state, event) == (wanted == table.end() ? std::nullopt : std::optional(wanted->second)));
    }
  }
}

TEST_CASE("buffer_state__a_threshold__is_crossed_once_on_every_way_through_the_states") {
  // Every walk from queued, as long as there are ways on: the states are few and have no cycle.
  uint64_t walks = 0;
  const auto walk = [&](const auto& self, BufferState state, int crossed, int steps) -> void {
    REQUIRE(steps < 10);
    bool ended = true;
    for (const BufferEvent event : events) {
      const auto next = next_state(state, event);
      if (!next) continue;
      ended = false;
      self(self, *next, crossed + (event == BufferEvent::threshold ? 1 : 0), steps + 1);
    }
    if (!ended) return;
    ++walks;
    CHECK((state == BufferState::published || state == BufferState::cancelled));
    CHECK(crossed <= 1);
  };
  walk(walk, BufferState::queued, 0, 0);
  CHECK(walks == 6);
}

TEST_CASE("buffer_state__a_new_put_in_every_state__binds_only_while_filling") {
  const std::map<BufferState, std::pair<Status, Status>> wanted = {
      // without an epoch, and for the buffer's own
      {BufferState::queued, {Status::success, Status::success}},  // the head before it takes it
      {BufferState::filling, {Status::success, Status::success}},
      {BufferState::closing, {Status::mailbox_empty, Status::mailbox_stale}},
      {BufferState::revoked, {Status::mailbox_empty, Status::mailbox_stale}},
      {BufferState::published, {Status::success, Status::mailbox_stale}},  // the next one
      {BufferState::cancelled, {Status::mailbox_closed, Status::mailbox_closed}},
  };
  for (const auto& [state, answers] : wanted) {
    CAPTURE(int(state));
    InState any(state), own(state);
    CHECK(any.f.begin(Put{.operation = 9}.at(0), 8) == answers.first);
    CHECK(own.f.begin(Put{.operation = 9, .epoch = 0}.at(0), 8) == answers.second);
  }
}

TEST_CASE("buffer_state__the_rest_of_a_bound_put_in_every_state") {
  for (const auto& [state, wanted] : std::map<BufferState, Status>{{BufferState::filling, Status::success},
                                                                   {BufferState::closing, Status::success},
                                                                   {BufferState::revoked, Status::mailbox_stale},
                                                                   {BufferState::cancelled, Status::mailbox_closed}}) {
    CAPTURE(int(state));
    InState s(state);
    CHECK(s.f.put(s.slow, 8, fill(8, 1)) == wanted);
    CHECK(s.f.b == fill(64, 0xee));
  }
  InState published(BufferState::published);
  CHECK(place(published.f.table, published.slow.at(8), fill(8, 1)).duplicate);
}

TEST_CASE("buffer_state__increment_epoch_in_every_state") {
  for (const auto& [state, wanted] : std::map<BufferState, Status>{{BufferState::queued, Status::success},
                                                                   {BufferState::filling, Status::success},
                                                                   {BufferState::closing, Status::success},
                                                                   {BufferState::revoked, Status::busy},
                                                                   {BufferState::published, Status::success},
                                                                   {BufferState::cancelled, Status::mailbox_unknown}}) {
    CAPTURE(int(state));
    InState s(state);
    CHECK(s.f.table.increment_epoch(1) == wanted);
  }
}

TEST_CASE("buffer_state__rewind_in_every_state__a_head_begun_comes_back_cancelled") {
  const std::map<BufferState, Status> wanted = {
      {BufferState::queued, Status::success},    {BufferState::filling, Status::success},
      {BufferState::closing, Status::success},   {BufferState::revoked, Status::busy},
      {BufferState::published, Status::success}, {BufferState::cancelled, Status::mailbox_unknown}};
  for (const auto& [state, status] : wanted) {
    CAPTURE(int(state));
    InState s(state);
    while (s.f.table.next_completion()) {
    }
    std::vector<CompletedBuffer> undone;
    CHECK(s.f.table.rewind(1, 0, undone) == status);
    CHECK(undone.size() == (state == BufferState::published ? 1u : 0u));
    const auto cancelled = s.f.table.next_completion();
    CHECK(cancelled.has_value() == (state == BufferState::filling || state == BufferState::closing));
    if (cancelled) CHECK(cancelled->status == Status::cancelled);
  }
}

TEST_CASE("buffer_state__close_in_every_state__every_buffer_comes_back_once") {
  for (const BufferState state : states) {
    CAPTURE(int(state));
    InState s(state);
    size_t back = 0;
    while (s.f.table.next_completion()) ++back;
    static_cast<void>(s.f.table.close(1));
    if (s.placing) CHECK(s.f.table.end_write(s.placing->ticket, true).status == Status::mailbox_closed);
    while (s.f.table.next_completion()) ++back;
    CHECK(back == 2);
  }
}

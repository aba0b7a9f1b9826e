// What events refer to: buffers, and connect requests until they are decided.
#include "core/cci/event_store.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::cci;

namespace {

struct Met {
  Met() {
    store.reject = [this](ports::ConnectionId connection) { rejected.push_back(connection.packed()); };
  }
  EventStore store{100, 2};
  std::vector<uint64_t> rejected;
  const ports::ConnectionId peer{7, 1};
};

}  // namespace

TEST_CASE("event_store__all_buffers_out__none_until_one_returns_and_then_that_one") {
  Met met;
  const auto first = met.store.take_buffer(), second = met.store.take_buffer();
  REQUIRE(first);
  REQUIRE(second);
  CHECK(*first != *second);
  CHECK(met.store.buffers_out());
  CHECK_FALSE(met.store.take_buffer());
  std::byte* const memory = met.store.buffer(*first).data();
  CHECK(met.store.buffer(*first).size() == 100);
  met.store.return_buffer(*first);
  CHECK_FALSE(met.store.buffers_out());
  const auto again = met.store.take_buffer();
  REQUIRE(again);
  CHECK(met.store.buffer(*again).data() == memory);
  CHECK_FALSE(met.store.take_buffer());
  met.store.set_buffers_max(3);
  CHECK(met.store.take_buffer());
}

TEST_CASE("event_store__a_request_let_go_undecided__is_rejected_once") {
  Met met;
  const auto id = met.store.add_request(met.peer, as_bytes("hello"));
  REQUIRE(id);
  CHECK(as_text(met.store.request(*id)->data) == "hello");
  met.store.end_request(*id);
  met.store.end_request(*id);
  CHECK(met.rejected == std::vector<uint64_t>{met.peer.packed()});
  CHECK(met.store.request(*id) == nullptr);
}

TEST_CASE("event_store__a_request_that_was_decided_or_whose_peer_went__is_not_rejected") {
  Met met;
  const auto decided = met.store.add_request(met.peer, {});
  met.store.decide(*met.store.request(*decided));
  const ports::ConnectionId other{8, 1};
  const auto gone = met.store.add_request(other, {});
  met.store.withdraw(other);
  CHECK(met.store.request(*gone)->gone);
  met.store.withdraw(met.peer);  // decided: nothing is left to withdraw
  CHECK_FALSE(met.store.request(*decided)->gone);
  met.store.end_request(*decided);
  met.store.end_request(*gone);
  CHECK(met.rejected.empty());
}

TEST_CASE("event_store__an_endpoint_that_is_gone__is_not_told") {
  Met met;
  const auto id = met.store.add_request(met.peer, {});
  met.store.reject = nullptr;
  met.store.end_request(*id);
  CHECK(met.rejected.empty());
}

TEST_CASE("event_store__more_requests_than_the_bound__are_not_taken") {
  Met met;
  std::optional<uint64_t> last;
  for (uint32_t i = 0; i < requests_max; ++i) REQUIRE((last = met.store.add_request({i, 1}, {})));
  CHECK_FALSE(met.store.add_request({requests_max, 1}, {}));
  met.store.end_request(*last);
  CHECK(met.store.add_request({requests_max, 1}, {}));
}

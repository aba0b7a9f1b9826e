// What waits for room on the connection to the next hop.
#include "routing/transport/hop_queue.h"

#include <catch2/catch.hpp>

using namespace ccixfer;
using namespace ccixfer::routing;

namespace {

struct Leaving {
  void flush() {
    hop.flush(
        [this](cci::Connection lower, Bytes bytes) {
          CHECK(lower == hop.connection());
          if (room == 0) return refusal;
          --room;
          gone.push_back(bytes.size());
          return Status::success;
        },
        [this](uint64_t flight) { flights.push_back(flight); });
  }
  HopQueue hop;
  size_t room = 0;
  Status refusal = Status::no_buffers;
  std::vector<size_t> gone;
  std::vector<uint64_t> flights;
};

std::vector<std::byte> of(size_t bytes) { return std::vector<std::byte>(bytes); }

}  // namespace

TEST_CASE("hop_queue__more_than_there_is_room_for__goes_in_order_as_room_comes") {
  Leaving leaving;
  leaving.hop.attach({});
  leaving.refusal = GENERATE(Status::no_buffers, Status::again);
  leaving.hop.push(of(1));
  leaving.hop.push_message(of(2), 7);
  leaving.hop.push_message(of(3), 8);
  CHECK(leaving.hop.size() == 3);
  leaving.room = 2;
  leaving.flush();
  CHECK(leaving.gone == std::vector<size_t>{1, 2});
  CHECK(leaving.flights == std::vector<uint64_t>{7});
  CHECK(leaving.hop.size() == 1);
  leaving.room = 1;
  leaving.flush();
  CHECK(leaving.gone.back() == 3);
  CHECK(leaving.flights.back() == 8);
  CHECK(leaving.hop.empty());
}

TEST_CASE("hop_queue__a_message_fails_below__those_behind_it_go_on") {
  Leaving leaving;
  leaving.hop.attach({});
  leaving.refusal = Status::disconnected;
  leaving.hop.push(of(1));
  leaving.hop.push(of(2));
  leaving.flush();
  CHECK(leaving.hop.empty());
}

TEST_CASE("hop_queue__without_a_connection__nothing_goes_and_what_waits_stays") {
  Leaving leaving;
  leaving.room = 9;
  leaving.hop.push(of(1));
  leaving.flush();
  CHECK_FALSE(leaving.hop.is_live());
  leaving.hop.attach({});
  CHECK(leaving.hop.is_live());
  leaving.hop.lose();
  leaving.flush();
  leaving.hop.attach({});
  leaving.hop.detach();
  leaving.flush();
  CHECK(leaving.gone.empty());
  leaving.hop.attach({});
  leaving.flush();
  CHECK(leaving.gone == std::vector<size_t>{1});
}

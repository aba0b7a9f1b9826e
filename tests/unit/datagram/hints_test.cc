// Each hint is told once, whatever becomes of the packets that carry it.
#include "transports/datagram/hints.h"

#include "tests/unit/datagram/rig.h"
#include "transports/datagram/limits.h"

namespace ccixfer::datagram::testing {
namespace {

TEST_CASE("hints_out__what_is_lost_goes_out_again_until_a_packet_with_it_is_acknowledged") {
  HintsOut out;
  CHECK_FALSE(out.due());
  out.push(7, 1);
  out.push(8, 2);
  const MailboxHintFrame first = out.take();
  CHECK(first.mailbox == 7);
  CHECK(first.epoch == 1);
  const MailboxHintFrame second = out.take();
  CHECK(second.number == first.number + 1);
  CHECK_FALSE(out.due());
  out.lost(first.number);
  REQUIRE(out.due());
  CHECK(out.take().mailbox == 7);
  // The first packet had only been slow: its acknowledgement comes, and the loss of the second copy means nothing.
  out.acked(first.number);
  out.lost(first.number);
  CHECK_FALSE(out.due());
  // An acknowledgement takes back what is already due again.
  out.lost(second.number);
  REQUIRE(out.due());
  out.acked(second.number);
  CHECK_FALSE(out.due());
}

TEST_CASE("hints_out__as_many_as_may_be_outstanding__the_oldest_missing_holds_the_window") {
  HintsOut out;
  for (uint64_t i = 0; i < hints_outstanding_max; ++i) out.push(i, 0);
  uint64_t taken = 0;
  for (; out.due(); ++taken) CHECK(out.take().number == taken);
  CHECK(taken == hints_outstanding_max);
  for (uint64_t number = 1; number < taken; ++number) out.acked(number);
  out.push(1, 1);
  CHECK_FALSE(out.due());
  out.acked(0);
  out.push(1, 1);
  REQUIRE(out.due());
  CHECK(out.take().number == hints_outstanding_max);
}

TEST_CASE("hints_in__each_number_once_in_any_order_and_none_beyond_the_window") {
  HintsIn in;
  CHECK(in.arrived(1));
  CHECK_FALSE(in.arrived(1));
  CHECK(in.arrived(0));
  CHECK_FALSE(in.arrived(0));
  CHECK_FALSE(in.arrived(1));
  CHECK_FALSE(in.arrived(2 + hints_outstanding_max));
  CHECK(in.arrived(1 + hints_outstanding_max));
  CHECK(in.arrived(2));
  CHECK(in.arrived(2 + hints_outstanding_max));
  CHECK_FALSE(in.arrived(~uint64_t{0}));
}

}  // namespace
}  // namespace ccixfer::datagram::testing

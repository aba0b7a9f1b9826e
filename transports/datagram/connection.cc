#include "transports/datagram/connection.h"

#include "core/base/check.h"
#include "transports/datagram/frames.h"
#include "transports/datagram/limits.h"
#include "transports/datagram/packet_length.h"
#include "transports/datagram/packets.h"

namespace ccixfer::datagram {

void Connection::wake() {
  work_ = std::make_unique<Work>();
  datagram::go_on(*work_, resting_);
  if (terms != nullptr) work_->sent.leave_out_numbers(terms->secrets->secret(local_key));
  if (packet_bytes != 0) {
    work_->path = std::make_unique<reliability::PathMtu>(packet_bytes_base, datagram_bytes);
    work_->path->go_on(packet_bytes, resting_.path_search_at);
  }
  if (datagram_bytes != 0) begin_sending();  // the round trip may be long ago: what is recalled waits for another
  if (sends_max != 0) open_machines();
}

void Connection::begin_sending() {
  Work& sending = work();
  sending.congestion = reliability::make_congestion_control(terms->congestion, packet_bytes, local_key);
  sending.pacer = reliability::Pacer(burst_datagrams_least * packet_bytes, burst_datagrams_most * packet_bytes);
  if (rtt.known()) sending.congestion->round_trip(rtt.latest(), rtt.smoothed(), terms->now);
  if (terms->paths == nullptr) return;
  if (const auto known = terms->paths->recall(terms->net->host_of(address))) sending.congestion->recall(*known);
}

void Connection::open_machines() {
  Work& opened = work();
  const uint32_t chunk_bytes = chunk_bytes_of(datagram_bytes, secured != nullptr);
  opened.messages.open(sends_max, attribute);
  opened.incoming.open(sends_max, attribute, terms->held_bytes);
  opened.rma.open(rmas_max, chunk_bytes);
  opened.served.open(rmas_max, chunk_bytes, id.packed());
  apply_packet_length(*this);
}

bool Connection::may_rest() const {
  const bool is_settled = state == State::open && !left && !cancelled && (secured == nullptr || secured->is_confirmed());
  return is_settled && work_ != nullptr && work_->is_quiet();
}

void Connection::rest() {
  CHECK(may_rest());
  resting_ = datagram::rest(*work_);
  work_.reset();
  if (secured != nullptr) secured->rest();
}

}  // namespace ccixfer::datagram

#include "app/recv/arrivals.h"

#include <utility>

namespace ccixfer::recv {

using session::SegmentHeader;
using session::SegmentKind;

void Arrivals::receive(ReceivedSegment arrival, const Feed& feed) {
  if (session_.has_failed() || !end_.is_started()) return feed.inbox.release(arrival);
  const Bytes segment = Bytes(arrival.buffer.bytes()).first(static_cast<size_t>(arrival.length_bytes));
  const Result<SegmentHeader> header = arrival.header;
  if (!header) {
    feed.handler.ask_for_put(arrival.lane_session, arrival.n);
    return feed.inbox.release(arrival);
  }
  if (header->session != feed.session || header->lane_session != arrival.lane_session || header->n != arrival.n) {
    // Bytes that belong elsewhere are as good as damaged: the put that has its place here is still
    // to come.
    session_.reject("a segment of another session, lane or number");
    feed.handler.ask_for_put(arrival.lane_session, arrival.n);
    return feed.inbox.release(arrival);
  }
  session_.made_progress();
  liveness_.answered();
  results_.received(header->data_bytes);
  if (const std::optional<Error> beyond = budget_.received(header->content_bytes())) {
    feed.inbox.release(arrival);
    return session_.refuse(*beyond);
  }
  switch (header->kind) {
    case SegmentKind::void_:
      return feed.inbox.release(arrival);
    case SegmentKind::entries:
      feed.lists ? entries_.receive(segment, *header) : session_.reject("entries of a helper, which lists nothing");
      return feed.inbox.release(arrival);
    case SegmentKind::pack:
    case SegmentKind::piece:
      return feed.intake.receive(std::move(arrival), *header, entries_.next_index());
  }
}

}  // namespace ccixfer::recv

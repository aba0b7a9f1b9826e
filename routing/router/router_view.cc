#include "routing/router/router_view.h"

#include "routing/router/relayed_connection.h"

namespace ccixfer::routing {

ConnectionView view_of(const RelayedConnection& connection) {
  ConnectionView view;
  view.id = connection.ref(0);
  if (connection.phase == ConnectionPhase::open) view.step = ConnectionStep::open;
  if (connection.phase == ConnectionPhase::closing) view.step = ConnectionStep::closing;
  view.devices = {connection.legs[0].device, connection.legs[1].device};
  view.bytes = connection.forwarded_bytes;
  view.fragments = connection.fragments.known();
  view.buffers = connection.fragments.buffers();
  // The watch looks at whom a buffer is out to, and what it saw before counts no more.
  if (view.buffers > 0) {
    view.stands = connection.progress.stands;
    view.stands_leg = connection.progress.stands_leg;
    view.stands_taking = connection.progress.stands_taking;
  }
  return view;
}

}  // namespace ccixfer::routing

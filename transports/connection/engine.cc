#include "transports/connection/engine.h"

namespace ccixfer::connection {

bool offer_is_usable(const wire::Offer& offer) {
  return offer.max_send_bytes >= ports::max_send_bytes_floor && offer.sends_in_flight_max > 0 && offer.rmas_in_flight_max > 0;
}

}  // namespace ccixfer::connection

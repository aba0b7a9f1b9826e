// The connection engine as this transport uses it. Private to this room.
#pragma once
#include "transports/connection/engine.h"
#include "transports/rdma/connection.h"

namespace ccixfer::rdma {

class Driver;
using Engine = connection::Engine<Driver, Connection>;

}  // namespace ccixfer::rdma

extern template class ccixfer::connection::Engine<ccixfer::rdma::Driver, ccixfer::rdma::Connection>;

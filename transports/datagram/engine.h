// The engine of connections over datagrams. Private to this room.
#pragma once
#include "transports/connection/engine.h"
#include "transports/datagram/connection.h"

namespace ccixfer::datagram {

class Driver;
using Engine = connection::Engine<Driver, Connection>;

}  // namespace ccixfer::datagram

extern template class ccixfer::connection::Engine<ccixfer::datagram::Driver, ccixfer::datagram::Connection>;

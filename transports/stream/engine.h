// The engine of connections over byte streams. Private to this room.
#pragma once
#include "transports/connection/engine.h"
#include "transports/stream/connection.h"

namespace ccixfer::stream {

class Driver;
using Engine = connection::Engine<Driver, Connection>;

}  // namespace ccixfer::stream

extern template class ccixfer::connection::Engine<ccixfer::stream::Driver, ccixfer::stream::Connection>;

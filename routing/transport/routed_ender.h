// Ends a routed connection: what the parts that work for one ask for when they cannot go on. After
// the call the connection is `leaving`, or gone if it was being dialled, so the caller returns.
#pragma once
#include <string_view>

#include "routing/transport/routed_connection.h"

namespace ccixfer::routing {

class RoutedEnder {
 public:
  // `tell_peer`: the far end does not know yet.
  virtual void close(RoutedConnection& connection, Status status, std::string_view reason, bool tell_peer) = 0;
  // The peer broke the rules. It is counted, and both ends are told.
  virtual void reject(RoutedConnection& connection, std::string_view why) = 0;

 protected:
  ~RoutedEnder() = default;
};

}  // namespace ccixfer::routing

// Ends a relayed connection: what the parts that work for one ask for when they cannot go on. The
// connection stays in its table until its peers were told, so whoever called sees its phase
// `closing`; its fragments may be gone.
#pragma once
#include <string_view>

#include "routing/router/relayed_connection.h"

namespace ccixfer::routing {

class ConnectionEnder {
 public:
  // `told_by`: the leg whose peer knows already, because it said so or is gone; or nobody.
  virtual void close(RelayedConnection& connection, Status status, std::string_view reason, int told_by) = 0;
  // A peer broke the rules. It is counted, and both are told.
  virtual void reject(RelayedConnection& connection, std::string_view why) = 0;

 protected:
  ~ConnectionEnder() = default;
};

}  // namespace ccixfer::routing

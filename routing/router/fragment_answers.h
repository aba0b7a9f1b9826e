// What a router says of a fragment to its two neighbours. It decides nothing: the FragmentForwarder does.
// Each call may end the connection, as MessageRelay::post may.
#pragma once
#include "routing/router/fragment.h"
#include "routing/router/message_relay.h"

namespace ccixfer::routing {

class FragmentAnswers {
 public:
  explicit FragmentAnswers(MessageRelay& relay) : relay_(relay) {}
  // To where the data came from: the memory behind its handle is free.
  void taken(RelayedConnection& connection, const FragmentOffer& offer);
  // To the initiator of a write, which is where the data came from.
  void acknowledge(RelayedConnection& connection, const FragmentOffer& offer, ports::OperationResult ending);
  // To whoever asked for it: a read's initiator is where the data would have gone.
  void failed(RelayedConnection& connection, const FragmentOffer& offer, ports::OperationResult ending);
  // To where it goes: the data wait behind a handle of ours, and have crossed one router more.
  void offer_on(RelayedConnection& connection, const FragmentOffer& offer, const ports::Handle& exposed);

 private:
  MessageRelay& relay_;
};

}  // namespace ccixfer::routing

#include "routing/router/fragment_answers.h"

#include <utility>

namespace ccixfer::routing {
namespace {

uint8_t where_it_goes(const FragmentOffer& offer) { return static_cast<uint8_t>(1 - offer.from); }

}  // namespace

void FragmentAnswers::taken(RelayedConnection& connection, const FragmentOffer& offer) {
  if (offer.from_end) return;
  std::vector<std::byte> message;
  encode(FragmentReleased{offer.cookie, offer.of_read}, message);
  relay_.post(connection, offer.from, std::move(message));
}

void FragmentAnswers::acknowledge(RelayedConnection& connection, const FragmentOffer& offer, ports::OperationResult ending) {
  std::vector<std::byte> message;
  encode(FragmentAck{offer.cookie, ending}, message);
  relay_.post(connection, offer.from, std::move(message));
}

void FragmentAnswers::failed(RelayedConnection& connection, const FragmentOffer& offer, ports::OperationResult ending) {
  if (!offer.of_read) return acknowledge(connection, offer, ending);
  FragmentMessage reply;
  reply.kind = MessageKind::read_reply;
  reply.cookie = offer.cookie;
  reply.ending = ending;
  std::vector<std::byte> message;
  encode(reply, message);
  relay_.post(connection, where_it_goes(offer), std::move(message));
}

void FragmentAnswers::offer_on(RelayedConnection& connection, const FragmentOffer& offer, const ports::Handle& exposed) {
  FragmentMessage message;
  message.kind = offer.of_read ? MessageKind::read_reply : MessageKind::write_request;
  message.cookie = offer.cookie;
  message.length_bytes = offer.length_bytes;
  message.data_class = static_cast<uint8_t>(offer.data_class + 1);
  message.exposed = exposed;
  message.remote = offer.remote;
  std::vector<std::byte> bytes;
  encode(message, bytes);
  relay_.post(connection, where_it_goes(offer), std::move(bytes));
}

}  // namespace ccixfer::routing

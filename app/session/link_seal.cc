#include "app/session/link_seal.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "app/session/control.h"
#include "app/session/message_wire.h"
#include "core/base/check.h"

namespace ccixfer::session {

using Use = trust::SealKey::Use;

namespace {

// Of an Abort without a seal, only what a refused handshake can mean. Anybody on the way can write one.
Abort believed(const Abort& abort) {
  switch (abort.kind) {
    case ErrorKind::authentication:
    case ErrorKind::protocol:
    case ErrorKind::network:
    case ErrorKind::interrupted:
      return abort;
    default:
      return {ErrorKind::network, abort.message};
  }
}

}  // namespace

LaneSeal::LaneSeal(const SessionKeys& keys, uint16_t lane, uint64_t dial)
    : out_(keys.lane_messages(lane, dial, Use::seal)), in_(keys.lane_messages(lane, dial, Use::open)) {}

std::vector<std::byte> LaneSeal::seal(Bytes encoded) { return seal_message(out_, SealedChannel::lane, next_out_++, encoded); }

std::optional<std::vector<std::byte>> LaneSeal::open(Bytes bytes) {
  const std::optional<SealedHead> head = sealed_head(bytes);
  if (!head || head->channel != SealedChannel::lane || head->number != next_in_) return std::nullopt;
  ++next_in_;
  return open_message(in_, bytes);
}

std::vector<Message> LinkSeal::start(bool dialled) {
  if (handshake_) return {};
  dialled_ = dialled;
  trust::HandshakeOptions options{.side = dialled ? trust::HandshakeSide::dialler : trust::HandshakeSide::acceptor,
                                  .identity = setup_.identity,
                                  .authority = setup_.authority,
                                  .wall_time_s = setup_.wall_time_s(),
                                  .prefers = std::nullopt};
  handshake_ = std::make_unique<trust::Handshake>(std::move(options));
  if (!dialled) return {};
  const Result<void> begun = handshake_->step({});
  CHECK(begun);  // nothing of the peer is in it
  return flight();
}

std::vector<Message> LinkSeal::flight() {
  const std::vector<std::byte> bytes = handshake_->take_output();
  std::vector<Message> parts;
  for (size_t at = 0; at < bytes.size(); at += handshake_part_bytes_max) {
    const Bytes part = Bytes(bytes).subspan(at, std::min(handshake_part_bytes_max, bytes.size() - at));
    parts.emplace_back(HandshakePart{std::string(as_text(part))});
  }
  parts_out_ += static_cast<uint32_t>(parts.size());
  return parts;
}

Result<void> LinkSeal::step(const HandshakePart& part, std::vector<Message>& out) {
  if (!handshake_) return fail(ErrorKind::protocol, "a handshake before there is a lane");
  if (is_done()) {  // the alert of a peer that refused us: its Abort has the words
    part_after_keys_ = true;
    return {};
  }
  ++parts_in_;
  const Result<void> stepped = handshake_->step(as_bytes(part.bytes));
  out = flight();
  if (!stepped || !handshake_->done()) return stepped;
  keys_ = std::make_unique<SessionKeys>(*handshake_, dialled_);
  out_.emplace(keys_->messages(parts_out_, Use::seal));
  in_.emplace(keys_->messages(parts_in_, Use::open));
  return {};
}

std::vector<std::byte> LinkSeal::seal(uint64_t sequence, Bytes encoded) {
  return seal_message(*out_, SealedChannel::session, sequence, encoded);
}

LaneSeal& LinkSeal::of(LaneSealing& lane) const {
  CHECK(is_done());
  if (!lane.seal) lane.seal.emplace(*keys_, lane.lane, lane.dial);
  return *lane.seal;
}

Result<Decoded> LinkSeal::take(Bytes bytes, LaneSealing& lane, const ControlReceiver& receiver) {
  if (!is_sealed_message(bytes)) return take_plain(bytes, receiver);
  const std::optional<SealedHead> head = sealed_head(bytes);
  if (!head) return fail(ErrorKind::protocol, "sealed message: malformed");
  if (!is_done()) return fail(ErrorKind::protocol, "a sealed message before the handshake");
  if (part_after_keys_) return fail(ErrorKind::integrity, "a handshake part was put before a sealed message");
  if (head->channel == SealedChannel::lane) return open_lane_message(bytes, lane);
  return open_session_message(bytes, head->number);
}

Result<Decoded> LinkSeal::open_session_message(Bytes bytes, uint64_t number) {
  const std::optional<std::vector<std::byte>> text = open_message(*in_, bytes);
  if (!text) return fail(ErrorKind::integrity, "a message was changed on its way");
  peer_has_keys_ = true;
  Result<Decoded> decoded = decode(*text);
  if (!decoded) return decoded;
  if (decoded->sequence != number || std::holds_alternative<HandshakePart>(decoded->message)) {
    return fail(ErrorKind::protocol, "sealed message: malformed");
  }
  return decoded;
}

Result<Decoded> LinkSeal::open_lane_message(Bytes bytes, LaneSealing& lane) const {
  const std::optional<std::vector<std::byte>> text = of(lane).open(bytes);
  if (!text) return fail(ErrorKind::integrity, "a message was changed on its way");
  Result<Decoded> decoded = decode(*text);
  if (decoded && !is_lane_message(decoded->message)) return fail(ErrorKind::protocol, "sealed message: malformed");
  return decoded;
}

// Before the peer has shown that it has the keys, the handshake and the words of a peer that refuses us are heard.
Result<Decoded> LinkSeal::take_plain(Bytes bytes, const ControlReceiver& receiver) const {
  Result<Decoded> plain = decode(bytes);
  if (!plain || receiver.had(plain->sequence)) return plain;
  auto* abort = std::get_if<Abort>(&plain->message);
  if (peer_has_keys_ || (abort == nullptr && !std::holds_alternative<HandshakePart>(plain->message))) {
    return fail(ErrorKind::protocol, "a message without its seal");
  }
  if (plain->sequence != receiver.next()) return fail(ErrorKind::integrity, "a message without its seal came out of its order");
  if (abort != nullptr) *abort = believed(*abort);
  return plain;
}

TransferId LinkSeal::transfer_key(const TransferId& transfer) const {
  CHECK(is_done());
  std::array<uint8_t, sizeof(TransferId) + sizeof(trust::PeerId::sha256)> named;
  std::copy_n(peer().id.sha256.begin(), peer().id.sha256.size(), std::copy_n(transfer.begin(), transfer.size(), named.begin()));
  const trust::Mac digest = trust::mac({}, std::as_bytes(std::span(named)));
  TransferId key;
  std::copy_n(digest.begin(), key.size(), key.begin());
  return key;
}

void LinkSeal::prove(Hello& hello) {
  CHECK(is_done() && hello.session != 0);
  hello.dial = ++dials_;
  hello.proof = keys_->lane_proof(hello);
}

LaneAdmission LinkSeal::admits(const Hello& hello) {
  if (!is_done() || hello.dial == 0 || !trust::equal(keys_->lane_proof(hello), std::as_bytes(std::span(hello.proof)))) {
    return LaneAdmission::stranger;
  }
  if (last_dials_.size() <= hello.lane) last_dials_.resize(size_t{hello.lane} + 1);
  const uint64_t before = std::exchange(last_dials_[hello.lane], std::max(last_dials_[hello.lane], hello.dial));
  return hello.dial > before ? LaneAdmission::admitted : LaneAdmission::repeated;
}

}  // namespace ccixfer::session

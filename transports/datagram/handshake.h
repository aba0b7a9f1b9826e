// How connections over datagrams begin. The acceptor remembers nothing of a hello until the dialler has shown, by its cookie, that
// it receives at the address that the hello names; then at most pending_requests_max that are not decided.
// Private to this room; single-threaded.
#pragma once
#include <map>

#include "core/ports/entropy.h"
#include "transports/datagram/cookie_jar.h"
#include "transports/datagram/engine.h"
#include "transports/datagram/known_hellos.h"
#include "transports/datagram/outbox.h"

namespace ccixfer::datagram {

class Handshake {
 public:
  // `datagram_bytes`: what we offer to peers. `congestion`: of the connections that it begins.
  Handshake(Engine& engine, Outbox& outbox, ports::Entropy& entropy, uint32_t datagram_bytes, reliability::Congestion congestion)
      : engine_(engine),
        outbox_(outbox),
        entropy_(entropy),
        cookies_(entropy),
        datagram_bytes_(datagram_bytes),
        congestion_(congestion) {}

  void dialling(Connection& c, uint64_t query);
  void resolved(uint64_t query, Status status, const Address& address, std::string_view reason);
  void send_hello(Connection& c);
  void on_hello(const Address& from, const Packet& packet, size_t datagram_size);
  void on_retry(const Address& from, const Packet& packet);
  void on_refuse(const Address& from, const Packet& packet);
  void on_hello_reply(Connection& c, const PacketHeader& header, const HelloReplyFrame& frame);
  void opened_by_dialler(Connection& c);  // the peer knows that we accepted
  void released(const Connection& c);
  [[nodiscard]] size_t held_bytes() const { return held_bytes_; }  // of messages that came before their turn, of all connections

 private:
  void refuse(const Address& from, const PacketHeader& hello, Status status, std::string_view reason);
  void retry(const Address& from, const PacketHeader& hello);
  [[nodiscard]] bool fits(const Address& from, const PacketHeader& header, const Hello& hello);  // else it has been answered
  void agree(Connection& c, const wire::Offer& theirs, uint32_t their_datagram_bytes);
  [[nodiscard]] uint64_t new_key();

  Engine& engine_;
  Outbox& outbox_;
  ports::Entropy& entropy_;
  CookieJar cookies_;
  const uint32_t datagram_bytes_;
  const reliability::Congestion congestion_;
  KnownHellos hellos_;
  std::map<uint64_t, uint32_t> by_query_;  // names that the network looks up
  size_t held_bytes_ = 0;
};

}  // namespace ccixfer::datagram

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
#include "transports/datagram/proof.h"

namespace ccixfer::datagram {

class Handshake {
 public:
  // `datagram_bytes`: what we offer to peers. `congestion`: of the connections that it begins.
  Handshake(Engine& engine, Outbox& outbox, DatagramNet& net, Proof& proof, ports::Entropy& entropy, uint32_t datagram_bytes,
            reliability::Congestion congestion, std::shared_ptr<reliability::PathMemory> paths)
      : engine_(engine),
        outbox_(outbox),
        net_(net),
        proof_(proof),
        entropy_(entropy),
        cookies_(entropy),
        datagram_bytes_(datagram_bytes) {
    terms_.paths = std::move(paths);
    terms_.net = &net;
    terms_.secrets = &cookies_;
    terms_.congestion = congestion;
  }

  void begin_turn(Instant now) { terms_.now = now; }

  void dialling(Connection& c, uint64_t query);
  void resolved(uint64_t query, Status status, const Address& address, std::string_view reason);
  void send_hello(Connection& c);
  void on_hello(const Address& from, const Packet& packet, size_t datagram_size);
  void on_retry(const Address& from, const Packet& packet);
  void on_refuse(const Address& from, const Packet& packet);
  void on_handshake(const Address& from, const Packet& packet);
  [[nodiscard]] GreetingFrame greeting(const Connection& c);  // valid until the next one
  void on_greeting(Connection& c, const GreetingFrame& frame);
  void on_hello_reply(Connection& c, const PacketHeader& header, const HelloReplyFrame& frame);
  void opened_by_dialler(Connection& c);         // the peer knows that we accepted
  void moved(Connection& c, const Address& to);  // the peer is there now
  // Whether it can be told.
  [[nodiscard]] static bool say_end(Connection& c, const connection::Parting& parting);
  void released(const Connection& c);
  void remember_path(const Connection& c) const;                         // before the connection forgets it
  [[nodiscard]] size_t held_bytes() const { return terms_.held_bytes; }  // of messages that came before their turn

 private:
  void refuse(const Address& from, const PacketHeader& hello, Status status, std::string_view reason);
  void retry(const Address& from, const PacketHeader& hello);
  [[nodiscard]] static std::optional<wire::EndNotice> objection_to(const Hello& hello);
  [[nodiscard]] Hello hello_of(const Connection& c) const;
  [[nodiscard]] Connection& admit(const Address& from, const PacketHeader& header, const Hello& hello, State state);
  void agree_on_packets(Connection& c, uint32_t their_datagram_bytes);
  void begin_path(Connection& c);
  void agree(Connection& c, const wire::Offer& theirs);
  void requested(Connection& c, const Hello& hello);
  [[nodiscard]] uint64_t new_key();

  Engine& engine_;
  Outbox& outbox_;
  DatagramNet& net_;
  Proof& proof_;
  ports::Entropy& entropy_;
  CookieJar cookies_;
  const uint32_t datagram_bytes_;
  KnownHellos hellos_;
  std::map<uint64_t, uint32_t> by_query_;  // names that the network looks up
  Terms terms_;
  std::vector<std::byte> greeting_;
};

}  // namespace ccixfer::datagram

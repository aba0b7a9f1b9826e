// What the datagram transport needs of a network: send a datagram to an address, tell what came. udp will implement it with a
// socket, sim with a seeded world. Names are this network's own (sim-datagram://NODE:PORT). Contract: nonblocking; a datagram may
// be lost, doubled, damaged, delayed, overtaken. After send said `again`, writable() of the events follows when that changes.
// Single-threaded.
#pragma once
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/status.h"
#include "core/base/time.h"

namespace ccixfer::datagram {

// Of a network's own making; equal when the same peer is meant.
struct Address {
  uint64_t high = 0;
  uint64_t low = 0;
  uint32_t port = 0;
  uint32_t scope = 0;
  friend auto operator<=>(const Address&, const Address&) = default;
};

class DatagramEvents {
 public:
  virtual ~DatagramEvents() = default;
  virtual void received(const Address& from, Bytes datagram) = 0;
  // The end of resolve(): success, or not_found.
  virtual void resolved(uint64_t query, Status status, const Address& address, std::string_view reason) = 0;
  virtual void writable() = 0;
};

class DatagramNet {
 public:
  virtual ~DatagramNet() = default;
  [[nodiscard]] virtual std::string_view scheme() const = 0;
  [[nodiscard]] virtual std::string uri() const = 0;                         // what a peer dials; "" when it takes no strangers
  [[nodiscard]] virtual uint32_t datagram_bytes_max() const = 0;             // that it carries; at least datagram_bytes_min
  [[nodiscard]] virtual Result<uint64_t> resolve(std::string_view uri) = 0;  // usage: malformed; else a query, never 0
  // false: again later. True says nothing about its arrival.
  [[nodiscard]] virtual bool send(const Address& to, Bytes datagram) = 0;
  virtual void poll(Instant now, DatagramEvents& events) = 0;
  virtual void set_deadline(Instant at) = 0;  // turn again at `at` at the latest
  [[nodiscard]] virtual int os_handle() const = 0;
};

}  // namespace ccixfer::datagram

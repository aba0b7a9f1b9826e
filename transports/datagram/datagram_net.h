// What the datagram transport needs of a network: send datagrams to addresses, tell what came. udp
// implements it with a socket, sim with a seeded world. Names are this network's own
// (udp://HOST:PORT, sim-datagram://NODE:PORT). Contract: nonblocking; a datagram may be lost, doubled, damaged,
// delayed, overtaken. Single-threaded.
//
// Both ways datagrams go in batches, so that a network with system calls needs one for many packets
// (sendmmsg, recvmmsg). A network may also hand neighbours in a batch that have one address and one
// length to its host as one piece (GSO), and take such a piece apart for received() (GRO).
#pragma once
#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "core/base/bytes.h"
#include "core/base/result.h"
#include "core/base/status.h"
#include "core/base/time.h"

namespace ccixfer::datagram {

inline constexpr size_t batch_datagrams_max = 64;  // in one call, either way

// Of a network's own making; equal when the same peer is meant.
struct Address {
  uint64_t high = 0;
  uint64_t low = 0;
  uint32_t port = 0;
  uint32_t scope = 0;
  // Of a peer that sent something: which of our addresses it sent to, so that the answer comes from there. Both 0: not known. It
  // does not tell peers apart.
  uint64_t our_high = 0;
  uint64_t our_low = 0;
  [[nodiscard]] auto peer() const { return std::tie(high, low, port, scope); }
  friend bool operator==(const Address& a, const Address& b) { return a.peer() == b.peer(); }
  friend auto operator<=>(const Address& a, const Address& b) { return a.peer() <=> b.peer(); }
};

// One of a batch. The bytes belong to the caller and are valid during the call only.
struct Datagram {
  Address peer;  // to whom it goes, or from whom it came
  Bytes bytes;
};

// What became of a batch that was to be sent: the network took the first `taken`, which says
// nothing about their arrival. It may stop at any of them.
struct Sent {
  enum class Stop : uint8_t {
    none,    // all are taken; or the rest is worth another call
    again,   // no room: nothing more is taken until writable()
    failed,  // the network refuses the first that is not taken, whatever happens: it counts as lost
  };
  size_t taken = 0;
  Stop stop = Stop::none;
  int error = 0;  // failed: why, as an errno
};

// A group of receivers (multicast), as one end of this network takes part in it.
struct Group {
  Address address;              // to which what is sent to it goes
  uint32_t datagram_bytes = 0;  // what one datagram to it carries
};

class DatagramEvents {
 public:
  virtual ~DatagramEvents() = default;
  virtual void received(std::span<const Datagram> batch) = 0;
  // The end of resolve(): success, not_found, unreachable (this end has no way to such an address), busy.
  virtual void resolved(uint64_t query, Status status, const Address& address, std::string_view reason) = 0;
  // To a group that was joined as `member`. It is from anybody, and `peer` is who seems to have sent it.
  virtual void received_of_group(uint32_t member, std::span<const Datagram> batch) {
    static_cast<void>(member), static_cast<void>(batch);
  }
  virtual void writable() = 0;
  virtual void device_failed(std::string_view reason) {
    static_cast<void>(reason);
  }  // it carries nothing any more, for good or not
};

class DatagramNet {
 public:
  virtual ~DatagramNet() = default;
  [[nodiscard]] virtual std::string_view scheme() const = 0;
  [[nodiscard]] virtual std::string host_of(const Address& address) const = 0;  // without the port, for people and counters
  // With it, for people.
  [[nodiscard]] virtual std::string uri_of(const Address& address) const {
    return std::string(scheme()).append("://").append(host_of(address)).append(":").append(std::to_string(address.port));
  }
  [[nodiscard]] virtual std::string uri() const = 0;                   // what a peer dials; "" when it takes no strangers
  [[nodiscard]] virtual bool takes_strangers() const { return true; }  // false: nobody may dial this end
  [[nodiscard]] virtual uint32_t datagram_bytes_max() const = 0;       // that it ever carries; at least datagram_bytes_min
  // Whether datagrams of datagram_bytes_max should reach this peer. Then a connection looks for a shorter length only when they get
  // lost. Otherwise each connection finds out what its path carries: longer datagrams are lost, and packet_bytes_base always pass.
  [[nodiscard]] virtual bool knows_path(const Address& /*peer*/) const { return true; }
  // The longest message is what one datagram of so many bytes carries.
  [[nodiscard]] virtual uint32_t message_datagram_bytes() const { return datagram_bytes_max(); }
  [[nodiscard]] virtual Result<uint64_t> resolve(std::string_view uri) = 0;  // usage: malformed; else a query, never 0
  virtual void forget(uint64_t /*query*/) {}  // nobody needs the end of this query any more, and it may never be told
  // 1 to batch_datagrams_max of them, in this order. Takes at least one, unless it says why not.
  [[nodiscard]] virtual Sent send(std::span<const Datagram> batch) = 0;
  // The same for the last words of a transport that is being destroyed: there will be no writable()
  // for it, so the network waits a moment for room instead of saying `again`.
  virtual void send_last(std::span<const Datagram> batch) = 0;
  // Groups. usage: not the name of one, network: this end cannot take part. What a member gets it gets by received_of_group() only,
  // until it leaves; that is not called from within poll().
  [[nodiscard]] virtual bool has_groups() const { return false; }
  [[nodiscard]] virtual Result<Group> group(std::string_view uri);  // to send to
  [[nodiscard]] virtual Result<Group> join_group(std::string_view uri, uint32_t member);
  virtual void leave_group(uint32_t member) { static_cast<void>(member); }
  virtual void poll(Instant now, DatagramEvents& events) = 0;
  virtual void set_deadline(Instant at) = 0;  // turn again at `at` at the latest
  [[nodiscard]] virtual int os_handle() const = 0;
};

inline Result<Group> DatagramNet::group(std::string_view /*uri*/) { return fail(ErrorKind::usage, "this network has no groups"); }
inline Result<Group> DatagramNet::join_group(std::string_view uri, uint32_t /*member*/) { return group(uri); }

}  // namespace ccixfer::datagram

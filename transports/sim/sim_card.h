// A simulated network card that checks keys, as cards with RDMA do: memory is registered with it, within limits, and it moves only
// bytes of registered memory. It sees every operation of its end and every access of a peer. Whoever asks it for anything else has
// a bug: the card fails the operation, its connection breaks, and the world notes a violation.
// Deviation: a card knows a remote key and no mailbox. What the target's own table refuses (a stale handle, an access that is not
// granted) never gets here, as over such networks the target is asked before a key is used; and a put into a mailbox is placed by
// the target's software, in whatever memory.
// Single-threaded. Bounds: CardLimits.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/bytes.h"
#include "core/base/status.h"
#include "core/ports/memory_registration.h"
#include "core/ports/rma_target.h"
#include "transports/sim/world.h"

namespace ccixfer::sim {

struct CardLimits {
  uint32_t regions_max = 1u << 20;
  uint64_t bytes_max = UINT64_MAX;  // memory that may be locked, of all regions together
};

class Card {
 public:
  Card(World& world, std::string name, const CardLimits& limits) : world_(world), name_(std::move(name)), limits_(limits) {}

  [[nodiscard]] Status add(MutableBytes memory, ports::MemoryAccess access, ports::MemoryKey& key);  // no_memory: a limit
  void remove(ports::MemoryKey key);

  // An operation of this end, which names this key for this memory. false: a violation.
  [[nodiscard]] bool begin(ports::MemoryKey key, Bytes memory, bool we_write);
  void end(ports::MemoryKey key);
  // An access of a peer. false: a violation.
  [[nodiscard]] bool lets_peer(Bytes memory, bool write);
  [[nodiscard]] uint32_t regions() const { return static_cast<uint32_t>(regions_.size()); }

 private:
  struct Region {
    MutableBytes memory;
    ports::MemoryAccess access;
    uint32_t operations = 0;  // of ours, in flight
    [[nodiscard]] bool covers(Bytes part) const {
      return part.data() >= memory.data() && part.data() + part.size() <= memory.data() + memory.size();
    }
  };
  bool violated(const std::string& what);

  World& world_;
  const std::string name_;
  const CardLimits limits_;
  std::map<uint64_t, Region> regions_;  // by key; none is used twice
  uint64_t next_key_ = 1;
  uint64_t bytes_ = 0;
};

// What peers reach of an end's memory, as its card lets them.
class CardTarget final : public ports::RmaTarget {
 public:
  // A connection over which the card was asked for something wrong.
  using Breaks = std::function<void(uint64_t connection)>;
  CardTarget(ports::RmaTarget& target, Card& card, Breaks breaks) : target_(target), card_(card), breaks_(std::move(breaks)) {}

  ports::Admission begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) override;
  MutableBytes write_span(ports::Ticket ticket, uint64_t at_bytes) override;
  ports::OperationResult end_write(ports::Ticket ticket, bool complete) override;
  ports::Admission begin_read(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) override;
  Bytes read_span(ports::Ticket ticket, uint64_t at_bytes) override;
  void end_read(ports::Ticket ticket) override;
  bool lend(ports::Ticket ticket) override { return target_.lend(ticket); }
  void set_lender(ports::Lender* lender) override { target_.set_lender(lender); }
  [[nodiscard]] bool wanted_back(ports::Ticket ticket) const override { return target_.wanted_back(ticket); }
  [[nodiscard]] uint64_t wants() const override { return target_.wants(); }
  [[nodiscard]] bool read_waits(ports::Ticket ticket, uint64_t at_bytes, uint64_t size_bytes) const override {
    return target_.read_waits(ticket, at_bytes, size_bytes);
  }
  [[nodiscard]] bool hint_waits() const override { return target_.hint_waits(); }
  std::optional<ports::Hint> next_hint() override { return target_.next_hint(); }

 private:
  void note(uint64_t connection, const ports::RemoteRef& target, const ports::Admission& admission);
  [[nodiscard]] bool lets(ports::Ticket ticket, Bytes memory, bool write);

  ports::RmaTarget& target_;
  Card& card_;
  Breaks breaks_;
  std::unordered_map<uint64_t, uint64_t> connections_;  // by ticket, of regions
};

}  // namespace ccixfer::sim

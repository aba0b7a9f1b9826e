// Registered regions and mailboxes of an endpoint: resolves (handle, offset, length) to memory. The one RmaTarget. A routing
// endpoint shares it with the endpoints below it, so that a router's last hop reaches the application's memory.
// Source: CCI §IV.D (handles are opaque and of one size; access and bounds are checked at the target).
#pragma once
#include <memory>

#include "core/base/counters.h"
#include "core/base/time.h"
#include "core/ports/entropy.h"
#include "core/ports/fill_progress.h"
#include "core/ports/handle.h"
#include "core/ports/rma_target.h"
#include "core/ports/transport.h"
#include "core/rvma/mailbox_table.h"

namespace ccixfer::cci {

inline constexpr uint8_t access_read = 1;   // a peer may RMA-read it
inline constexpr uint8_t access_write = 2;  // a peer may RMA-write it
// By this handle no peer may, but parts of the memory will be registered for peers to read (register_part): then the networks' keys
// of the whole serve for the parts as well.
inline constexpr uint8_t access_read_parts = 4;
// Puts of ours leave from it, and puts of peers come into buffers of mailboxes that lie in it. No operation of ours reads into it
// (rma_op), so no key of it that a peer is told lets the peer write.
inline constexpr uint8_t access_puts = 8;
inline constexpr uint32_t regions_max = 1u << 20;

class MemoryTable final : public ports::RmaTarget {
 public:
  MemoryTable(ports::Entropy& entropy, Counters& counters, rvma::MailboxTable::Limits mailbox_limits = {});
  ~MemoryTable() override;

  // The memory stays the caller's and must stay valid until deregister_region() answered success, or in_use() says false. Slots are
  // reused with a new generation and key. A handle of kind none: the memory is empty, regions_max are registered, or a network
  // takes no more memory. The memory is registered once with each network, which for some costs much: large regions that live long
  // are good, and parts of them.
  [[nodiscard]] ports::Handle register_region(MutableBytes memory, uint8_t access);
  [[nodiscard]] ports::Handle register_region(Bytes memory);  // access_read only
  // The same, of memory that is still being filled: peers get of it what is ready; where it is to be read once, the first that
  // reads the whole. `fill` is valid as long as the memory. A peer's read over a transport that does not support cut-through is
  // refused as rma_op, while memory is being filled and at any time where it is to be read once.
  [[nodiscard]] ports::Handle register_filling(Bytes memory, ports::FillProgress* fill);
  // A part of a region, by a handle of its own, for as long as the whole is registered. access_read: peers may read it; 0: it is
  // for operations of this end. `fill`: as above. Kind none, besides: the whole is unknown or stale, or does not contain the part.
  [[nodiscard]] ports::Handle register_part(const ports::Handle& whole, uint64_t offset_bytes, uint64_t length_bytes,
                                            uint8_t access, ports::FillProgress* fill = nullptr);
  // Synchronous: after success no transport reads or writes the memory any more, and the networks have forgotten it. Afterwards no
  // byte of it is touched by peers: transfers in progress find an empty span. busy: so it is, but a network still
  // refers to bytes of it that a peer has asked for (they are in the kernel, not copied, and the peer's kernel has not acknowledged
  // them), so what is written there now would reach the peer as what it asked for. The memory may be used for something else once
  // in_use() says false: after a turn of the endpoint, in stream::lent_wait_max at most, as then the stream is reset. success:
  // there is no such thing. rma_handle: unknown or stale. The local end of operations of our own is deregistered after their
  // completion, not before.
  Status deregister_region(const ports::Handle& handle);
  // Of a region that was deregistered.
  [[nodiscard]] bool in_use(const ports::Handle& handle) const;
  [[nodiscard]] rvma::MailboxTable& mailboxes();
  // Before the transports of this turn: the mailboxes' limit of negative acknowledgements goes by it.
  void turn(Instant now);
  // The same target for one more transport: connections of different transports have the same ids, and mailboxes have quotas of
  // each connection. It is the table's, and lives as long.
  [[nodiscard]] ports::RmaTarget& target_of_another_transport();
  [[nodiscard]] bool is_target_of_this(const ports::RmaTarget& target) const;
  // The transport that was bound with this target, until detach(): memory is registered with it, all that there is already and all
  // that comes. Of what it takes no more, operations over it are refused as no_memory.
  void attach(const ports::RmaTarget& target, ports::Transport& transport);
  void detach(const ports::RmaTarget& target);

  // The local end of an operation of ours, access flags aside. rma_handle: unknown or stale; range: not inside the region or
  // empty; rma_op: to be written, but registered read-only or for puts.
  [[nodiscard]] Status resolve_local(const ports::Handle& handle, uint64_t offset_bytes, uint64_t length_bytes, bool for_writing,
                                     MutableBytes& out);
  // The key of the transport that was bound with `target`; none where it needs none. no_memory: it did not take the region.
  [[nodiscard]] Status local_key(const ports::RmaTarget& target, const ports::Handle& handle, ports::MemoryKey& key);
  // Whether that transport took the region.
  [[nodiscard]] bool is_refused(uint32_t transport, const ports::Handle& handle);
  // Names a put that has no name yet (source 0): this table's random incarnation, and the next operation number.
  void name_put(ports::PutOperation& put);

  ports::Admission begin_write(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) override;
  // The same, for a connection of `transport`: hints for it wait at that transport's target.
  ports::Admission begin_write_of(uint32_t transport, uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes);
  MutableBytes write_span(ports::Ticket ticket, uint64_t at_bytes) override;
  ports::OperationResult end_write(ports::Ticket ticket, bool complete) override;
  ports::Admission begin_read(uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes) override;
  // The same, for a connection of a transport that supports cut-through or does not.
  ports::Admission begin_read_of(bool cut_through, uint64_t connection, const ports::RemoteRef& target, uint64_t length_bytes);
  Bytes read_span(ports::Ticket ticket, uint64_t at_bytes) override;
  void end_read(ports::Ticket ticket) override;
  bool lend(ports::Ticket ticket) override;  // not of a mailbox: its owner may post the buffer again at any time
  void set_lender(ports::Lender* lender) override;
  [[nodiscard]] bool wanted_back(ports::Ticket ticket) const override;
  [[nodiscard]] uint64_t wants() const override;
  [[nodiscard]] bool read_waits(ports::Ticket ticket, uint64_t at_bytes, uint64_t size_bytes) const override;
  [[nodiscard]] const ports::FillProgress* fill_of(ports::Ticket ticket) const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ccixfer::cci

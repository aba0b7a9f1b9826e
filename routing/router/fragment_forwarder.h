// Fragments: pulled when a buffer of their class is free, passed on while they arrive, given back
// when the next router has taken them. A router keeps nothing about an operation, and about a
// fragment only while it holds it.
// In: fragment messages, the ends of lower RMAs, and time. Out: messages to both peers, and lower
// RMAs of the devices' endpoints.
// Errors: a peer that breaks the rules has its connection rejected; what fails is answered to
// whoever asked for the fragment.
// Single-threaded. Bounds: fragments_per_side_max, the pool, splice_pipes_max.
// Source: ITB; routing/router/README.md 'A fragment's way'.
#pragma once
#include <memory>
#include <vector>

#include "core/base/counters.h"
#include "routing/router/buffer_grants.h"
#include "routing/router/connection_ender.h"
#include "routing/router/fragment_answers.h"
#include "routing/router/lent_buffers.h"
#include "routing/router/message_relay.h"
#include "routing/router/splice_pipe_stock.h"
#include "routing/router/traffic.h"

namespace ccixfer::routing {

// It is one class because all its methods move the state of one table of fragments: each step may be the last of a fragment, which
// gives its buffer to another one.
class FragmentForwarder {
 public:
  FragmentForwarder(const RouterMechanisms& mechanisms, const Devices& devices, std::shared_ptr<cci::MemoryTable> memory,
                    FragmentPool& pool, BufferGrants& grants, ConnectionTable& connections, MessageRelay& relay,
                    ConnectionEnder& ender, Counters& counters, Traffic* traffic = nullptr);
  ~FragmentForwarder();  // the endpoints have ended: nothing reads or writes the pool any more
  [[nodiscard]] bool has_memory() const { return pool_handle_.kind != ports::HandleKind::none; }  // every device took the pool
  void set_now(Instant now) { now_ = now; }

  // Write_request, read_request, read_reply.
  void on_message(RelayedConnection& connection, uint8_t which, Bytes message);
  void on_taken(RelayedConnection& connection, uint8_t which, Bytes message);
  void on_ack(RelayedConnection& connection, uint8_t which, Bytes message);
  void on_event(const Ref& ref, ports::OperationResult ending);  // a lower RMA of ours ended

  bool grant_buffers();              // true: somebody got one
  [[nodiscard]] bool cut_through();  // looks at what arrives; true: something was begun
  [[nodiscard]] bool return_lent() { return lent_.return_free(); }
  void retry_stalled(RelayedConnection& connection);
  void drop(RelayedConnection& connection);  // it closes
  // The memory of connections whose fragments are all over.
  void release_idle();

  [[nodiscard]] const SlotTable<Fragment>& fragments() const { return fragments_; }
  [[nodiscard]] uint32_t leaving_early() const;  // that arrive and leave at the same time

 private:
  void on_reply(RelayedConnection& connection, uint8_t which, const FragmentMessage& reply, Bytes message);
  void admit(RelayedConnection& connection, uint8_t from, const FragmentMessage& request, bool from_end);
  [[nodiscard]] bool is_acceptable(const RelayedConnection& connection, const Fragment& fragment) const;
  void start(GrantedBuffer granted);
  void pull(Fragment& fragment);
  void lend_splice_pipe(const RelayedConnection& connection, Fragment& fragment);
  [[nodiscard]] bool look_at_arriving(RelayedConnection& connection, Fragment& fragment);
  [[nodiscard]] bool may_leave(const RelayedConnection& connection, const Fragment& fragment) const;
  void go_on(RelayedConnection& connection, Fragment& fragment);
  void push(Fragment& fragment);
  void expose(RelayedConnection& connection, Fragment& fragment);
  void resume(const RelayedConnection& connection, const Fragment& fragment);
  void on_ended(Fragment& fragment, bool of_push, ports::OperationResult ending);
  void on_pulled(RelayedConnection& connection, Fragment& fragment);
  void on_pull_failed(RelayedConnection& connection, Fragment& fragment, ports::OperationResult ending);
  void on_pushed(RelayedConnection& connection, Fragment& fragment, ports::OperationResult ending);
  void withdraw(RelayedConnection& connection, Fragment& fragment);
  void let_go(RelayedConnection& connection, Fragment& fragment);
  void stall(Fragment& fragment, bool of_push);
  void unexpose(Fragment& fragment);
  void end(Fragment& fragment);
  void drop_one(RelayedConnection& connection, Fragment& fragment);
  void note_wait(RelayedConnection& connection, uint8_t leg, Instant since) const;
  [[nodiscard]] RelayedConnection* connection_of(const Fragment& fragment) const;
  [[nodiscard]] Fragment* find(uint64_t packed) const { return find_in(fragments_, packed); }
  [[nodiscard]] cci::Endpoint& endpoint(const Leg& leg) const { return devices_.endpoint(leg.device); }

  const RouterMechanisms mechanisms_;
  const Devices& devices_;
  std::shared_ptr<cci::MemoryTable> memory_;
  FragmentPool& pool_;
  ports::Handle pool_handle_;  // the whole pool, for our own lower RMAs: no peer may touch it
  BufferGrants& grants_;
  ConnectionTable& connections_;
  MessageRelay& relay_;
  FragmentAnswers answers_;
  ConnectionEnder& ender_;
  Counters& counters_;
  Traffic* const traffic_;  // nullptr: nobody wants to know
  SlotTable<Fragment> fragments_{Ref::generation_max};
  LentBuffers lent_;
  SplicePipeStock splice_pipes_;
  std::vector<uint64_t> cutting_;  // fragments that arrive
  std::vector<uint64_t> idle_;     // connections whose last fragment is over
  Instant now_{};
};

}  // namespace ccixfer::routing

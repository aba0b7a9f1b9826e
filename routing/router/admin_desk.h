// Administrators: a connection of Role::admin may ask for the map. WAN devices answer no
// administrator, because other AS are there, and they learn nothing of the inside.
// In: events whose context is an administrator's Ref.
// Errors: who asks anything else, or asks again before the answer has gone out, is counted, logged
// once a peer, and disconnected. Single-threaded. Bounds: admins_max.
#pragma once
#include <vector>

#include "core/base/counters.h"
#include "core/base/ring_buffer.h"
#include "core/base/slot_table.h"
#include "routing/router/admission.h"
#include "routing/router/bad_peers.h"
#include "routing/router/devices.h"
#include "routing/router/record_store.h"
#include "routing/router/ref.h"

namespace ccixfer::routing {

inline constexpr size_t admins_max = 64;

class AdminDesk {
 public:
  AdminDesk(const Devices& devices, const RecordStore& records, const AdmissionObserver& observer, Counters& counters)
      : devices_(devices), records_(records), observer_(observer), counters_(counters) {}
  void on_request(uint32_t device, cci::Event& event);
  void on_event(const Ref& ref, cci::Event& event);
  void push();  // what found no room before

 private:
  struct Admin : NamedEntry<Tag::admin> {
    uint32_t device = 0;
    cci::Connection connection;
    RingBuffer<std::vector<std::byte>> out;
  };
  void answer(Admin& admin);
  void flush(Admin& admin);

  const Devices& devices_;
  const RecordStore& records_;
  const AdmissionObserver& observer_;
  Counters& counters_;
  SlotTable<Admin> admins_{Ref::generation_max};
  PeersLogged logged_;
};

}  // namespace ccixfer::routing

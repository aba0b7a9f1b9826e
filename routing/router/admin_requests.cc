// Administrators: a connection of Role::admin may ask for the map. Not over a WAN device, where other AS are: they learn nothing of
// the inside.
#include <utility>

#include "routing/router/router_impl.h"

namespace ccixfer::routing {

void Router::Impl::on_admin_request(uint32_t device, cci::Event& event) {
  const bool full = admins.size() >= admins_max;
  if (full || devices[device].wan) {
    counters.add(Counter::connections_refused);
    const auto why =
        full ? "too many administrators" : "a WAN device shows nothing of its AS: ask on another device of this router";
    static_cast<void>(endpoint(device).reject(event, why));
    return;
  }
  Admin& admin = add_to(admins);
  admin.device = device;
  admin.connection = event.connection;
  if (endpoint(device).accept(event, Ref{Tag::admin, 0, admin.generation, admin.index}.packed()) != Status::success)
    admins.remove(admin.index);
}

void Router::Impl::on_admin_event(Admin& admin, cci::Event& event) {
  switch (event.type) {
    case cci::EventType::accept:
      if (event.status != Status::success) admins.remove(admin.index);
      return;
    case cci::EventType::disconnected:
      return admins.remove(admin.index);
    case cci::EventType::receive:
      break;
    default:
      return;
  }
  // One answer at a time: a second question before the first is answered is not honest.
  if (kind_of(event.data()) != MessageKind::map_request || !admin.out.empty()) {
    counters.add(Counter::routed_rejected);
    endpoint(admin.device).disconnect(admin.connection);
    return admins.remove(admin.index);
  }
  const auto answer = [&](MessageKind kind, Bytes raw) {
    std::vector<std::byte> message;
    encode_record_message(kind, raw, message);
    admin.out.push_back(std::move(message));
  };
  answer(MessageKind::map_record, own_raw);
  for (const auto& [router, known] : records) {
    if (!known.record.withdrawn) answer(MessageKind::map_record, known.raw);
  }
  answer(MessageKind::map_end, {});
  flush(admin);
}

void Router::Impl::flush(Admin& admin) {
  while (!admin.out.empty()) {
    const Status status = endpoint(admin.device).send(admin.connection, Bytes(admin.out.front()), 0, true);
    if (status == Status::no_buffers || status == Status::again) return;
    admin.out.drop_front();
  }
}

}  // namespace ccixfer::routing

#include "routing/router/admin_desk.h"

#include <utility>

#include "core/base/log.h"
#include "routing/transport/messages.h"

namespace ccixfer::routing {

void AdminDesk::on_request(uint32_t device, cci::Event& event) {
  const bool full = admins_.size() >= admins_max;
  if (full || devices_[device].wan) {
    counters_.add(Counter::connections_refused);
    const auto why =
        full ? "too many administrators" : "a WAN device shows nothing of its AS: ask on another device of this router";
    if (observer_) observer_({.as = Admission::As::administrator, .peer = event.peer(), .status = Status::refused, .reason = why});
    static_cast<void>(devices_.endpoint(device).reject(event, why));
    return;
  }
  if (observer_) observer_({.step = Admission::Step::admitted, .as = Admission::As::administrator, .peer = event.peer()});
  Admin& admin = add_to(admins_);
  admin.device = device;
  admin.connection = event.connection;
  if (devices_.endpoint(device).accept(event, admin.ref()) != Status::success) admins_.remove(admin.index);
}

void AdminDesk::on_event(const Ref& ref, cci::Event& event) {
  Admin* admin = admins_.find(ref.index, ref.generation);
  if (admin == nullptr) return;
  switch (event.type) {
    case cci::EventType::accept:
      if (event.status != Status::success) admins_.remove(admin->index);
      return;
    case cci::EventType::disconnected:
      return admins_.remove(admin->index);
    case cci::EventType::receive:
      break;
    default:
      return;
  }
  if (is_ping(event.data())) return;  // that it came is all that the peer wants to know
  // One answer at a time: a second question before the first is answered is not honest.
  if (kind_of(event.data()) != MessageKind::map_request || !admin->out.empty()) {
    counters_.add(Counter::routed_rejected);
    const std::string peer = devices_.peer_of(admin->device, admin->connection);
    if (logged_.first(peer)) log(LogLevel::warning, "routing: administrator {}: a message out of order: disconnected", peer);
    devices_.endpoint(admin->device).disconnect(admin->connection);
    return admins_.remove(admin->index);
  }
  answer(*admin);
}

void AdminDesk::answer(Admin& admin) {
  const auto say = [&](MessageKind kind, Bytes raw) {
    std::vector<std::byte> message;
    encode_record_message(kind, raw, message);
    admin.out.push_back(std::move(message));
  };
  say(MessageKind::map_record, records_.own().raw());
  records_.for_each_heard([&](const RouterRecord& record, Bytes raw, bool) {
    if (!record.withdrawn) say(MessageKind::map_record, raw);
  });
  say(MessageKind::map_end, {});
  flush(admin);
}

void AdminDesk::flush(Admin& admin) {
  while (!admin.out.empty()) {
    const Status status = devices_.endpoint(admin.device).send(admin.connection, Bytes(admin.out.front()), 0, true);
    if (status == Status::no_buffers || status == Status::again) return;
    admin.out.drop_front();
  }
}

void AdminDesk::push() {
  admins_.for_each([&](Admin& admin) { flush(admin); });
}

}  // namespace ccixfer::routing

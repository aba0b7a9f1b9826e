// Events own what they show: a receive buffer, or a request that somebody still has to decide.
#include <utility>

#include "core/cci/endpoint.h"
#include "core/cci/event_store.h"

namespace ccixfer::cci {

Event::Event(Event&& other) noexcept
    : type(other.type),
      status(other.status),
      connection(other.connection),
      context(other.context),
      waiter(other.waiter),
      role(other.role),
      attribute(other.attribute),
      reason(std::move(other.reason)),
      mailbox(other.mailbox),
      store_(std::move(other.store_)),
      peer_(std::move(other.peer_)),
      buffer_(other.buffer_),
      size_(other.size_),
      detail_(other.detail_),
      request_(other.request_) {}

Event& Event::operator=(Event&& other) noexcept {
  if (this == &other) return *this;
  release();
  type = other.type;
  status = other.status;
  connection = other.connection;
  context = other.context;
  waiter = other.waiter;
  role = other.role;
  attribute = other.attribute;
  reason = std::move(other.reason);
  mailbox = other.mailbox;
  store_ = std::move(other.store_);
  peer_ = std::move(other.peer_);
  buffer_ = other.buffer_;
  size_ = other.size_;
  detail_ = other.detail_;
  request_ = other.request_;
  return *this;
}

Event::~Event() { release(); }

void Event::release() {
  if (!store_) return;
  const std::shared_ptr<EventStore> store = std::move(store_);
  store_.reset();
  if (request_ != 0) {
    store->end_request(request_);
  } else {
    store->return_buffer(buffer_);
  }
}

const ports::PeerIdentity& Event::peer() const {
  static const ports::PeerIdentity unknown;
  return peer_ == nullptr ? unknown : *peer_;
}

void Event::set_peer(ports::PeerIdentity peer) {
  if (peer.is_known()) peer_ = std::make_unique<const ports::PeerIdentity>(std::move(peer));
}

Bytes Event::data() const {
  if (!store_) return {};
  if (request_ == 0) return store_->buffer(buffer_).first(size_);
  const EventStore::Request* request = store_->request(request_);
  return request == nullptr ? Bytes{} : Bytes{request->data};
}

}  // namespace ccixfer::cci

#include "app/bench/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/memory/bulk_memory.h"

namespace ccixfer::bench {

struct Server::Session {
  uint64_t id = 0;
  cci::Connection connection;
  Open open;
  memory::BulkMemory memory;
  std::vector<std::byte> landing;  // of echo puts and of the asker's writes to an address
  ports::Handle region, local, address;
  uint64_t mailbox = 0, echo_mailbox = 0;
  uint32_t in_flight = 0;  // writes and puts of ours: they read `memory`
  Instant opens_by = never;
  bool opened = false;
  bool left = false;
};

Server::Server(cci::Endpoint& endpoint, ports::Entropy& entropy, Wait wait) : endpoint_(endpoint), entropy_(entropy), wait_(wait) {}
Server::~Server() = default;

Instant Server::next_deadline() const { return std::min(endpoint_.next_deadline(), silent_until_); }

Server::Session* Server::find(uint64_t id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

// What is asked for here and does not go out at once is work for the next turn: the endpoint's deadline says so.
void Server::turn(Instant now) {
  now_ = now;
  endpoint_.turn(now);
  while (auto event = endpoint_.get_event()) handle(*event);
  while (const auto completion = endpoint_.mailboxes().next_completion()) on_completion(*completion);
  if (silent_until_ <= now) drop_silent();
  if (leaving_) sweep();
}

void Server::handle(cci::Event& event) {
  if (event.type == cci::EventType::connect_request) return on_request(event);
  Session* session = find(event.context);
  if (session == nullptr) return;
  switch (event.type) {
    case cci::EventType::accept:
      if (event.status != Status::success) return leave(*session);
      session->connection = event.connection;
      session->opens_by = after(now_, open_time);
      silent_until_ = std::min(silent_until_, session->opens_by);
      return;
    case cci::EventType::receive:
      return on_message(*session, event.data());
    case cci::EventType::send:
      --session->in_flight;
      if (event.status != Status::success) drop(*session, fmt::format("an answer failed: {}", to_string(event.status)));
      return;
    case cci::EventType::disconnected:
      return leave(*session);
    default:
      return;
  }
}

void Server::on_request(cci::Event& event) {
  const auto purpose = decode_hello(event.data());
  if (!purpose) {
    static_cast<void>(endpoint_.reject(event, "here is `ccixfer bench --serve` and nothing else"));
    return;
  }
  if (*purpose == Purpose::extra) {
    static_cast<void>(endpoint_.accept(event, 0));
    return;
  }
  if (sessions_.size() >= sessions_max) {
    static_cast<void>(endpoint_.reject(event, "too many measurements at once"));
    return;
  }
  auto session = std::make_unique<Session>();
  session->id = next_id_++;
  if (endpoint_.accept(event, session->id) != Status::success) return;
  sessions_.emplace(session->id, std::move(session));
}

void Server::on_message(Session& session, Bytes message) {
  if (session.left) return;
  const auto kind = kind_of(message);
  if (!kind) return drop(session, "a message of no kind");
  if (!session.opened) return *kind == Kind::open ? on_open(session, message) : drop(session, "a message before `open`");
  switch (*kind) {
    case Kind::echo:
      return say(session, message);
    case Kind::count:
      return;
    case Kind::want: {
      const auto bytes = decode_want(message);
      if (!bytes || *bytes == 0 || *bytes > session.landing.size()) return drop(session, "an address of no size that was agreed");
      static_cast<void>(endpoint_.memory().deregister_region(session.address));
      session.address =
          endpoint_.memory().register_region(MutableBytes(session.landing).first(static_cast<size_t>(*bytes)), cci::access_write);
      return say(session, encode_address(session.address));
    }
    case Kind::exchange:
      if (endpoint_.memory().deregister_region(session.address) != Status::success)
        return drop(session, "a write without an address");
      return say(session, encode_want(session.open.reply_bytes));
    case Kind::address: {
      const auto address = decode_address(message);
      if (!address) return drop(session, "a malformed address");
      return write_back(session, *address, encode_padded(Kind::exchange, 1));
    }
    case Kind::written:
      return write_back(session, session.open.landing, encode_padded(Kind::written, 1));
    case Kind::open:
    case Kind::opened:
      return drop(session, "a message that does not belong here");
  }
}

void Server::on_open(Session& session, Bytes message) {
  const auto open = decode_open(message);
  if (!open) return drop(session, "a malformed `open`, or one that asks for too much");
  session.open = *open;
  auto memory = memory::BulkMemory::make(static_cast<size_t>(open->slots * open->slot_bytes));
  if (!memory) return drop(session, "more memory than this host gives");
  session.memory = std::move(*memory);
  session.landing.resize(static_cast<size_t>(open->reply_bytes));
  session.region = endpoint_.memory().register_region(session.memory.bytes(), cci::access_read | cci::access_write);
  session.local = endpoint_.memory().register_region(session.memory.bytes(), 0);
  Opened opened;
  opened.region = session.region;
  opened.wait = wait_;
  const auto open_mailbox = [&](uint64_t& number) {
    rvma::MailboxOptions options;
    options.key = entropy_.next_u64();
    do number = entropy_.next_u64();
    while (endpoint_.mailboxes().open(number, options) != Status::success);
    mailboxes_[number] = session.id;
    return endpoint_.mailboxes().handle(number);
  };
  opened.mailbox = open_mailbox(session.mailbox);
  opened.echo_mailbox = open_mailbox(session.echo_mailbox);
  for (uint32_t i = 0; i < open->buffers; ++i) {
    const size_t offset = static_cast<size_t>(i % open->slots * open->slot_bytes);
    const auto buffer = session.memory.bytes().subspan(offset, static_cast<size_t>(open->slot_bytes));
    static_cast<void>(endpoint_.mailboxes().post(session.mailbox, buffer, open->slot_bytes));
  }
  for (int i = 0; i < 2; ++i) {
    static_cast<void>(endpoint_.mailboxes().post(session.echo_mailbox, session.landing, open->reply_bytes));
  }
  session.opened = true;
  say(session, encode(opened));
}

void Server::on_completion(const rvma::Completion& completion) {
  const auto found = mailboxes_.find(completion.mailbox);
  if (found == mailboxes_.end() || completion.status != Status::success) return;
  Session* session = find(found->second);
  if (session == nullptr || session->left) return;
  // The context is the buffer's own size: it goes back as it was posted.
  static_cast<void>(endpoint_.mailboxes().post(completion.mailbox, {completion.buffer, static_cast<size_t>(completion.context)},
                                               completion.context));
  if (completion.mailbox == session->echo_mailbox) write_back(*session, session->open.mailbox, std::nullopt);
}

void Server::write_back(Session& session, const ports::Handle& where, std::optional<Bytes> completion_message) {
  cci::RmaOptions rma;
  rma.local = session.local;
  rma.remote.handle = where;
  rma.length_bytes = session.open.reply_bytes;
  rma.completion_message = completion_message;
  rma.context = session.id;
  const Status status = endpoint_.rma(session.connection, rma);
  if (status != Status::success) return drop(session, fmt::format("cannot write back: {}", to_string(status)));
  ++session.in_flight;
}

void Server::say(Session& session, Bytes message) {
  const Status status = endpoint_.send(session.connection, message, session.id);
  if (status != Status::success) return drop(session, fmt::format("cannot answer: {}", to_string(status)));
  ++session.in_flight;
}

void Server::drop(Session& session, std::string why) {
  if (session.left) return;
  ++dropped_;
  last_drop_ = std::move(why);
  endpoint_.disconnect(session.connection);
  leave(session);
}

// It would keep others out for as long as its connection lasts.
void Server::drop_silent() {
  silent_until_ = never;
  for (const auto& [id, session] : sessions_) {
    if (session->opened || session->left) continue;
    if (session->opens_by <= now_) {
      drop(*session, "no `open` came");
    } else {
      silent_until_ = std::min(silent_until_, session->opens_by);
    }
  }
}

void Server::leave(Session& session) {
  if (session.left) return;
  session.left = leaving_ = true;
  if (!session.opened) return;
  for (const ports::Handle& handle : {session.region, session.address}) {
    static_cast<void>(endpoint_.memory().deregister_region(handle));
  }
  for (const uint64_t number : {session.mailbox, session.echo_mailbox}) static_cast<void>(endpoint_.mailboxes().close(number));
}

// A session's memory goes when neither an operation of ours nor a put of its peer is in it.
void Server::sweep() {
  leaving_ = false;
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    Session& session = *it->second;
    const bool used =
        session.in_flight > 0 || endpoint_.memory().in_use(session.region) ||
        (session.opened && (endpoint_.mailboxes().closing(session.mailbox) || endpoint_.mailboxes().closing(session.echo_mailbox)));
    if (!session.left || used) {
      leaving_ = leaving_ || session.left;
      ++it;
      continue;
    }
    if (session.opened) {
      static_cast<void>(endpoint_.memory().deregister_region(session.local));
      mailboxes_.erase(session.mailbox);
      mailboxes_.erase(session.echo_mailbox);
    }
    ++ended_;
    it = sessions_.erase(it);
  }
}

}  // namespace ccixfer::bench

#include "routing/router/map_query.h"

#include <fmt/core.h>

#include <utility>

#include "routing/transport/messages.h"

namespace ccixfer::routing {
namespace {

ErrorKind kind_of_connect(Status status, std::string_view reason) {
  if (status == Status::refused && reason.starts_with(words_of_no_grant)) return ErrorKind::not_authorised;
  if (status == Status::no_route) return ErrorKind::no_route;
  if (status == Status::version) return ErrorKind::protocol;
  if (status == Status::not_authenticated) return ErrorKind::authentication;
  return status == Status::not_authorised ? ErrorKind::not_authorised : ErrorKind::no_answer;
}

}  // namespace

MapQuery::MapQuery(cci::Endpoint& endpoint, std::string_view uri, Duration timeout, uint64_t context)
    : endpoint_(endpoint), uri_(uri), timeout_(timeout), context_(context) {
  cci::ConnectOptions how;
  how.role = ports::Role::admin;
  how.timeout = timeout;
  how.context = context;
  const auto connection = endpoint.connect(uri, how);
  if (connection) {
    connection_ = *connection;
  } else {
    end(tl::unexpected<Error>(connection.error()));
  }
}

MapQuery::~MapQuery() {
  if (connection_) endpoint_.disconnect(connection_);
}

void MapQuery::turn(Instant now) {
  if (!std::exchange(started_, true)) deadline_ = after(now, timeout_);
  if (!done_ && now >= deadline_) {
    const std::string_view who = connected_ ? ": somebody is there, who may be no router" : "";
    end(fail(ErrorKind::no_answer, fmt::format("{}: no answer in time{}", uri_, who)));
  }
}

// Once: who calls it has seen that it is not done.
void MapQuery::end(Result<std::vector<RouterRecord>> result) {
  done_ = true;
  result_ = std::move(result);
  if (connection_) endpoint_.disconnect(std::exchange(connection_, {}));
}

bool MapQuery::on_event(const cci::Event& event) {
  if (event.context != context_) return false;
  if (done_) return true;
  switch (event.type) {
    case cci::EventType::connect: {
      if (event.status != Status::success) {
        connection_ = {};
        refused_ = {event.status, event.reason};
        const std::string_view why = event.reason.empty() ? to_string(event.status) : std::string_view(event.reason);
        end(fail(kind_of_connect(event.status, event.reason), fmt::format("{}: {}", uri_, why)));
        return true;
      }
      connected_ = true;
      if (const auto hops = endpoint_.hops(connection_); !hops.empty()) router_ = hops.front();
      std::vector<std::byte> message;
      encode_plain(MessageKind::map_request, message);
      if (endpoint_.send(connection_, Bytes(message), context_, true) != Status::success) {
        end(fail(ErrorKind::network, fmt::format("{}: cannot ask", uri_)));
      }
      return true;
    }
    case cci::EventType::disconnected:
      connection_ = {};
      end(fail(ErrorKind::network, fmt::format("{}: {}", uri_, event.reason.empty() ? "the router left" : event.reason)));
      return true;
    case cci::EventType::receive: {
      const auto kind = kind_of(event.data());
      if (kind == MessageKind::map_end) {
        end(std::move(records_));
        return true;
      }
      auto record = kind == MessageKind::map_record ? decode_record(record_of(event.data())) : std::nullopt;
      if (!record || records_.size() >= records_asked_max + 1) {
        end(fail(ErrorKind::protocol, fmt::format("{}: not the answer of a router", uri_)));
        return true;
      }
      records_.push_back(std::move(*record));
      return true;
    }
    default:
      return true;
  }
}

}  // namespace ccixfer::routing

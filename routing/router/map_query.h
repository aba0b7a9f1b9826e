// Asks a running router for its map: the records it knows. For `ccixfer routes`.
// In: an endpoint of the asker's own, and every event of it while the query lasts. Out: the records, or why not.
// Bounds: records_asked_max. Single-threaded; the caller turns the endpoint and the query.
#pragma once
#include <string_view>
#include <vector>

#include "core/cci/endpoint.h"
#include "routing/map/record.h"
#include "routing/router/record_store.h"

namespace ccixfer::routing {

class MapQuery {
 public:
  static constexpr size_t records_asked_max = records_max + foreign_records_max;  // as many as a router hears, besides its own
  // Dials `uri` (native) with Role::admin. `endpoint` outlives the query. `context` marks its events; it must be the caller's only
  // use of it.
  MapQuery(cci::Endpoint& endpoint, std::string_view uri, Duration timeout, uint64_t context);
  ~MapQuery();
  MapQuery(const MapQuery&) = delete;
  MapQuery& operator=(const MapQuery&) = delete;
  void turn(Instant now);                  // once a turn, before or after the events: the timeout
  bool on_event(const cci::Event& event);  // true: it was ours
  [[nodiscard]] bool done() const { return done_; }
  [[nodiscard]] Instant next_deadline() const { return done_ ? never : deadline_; }
  // Once done. no_answer, no_route, not_authorised, authentication, protocol (not a router, malformed), usage (the URI).
  [[nodiscard]] const Result<std::vector<RouterRecord>>& result() const { return result_; }
  // How the connection did not come about, in the words of whoever said so; success: it did, or nobody has said anything yet.
  struct Refused {
    Status status = Status::success;
    std::string reason = {};
  };
  [[nodiscard]] const Refused& refused() const { return refused_; }
  // Who was asked and how the answer was protected, from the connection on; empty strings: nothing is proved.
  [[nodiscard]] const ports::HopInfo& router() const { return router_; }

 private:
  void end(Result<std::vector<RouterRecord>> result);
  cci::Endpoint& endpoint_;
  std::string uri_;
  Duration timeout_;
  uint64_t context_;
  cci::Connection connection_;
  Instant deadline_ = never;
  bool started_ = false;
  bool done_ = false;
  bool connected_ = false;
  Refused refused_;
  ports::HopInfo router_;
  std::vector<RouterRecord> records_;
  Result<std::vector<RouterRecord>> result_;
};

}  // namespace ccixfer::routing

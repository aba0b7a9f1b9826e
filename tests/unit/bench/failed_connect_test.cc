// What bench says when it cannot connect, for each status.
#include "app/bench/failed_connect.h"

#include <catch2/catch.hpp>

namespace ccixfer::bench {
namespace {

TEST_CASE("failed_connect__each_status__its_words_exit_kind_and_advice") {
  struct Row {
    Status status;
    ErrorKind kind;
    std::string_view words;
  };
  const Row row = GENERATE(
      Row{Status::refused, ErrorKind::no_answer, "refused: tcp://h:1: start it"},
      Row{Status::timed_out, ErrorKind::no_answer, "no answer in time: tcp://h:1: start it"},
      Row{Status::unreachable, ErrorKind::no_answer, "nobody answers: tcp://h:1: start it"},
      Row{Status::not_found, ErrorKind::no_answer, "no host has this name: tcp://h:1: start it"},
      Row{Status::no_route, ErrorKind::no_route, "no route: tcp://h:1: check the routers and their configuration (ccixfer routes)"},
      Row{Status::version, ErrorKind::protocol, "the peer speaks another version: tcp://h:1: use the same version at both ends"},
      Row{Status::not_authenticated, ErrorKind::authentication,
          "the peer's identity is not proved: tcp://h:1: compare what ccixfer id says at each end with what the other one knows"},
      Row{Status::not_authorised, ErrorKind::not_authorised,
          "the peer does not allow this: tcp://h:1: have this identity permitted there"});
  const Error error = failed_connect(row.status, "", "tcp://h:1", "start it");
  CHECK(error.kind == row.kind);
  CHECK(error.message == row.words);
  CHECK(failed_connect(Status::refused, "go\naway", "tcp://h:1", "start it").message == "refused: go%0Aaway: tcp://h:1: start it");
}

}  // namespace
}  // namespace ccixfer::bench

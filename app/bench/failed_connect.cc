#include "app/bench/failed_connect.h"

#include <fmt/format.h>

#include "core/base/units.h"

namespace ccixfer::bench {
namespace {

struct Meaning {
  ErrorKind kind;
  std::string_view words;
  std::string_view advice = {};  // empty: the caller's
};

Meaning meaning_of(Status status) {
  switch (status) {
    case Status::timed_out:
      return {ErrorKind::no_answer, "no answer in time"};
    case Status::unreachable:
      return {ErrorKind::no_answer, "nobody answers"};
    case Status::not_found:
      return {ErrorKind::no_answer, "no host has this name"};
    case Status::no_route:
      return {ErrorKind::no_route, "no route", "check the routers and their configuration (ccixfer routes)"};
    case Status::version:
      return {ErrorKind::protocol, "the peer speaks another version", "use the same version at both ends"};
    case Status::not_authenticated:
      return {ErrorKind::authentication, "the peer's identity is not proved",
              "compare what ccixfer id says at each end with what the other one knows"};
    case Status::not_authorised:
      return {ErrorKind::not_authorised, "the peer does not allow this", "have this identity permitted there"};
    default:
      return {ErrorKind::no_answer, to_string(status)};
  }
}

}  // namespace

Error failed_connect(Status status, std::string_view reason, std::string_view uri, std::string_view advice) {
  const Meaning meaning = meaning_of(status);
  return {meaning.kind, fmt::format("{}{}{}: {}: {}", meaning.words, reason.empty() ? "" : ": ", printable(reason), uri,
                                    meaning.advice.empty() ? advice : meaning.advice)};
}

}  // namespace ccixfer::bench

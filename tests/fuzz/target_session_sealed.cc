// Messages of a sealed session as they come from a peer: any bytes before the seal is opened, and any bytes that a peer sealed, on
// the session's channel and on a lane's. Nothing that the peer did not seal is ever a message.
#include <algorithm>

#include "app/session/control.h"
#include "app/session/link_seal.h"
#include "tests/fuzz/fuzz.h"

using namespace ccixfer;
using namespace ccixfer::session;

namespace {

struct Pair {
  static SealSetup someone() {
    return {trust::Identity::generate().value(), std::nullopt, [] { return int64_t{1'800'000'000}; }};
  }
  Pair() {
    std::vector<Message> to_far = near.start(true);
    static_cast<void>(far.start(false));
    while (!to_far.empty()) {
      std::vector<Message> to_near = pass(to_far, far);
      to_far = pass(to_near, near);
    }
    fuzz::must(near.is_done() && far.is_done());
  }
  static std::vector<Message> pass(const std::vector<Message>& messages, LinkSeal& to) {
    std::vector<Message> answers;
    for (const Message& message : messages) {
      std::vector<Message> answer;
      fuzz::must(to.step(std::get<HandshakePart>(message), answer).has_value());
      answers.insert(answers.end(), answer.begin(), answer.end());
    }
    return answers;
  }
  LinkSeal near{someone()};
  LinkSeal far{someone()};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Pair pair;
  const Bytes input = fuzz::bytes_of(data, size).first(std::min<size_t>(size, session_message_bytes_max));
  const ControlReceiver receiver;
  LaneSealing lane{1, 1, std::nullopt};
  LaneSealing out{1, 1, std::nullopt};
  const Result<Decoded> raw = pair.far.take(input, lane, receiver);
  fuzz::must(!raw || !is_sealed_message(input));
  const Result<Decoded> session = pair.far.take(pair.near.seal(7, input), lane, receiver);
  fuzz::must(!session || (session->sequence == 7 && !std::holds_alternative<HandshakePart>(session->message)));
  lane.seal.reset();
  const Result<Decoded> of_lane = pair.far.take(pair.near.of(out).seal(input), lane, receiver);
  fuzz::must(!of_lane || is_lane_message(of_lane->message));
  return 0;
}

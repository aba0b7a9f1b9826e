// A router's transport in hostile hands: it reads all that the router sends and pulls, and does one bad thing to it. A router is
// another organisation's, so it sees whatever is under the seals of its hops: routing messages, and fragments. What it must not be
// able to do is to read or change what the ends say to one another.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/ports/transport.h"
#include "routing/transport/messages.h"
#include "transports/sim/random.h"

namespace ccixfer::testing {

// What is made up is nonsense. What is forged has the right form and checksum: in place of a session message, a handshake part of
// its number.
enum class Harm : uint8_t { flip, drop, twice, swap, cut, make_up, forge };
inline constexpr std::array<Harm, 7> harms{Harm::flip, Harm::drop, Harm::twice, Harm::swap, Harm::cut, Harm::make_up, Harm::forge};
[[nodiscard]] std::string_view name_of(Harm harm);

// What passes: a routing message by its kind, or a fragment.
using Kind = uint8_t;
inline constexpr Kind pushed_fragment = 200;  // which the router writes to the memory of an end
inline constexpr Kind pulled_fragment = 201;  // which it reads from a neighbour
[[nodiscard]] std::string name_of_kind(Kind kind);

struct Place {
  size_t device = 0;  // of the router: 0 leads to the source of the connection
  Kind kind = 0;
  friend auto operator<=>(const Place&, const Place&) = default;
};

// What all devices of one router do together.
class Tampering {
 public:
  struct Plan {
    Place place;
    Harm harm = Harm::flip;
    uint64_t number = 0;  // which of that place, from 0
    bool on = false;      // and all that follow
  };
  explicit Tampering(uint64_t seed, std::optional<Plan> plan = std::nullopt) : plan_(plan), random_(seed) {}

  // One more passes there. The harm that is to be done to it, if any.
  [[nodiscard]] std::optional<Harm> sees(Place place, Bytes bytes);
  void records(Bytes bytes);
  void flip(MutableBytes bytes);
  [[nodiscard]] size_t below(size_t end) { return static_cast<size_t>(random_.below(end)); }
  void fill(MutableBytes bytes);

  [[nodiscard]] const std::map<Place, uint64_t>& seen() const { return seen_; }
  [[nodiscard]] uint64_t done() const { return done_; }
  [[nodiscard]] const std::string& recording() const { return recording_; }

 private:
  std::optional<Plan> plan_;
  sim::Random random_;
  std::map<Place, uint64_t> seen_;
  uint64_t done_ = 0;
  std::string recording_;
};

// Over `inner`, for device `device` of the router. `tampering` lives as long.
[[nodiscard]] std::unique_ptr<ports::Transport> make_tampering_transport(std::unique_ptr<ports::Transport> inner, size_t device,
                                                                         Tampering& tampering);

}  // namespace ccixfer::testing

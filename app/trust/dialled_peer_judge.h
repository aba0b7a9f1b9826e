// Is the peer that we dialled the one that this address should lead to? What a handshake proved goes in; accepted, a question for a
// person, or an error comes out. The first rule that has something to say decides:
//
// 1. An expected id (of a ticket): the peer has it, or it is refused. Nothing else counts.
// 2. A [peer] with this address: its id or name is the peer's, or it is refused.
// 3. The file known_peers has the address: with this id, or the peer is refused.
// 4. A certificate of our authority that names the host of the address (exactly; of a routed address the NODE): accepted.
// 5. A [peer] without addresses that means this peer: accepted, wherever it was dialled.
// 6. The peer is new. A person may be asked; without one it is refused, with the line that would have it accepted.
//
// Asking blocks and is not done here: the caller shows `question`, and gives a yes to remember().
// Errors: authentication (41), with the ids of both and what to do. Of remember(): file_io, no_space, usage.
#pragma once
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "app/trust/known_peers_file.h"
#include "app/trust/peers.h"

namespace ccixfer::policy {

struct Verdict {
  enum class Kind : uint8_t { accepted, ask };
  Kind kind = Kind::accepted;
  // accepted: the words that say why ('[peer.lab]', 'known_peers'), for reports. ask: what the person is asked.
  std::string words;
};

enum class Person : uint8_t { absent, present };  // at a terminal

class DialledPeerJudge {
 public:
  DialledPeerJudge(Peers peers, KnownPeersFile known) : peers_(std::move(peers)), known_(std::move(known)) {}

  // `address` as program::split_target gives it: tcp://HOST:PORT or cci://AS:SUBNET:NODE:ENDPOINT, in any case.
  [[nodiscard]] Result<Verdict> judge(const trust::ProvedPeer& peer, std::string_view address,
                                      const std::optional<trust::PeerId>& expected, Person person) const;
  // Whether a peer at this address could be accepted without a person by rules 2, 3 or 5: false, nobody is known there.
  [[nodiscard]] bool may_know(std::string_view address) const;
  // The person said yes. On an error the file does not have it, and the answer holds for this process only.
  [[nodiscard]] Result<void> remember(std::string_view address, const trust::PeerId& id);
  // The person said no: that holds for this process, which may have more than one connection to that peer on its way.
  void decline(std::string_view address, const trust::PeerId& id);
  [[nodiscard]] const Peers& peers() const { return peers_; }
  void set_peers(Peers peers) { peers_ = std::move(peers); }  // the configuration was read again

 private:
  [[nodiscard]] Result<Verdict> judge_changed(const trust::ProvedPeer& peer, const std::string& address,
                                              const KnownPeersFile::Found& known) const;
  [[nodiscard]] Result<Verdict> judge_new(const trust::ProvedPeer& peer, const std::string& address, Person person) const;

  Peers peers_;
  KnownPeersFile known_;
  // Addresses and identities, of answers that a person gave; of those to which it said yes, what the file could not take.
  std::set<std::pair<std::string, std::string>> declined_, accepted_;
};

// The error when a person was asked and said no.
[[nodiscard]] Error declined(std::string_view address, const trust::PeerId& id);

}  // namespace ccixfer::policy

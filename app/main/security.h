// What trust has of this process: who it is, whom it knows. In: the configuration and the options. Out: all of it, or none with
// --insecure, which is said loudly. SIGHUP reads [identity] and [peer] again (TrustNews); who uses a Security sees the news in it.
// Errors: usage (a file of it), authentication (there is no identity).
#pragma once
#include <optional>
#include <string>

#include "app/main/commands.h"
#include "app/trust/dialled_peer_judge.h"
#include "app/trust/local_identity.h"
#include "app/trust/places.h"

namespace ccixfer::program {

struct Security {
  policy::LocalIdentity identity;
  policy::DialledPeerJudge judge;  // of peers that we dial; its peers() are those of the configuration
  policy::Places places;
  uint64_t answers = 0;  // of persons at the terminal: the loop stood still until each came

  [[nodiscard]] const policy::Peers& peers() const { return judge.peers(); }
};

// What a configuration that was read again says. known_peers and the places stay as they are.
struct TrustNews {
  policy::LocalIdentity identity;
  policy::Peers peers;
};
// Errors leave `security` as it is: usage, a file of [identity], or a certificate whose dates do not hold; authentication, there is
// no identity any more.
[[nodiscard]] Result<TrustNews> read_again(const Security& security, const Config& config);
// Gives what was there before. Handshakes from now on are with the new; what has been proved stays so.
TrustNews take(Security& security, TrustNews news);

// none: --insecure was given. `without`: what happens if there is no identity.
[[nodiscard]] Result<std::optional<Security>> security_of_process(const Process& process, const CommonOptions& common,
                                                                  policy::WithoutIdentity without);
// Of a listener or router: warns of a certificate of ours whose dates do not hold. Whoever dials hears that from its peer.
void warn_of_dates(const Process& process, const std::optional<Security>& security);
// The same for a configuration, places and options of a test.
[[nodiscard]] Result<Security> make_security(const Config& config, policy::Places places, policy::WithoutIdentity without);

// Is a person at the terminal of this process (/dev/tty, so that standard input may carry data)? Nobody is in a cron job or a
// service, or when standard error is no terminal.
[[nodiscard]] policy::Person person_at_terminal();
// Blocks until the person says yes or no; anything else is asked again. false: no, or the terminal has gone.
[[nodiscard]] bool person_says_yes(const std::string& question);
// The same with any descriptors in place of the terminal.
[[nodiscard]] bool says_yes(int from, int to, const std::string& question);

}  // namespace ccixfer::program

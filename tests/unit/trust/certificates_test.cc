// Whom a handshake believes: the rules of handshake.h about certificates, each from both sides.
#include <catch2/catch.hpp>

#include "tests/unit/trust/facility.h"
#include "tests/unit/trust/tls_rig.h"

namespace ccixfer::trust {
namespace {

using enum HandshakeSide;

const Facility& facility() {
  static const Facility made("Facility");
  return made;
}
const Facility& stranger() {
  static const Facility made("Stranger");
  return made;
}

struct Outcome {
  bool done = false;
  std::optional<Error> error;
  std::optional<Error> told;  // what the peer makes of our alert
  ProvedPeer peer;
};

// `shows` is judged by somebody with `authority`, who is the acceptor or the dialler.
Outcome judged(const Identity& shows, HandshakeSide judge, const std::optional<Authority>& authority,
               int64_t wall_time_s = test_now_s) {
  static const Identity other = Identity::generate().value();
  Side judging(judge, other, authority, wall_time_s);
  Side showing(judge == dialler ? acceptor : dialler, shows);
  static_cast<void>(judge == dialler ? run(judging, showing) : run(showing, judging));
  Outcome outcome{judging.handshake.done(), judging.error, showing.error, {}};
  if (outcome.done) {
    outcome.peer = judging.handshake.peer();
    REQUIRE(showing.handshake.done());
    REQUIRE(judging.handshake.exported("a").equals(showing.handshake.exported("a").bytes()));
  }
  return outcome;
}

void require_refused(const Identity& shows, const std::optional<Authority>& authority, std::string_view why, std::string_view told,
                     int64_t wall_time_s = test_now_s) {
  for (const HandshakeSide judge : {dialler, acceptor}) {
    const Outcome outcome = judged(shows, judge, authority, wall_time_s);
    CHECK_FALSE(outcome.done);
    REQUIRE(outcome.error);
    INFO(outcome.error->message);
    CHECK(outcome.error->kind == ErrorKind::authentication);
    CHECK(outcome.error->message.find(why) != std::string::npos);
    REQUIRE(outcome.told);
    INFO(outcome.told->message);
    CHECK(outcome.told->kind == ErrorKind::authentication);
    CHECK(outcome.told->message.find("the peer refused our certificate: " + std::string(told)) != std::string::npos);
  }
}

void require_certified(const Identity& shows, const std::optional<Authority>& authority, int64_t wall_time_s = test_now_s) {
  for (const HandshakeSide judge : {dialler, acceptor}) {
    const Outcome outcome = judged(shows, judge, authority, wall_time_s);
    if (outcome.error) FAIL(outcome.error->message);
    CHECK(outcome.done);
    CHECK(outcome.peer.certified);
    CHECK(outcome.peer.id == shows.id());
  }
}

TEST_CASE("certificates__of_our_authority__certified_with_its_names") {
  for (const char* kind : {"RSA:2048", "EC:P-256", "EC:P-384", "EC:P-521", "ED25519"}) {
    INFO(kind);
    const Identity host = identity_of(facility().issue({.key = kind}));
    require_certified(host, authority_of(facility().pem()));
    CHECK(judged(host, dialler, authority_of(facility().pem())).peer.names ==
          std::vector<std::string>{"dtn1.lab.example", "192.0.2.7", "2001:db8::7"});
  }
}

TEST_CASE("certificates__both_of_our_authority__both_certified") {
  const Authority authority = authority_of(facility().pem());
  Side dials(dialler, identity_of(facility().issue()), authority), accepts(acceptor, identity_of(facility().issue()), authority);
  static_cast<void>(run(dials, accepts));
  REQUIRE((dials.handshake.done() && accepts.handshake.done()));
  CHECK(dials.handshake.peer().certified);
  CHECK(accepts.handshake.peer().certified);
}

TEST_CASE("certificates__no_authority_given__known_by_the_key_whatever_they_say") {
  for (const Identity& host : {identity_of(facility().issue()), identity_of(facility().issue({.not_after_s = test_now_s - day_s})),
                               identity_of(facility().issue({.purposes = "codeSigning"}))}) {
    for (const HandshakeSide judge : {dialler, acceptor}) {
      const Outcome outcome = judged(host, judge, std::nullopt);
      CHECK(outcome.done);
      CHECK_FALSE(outcome.peer.certified);
      CHECK(outcome.peer.names.empty());
      CHECK(outcome.peer.id == host.id());
    }
  }
}

TEST_CASE("certificates__signed_by_its_own_key__known_by_the_key_beside_an_authority") {
  const Issued expired = self_signed({.not_before_s = 0, .not_after_s = day_s});
  for (const Identity& host : {Identity::generate().value(), identity_of(expired)}) {
    for (const HandshakeSide judge : {dialler, acceptor}) {
      const Outcome outcome = judged(host, judge, authority_of(facility().pem()));
      CHECK(outcome.done);
      CHECK_FALSE(outcome.peer.certified);
      CHECK(outcome.peer.names.empty());
      CHECK(outcome.peer.id == host.id());
    }
  }
}

TEST_CASE("certificates__the_root_itself_as_a_peer__a_key_like_any_other") {
  const Identity root = identity_of(facility().own());
  const Outcome outcome = judged(root, acceptor, authority_of(facility().pem()));
  CHECK(outcome.done);
  CHECK_FALSE(outcome.peer.certified);
}

TEST_CASE("certificates__expired__refused_with_the_day") {
  const Identity host = identity_of(facility().issue({.not_after_s = test_now_s - day_s}));  // 2027-01-14
  require_refused(host, authority_of(facility().pem()), "the peer's certificate has expired (2027-01-14): renew it",
                  "it has expired");
  require_certified(host, authority_of(facility().pem()), test_now_s - 2 * day_s);
}

TEST_CASE("certificates__not_yet_valid__refused_with_the_day") {
  const Identity host = identity_of(facility().issue({.not_before_s = test_now_s + 2 * day_s}));
  require_refused(host, authority_of(facility().pem()), "the peer's certificate is not valid before 2027-01-17: check the clocks",
                  "it is damaged, not valid yet");
  require_certified(host, authority_of(facility().pem()), test_now_s + 3 * day_s);
}

TEST_CASE("certificates__at_the_second_of_their_dates__the_last_one_counts") {
  const Identity host = identity_of(facility().issue({.not_before_s = test_now_s, .not_after_s = test_now_s + 10}));
  const Authority authority = authority_of(facility().pem());
  CHECK_FALSE(judged(host, dialler, authority, test_now_s - 1).done);
  CHECK(judged(host, dialler, authority, test_now_s).done);
  CHECK(judged(host, dialler, authority, test_now_s + 9).done);
  CHECK_FALSE(judged(host, dialler, authority, test_now_s + 11).done);
}

TEST_CASE("certificates__of_an_unknown_authority__refused_with_its_name") {
  const Identity host = identity_of(stranger().issue());
  require_refused(host, authority_of(facility().pem()), "is signed by an authority that we do not know ('Stranger')",
                  "the peer does not know the authority");
}

TEST_CASE("certificates__of_an_impostor_with_the_name_of_our_authority__refused") {
  const Identity host = identity_of(Facility("Facility").issue());
  for (const HandshakeSide judge : {dialler, acceptor}) {
    const Outcome outcome = judged(host, judge, authority_of(facility().pem()));
    CHECK_FALSE(outcome.done);
    REQUIRE(outcome.error);
    CHECK(outcome.error->kind == ErrorKind::authentication);
  }
}

TEST_CASE("certificates__subject_and_issuer_alike_but_signed_by_another__judged_as_a_chain") {
  // Not signed by its own key though its names say so.
  const Identity host = identity_of(stranger().issue({.name = "Stranger"}));
  const Outcome outcome = judged(host, acceptor, authority_of(facility().pem()));
  CHECK_FALSE(outcome.done);
  REQUIRE(outcome.error);
  CHECK(outcome.error->kind == ErrorKind::authentication);
}

TEST_CASE("certificates__revoked__refused_and_others_are_not") {
  const Issued bad = facility().issue(), good = facility().issue();
  const Authority authority = authority_of(facility().pem(), facility().revocation_list({&bad}));
  require_refused(identity_of(bad), authority, "the peer's certificate is revoked", "it is revoked");
  require_certified(identity_of(good), authority);
}

TEST_CASE("certificates__our_revocation_list_expired_or_from_the_future__refused_and_named") {
  const Identity host = identity_of(facility().issue());
  const auto list = [&](int64_t from, int64_t until) {
    return authority_of(facility().pem(), facility().revocation_list({}, from, until));
  };
  require_refused(host, list(test_now_s - 9 * day_s, test_now_s - 2 * day_s),
                  "our revocation list of 'Facility' has expired (2027-01-13)", "it cannot be checked");
  require_refused(host, list(test_now_s + 2 * day_s, test_now_s + 9 * day_s),
                  "our revocation list of 'Facility' is not valid before 2027-01-17", "it cannot be checked");
}

TEST_CASE("certificates__lists_and_none_of_the_one_who_signed__refused") {
  const Authority authority = authority_of(facility().pem() + stranger().pem(), facility().revocation_list({}));
  require_certified(identity_of(facility().issue()), authority);
  require_refused(identity_of(stranger().issue()), authority, "there is no revocation list of 'Stranger'", "it cannot be checked");
}

TEST_CASE("certificates__a_chain_over_an_intermediate__certified_from_either_end_of_trust") {
  const Facility between("Between", &facility()), below("Below", &between);
  const Issued host = below.issue();
  require_certified(identity_of(host), authority_of(facility().pem()));
  require_certified(identity_of(host), authority_of(below.pem()));  // an authority need not be a root
  require_certified(identity_of(host), authority_of(between.pem()));
  Issued with_root = below.issue();  // a peer may send its root along
  with_root.chain_pem += facility().pem();
  require_certified(identity_of(with_root), authority_of(facility().pem()));
  require_certified(identity_of(with_root), authority_of(below.pem()));
  require_refused(identity_of(with_root), authority_of(stranger().pem()), "is signed by an authority that we do not know",
                  "the peer does not know the authority");
  const Identity without_chain = identity_of(pem_of(host.certificate.get()), host.key_pem());
  require_refused(without_chain, authority_of(facility().pem()), "is signed by an authority that we do not know ('Below')",
                  "the peer does not know the authority");
}

TEST_CASE("certificates__a_chain_of_eight_authorities_between__certified_and_of_nine_refused") {
  std::vector<std::unique_ptr<Facility>> chain;
  chain.push_back(std::make_unique<Facility>("Root", nullptr, IssueOptions{.key = "ED25519"}));
  for (int i = 1; i <= 9; ++i) {
    if (i == 9) require_certified(identity_of(chain.back()->issue()), authority_of(chain.front()->pem()));
    chain.push_back(std::make_unique<Facility>("Between " + std::to_string(i), chain.back().get(), IssueOptions{.key = "ED25519"}));
  }
  for (const HandshakeSide judge : {dialler, acceptor}) {
    const Outcome outcome = judged(identity_of(chain.back()->issue()), judge, authority_of(chain.front()->pem()));
    CHECK_FALSE(outcome.done);
    REQUIRE(outcome.error);
    CHECK(outcome.error->kind == ErrorKind::authentication);
  }
}

TEST_CASE("certificates__an_intermediate_that_expired__refused_by_its_name") {
  const Facility between("Between", &facility(), {.not_after_s = test_now_s - day_s});
  require_refused(identity_of(between.issue()), authority_of(facility().pem()),
                  "the certificate of the authority 'Between' has expired (2027-01-14)", "it has expired");
}

TEST_CASE("certificates__an_intermediate_that_is_revoked__refused_by_its_name") {
  const Facility between("Between", &facility());
  const Issued host = between.issue();
  const std::string both = facility().pem() + between.pem();
  require_certified(identity_of(host), authority_of(both, facility().revocation_list({}) + between.revocation_list({})));
  require_refused(identity_of(host), authority_of(both, facility().revocation_list({&between.own()}) + between.revocation_list({})),
                  "the certificate of the authority 'Between' is revoked", "it is revoked");
}

TEST_CASE("certificates__a_list_of_the_intermediate_and_none_of_the_root__enough") {
  const Facility between("Between", &facility());
  const Issued bad = between.issue(), good = between.issue();
  for (const std::string& file : {facility().pem() + between.pem(), between.pem()}) {
    const Authority authority = authority_of(file, between.revocation_list({&bad}));
    require_certified(identity_of(good), authority);
    require_refused(identity_of(bad), authority, "the peer's certificate is revoked", "it is revoked");
  }
}

TEST_CASE("certificates__signed_by_a_host_of_ours__refused") {
  const Facility host_as_authority("Host", &facility(), {.constraints = "critical,CA:FALSE,pathlen:0"});
  const Identity host = identity_of(host_as_authority.issue());
  for (const HandshakeSide judge : {dialler, acceptor}) {
    const Outcome outcome = judged(host, judge, authority_of(facility().pem()));
    CHECK_FALSE(outcome.done);
    REQUIRE(outcome.error);
    INFO(outcome.error->message);
    CHECK(outcome.error->kind == ErrorKind::authentication);
  }
}

TEST_CASE("certificates__an_intermediate_as_a_peer__refused_as_an_authority") {
  const Facility between("Between", &facility());
  require_refused(identity_of(between.own()), authority_of(facility().pem()), "is that of an authority",
                  "it is not for this purpose");
}

TEST_CASE("certificates__extended_key_usage__must_have_the_side_of_the_peer") {
  const Authority authority = authority_of(facility().pem());
  const auto done = [&](const char* purposes, HandshakeSide judge) {
    const Outcome outcome = judged(identity_of(facility().issue({.purposes = purposes})), judge, authority);
    if (outcome.error) CHECK(outcome.error->message.find("not for this purpose") != std::string::npos);
    return outcome.done;
  };
  CHECK(done("", dialler));
  CHECK(done("", acceptor));
  CHECK(done("serverAuth", dialler));
  CHECK_FALSE(done("serverAuth", acceptor));
  CHECK_FALSE(done("clientAuth", dialler));
  CHECK(done("clientAuth", acceptor));
  CHECK_FALSE(done("codeSigning,emailProtection", dialler));
  CHECK_FALSE(done("codeSigning,emailProtection", acceptor));
}

TEST_CASE("certificates__names_with_zero_bytes_or_control_characters__left_out") {
  const Authority authority = authority_of(facility().pem());
  for (const std::string& name :
       {std::string("good.example\0.evil.example", 26), std::string("a\x1b[2J"), std::string("a b"), std::string("\xc3\xa9")}) {
    const Identity host =
        identity_of(facility().issue({.alt_names = "DNS:real.example,email:a@b.example,URI:http://c/", .raw_dns_name = name}));
    const Outcome outcome = judged(host, dialler, authority);
    REQUIRE(outcome.done);
    CHECK(outcome.peer.names == std::vector<std::string>{"real.example"});
  }
  const Identity none = identity_of(facility().issue({.name = "common.example", .alt_names = ""}));
  CHECK(judged(none, dialler, authority).peer.names.empty());  // a common name is no name
}

TEST_CASE("certificates__weak_keys_and_signatures__refused") {
  const Issued sha1 = facility().issue({.digest = EVP_sha1()});
  const Issued weak = self_signed({.key = "RSA:1024"});
  for (const HandshakeSide judge : {dialler, acceptor}) {
    for (const Issued* shown : {&sha1, &weak}) {
      RawPeer peer(judge == dialler ? acceptor : dialler);
      SSL_CTX_set_security_level(peer.context(), 0);
      peer.certificate(shown->certificate.get(), shown->key.get());
      Side ours(judge, Identity::generate().value(), authority_of(facility().pem()));
      run(ours, peer);
      CHECK(ours.refused_with(ErrorKind::authentication, shown == &weak ? "the peer's key is not taken (RSA of 1024 bits)"
                                                                        : "the signature of the peer's certificate is too weak"));
    }
  }
}

// A key that claims to be the one of `victim` and signs with another.
PkeyPtr forged(const PkeyPtr& victim) {
  std::array<unsigned char, 32> own{}, claimed{};
  size_t length = claimed.size();
  REQUIRE(EVP_PKEY_get_raw_public_key(victim.get(), claimed.data(), &length) == 1);
  const PkeyPtr thief = make_key("ED25519");
  REQUIRE(EVP_PKEY_get_raw_private_key(thief.get(), own.data(), &length) == 1);
  OSSL_PARAM parameters[] = {OSSL_PARAM_construct_octet_string("pub", claimed.data(), claimed.size()),
                             OSSL_PARAM_construct_octet_string("priv", own.data(), own.size()), OSSL_PARAM_construct_end()};
  const std::unique_ptr<EVP_PKEY_CTX, FreedBy<EVP_PKEY_CTX_free>> context(EVP_PKEY_CTX_new_from_name(nullptr, "ED25519", nullptr));
  EVP_PKEY* key = nullptr;
  REQUIRE(EVP_PKEY_fromdata_init(context.get()) == 1);
  REQUIRE(EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters) == 1);
  return PkeyPtr(key);
}

TEST_CASE("certificates__shown_by_somebody_without_its_key__refused") {
  const Issued host = facility().issue({.key = "ED25519"});
  const PkeyPtr thief = forged(host.key);
  for (const HandshakeSide judge : {dialler, acceptor}) {
    RawPeer peer(judge == dialler ? acceptor : dialler);
    peer.certificate(host.certificate.get(), thief.get());
    Side ours(judge, Identity::generate().value(), authority_of(facility().pem()));
    run(ours, peer);
    CHECK(ours.refused_with(ErrorKind::authentication, "has not the key of its certificate"));
    CHECK_FALSE(ours.handshake.done());
  }
}

TEST_CASE("certificates__a_refusal_in_pieces_after_the_end__told_when_it_is_whole") {
  Side dials(dialler, identity_of(stranger().issue()));
  Side accepts(acceptor, Identity::generate().value(), authority_of(facility().pem()));
  const auto last = dials.step(accepts.step(dials.step({})));
  REQUIRE(dials.handshake.done());
  const auto alert = accepts.step(last);
  REQUIRE(accepts.refused_with(ErrorKind::authentication, "authority that we do not know"));
  for (size_t at = 0; at < alert.size(); ++at) {
    CHECK_FALSE(dials.error);
    static_cast<void>(dials.step(Bytes(alert).subspan(at, 1)));
  }
  CHECK(dials.refused_with(ErrorKind::authentication, "the peer refused our certificate: the peer does not know the authority"));
  CHECK_FALSE(dials.handshake.done());
}

// Of a connection that stands for weeks: the authority, its lists and the time are those of now.
TEST_CASE("certificates__judged_anew__is_as_a_new_handshake_would_be") {
  const Facility below("Below", &facility());
  const Issued host = below.issue(), plain = facility().issue();
  for (const HandshakeSide judge : {dialler, acceptor}) {
    const ProvedPeer peer = judged(identity_of(host), judge, authority_of(facility().pem())).peer;
    REQUIRE(peer.certified);
    CHECK(why_no_longer(peer, authority_of(facility().pem()), test_now_s + 364 * day_s).empty());
    CHECK(why_no_longer(peer, authority_of(facility().pem()), test_now_s + 366 * day_s).find("has expired") != std::string::npos);
    CHECK(why_no_longer(peer, authority_of(stranger().pem()), test_now_s).find("do not know") != std::string::npos);
    CHECK_FALSE(why_no_longer(peer, std::nullopt, test_now_s).empty());
    const ProvedPeer other = judged(identity_of(plain), judge, authority_of(facility().pem())).peer;
    const Authority good = authority_of(facility().pem(), facility().revocation_list({}));
    const Authority revoking = authority_of(facility().pem(), facility().revocation_list({&plain}));
    CHECK(why_no_longer(other, good, test_now_s).empty());
    CHECK(why_no_longer(other, revoking, test_now_s).find("is revoked") != std::string::npos);
    const ProvedPeer by_key = judged(Identity::generate().value(), judge, authority_of(facility().pem())).peer;
    CHECK(why_no_longer(by_key, revoking, test_now_s + 999 * day_s).empty());
  }
}

}  // namespace
}  // namespace ccixfer::trust

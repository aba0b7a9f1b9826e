// The tickets of an account: how they are kept, used and used up, by several processes too.
#include "app/trust/ticket_store.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "tests/unit/policy/rig.h"

namespace ccixfer::policy {
using namespace test;
namespace {

constexpr int64_t start_s = 1'800'000'000;
constexpr int64_t day_s = 24 * 3600;

TransferId transfer(uint8_t number) { return {number}; }

struct Rig {
  TempDir directory;
  std::string file = directory.path() + "/state/tickets";
  int64_t now_s = start_s;
  TicketStore store{file, [this] { return now_s; }};
  std::array<uint8_t, 32> raw{7};
  trust::Secret exported{raw};  // of the handshake

  trust::Ticket issue(uint32_t uses = 1, Direction direction = Direction::write, const std::string& root = "/srv") {
    auto ticket = store.issue({direction, root, static_cast<uint64_t>(day_s), uses}, id_of(1), {"tcp://h:1"});
    INFO((ticket ? "" : ticket.error().message));
    REQUIRE(ticket);
    return *ticket;
  }
  Result<TicketUse> admit(TicketStore& by, const trust::Ticket& ticket, uint8_t number, const std::string& root = "/srv") {
    const trust::Mac proof = trust::prove(ticket.secret, ticket.number, exported);
    return by.admit(ticket.number, std::as_bytes(std::span(proof)), exported, root, transfer(number));
  }
  Result<TicketUse> admit(const trust::Ticket& ticket, uint8_t number, const std::string& root = "/srv") {
    return admit(store, ticket, number, root);
  }
  void use(const trust::Ticket& ticket, uint8_t number) {
    auto use = admit(ticket, number);
    REQUIRE(use);
    REQUIRE(use->delivered());
  }
};

}  // namespace

TEST_CASE("tickets__issued__names_its_listener_and_is_kept_in_a_private_file") {
  Rig rig;
  const auto ticket = rig.issue();
  CHECK(ticket.listener == id_of(1));
  CHECK(ticket.expires_s == start_s + day_s);
  CHECK(ticket.addresses == std::vector<std::string>{"tcp://h:1"});
  CHECK(ticket.number != rig.issue().number);
  CHECK(mode_of(rig.file) == 0600);
  CHECK(mode_of(rig.directory.path() + "/state") == 0700);
  const auto row = rig.store.find(ticket.number);
  REQUIRE((row && *row));
  CHECK((*row)->root == "/srv");
  CHECK_FALSE(rig.store.find({}).value().has_value());
}

TEST_CASE("tickets__proved__is_admitted_also_after_a_restart") {
  Rig rig;
  const auto ticket = rig.issue(1, Direction::read);
  CHECK(rig.admit(ticket, 1));
  TicketStore restarted(rig.file, [&] { return rig.now_s; });
  const auto use = rig.admit(restarted, ticket, 1);
  REQUIRE(use);
  CHECK(use->direction() == Direction::read);
  CHECK(use->number() == ticket.number);
}

TEST_CASE("tickets__unknown_wrong_proof_and_other_root__same_words") {
  Rig rig;
  const auto ticket = rig.issue();
  auto wrong = ticket, unknown = ticket;
  wrong.secret[0] ^= 1;
  unknown.number[0] ^= 1;
  std::set<std::string> words;
  words.insert(refusal(rig.admit(wrong, 1), ErrorKind::authentication));
  words.insert(refusal(rig.admit(unknown, 1), ErrorKind::authentication));
  words.insert(refusal(rig.admit(ticket, 1, "/srv2"), ErrorKind::authentication));
  words.insert(refusal(rig.store.admit(ticket.number, {}, rig.exported, "/srv", transfer(1)), ErrorKind::authentication));
  const trust::Mac of_other_handshake = trust::prove(ticket.secret, ticket.number, trust::Secret());
  words.insert(
      refusal(rig.store.admit(ticket.number, std::as_bytes(std::span(of_other_handshake)), rig.exported, "/srv", transfer(1)),
              ErrorKind::authentication));
  CHECK(words.size() == 1);
}

TEST_CASE("tickets__a_use__is_taken_by_what_was_delivered_only") {
  Rig rig;
  const auto ticket = rig.issue(2);
  for (uint8_t interrupted = 1; interrupted < 10; ++interrupted) CHECK(rig.admit(ticket, interrupted));
  rig.use(ticket, 20);
  rig.use(ticket, 21);
  contains(refusal(rig.admit(ticket, 22), ErrorKind::authentication), "used up");
  TicketStore restarted(rig.file, [&] { return rig.now_s; });
  contains(refusal(rig.admit(restarted, ticket, 22), ErrorKind::authentication), "used up");
}

TEST_CASE("tickets__at_a_time__as_many_transfers_as_uses_are_left_whatever_their_sessions") {
  Rig rig;
  const auto ticket = rig.issue(2);
  auto first = rig.admit(ticket, 1);
  const auto first_again = rig.admit(ticket, 1);  // a new session of the same transfer
  REQUIRE((first && first_again));
  auto second = rig.admit(ticket, 2);
  REQUIRE(second);
  contains(refusal(rig.admit(ticket, 3), ErrorKind::network), "in use");
  first = tl::unexpected(Error{});  // one of two sessions of the first
  refusal(rig.admit(ticket, 3), ErrorKind::network);
  CHECK(rig.admit(ticket, 1));
  second = tl::unexpected(Error{});
  CHECK(rig.admit(ticket, 3));
}

TEST_CASE("tickets__looked_at__takes_nothing_and_refuses_what_would_never_be_admitted") {
  Rig rig;
  const auto ticket = rig.issue(1, Direction::read);
  const auto look = [&](const trust::Ticket& shown, uint8_t number, const std::string& root = "/srv") {
    const trust::Mac proof = trust::prove(shown.secret, shown.number, rig.exported);
    return rig.store.look(shown.number, std::as_bytes(std::span(proof)), rig.exported, root, transfer(number));
  };
  CHECK(look(ticket, 1).value() == Direction::read);
  auto use = rig.admit(ticket, 2);
  REQUIRE(use);
  CHECK(look(ticket, 3));  // in use, so it may wait
  auto wrong = ticket;
  wrong.secret[0] ^= 1;
  const std::string words = refusal(look(wrong, 1), ErrorKind::authentication);
  CHECK(refusal(look(ticket, 1, "/srv2"), ErrorKind::authentication) == words);
  REQUIRE(use->delivered());
  contains(refusal(look(ticket, 3), ErrorKind::authentication), "used up");
  contains(refusal(authorise(ticket.number, Direction::read, Direction::write, ""), ErrorKind::not_authorised), "other direction");
}

TEST_CASE("tickets__one_delivered_and_still_there__does_not_count_twice") {
  Rig rig;
  const auto ticket = rig.issue(2);
  auto first = rig.admit(ticket, 1);
  REQUIRE((first && first->delivered()));
  const auto second = rig.admit(ticket, 2);
  REQUIRE(second);
  refusal(rig.admit(ticket, 3), ErrorKind::network);
  REQUIRE(first->delivered());  // told twice: one use
  CHECK((*rig.store.find(ticket.number).value()).uses_left == 1);
}

TEST_CASE("tickets__delivered_but_the_end_was_not_heard__may_come_again_for_a_while") {
  Rig rig;
  const auto ticket = rig.issue();
  rig.use(ticket, 1);
  TicketStore restarted(rig.file, [&] { return rig.now_s; });
  rig.now_s += ticket_echo_s;
  CHECK(rig.admit(restarted, ticket, 1));
  refusal(rig.admit(restarted, ticket, 2), ErrorKind::authentication);
  rig.now_s += 1;
  contains(refusal(rig.admit(restarted, ticket, 1), ErrorKind::authentication), "used up");
}

TEST_CASE("tickets__used_up_and_the_clock_is_set_back__it_is_not_revived") {
  Rig rig;
  const auto ticket = rig.issue();
  rig.use(ticket, 1);
  rig.now_s -= ticket_echo_s;  // a clock that is put right says less than it did, by a little
  CHECK(rig.admit(ticket, 1));
  rig.now_s -= 1;
  contains(refusal(rig.admit(ticket, 1), ErrorKind::authentication), "used up");
}

// Its id is the peer's choice: one that was delivered once is good for no transfer without a use.
TEST_CASE("tickets__delivered_under_the_same_id_after_a_while__takes_a_use_each_time") {
  Rig rig;
  const auto ticket = rig.issue(3);
  rig.use(ticket, 1);
  rig.now_s += ticket_echo_s;
  rig.use(ticket, 1);  // it had not heard the end
  CHECK((*rig.store.find(ticket.number).value()).uses_left == 2);
  rig.now_s += 1;
  rig.use(ticket, 1);
  CHECK((*rig.store.find(ticket.number).value()).uses_left == 1);
  rig.now_s += ticket_echo_s + 1;
  {
    auto again = rig.admit(ticket, 1);
    REQUIRE(again);
    contains(refusal(rig.admit(ticket, 2), ErrorKind::network), "in use");  // it runs, and will take the last use
    REQUIRE(again->delivered());
  }
  CHECK((*rig.store.find(ticket.number).value()).uses_left == 0);
  rig.now_s += ticket_echo_s + 1;
  contains(refusal(rig.admit(ticket, 1), ErrorKind::authentication), "used up");
}

// A session that comes again in time may last as long as it likes. It must not be good for another one behind it.
TEST_CASE("tickets__used_up__is_not_revived_by_sessions_that_come_again_and_end_late") {
  Rig rig;
  const auto ticket = rig.issue();
  rig.use(ticket, 1);
  {
    rig.now_s += ticket_echo_s;
    auto again = rig.admit(ticket, 1);
    REQUIRE(again);
    rig.now_s += ticket_echo_s;
    REQUIRE(again->delivered());
  }
  contains(refusal(rig.admit(ticket, 1), ErrorKind::authentication), "used up");
  rig.now_s = start_s + ticket_told_s + 1;  // it is told for as long as from its own delivery, and not from the later one
  CHECK_FALSE(rig.store.find(ticket.number).value().has_value());
}

TEST_CASE("tickets__expired__is_told_to_its_holder_only_and_a_running_transfer_goes_on") {
  Rig rig;
  const auto ticket = rig.issue();
  const auto running = rig.admit(ticket, 1);
  REQUIRE(running);
  rig.now_s += day_s - 1;
  CHECK(rig.admit(ticket, 1));
  rig.now_s += 1;
  CHECK(rig.admit(ticket, 1));
  contains(refusal(rig.admit(ticket, 2), ErrorKind::authentication), "has expired");
  auto wrong = ticket;
  wrong.secret[3] ^= 1;
  contains(refusal(rig.admit(wrong, 1), ErrorKind::authentication), "not accepted");
}

TEST_CASE("tickets__over_for_long__are_pruned") {
  Rig rig;
  const auto expired = rig.issue();
  rig.now_s += day_s + ticket_told_s;
  CHECK(rig.store.find(expired.number).value().has_value());
  rig.now_s += 1;
  CHECK_FALSE(rig.store.find(expired.number).value().has_value());
  contains(refusal(rig.admit(expired, 1), ErrorKind::authentication), "not accepted");
  static_cast<void>(rig.issue());
  CHECK(content_of(rig.file).find(to_text(expired.number)) == std::string::npos);
}

TEST_CASE("tickets__a_disk_that_takes_no_more__the_use_is_taken_all_the_same") {
  Rig rig;
  const auto ticket = rig.issue();
  auto use = rig.admit(ticket, 1);
  REQUIRE(use);
  // The file is there, and cannot be replaced.
  const std::string state = rig.directory.path() + "/state";
  REQUIRE(mkdir((rig.file + "." + std::to_string(getpid()) + ".tmp").c_str(), 0700) == 0);
  CHECK_FALSE(use->delivered());
  contains(refusal(rig.admit(ticket, 2), ErrorKind::authentication), "used up");
  REQUIRE(rmdir((rig.file + "." + std::to_string(getpid()) + ".tmp").c_str()) == 0);
  static_cast<void>(rig.issue());
  TicketStore restarted(rig.file, [&] { return rig.now_s; });
  contains(refusal(rig.admit(restarted, ticket, 2), ErrorKind::authentication), "used up");
}

TEST_CASE("tickets__a_use_that_the_disk_did_not_take__is_written_before_the_process_has_gone") {
  Rig rig;
  const auto ticket = rig.issue(3);
  const std::string in_the_way = rig.file + "." + std::to_string(getpid()) + ".tmp";
  const auto left_on_disk = [&] { return parse_ticket_rows(content_of(rig.file), "f").value().front().uses_left; };
  const auto use_in_vain = [&](TicketStore& store, uint8_t number) {
    auto use = rig.admit(store, ticket, number);
    REQUIRE(use);
    REQUIRE(mkdir(in_the_way.c_str(), 0700) == 0);
    CHECK_FALSE(use->delivered());
    REQUIRE(rmdir(in_the_way.c_str()) == 0);
  };
  {
    TicketStore store(rig.file, [&] { return rig.now_s; });
    use_in_vain(store, 1);
    CHECK(left_on_disk() == 3);
    CHECK(rig.admit(store, ticket, 2));
    CHECK(left_on_disk() == 2);
    use_in_vain(store, 3);
  }
  CHECK(left_on_disk() == 1);
}

TEST_CASE("tickets__two_processes__lose_none_of_each_others") {
  Rig rig;
  constexpr int each = 20;
  const pid_t child = fork();
  REQUIRE(child >= 0);
  for (int i = 0; i < each; ++i) {
    const auto ticket = rig.store.issue({Direction::write, "/srv", 60, 1}, id_of(1), {"tcp://h:1"});
    if (child == 0 && !ticket) _exit(1);
    if (child != 0) CHECK(ticket);
  }
  if (child == 0) _exit(0);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(parse_ticket_rows(content_of(rig.file), "f").value().size() == 2 * each);
}

// Two stores of one file are as two processes: each has an open file of its own, which is what locks belong to.
TEST_CASE("tickets__two_processes_at_a_time__run_no_more_transfers_than_uses_are_left") {
  Rig rig;
  TicketStore other(rig.file, [&] { return rig.now_s; }), third(rig.file, [&] { return rig.now_s; });
  const auto ticket = rig.issue(2);
  const auto another = rig.issue(1);
  auto first = rig.admit(ticket, 1);
  auto second = rig.admit(other, ticket, 2);
  REQUIRE((first && second));
  for (TicketStore* store : {&rig.store, &other, &third})
    contains(refusal(rig.admit(*store, ticket, 3), ErrorKind::network), "in use");
  CHECK(rig.admit(third, another, 1));  // the places of another ticket are its own
  REQUIRE(first->delivered());
  contains(refusal(rig.admit(third, ticket, 3), ErrorKind::network), "in use");  // one use is left, and the second one has it
  second = tl::unexpected(Error{});
  auto again = rig.admit(third, ticket, 3);
  REQUIRE(again);
  refusal(rig.admit(other, ticket, 2), ErrorKind::network);
  REQUIRE(again->delivered());
  contains(refusal(rig.admit(other, ticket, 2), ErrorKind::authentication), "used up");
  CHECK(mode_of(rig.file + ".running") == 0600);
}

TEST_CASE("tickets__a_process_that_dies_in_a_transfer__leaves_its_place") {
  Rig rig;
  const auto ticket = rig.issue();
  std::array<int, 2> taken{}, end{};
  REQUIRE((pipe(taken.data()) == 0 && pipe(end.data()) == 0));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  char byte = 0;
  if (child == 0) {
    TicketStore its(rig.file, [&] { return rig.now_s; });
    const auto use = rig.admit(its, ticket, 1);
    byte = use ? 'y' : 'n';
    static_cast<void>(::write(taken[1], &byte, 1));
    close(end[1]);
    static_cast<void>(::read(end[0], &byte, 1));
    _exit(0);
  }
  REQUIRE(::read(taken[0], &byte, 1) == 1);
  CHECK(byte == 'y');
  refusal(rig.admit(ticket, 2), ErrorKind::network);
  for (const int fd : {end[1], end[0], taken[0], taken[1]}) close(fd);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(rig.admit(ticket, 2));
}

TEST_CASE("tickets__a_file_that_others_may_read_or_that_is_damaged__is_refused_with_its_place") {
  Rig rig;
  const auto ticket = rig.issue();
  REQUIRE(chmod(rig.file.c_str(), 0640) == 0);
  contains(refusal(rig.admit(ticket, 1), ErrorKind::usage), rig.file + ": others may read it: chmod 600 ");
  REQUIRE(chmod(rig.file.c_str(), 0600) == 0);
  write(rig.file, "ccixfer tickets 1\nnonsense\n");
  contains(refusal(rig.admit(ticket, 1), ErrorKind::usage), rig.file + ":2: ");
  refusal(rig.store.issue({Direction::write, "/srv", 60, 1}, id_of(1), {"tcp://h:1"}), ErrorKind::usage);
  CHECK(content_of(rig.file) == "ccixfer tickets 1\nnonsense\n");  // and stays for whoever mends it
}

TEST_CASE("tickets__an_account_without_a_home__has_no_place_for_them") {
  const TempDir directory;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  TicketStore store("", [] { return start_s; });
  refusal(store.issue({Direction::write, "/srv", 60, 1}, id_of(1), {"tcp://h:1"}), ErrorKind::usage);
  CHECK(std::filesystem::is_empty(directory.path()));  // nor a lock, where the process happens to be
  std::filesystem::current_path(before);
}

TEST_CASE("tickets__addresses__those_that_fit_are_taken") {
  Rig rig;
  std::vector<std::string> many(20, "tcp://h:1");
  many.insert(many.begin(), "tcp://" + std::string(300, 'h') + ":1");
  const auto ticket = rig.store.issue({Direction::write, "/srv", 60, 1}, id_of(1), many);
  REQUIRE(ticket);
  CHECK(ticket->addresses.size() == trust::ticket_addresses_max);
  CHECK(trust::parse_ticket(trust::to_text(*ticket)));
  refusal(rig.store.issue({Direction::write, "/srv", 60, 1}, id_of(1), {many.front()}), ErrorKind::usage);
}

TEST_CASE("tickets__what_a_ticket_permits__is_one_direction_and_no_special_files") {
  Rig rig;
  const auto ticket = rig.issue();
  const auto use = rig.admit(ticket, 1);
  REQUIRE(use);
  const auto grant = authorise(*use, Direction::write, "any/where");
  REQUIRE(grant);
  CHECK(grant->name == "ticket " + to_text(ticket.number));
  CHECK(covers(*grant, ""));
  CHECK_FALSE((grant->quota_bytes || grant->entries_max || grant->rate_bytes_per_s || grant->devices || grant->setid));
  contains(refusal(authorise(*use, Direction::read, ""), ErrorKind::not_authorised), "other direction");
}

TEST_CASE("ticket_rows__bytes_by_hand__are_read_and_written") {
  const std::string text =
      "ccixfer tickets 1\n"
      "0102030405060708 000102030405060708090a0b0c0d0e0f 1800086400 3 read /srv/with%20space%0a "
      "00112233445566778899aabbccddeeff@1800000001\n";
  const auto rows = parse_ticket_rows(text, "f");
  REQUIRE(rows);
  REQUIRE(rows->size() == 1);
  const TicketRow& row = rows->front();
  CHECK(row.number == trust::TicketNumber{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(row.secret[15] == 15);
  CHECK(row.expires_s == 1'800'086'400);
  CHECK(row.uses_left == 3);
  CHECK(row.direction == Direction::read);
  CHECK(row.root == "/srv/with space\n");
  REQUIRE(row.delivered.size() == 1);
  CHECK(row.delivered[0].transfer[15] == 0xff);
  CHECK(row.delivered[0].at_s == 1'800'000'001);
  CHECK(format_ticket_rows(*rows) == text);
  CHECK(parse_ticket_rows("", "f").value().empty());
}

TEST_CASE("ticket_rows__each_part_that_is_wrong__names_the_line_and_says_nothing_of_it") {
  const std::string number = "0102030405060708", secret = "000102030405060708090a0b0c0d0e0f", first = "ccixfer tickets 1\n";
  for (const std::string& bad : std::vector<std::string>{
           "010203040506070", "0102030405060708 " + secret, number + " " + secret + " -1 1 read /r",
           number + " " + secret + " 1 1001 read /r", number + " " + secret + " 1 1 both /r", number + " " + secret + " 1 1 read r",
           number + " " + secret + " 1 1 read /r%0", number + " " + secret + " 1 1 read /r%00",
           number + " " + secret + " 1 1 read /r\x01", number + "  " + secret + " 1 1 read /r",
           number + " " + secret + " 1 1 read /r ", number + " " + secret + " 1 1 read /r 00@1",
           number + " " + secret + " 1 1 read /r 00112233445566778899aabbccddeeff", number + " " + secret + "x 1 1 read /r",
           "0102030405060708X " + secret + " 1 1 read /r", number + " " + secret + " 1 one read /r"}) {
    INFO(bad);
    const auto words = refusal(parse_ticket_rows(first + bad + "\n", "f"), ErrorKind::usage);
    contains(words, "f:2: ");
    CHECK(words.find("01020304") == std::string::npos);
  }
  contains(refusal(parse_ticket_rows("ccixfer tickets 2\n", "f"), ErrorKind::usage), "f:1: ");
}

}  // namespace ccixfer::policy

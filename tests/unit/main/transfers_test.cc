// `send` and `recv` in one process: what is between the command line's options and the roles of a transfer.
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <future>

#include "app/main/transfer_loop.h"
#include "app/metrics/activity.h"
#include "tests/unit/main/running.h"

using namespace ccixfer;
using namespace ccixfer::program;
using namespace ccixfer::program::test;
using namespace std::chrono_literals;

namespace {

// Under a cap of 1 byte/s the first two segments pass, and then nothing.
const std::string without_end(16u << 20, 'x');

bool only_in(const TemporaryDirectory& directory, const Words& names) {
  Words found;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path())) {
    if (entry.path().filename() != ".ccixfer") found.push_back(entry.path().filename());
  }
  std::sort(found.begin(), found.end());
  return found == names;
}

// It is in a disk that does not answer until somebody lets it go.
class StuckJob final : public ports::Job {
 public:
  explicit StuckJob(std::shared_future<void> let_go) : let_go_(std::move(let_go)) {}
  void run(ports::FileSystem&) override { let_go_.wait(); }
  void done() override {}

 private:
  const std::shared_future<void> let_go_;
};

}  // namespace

TEST_CASE("transfers__one_file_to_a_receiver_for_once__both_end_well_and_count_alike") {
  TemporaryDirectory from, to;
  from.write("f", "hello");
  ReceiveCommand receive = receiver(to.path(), true);
  receive.listen.uri_file = from.path("uris");
  Running receiving_side(receiving(receive));
  const std::string uri = receiving_side.uri();
  CHECK(from.read("uris") == uri + "\n");
  const Ran sent(sending(send_of({from.path("f")}, uri + "/g")));
  CHECK(of(sent.end) == "ok: ");
  CHECK(sent.end.tally.files == 1);
  CHECK(sent.end.tally.bytes == 5);
  CHECK_FALSE(sent.end.in_use);
  CHECK(to.read("g") == "hello");
  const CommandEnd& received = receiving_side.wait();
  CHECK(of(received) == "ok: ");
  CHECK(received.tally.files == 1);
  CHECK(received.tally.bytes == 5);
  CHECK_FALSE(from.has("uris"));  // gone with the listener
}

// As in its events and its history: whoever watches the metrics alone sees that something failed.
TEST_CASE("transfers__what_the_source_could_not_list__counts_as_failed_in_the_receivers_metrics") {
  TemporaryDirectory from, to;
  from.write("f", "hello");
  metrics::Activity activity;
  Running receiving_side([&](const Process& process) {
    Process watched = process;
    watched.activity = &activity;
    return run_receive(watched, receiver(to.path(), true));
  });
  const Ran sent(sending(send_of({from.path("absent"), from.path("f")}, receiving_side.uri() + "/")));
  INFO(of(sent.end));
  CHECK(sent.end.error.kind == ErrorKind::partial);
  const CommandEnd& received = receiving_side.wait();
  CHECK(received.error.kind == ErrorKind::partial);
  CHECK(received.tally.unlisted_failed == 1);
  CHECK(activity.files_failed() == 1);
  CHECK(activity.files() == 1);
}

TEST_CASE("transfers__a_receiver_that_reads_its_configuration_again__says_what_takes_a_restart") {
  TemporaryDirectory here, to;
  const std::string file = here.path("receiver.toml");
  here.write("receiver.toml", "");
  ReceiveCommand receive = receiver(to.path());
  receive.common.config_file = file;
  Running receiving_side(receiving(receive), load_config(file).value());
  static_cast<void>(receiving_side.uri());
  here.write("receiver.toml", "[metrics]\nlisten = \"127.0.0.1:0\"\n");
  receiving_side.signal(SIGHUP);
  CHECK(of(receiving_side.stop()) == "ok: ");
  CHECK(receiving_side.said.text.lines(file + ": metrics.listen: another value takes a restart").size() == 1);
}

TEST_CASE("transfers__that_end_well__leave_no_descriptor_of_theirs") {
  TemporaryDirectory from, to;
  from.write("f", "hello");
  Running receiving_side(receiving(receiver(to.path())));
  const std::string uri = receiving_side.uri();
  CHECK(of(Ran(sending(send_of({from.path("f")}, uri + "/g"))).end) == "ok: ");
  const auto open_now = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  CHECK(of(receiving_side.stop()) == "ok: ");
  const auto before = open_now();
  {
    Running again(receiving(receiver(to.path())));
    CHECK(of(Ran(sending(send_of({from.path("f")}, again.uri() + "/h"))).end) == "ok: ");
    CHECK(of(again.stop()) == "ok: ");
  }
  CHECK(open_now() == before);
}

TEST_CASE("transfers__several_sources_or_a_slash__go_into_the_directory") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  from.write("b", "2");
  Running receiving_side(receiving(receiver(to.path())));
  const std::string uri = receiving_side.uri();
  CHECK(of(Ran(sending(send_of({from.path("a"), from.path("b")}, uri + "/two"))).end) == "ok: ");
  CHECK(of(Ran(sending(send_of({from.path("a")}, uri + "/one/"))).end) == "ok: ");
  CHECK(of(Ran(sending(send_of({from.path("a")}, uri))).end) == "ok: ");
  CHECK(to.read("two/a") == "1");
  CHECK(to.read("two/b") == "2");
  CHECK(to.read("one/a") == "1");
  CHECK(to.read("a") == "1");
  CHECK(of(receiving_side.stop()) == "ok: ");  // nothing was cut short
  CHECK(receiving_side.wait().tally.files == 4);
}

TEST_CASE("transfers__sources_that_are_not_there__are_said_before_anything_is_dialled") {
  TemporaryDirectory from;
  from.write("f", "x");
  const std::string nobody = "tcp://127.0.0.1:1";
  const auto ended = [&](std::vector<std::string> sources) { return of(Ran(sending(send_of(std::move(sources), nobody))).end); };
  CHECK(ended({from.path("no\nne"), from.path("gone")}) ==
        "source_selection: cannot select the source: " + from.path("no%0Ane") +
            ": No such file or directory: name a file or directory that can be read");
  std::filesystem::create_symlink("nowhere", from.path("link"));  // it is there; the walk judges it by what it points to
  SendCommand dangling = send_of({from.path("link")}, nobody);
  dangling.transfer.retries = 0;
  CHECK(Ran(sending(dangling)).end.error.kind == ErrorKind::source_selection);
  dangling.transfer.archive = true;  // then the link itself is sent
  CHECK(Ran(sending(dangling)).end.error.kind == ErrorKind::no_answer);
}

// Whoever sends what a list names, and writes it anew, would lose the names otherwise.
TEST_CASE("transfers__nobody_is_reached__the_list_of_what_failed_stays") {
  TemporaryDirectory from, to;
  from.write("f", "hello");
  from.write("failed", "of yesterday\n");
  SendCommand send = send_of({from.path("f")}, "tcp://127.0.0.1:1/f");
  send.transfer.retries = 0;
  send.transfer.failed_list = from.path("failed");
  ReceiveCommand pull = pull_of({"tcp://127.0.0.1:1/f"}, to.path("d"));
  pull.transfer.retries = 0;
  pull.transfer.failed_list = from.path("failed");
  CHECK(Ran(sending(send)).end.error.kind == ErrorKind::no_answer);
  CHECK(Ran(receiving(pull)).end.error.kind == ErrorKind::no_answer);
  send.team.part = "2/2";
  CHECK(Ran(sending(send)).end.error.kind == ErrorKind::no_answer);
  CHECK(from.read("failed") == "of yesterday\n");
  Running receiving_side(receiving(receiver(to.path())));
  send.destination = receiving_side.uri() + "/f";
  send.team.part = "";
  CHECK(of(Ran(sending(send)).end) == "ok: ");
  CHECK(from.read("failed").empty());
}

TEST_CASE("transfers__standard_input__is_a_source_and_one_that_cannot_be_read_is_said_so") {
  TemporaryDirectory from, to;
  from.write("f",
             "");  // a byte of it would be the process's one standard input spent, and no later case could begin a session anew
  Running receiving_side(receiving(receiver(to.path())));
  const std::string uri = receiving_side.uri();
  {
    const int fd = open(from.path("f").c_str(), O_RDONLY | O_CLOEXEC);
    const Input input(fd);
    close(fd);
    CHECK(of(Ran(sending(send_of({"-"}, uri + "/in"))).end) == "ok: ");
  }
  REQUIRE(to.has("in"));
  CHECK(to.read("in").empty());
  {
    const int fd = open(from.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const Input input(fd);
    close(fd);
    CHECK(of(Ran(sending(send_of({"-"}, uri + "/in"))).end) ==
          "source_selection: cannot read the source: standard input: Is a directory: give the command an input");
  }
}

TEST_CASE("transfers__without_insecure_or_with_a_bad_place__said_and_nothing_is_done") {
  TemporaryDirectory here;
  here.write("f", "x");
  const std::string no_identity = "authentication: no identity: run `ccixfer keygen`, or use --insecure on a trusted network";
  REQUIRE(setenv("XDG_CONFIG_HOME", here.path("nothing").c_str(), 1) == 0);  // whoever runs this may have an identity
  SendCommand send = send_of({here.path("f")}, "tcp://127.0.0.1:1");
  send.common.insecure = false;
  CHECK(of(Ran(sending(send)).end) == no_identity);
  SendCommand serve = server(here.path());
  serve.common.insecure = false;
  CHECK(of(Ran(sending(serve)).end) == no_identity);
  ReceiveCommand receive = receiver(here.path());
  receive.common.insecure = false;
  CHECK(of(Ran(receiving(receive)).end) == no_identity);
  CHECK(Ran(sending(send_of({here.path("f")}, "nonsense"))).end.error.kind == ErrorKind::usage);
  CHECK(Ran(receiving(pull_of({"tcp://127.0.0.1:1/f", "nonsense"}, here.path("d")))).end.error.kind == ErrorKind::usage);
  CHECK(of(Ran(sending(send_of({here.path("f")}, "cci://1:2:h:1/x"))).end).rfind("usage: routed address without routing: ", 0) ==
        0);
  CHECK(of(Ran(receiving(pull_of({"tcp://127.0.0.1:1/f", "cci://1:2:h:1/x"}, here.path("d")))).end)
            .rfind("usage: routed address without routing: cci://1:2:h:1: give device any ", 0) == 0);
  CHECK_FALSE(here.has("d"));
  SendCommand device = send_of({here.path("f")}, "tcp://127.0.0.1:1");
  device.common.device = "none";
  CHECK(of(Ran(sending(device)).end).rfind("usage: no such device: none", 0) == 0);
  SendCommand memory = send_of({here.path("f")}, "tcp://127.0.0.1:1");
  memory.transfer.memory_bytes = 1;
  CHECK(of(Ran(sending(memory)).end).rfind("usage: too little memory: --memory 1: ", 0) == 0);
  memory = server(here.path());
  memory.transfer.memory_bytes = 1;
  CHECK(of(Ran(sending(memory)).end).rfind("usage: too little memory: --memory 1: ", 0) == 0);
  ReceiveCommand little = receiver(here.path());
  little.transfer.memory_bytes = 1;
  CHECK(of(Ran(receiving(little)).end).rfind("usage: too little memory: --memory 1: ", 0) == 0);
  little = pull_of({"tcp://127.0.0.1:1/f"}, here.path("d"));
  little.transfer.memory_bytes = 1;
  CHECK(of(Ran(receiving(little)).end).rfind("usage: too little memory: --memory 1: ", 0) == 0);
  CHECK_FALSE(here.has("d"));
}

TEST_CASE("transfers__what_is_said_of_insecurity__is_a_warning") {
  TemporaryDirectory here;
  here.write("f", "x");
  SendCommand send = send_of({here.path("f")}, "tcp://127.0.0.1:1");
  send.transfer.retries = 0;
  Ran ran(sending(send));
  CHECK(ran.end.error.kind == ErrorKind::no_answer);
  CHECK(ran.running.said.text.lines("WARNING: --insecure: no encryption and no authentication").size() == 1);
}

TEST_CASE("transfers__places_that_cannot_be_listened_or_written__are_named") {
  TemporaryDirectory here;
  here.write("f", "x");
  CHECK(of(Ran(receiving(receiver(here.path("none")))).end).rfind("file_io: ", 0) == 0);
  CHECK(of(Ran(receiving(receiver(here.path("none")))).end).find(here.path("none")) != std::string::npos);
  CHECK(of(Ran(sending(server(here.path("f")))).end) ==
        "source_selection: cannot serve the directory: " + here.path("f") + ": Not a directory: name a directory that can be read");
  ReceiveCommand odd = receiver(here.path());
  odd.listen.listen = "nonsense";
  CHECK(of(Ran(receiving(odd)).end) == "usage: not an address: nonsense: write HOST:PORT or [IPv6]:PORT");
  SendCommand served = server(here.path());
  served.listen.listen = "nonsense";
  CHECK(of(Ran(sending(served)).end) == "usage: not an address: nonsense: write HOST:PORT or [IPv6]:PORT");
  odd = receiver(here.path());
  odd.listen.uri_file = here.path("none/uris");
  CHECK(of(Ran(receiving(odd)).end) == "usage: cannot write the uri file: " + here.path("none/uris") +
                                           ": No such file or directory: give --uri-file a writable place");
}

TEST_CASE("transfers__pull__makes_the_directory_and_takes_each_source") {
  TemporaryDirectory from, other, to;
  from.write("a", "1");
  from.write("d/b", "22");
  other.write("c", "333");
  Running first(sending(server(from.path()))), second(sending(server(other.path())));
  const std::string uri = first.uri(), other_uri = second.uri();
  Ran pulled(receiving(pull_of({uri + "/a", uri + "/d", other_uri + "/"}, to.path("new"))));
  CHECK(of(pulled.end) == "ok: ");
  CHECK(to.read("new/a") == "1");
  CHECK(to.read("new/d/b") == "22");
  CHECK(to.read("new/c") == "333");
  CHECK(pulled.end.tally.files == 3);
  CHECK(pulled.end.tally.bytes == 6);
  CHECK_FALSE(to.has("new/.ccixfer"));
  CHECK(of(first.stop()) == "ok: ");
  CHECK(first.wait().tally.files == 2);
}

TEST_CASE("transfers__pull__the_worst_end_is_the_result_and_the_others_are_told") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  ReceiveCommand command = pull_of({uri + "/none", "tcp://127.0.0.1:1/x", uri + "/a", uri + "/nothing"}, to.path("d"));
  command.transfer.retries = 0;
  Ran pulled(receiving(command));
  CHECK(pulled.end.error.kind == ErrorKind::no_answer);  // the ones that are not there have failed
  CHECK(pulled.end.error.message.find("tcp://127.0.0.1:1") != std::string::npos);
  CHECK(pulled.end.tally.files == 1);
  CHECK(pulled.end.tally.files_failed == 2);
  CHECK(to.read("d/a") == "1");
  const Words said = pulled.running.said.text.lines("ccixfer: ");
  CHECK(pulled.running.said.text.lines("none: ").size() == 1);
  CHECK(pulled.running.said.text.lines("nothing: ").size() == 1);
  CHECK(said.size() == 3);  // with the one of --insecure
  // What was the worst so far is told, and replaced.
  command.uris = {"tcp://127.0.0.1:1/x", uri + "/b/../b"};
  Ran again(receiving(command));
  CHECK(again.end.error.kind == ErrorKind::not_authorised);
  CHECK(again.running.said.text.lines("tcp://127.0.0.1:1").size() == 1);
  command.uris = {uri + "/none"};
  Ran alone(receiving(command));
  CHECK(alone.running.said.text.lines("ccixfer: ").size() == 1);
}

TEST_CASE("transfers__pull_that_brings_nothing__leaves_no_directory_that_it_made") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  CHECK(of(Ran(receiving(pull_of({uri + "/none"}, to.path("made")))).end).rfind("source_selection: ", 0) == 0);
  CHECK_FALSE(to.has("made"));
  std::filesystem::create_directory(to.path("there"));
  CHECK_FALSE(Ran(receiving(pull_of({uri + "/none"}, to.path("there")))).end.error.kind == ErrorKind::ok);
  CHECK(to.has("there"));
  CHECK(of(Ran(receiving(pull_of({uri + "/a", uri + "/none"}, to.path("some")))).end).rfind("partial: ", 0) == 0);
  CHECK(to.read("some/a") == "1");
  CHECK(of(Ran(receiving(pull_of({uri + "/a"}, to.path("no/where")))).end) ==
        "file_io: cannot make the directory: " + to.path("no/where") +
            ": No such file or directory: name one that exists, or can be made");
  to.write("file", "x");
  CHECK(Ran(receiving(pull_of({uri + "/a"}, to.path("file")))).end.error.kind == ErrorKind::file_io);
  CHECK(to.read("file") == "x");
}

TEST_CASE("transfers__dry_pull__makes_nothing_and_says_what_the_real_one_would") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  Running serving(sending(server(from.path())));
  const std::string uri = serving.uri();
  const auto dry = [&](const std::string& directory) {
    ReceiveCommand command = pull_of({uri + "/a"}, directory);
    command.transfer.dry_run = true;
    return of(Ran(receiving(command)).end);
  };
  CHECK(dry(to.path("new")) == "ok: ");
  CHECK(dry(to.path("new///")) == "ok: ");
  CHECK(dry(to.path()) == "ok: ");
  CHECK(only_in(to, {}));
  CHECK_FALSE(to.has(".ccixfer"));
  CHECK(dry(to.path("no/where")) == "file_io: cannot make the directory: " + to.path("no/where") +
                                        ": its parent is not there: name one that exists, or can be made");
  CHECK(dry(to.path("no/where/")) == "file_io: cannot make the directory: " + to.path("no/where") +
                                         ": its parent is not there: name one that exists, or can be made");
  to.write("file", "x");
  CHECK(dry(to.path("file/below")).rfind("file_io: cannot make the directory: ", 0) == 0);
  CHECK(dry("/") == "ok: ");
  CHECK(dry("a-name-that-is-not-there") == "ok: ");  // below the working directory
  CHECK_FALSE(std::filesystem::exists("a-name-that-is-not-there"));
}

TEST_CASE("transfers__once__ends_with_the_first_transfers_end") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  Running serving(sending(server(from.path(), true)));
  const std::string uri = serving.uri();
  CHECK(Ran(receiving(pull_of({uri + "/none"}, to.path("d")))).end.error.kind == ErrorKind::source_selection);
  CHECK(serving.wait().error.kind == ErrorKind::source_selection);
}

TEST_CASE("transfers__stopped_while_nobody_is_there__well_unless_one_was_waited_for") {
  TemporaryDirectory to;
  Running waits(receiving(receiver(to.path())));
  static_cast<void>(waits.uri());
  CHECK(of(waits.stop(SIGINT)) == "ok: ");
  CHECK(waits.said.text.lines("interrupted").empty());
  Running once(receiving(receiver(to.path(), true)));
  static_cast<void>(once.uri());
  CHECK(of(once.stop()) == "interrupted: interrupted: by a signal: the sender may resume when this runs again");
}

TEST_CASE("transfers__interrupted_on_either_side__both_are_told_and_it_can_be_resumed") {
  for (const bool sender : {true, false}) {
    TemporaryDirectory from, to;
    from.write("f", without_end);
    ReceiveCommand receive = receiver(to.path());
    receive.transfer.rate = RateTable(1);  // it cannot end by itself
    Running receiving_side(receiving(receive));
    const std::string uri = receiving_side.uri();
    Running sending_side(interrupted(sending(send_of({from.path("f")}, uri + "/f"))));
    const std::string session = sending_side.said.await("session");
    CHECK(member(session, "peer") == uri);
    CHECK(member(receiving_side.said.await("session"), "transfer") == member(session, "transfer"));
    if (sender) {
      const CommandEnd& sent = sending_side.stop(SIGINT);
      CHECK(of(sent) == "interrupted: interrupted: by a signal: run the same command again to resume");
      CHECK(sending_side.said.text.lines("ccixfer: interrupted: the peer is told, what is durable stays").size() == 1);
      const std::string ended = receiving_side.said.await("ended");
      CHECK(member(ended, "status") == "interrupted");
      CHECK(of(receiving_side.stop()) == "ok: ");
    } else {
      const CommandEnd& received = receiving_side.stop();
      CHECK(of(received) == "interrupted: interrupted: by a signal: the sender may resume when this runs again");
      CHECK(receiving_side.said.text.lines("ccixfer: interrupted: 1 transfer(s) are told, and can be resumed").size() == 1);
      CHECK(member(sending_side.said.await("retry"), "reason") == "the peer was told to stop; the transfer can be resumed");
      CHECK(sending_side.stop(SIGINT).error.kind == ErrorKind::interrupted);
    }
    CHECK_FALSE(to.has("f"));
  }
}

TEST_CASE("transfers__SIGUSR1__prints_the_counters_and_goes_on") {
  TemporaryDirectory from, to;
  from.write("f", "hello");
  Running receiving_side(receiving(receiver(to.path())));
  const std::string uri = receiving_side.uri();
  receiving_side.signal(SIGUSR1);
  CHECK(of(Ran(sending(send_of({from.path("f")}, uri + "/f"))).end) == "ok: ");
  CHECK(of(receiving_side.stop()) == "ok: ");
  CHECK(receiving_side.said.text.lines(" routed_connections").size() == 1);

  ReceiveCommand slow = receiver(to.path());
  slow.transfer.rate = RateTable(1);
  from.write("big", without_end);
  Running capped(receiving(slow));
  Running sending_side(interrupted(sending(send_of({from.path("big")}, capped.uri() + "/big"))));
  static_cast<void>(sending_side.said.await("progress"));
  sending_side.signal(SIGUSR1);
  while (sending_side.said.text.lines(" routed_connections").empty()) static_cast<void>(sending_side.said.await("progress"));
  CHECK(sending_side.stop(SIGINT).error.kind == ErrorKind::interrupted);
}

TEST_CASE("transfers__progress__counts_what_earlier_sources_brought") {
  TemporaryDirectory from, to;
  from.write("a", "12345");
  from.write("big", without_end);
  SendCommand slow = server(from.path());
  slow.transfer.rate = RateTable(1);
  Running quick(sending(server(from.path()))), capped(sending(slow));
  Running pulling(interrupted(receiving(pull_of({quick.uri() + "/a", capped.uri() + "/big"}, to.path("d")))));
  std::string progress;
  do {
    progress = pulling.said.await("progress");
  } while (member(progress, "files") != "1" || member(progress, "bytes_total") == "5");
  CHECK(member(progress, "bytes") == "5");
  CHECK(member(capped.said.await("progress"), "files") == "0");  // of who listens too
  const CommandEnd& pulled = pulling.stop(SIGINT);
  CHECK(pulled.error.kind == ErrorKind::interrupted);
  CHECK(pulled.tally.files == 1);
  CHECK(pulled.tally.bytes >= 5);
  CHECK(to.read("d/a") == "12345");
}

// Interrupted in one of several pulls: the others are not begun.
TEST_CASE("transfers__pull_interrupted__nothing_further_is_pulled") {
  TemporaryDirectory from, to;
  from.write("a", "1");
  from.write("big", without_end);
  SendCommand slow = server(from.path());
  slow.transfer.rate = RateTable(1);
  Running quick(sending(server(from.path()))), capped(sending(slow));
  Running pulling(interrupted(receiving(pull_of({capped.uri() + "/big", quick.uri() + "/a"}, to.path("d")))));
  static_cast<void>(pulling.said.await("session"));
  CHECK(pulling.stop(SIGINT).error.kind == ErrorKind::interrupted);
  CHECK_FALSE(to.has("d/a"));
}

TEST_CASE("transfers__options__reach_the_other_side") {
  CHECK(session_options(TransferOptions()) == session::option_recursive);
  TransferOptions archive, checksum, dry;
  archive.archive = true;
  CHECK(session_options(archive) == (session::option_recursive | session::option_links | session::option_permissions |
                                     session::option_times | session::option_owner | session::option_specials));
  checksum.checksum = true;
  TransferOptions verify;
  verify.verify = true;
  CHECK(session_options(verify) == (session::option_recursive | session::option_verify));
  CHECK(session_options(checksum) == (session::option_recursive | session::option_checksum));
  dry.dry_run = true;
  CHECK(session_options(dry) == (session::option_recursive | session::option_dry_run));

  TemporaryDirectory from, to;
  from.write("f", "hello");
  const auto old = std::filesystem::file_time_type::clock::now() - 24h;
  std::filesystem::last_write_time(from.path("f"), old);
  ReceiveCommand receive = receiver(to.path());
  receive.listen.sessions = 1;
  receive.transfer.lanes = 2;
  Running receiving_side(receiving(receive));
  const std::string uri = receiving_side.uri();
  SendCommand send = send_of({from.path("f")}, uri + "/f");
  send.transfer.dry_run = true;
  CHECK(of(Ran(sending(send)).end) == "ok: ");
  CHECK_FALSE(to.has("f"));
  send.transfer.dry_run = false;
  send.transfer.archive = true;
  send.transfer.lanes = 8;
  CHECK(of(Ran(sending(send)).end) == "ok: ");
  CHECK(std::filesystem::last_write_time(to.path("f")) == std::filesystem::last_write_time(from.path("f")));
  CHECK(Ran(sending(send)).end.tally.files_unchanged == 1);
}

TEST_CASE("transfers__plans__have_a_name_of_their_own_and_the_options") {
  Ran ran([](const Process& process) -> CommandEnd {
    auto loop = TransferLoop::create(process, insecure(), {}, {});
    REQUIRE(loop);
    CHECK_FALSE((*loop)->given_up());
    CHECK_FALSE((*loop)->stopped());
    TransferOptions options;
    options.lanes = 7;
    options.timeout = 9s;
    options.retries = 3;
    const DialPlan one = make_plan((*loop)->services(), "tcp://h:1", options),
                   two = make_plan((*loop)->services(), "tcp://h:1", options);
    CHECK(one.uri == "tcp://h:1");
    CHECK(one.lanes == 7);
    CHECK(one.timeout == 9s);
    CHECK(one.retries == 3u);
    CHECK(one.hello.session == 0);
    for (const size_t half : {size_t{0}, size_t{8}}) {  // both halves are random
      CHECK_FALSE(
          std::equal(one.hello.transfer.begin() + half, one.hello.transfer.begin() + half + 8, two.hello.transfer.begin() + half));
    }
    CHECK((*loop)->services().pool.count() == 63);
    return {};
  });
}

TEST_CASE("transfers__more_memory_than_the_process_may_have__is_bad_use_and_no_abort") {
  const Ran ran([](const Process& process) -> CommandEnd {
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit before{};
    REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
    const rlimit little{pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + (256u << 20), before.rlim_max};
    TransferOptions transfer;
    transfer.memory_bytes = uint64_t{1} << 30;
    REQUIRE(setrlimit(RLIMIT_AS, &little) == 0);
    auto loop = TransferLoop::create(process, insecure(), transfer, {});
    REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
    return {loop ? Error{ErrorKind::ok, ""} : loop.error(), {}};
  });
  CHECK(ran.end.error.kind == ErrorKind::usage);
  CHECK(ran.end.error.message.find("--memory 1073741824: ") == 0);
  CHECK(ran.end.error.message.find("ulimit -v") != std::string::npos);
}

// Otherwise the process would hang, deaf to signals, until its own disk answers.
TEST_CASE("transfers__push_that_fails_while_its_disk_does_not_answer__leaves_the_job_and_ends") {
  for (const ErrorKind kind : {ErrorKind::no_answer, ErrorKind::ok}) {
    const bool fails = kind != ErrorKind::ok;
    TemporaryDirectory from, to;
    from.write("f", "hello");
    Running receiving_side(receiving(receiver(to.path())));
    const std::string uri = fails ? "tcp://127.0.0.1:1" : receiving_side.uri();
    const Ran sent(interrupted([&](const Process& process) -> CommandEnd {
      auto loop = TransferLoop::create(process, insecure(), {}, {});
      if (!loop) return {loop.error(), {}};
      const SessionServices& services = (*loop)->services();
      std::promise<void> let_go;
      services.work.submit(std::make_unique<StuckJob>(let_go.get_future().share()));
      TransferOptions options;
      options.retries = 0;
      DialPlan plan = make_plan(services, uri, options);
      plan.hello.direction = session::Direction::push;
      plan.open = {session::option_recursive, "f"};
      SourcePart part;
      part.sources = {from.path("f")};
      part.options = session::option_recursive;
      plan.make_role = [&](session::Link& link, const RoleWish&) { return make_source(services, link, part); };
      const CommandEnd end = (*loop)->dial(std::move(plan), {});
      let_go.set_value();
      CHECK((*loop)->given_up() == fails);
      return end;
    }));
    CHECK(sent.end.error.kind == kind);
    CHECK(sent.end.in_use == fails);
  }
}

// A slash is put behind it for the list, and what asks a peer for a longer path would be a bug of ours.
TEST_CASE("transfers__pull_of_a_list_below_the_longest_path__is_refused") {
  TemporaryDirectory here;
  here.write("list", "f\n");
  ReceiveCommand command = pull_of({"tcp://127.0.0.1:1/" + std::string(4096, 'p')}, here.path("d"));
  command.transfer.retries = 0;
  command.transfer.sync.files_from = here.path("list");
  CHECK(of(Ran(receiving(command)).end) == "usage: bad address: its path has 4097 bytes: a path has at most 4096 bytes");
  command.uris = {"tcp://127.0.0.1:1/" + std::string(4095, 'p')};
  CHECK(Ran(receiving(command)).end.error.kind != ErrorKind::usage);
}

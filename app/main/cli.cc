#include "app/main/cli.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "app/config/config.h"
#include "app/config/uri.h"
#include "app/main/cli_words.h"
#include "app/main/completion.h"
#include "app/main/destinations.h"
#include "app/main/option_values.h"
#include "app/main/standard_streams.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

struct RuleOption {
  RuleWord::Kind kind;
  const char* names;
  const char* value;  // nullptr: it takes none
  const char* help;
};
constexpr std::array rule_options{
    RuleOption{RuleWord::Kind::exclude, "--exclude", "PATTERN", "leave out what matches, as rsync does"},
    RuleOption{RuleWord::Kind::include, "--include", "PATTERN", "do not leave out what matches, whatever a later rule says"},
    RuleOption{RuleWord::Kind::exclude_from, "--exclude-from", "FILE", "patterns of --exclude, one a line; -: standard input"},
    RuleOption{RuleWord::Kind::include_from, "--include-from", "FILE", "patterns of --include, one a line; -: standard input"},
    RuleOption{RuleWord::Kind::filter, "-f,--filter", "RULE", "a rule of rsync's language, such as '- *.o' or ': .rules'"},
    RuleOption{RuleWord::Kind::filter_files, "-F", nullptr,
               "the rules of .rsync-filter in each directory; twice: and do not send those"},
};

// It is one class because CLI11 writes into variables that are named when an option is declared: the declarations of all commands
// and the values that they fill live as long as each other.
class Parser {
 public:
  Parser() : app_("Moves files and trees between hosts, directly or through routers.", "ccixfer") {
    app_.require_subcommand(1);
    app_.set_version_flag("-V,--version", fmt::format("ccixfer {}", program_version));
    app_.footer(
        "Exit codes: 0 done and durable, 1 usage, 2 protocol, 3 source, 6 running already, 10 network, 11 file, 20 interrupted,\n"
        "23/24 partial, 25 --max-delete, 30 timeout, 35 no answer, 40 integrity, 41 authentication, 42 not authorised,\n"
        "43 no route, 44 no space.\n"
        "See man ccixfer.");
    add_send();
    add_recv();
    add_route();
    add_routes();
    add_ping();
    add_devices();
    add_sim();
    add_bench();
    add_keygen();
    add_id();
    completion_app_ = app_.add_subcommand("completion", "print a shell's completion script")->group("");
    completion_app_->add_option("shell", shell_, "bash, zsh or fish")->required();
    add_verify();
    add_status();
    add_job();
  }

  Result<Command> parse(int argc, const char* const* argv) {
    constexpr const char* without_value = "give it a value, or leave it out";
    if (const auto word = word_without_value(argc, argv)) return usage("bad command line", printable(*word), without_value);
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return HelpCommand{app_.help()};
    } catch (const CLI::CallForAllHelp&) {
      return HelpCommand{app_.help("", CLI::AppFormatMode::All)};
    } catch (const CLI::CallForVersion& version) {
      return HelpCommand{std::string(version.what()) + "\n"};
    } catch (const CLI::ParseError& problem) {
      // Of an unknown command CLI11 says only that one is required.
      if (dynamic_cast<const CLI::RequiredError*>(&problem) != nullptr && app_.get_subcommands().empty() && argc > 1) {
        const char* const what = argv[1][0] == '-' ? "no option here, a command comes first" : "no such command";
        return usage("bad command line", printable(argv[1]), fmt::format("{}: see ccixfer --help", what));
      }
      return usage("bad command line", one_line(problem.what()), remedy_of(argc, argv, chosen_name()));
    }
    for (const CLI::App* command : app_.get_subcommands())
      if (const auto option = option_without_value(*command)) return usage("bad command line", *option, without_value);
    if (send_app_->parsed()) return finish_send();
    if (recv_app_->parsed()) return finish_recv();
    if (route_app_->parsed()) return finish_route();
    if (routes_app_->parsed()) return finish_routes();
    if (ping_app_->parsed()) return finish_ping();
    if (sim_app_->parsed()) return finish_sim();
    if (bench_app_->parsed()) return finish_bench();
    if (keygen_app_->parsed()) return finish_keygen();
    if (id_app_->parsed()) return finish_id();
    if (completion_app_->parsed()) return finish_completion();
    if (verify_app_->parsed()) return finish_verify();
    if (status_app_->parsed()) return finish_status();
    if (job_app_->parsed()) return finish_job();
    devices_.common.verbose = counted_[devices_app_];
    return devices_;
  }

 private:
  std::string chosen_name() const {
    const auto parsed = app_.get_subcommands();
    return parsed.empty() ? "ccixfer" : "ccixfer " + parsed.front()->get_name();
  }

  void add_common(CLI::App* app, CommonOptions& common) {
    app->add_option("-c,--config", common.config_file,
                    "configuration (TOML); else $CCI_CONFIG, $XDG_CONFIG_HOME/ccixfer/ccixfer.toml, /etc/ccixfer/ccixfer.toml")
        ->type_name("FILE");
    app->add_option("--device", common.device, "which configured device")->type_name("NAME");
    app->add_flag("--insecure", common.insecure, "no encryption and no authentication, on both sides");
    app->add_flag("--json", common.json, "NDJSON events on standard output, nothing else there");
    app->add_flag("-P,--progress", common.progress, "show progress also without a terminal");
    app->add_flag("-v,--verbose", counted_[app], "say more; twice: everything");
    app->add_flag("-q,--quiet", common.quiet, "errors only");
    app->add_flag("--stats", common.stats, "say at the end, in words, what was done and what was not; with -v all counters");
    app->add_option("--log-file", common.log_file, "append a log")->type_name("FILE");
  }
  void add_listen(CLI::App* app, ListenOptions& listen) {
    app->add_option("--listen", listen.listen,
                    "native address to listen on (port 0: any); udp:// or verbs://HOST:PORT: over UDP or RDMA; shm://NAME: for "
                    "processes of this host; eth://MAC:ID: raw Ethernet")
        ->type_name("HOST:PORT");
    app->add_option("--uri-file", listen.uri_file, "write the addresses for peers here once ready, one a line; removed at exit")
        ->type_name("FILE");
    app->add_flag("--once", listen.once, "exit after the first transfer, with its exit code");
  }
  void add_sessions(CLI::App* app) {
    app->add_option("--sessions", raw_.sessions, "transfers at a time, 1 to 1024 (64); others wait for their turn")->type_name("N");
  }
  void add_ticket(CLI::App* app, ListenOptions& listen) {
    app->add_flag("--ticket", listen.ticket, "print a one-line ticket that stands for address, identity and permission");
    app->add_option("--expires", raw_.expires, "the ticket's age at its end, such as 30m, 24h or 7d (24h)")->type_name("AGE");
    app->add_option("--uses", raw_.uses, "for so many transfers, 1 to 1000 (1)")->type_name("N");
    add_audit_log(app, listen.audit_log);
  }
  static void add_audit_log(CLI::App* app, std::string& audit_log) {
    app->add_option("--audit-log", audit_log, "append a JSON line for each session and refused attempt; journald: to the journal")
        ->type_name("FILE");
  }
  static void add_team(CLI::App* app, TeamOptions& team) {
    app->add_flag("--stripe", team.stripe,
                  "share the transfer with the other tasks of this Slurm job step; several DEST: receivers of one file system");
    app->add_option("--part", team.part, "the same without Slurm: this is process I of K, such as 1/4")->type_name("I/K");
  }
  void add_transfer(CLI::App* app, TransferOptions& transfer) {
    app->add_flag("-a,--archive", transfer.archive, "keep links, modes, times, and owners when permitted (-rlptgoD)");
    app->add_flag("-n,--dry-run", transfer.dry_run, "say what would be done, and do nothing");
    app->add_flag("--checksum", transfer.checksum, "decide 'unchanged' by content instead of size and mtime");
    app->add_flag("--verify", transfer.verify, "the receiver reads what it wrote back from its disk before it counts as durable");
    app->add_option("-j,--lanes", raw_.lanes, "connections in parallel, 1 to 1024 (chosen from the path)")->type_name("N");
    app->add_option("--bwlimit", raw_.bwlimit, "cap, for instance 800MB/s; off: none; by time of day: '08:00,1Gb/s 18:00,off'")
        ->type_name("RATE");
    app->add_option("--timeout", raw_.timeout, "give up after so long without progress, resumable (60)")->type_name("SEC");
    app->add_option("--retries", raw_.retries, "give up after so many new attempts (as often as the timeout allows)")
        ->type_name("N");
    app->add_option("--memory", raw_.memory, "the buffer pool (256MiB)")->type_name("SIZE");
    add_sync(app, transfer.sync);
    add_metadata(app, transfer.metadata);
    add_rules(app);
    app->add_option("--stop-at", raw_.stop_at, "end then, resumable: HH:MM, or a date and time as 2026-11-25T06:30")
        ->type_name("TIME");
    app->add_option("--failed-list", transfer.failed_list, "write the names of what failed, as --files-from reads them")
        ->type_name("FILE");
    app->add_flag(
        "-0,--from0", transfer.from0,
        "names in the FILEs of --files-from and --failed-list, and rules in files, end with a zero byte, not with a line");
    app->add_option("--lock", transfer.lock_file, "one run at a time: exit 6 at once while another one has the lock")
        ->type_name("FILE");
    app->add_option("--on-complete", transfer.on_complete,
                    "when a transfer has ended, run this with sh -c; the result is a JSON object on its standard input")
        ->type_name("COMMAND");
    app->add_option("--receipt", transfer.receipt,
                    "write the signed list of what was delivered; a side that listens: a file of each transfer, in this directory")
        ->type_name("FILE");
  }
  static void add_sync(CLI::App* app, SyncOptions& sync) {
    app->add_flag("-i,--itemize-changes", sync.itemize, "a line for each change, with rsync's letters; with -n what would change");
    app->add_flag("-b,--backup", sync.backup, "keep what is replaced, with ~ behind its name");
    app->add_option("--suffix", sync.suffix, "another end of such names")->type_name("TEXT");
    app->add_option("--backup-dir", sync.backup_directory, "keep it in this directory, relative to DEST or DIR")->type_name("DIR");
    app->add_option("--link-dest", sync.link_dest, "link to the files of an older tree that are unchanged; relative to DEST or DIR")
        ->type_name("DIR")
        ->allow_extra_args(false);
    app->add_option("--files-from", sync.files_from, "send what FILE names, relative to SRC, and nothing else; -: standard input")
        ->type_name("FILE");
    app->add_flag("-R,--relative", sync.relative, "send SRC with the directories in its name, or those behind /./ in it");
    app->add_flag("-x,--one-file-system", sync.one_file_system, "do not go into other file systems than SRC's own");
    app->add_flag("--delete", sync.deletes, "delete what SRC does not have, after the transfer; nothing where SRC cannot be read");
    app->add_flag("--delete-excluded", sync.delete_excluded, "and what the rules leave out; implies --delete");
    app->add_option("--max-delete", sync.max_delete, "but not more than N; exit code 25 when there was more")
        ->type_name("N")
        ->check(CLI::Validator(why_no_count, ""));
    app->add_flag("-u,--update", sync.update, "leave files that are newer at the destination");
    app->add_flag("--size-only", sync.size_only, "a file of the same size is unchanged, whatever its time");
    app->add_flag("--ignore-existing", sync.ignore_existing, "leave what is there at the destination");
    app->add_flag("-z,--compress", sync.compress, "compress what travels, as much as helps");
    app->add_option("--compress-level", sync.compress_level, "the same, always at this level of zstd, 1 to 19")
        ->type_name("N")
        ->check(CLI::Range(1, 19));
    app->add_flag("--inplace", sync.inplace, "write into the files that are there, with no atomic change");
    app->add_flag("-W,--whole-file", sync.whole_file, "send changed files whole, and compare no pieces");
  }
  static void add_metadata(CLI::App* app, MetadataOptions& metadata) {
    app->add_flag("-H,--hard-links", metadata.hard_links, "names of one file at the source become names of one file");
    app->add_flag("-A,--acls", metadata.acls, "keep access control lists, and modes");
    app->add_flag("-X,--xattrs", metadata.xattrs, "keep extended attributes");
    app->add_flag("-S,--sparse", metadata.sparse, "runs of zeros become holes; holes stay holes without it");
    app->add_option("--chmod", metadata.chmod, "change the modes that the source has, as D755,F644 or Dg+s,go-w")
        ->type_name("CHANGES")
        ->allow_extra_args(false);
    app->add_option("--chown", metadata.chown, "with -a, all get this owner and group")->type_name("USER:GROUP");
    app->add_flag("--numeric-ids", metadata.numeric_ids, "owners keep their numbers, whatever their names are");
  }
  void add_rules(CLI::App* app) {
    for (const RuleOption& option : rule_options) {
      CLI::Option* added = option.value == nullptr ? app->add_flag(option.names, rule_flags_[app], option.help)
                                                   : app->add_option(option.names, rule_texts_[app][option.kind], option.help)
                                                         ->type_name(option.value)
                                                         ->allow_extra_args(false);
      rule_kinds_.emplace(added, option.kind);
    }
  }
  // In the order in which they were given, which decides which rule comes first.
  std::vector<RuleWord> rules_of(const CLI::App* app) const {
    std::vector<RuleWord> rules;
    std::map<const CLI::Option*, size_t> taken;
    for (const CLI::Option* option : app->parse_order()) {
      const auto kind = rule_kinds_.find(option);
      if (kind != rule_kinds_.end()) rules.push_back({kind->second, option->results().at(taken[option]++)});
    }
    return rules;
  }

  void add_send() {
    send_app_ = app_.add_subcommand("send",
                                    "push files and trees to a receiver: ccixfer send [options] SRC... DEST\n"
                                    "or publish a directory: ccixfer send --serve DIR [options]");
    add_common(send_app_, send_.common);
    add_listen(send_app_, send_.listen);
    add_sessions(send_app_);
    add_ticket(send_app_, send_.listen);
    add_transfer(send_app_, send_.transfer);
    add_team(send_app_, send_.team);
    send_app_->add_option("--serve", send_.serve, "publish DIR so that receivers can pull from it")->type_name("DIR");
    send_app_
        ->add_option("paths", send_.sources,
                     fmt::format("SRC... and DEST: {}, and /PATH after it; '-' reads standard input", address_forms()))
        ->type_name("");
  }
  void add_recv() {
    recv_app_ = app_.add_subcommand("recv",
                                    "accept transfers: ccixfer recv --root DIR [options]\n"
                                    "or pull from a `send --serve`: ccixfer recv [options] SRC_URI... DIR");
    add_common(recv_app_, receive_.common);
    add_listen(recv_app_, receive_.listen);
    add_sessions(recv_app_);
    add_ticket(recv_app_, receive_.listen);
    add_transfer(recv_app_, receive_.transfer);
    recv_app_
        ->add_option("--staging-max-age", raw_.staging_age,
                     "remove staged files of dead transfers after so long, such as 12h or 14d (14d)")
        ->type_name("AGE");
    recv_app_->add_option("--root", receive_.root, "accept transfers into DIR")->type_name("DIR");
    recv_app_->add_flag("--shares-root", receive_.shares_root, "DIR is another receiver's: write pieces of large files for it");
    recv_app_->add_option("places", receive_.uris, "SRC_URI... and DIR")->type_name("");
  }
  void add_verify() {
    verify_app_ = app_.add_subcommand("verify", "check a delivered tree against its receipt: ccixfer verify RECEIPT [DIR]");
    add_common(verify_app_, verify_.common);
    verify_app_->add_flag("--sha256sum", verify_.sha256sum, "print the list as sha256sum -c reads it, and compare nothing");
    verify_app_->add_flag("--ignore-extra", verify_.ignore_extra, "say nothing of what DIR has besides");
    verify_app_->add_option("--signer", verify_.signer, "who must have signed it: an id, or NAME of [peer.NAME]")->type_name("ID");
    verify_app_->add_option("receipt", verify_.receipt, "the receipt")->type_name("RECEIPT")->required();
    verify_app_->add_option("directory", verify_.directory, "the tree; else the one that the receipt names")->type_name("DIR");
  }
  void add_status() {
    status_app_ = app_.add_subcommand("status", "what stands staged and unfinished below ROOT: ccixfer status ROOT [options]");
    add_common(status_app_, status_.common);
    status_app_
        ->add_option("--expire", raw_.expire,
                     "remove what nobody changed for so long, such as 12h or 14d; 0s: all that no transfer writes")
        ->type_name("AGE");
    status_app_->add_flag("--history", status_.history,
                          "the transfers that ended there, and nothing else; without ROOT the runs of jobs");
    status_app_->add_option("--job", status_.job, "with --history and without ROOT: of this job only")->type_name("NAME");
    status_app_->add_option("root", status_.root, "the directory of recv --root, or of a pull")->type_name("ROOT");
  }
  void add_job() {
    job_app_ = app_.add_subcommand("job", "run the transfer that a job's file describes, once: ccixfer job NAME [options]");
    add_common(job_app_, job_.common);
    job_app_->add_flag("--check", job_.check, "say what is wrong with the files of these jobs, and move nothing");
    job_app_->add_option("names", job_.names, "NAME of /etc/ccixfer/jobs/NAME.toml or of the account's own, or a file")
        ->type_name("NAME")
        ->required();
  }
  void add_route() {
    route_app_ = app_.add_subcommand("route", "the router daemon of a border host");
    add_common(route_app_, route_.common);
    route_app_->add_option("--uri-file", route_.uri_file, "write the router's addresses here once ready; removed at exit")
        ->type_name("FILE");
    route_app_->add_option("--bwlimit", raw_.bwlimit, "cap of what is forwarded; by time of day: '08:00,1Gb/s 18:00,off'")
        ->type_name("RATE");
    route_app_->add_option("--memory", raw_.memory, "the buffer pool (the configuration's, or 256MiB)")->type_name("SIZE");
    route_app_->add_option("--workers", route_.workers, "threads that forward (the configuration's, or 1)")
        ->type_name("N")
        ->check(CLI::Range(size_t{1}, workers_max));
    route_app_
        ->add_option("--audit-log", route_.audit_log,
                     "append a JSON line for whom it admits and refuses, and each connection's end; journald: to the journal")
        ->type_name("FILE");
  }
  void add_routes() {
    routes_app_ =
        app_.add_subcommand("routes", "show the topology and the route table: of a running router, or from configuration alone");
    add_common(routes_app_, routes_.common);
    routes_app_->add_option("places", routes_.places, "configuration files of routers, or the URI of a running one")
        ->type_name("FILE...|URI");
    routes_app_->add_flag("--dot", routes_.dot, "draw the topology for Graphviz: ccixfer routes --dot FILE... | dot -Tsvg");
  }
  void add_ping() {
    ping_app_ = app_.add_subcommand("ping", "every hop to URI: router, transport, round trip, max send size");
    add_common(ping_app_, ping_.common);
    ping_app_->add_option("-n,--count", raw_.count, "how many messages (5)")->type_name("N");
    ping_app_->add_option("--timeout", raw_.timeout, "give up after so long (5)")->type_name("SEC");
    ping_app_->add_option("uri", ping_.uri, "the peer")->type_name("URI")->required();
  }
  void add_devices() {
    devices_app_ = app_.add_subcommand("devices", "the devices that the configuration and this host offer");
    add_common(devices_app_, devices_.common);
  }

  void add_sim() {
    sim_app_ =
        app_.add_subcommand("sim", "run a world of hosts, links, routers, transfers and faults under the deterministic simulator");
    add_common(sim_app_, sim_.common);
    sim_app_->add_option("--seed", raw_.seed, "the world's seed (the scenario's)")->type_name("N");
    sim_app_->add_option("--seeds", raw_.seeds, "run so many seeds from there on (1)")->type_name("N");
    sim_app_->add_flag("--trace", sim_.trace, "print every packet, reset and crash: the same seed gives the same lines");
    sim_app_->add_option("scenario", sim_.scenario, "the world (TOML)")->type_name("SCENARIO.toml")->required();
  }
  void add_bench() {
    bench_app_ = app_.add_subcommand("bench",
                                     "measure: ccixfer bench --serve [options] on one side,\n"
                                     "ccixfer bench [options] URI on the other");
    add_common(bench_app_, bench_.common);
    add_listen(bench_app_, bench_.listen);
    bench_app_->add_flag("--serve", bench_.serve, "answer those who measure");
    bench_app_->add_option("--wait", bench_wait_, "spin or poll: how this side waits for what comes (poll)")->type_name("HOW");
    bench_app_->add_option("--tests", bench_text_.tests, "which, of " + bench::test_names() + " (all but empty-turn)")
        ->type_name("LIST");
    bench_app_->add_option("--message-size", bench_text_.message_size, "of messages and of completion's puts (64)")
        ->type_name("SIZE");
    bench_app_->add_option("--sizes", bench_text_.sizes, "of RMA operations and puts (4KiB,64KiB,1MiB,4MiB)")->type_name("LIST");
    bench_app_->add_option("--depth", bench_text_.depth, "operations in flight, 1 to 256 (16)")->type_name("N");
    bench_app_->add_option("--seconds", bench_text_.seconds, "how long each row is measured (1)")->type_name("SEC");
    bench_app_->add_option("--count", bench_text_.count, "operations a row, instead of seconds")->type_name("N");
    bench_app_->add_option("--connections", bench_text_.connections, "of empty-turn's second row (1000)")->type_name("N");
    bench_app_->add_option("--plot", bench_.plot, "draw latency and bandwidth by size into this PNG file, with gnuplot")
        ->type_name("FILE");
    bench_app_->add_option("--timeout", bench_text_.timeout, "give up when nothing moves for so long (10)")->type_name("SEC");
    bench_app_->add_option("uri", bench_.uri, "the serving side")->type_name("URI");
  }

  void add_keygen() {
    keygen_app_ = app_.add_subcommand("keygen", "make this account's identity, and print its id");
    add_common(keygen_app_, keygen_.common);
    keygen_app_->add_option("--out", keygen_.out, "where to (identity.key in the account's configuration directory)")
        ->type_name("FILE");
    keygen_app_->add_flag("--force", keygen_.force, "replace a key that is there");
  }
  void add_id() {
    id_app_ = app_.add_subcommand("id", "print the id of this account, for the configuration of its peers");
    add_common(id_app_, id_.common);
  }

  Result<Command> finish_send() {
    send_.common.verbose = counted_[send_app_];
    send_.transfer.rules = rules_of(send_app_);
    if (const auto ended = take_transfer_values(raw_, send_.transfer); !ended) return tl::unexpected(ended.error());
    if (const auto ended = take_listen_values(raw_, send_.common, send_.listen); !ended) return tl::unexpected(ended.error());
    if (send_.serve) {
      if (!send_.sources.empty()) return usage("bad command line", send_.sources.front(), "--serve takes no SRC and no DEST");
      TransferOptions asked = send_.transfer;
      asked.archive = asked.checksum = false;  // whoever pulls says that; it has never been an error here
      const char* of_dialler = option_of_dialler(asked, raw_);
      if (of_dialler != nullptr)
        return usage("bad command line", fmt::format("{} with --serve", of_dialler), "give it to the side that dials");
      return send_;
    }
    if (send_.sources.size() < 2) {
      const char* const missing = send_.sources.empty()           ? "SRC and DEST are missing"
                                  : is_uri(send_.sources.front()) ? "SRC is missing"
                                                                  : "DEST is missing";
      return usage("bad command line", missing, "ccixfer send [options] SRC... DEST, or --serve DIR");
    }
    if (const auto fits = no_listening(send_.listen, "--serve"); !fits) return tl::unexpected(fits.error());
    take_destinations(send_);
    if (const auto fits = check_standard_streams(send_); !fits) return tl::unexpected(fits.error());
    if (send_.sources.front() == "-" && !send_.transfer.receipt.empty())
      return usage("bad command line", "--receipt", "standard input cannot be read again: let the receiver write one");
    if (send_.sources.size() > 1 && std::count(send_.sources.begin(), send_.sources.end(), "-") > 0) {
      return usage("bad command line", "-", "standard input is sent alone");
    }
    return send_;
  }
  Result<Command> finish_recv() {
    receive_.common.verbose = counted_[recv_app_];
    receive_.transfer.rules = rules_of(recv_app_);
    if (const auto ended = take_transfer_values(raw_, receive_.transfer); !ended) return tl::unexpected(ended.error());
    if (const auto ended = take_listen_values(raw_, receive_.common, receive_.listen); !ended) return tl::unexpected(ended.error());
    if (!raw_.staging_age.empty()) {
      if (!receive_.root) return usage("bad command line", "--staging-max-age", "only with --root");
      const auto age_s = parse_age_s(raw_.staging_age);
      if (!age_s) return usage("bad value", fmt::format("--staging-max-age {}", raw_.staging_age), age_s.error().message);
      receive_.listen.staging_age_max_s = *age_s;
    }
    if (receive_.root) {
      if (!receive_.uris.empty()) return usage("bad command line", receive_.uris.front(), "--root takes no SRC_URI");
      const char* of_dialler = option_of_dialler(receive_.transfer, raw_);
      if (of_dialler != nullptr) {
        return usage("bad command line", fmt::format("{} with --root", of_dialler), "give it to the side that dials");
      }
      return receive_;
    }
    if (receive_.uris.size() < 2) {
      const char* const missing = receive_.uris.empty()           ? "SRC_URI and DIR are missing"
                                  : is_uri(receive_.uris.front()) ? "DIR is missing"
                                                                  : "SRC_URI is missing";
      return usage("bad command line", missing, "ccixfer recv --root DIR, or ccixfer recv [options] SRC_URI... DIR");
    }
    if (const auto fits = no_listening(receive_.listen, "--root"); !fits) return tl::unexpected(fits.error());
    receive_.directory = receive_.uris.back();
    receive_.uris.pop_back();
    if (const auto fits = check_standard_streams(receive_); !fits) return tl::unexpected(fits.error());
    return receive_;
  }
  Result<Command> finish_route() {
    route_.common.verbose = counted_[route_app_];
    if (auto taken = take_rate(raw_, route_.rate); !taken) return tl::unexpected(taken.error());
    if (!raw_.memory.empty()) {
      const auto bytes = memory_of(raw_);
      if (!bytes) return tl::unexpected(bytes.error());
      route_.memory_bytes = *bytes;
    }
    return route_;
  }
  Result<Command> finish_routes() {
    routes_.common.verbose = counted_[routes_app_];
    if (routes_.dot && routes_.common.json) return fail(ErrorKind::usage, "--dot and --json: one of them");
    return routes_;
  }
  Result<Command> finish_ping() {
    ping_.common.verbose = counted_[ping_app_];
    if (!raw_.count.empty()) {
      const auto count = whole_number("--count", raw_.count, 1, ping_count_max);
      if (!count) return tl::unexpected(count.error());
      ping_.count = static_cast<uint32_t>(*count);
    }
    if (!raw_.timeout.empty()) {
      const auto patience = timeout_of(raw_);
      if (!patience) return tl::unexpected(patience.error());
      ping_.timeout = *patience;
    }
    return ping_;
  }

  Result<Command> finish_sim() {
    sim_.common.verbose = counted_[sim_app_];
    if (!raw_.seed.empty()) {
      const auto seed = whole_number("--seed", raw_.seed, 0, UINT64_MAX);
      if (!seed) return tl::unexpected(seed.error());
      sim_.seed = *seed;
    }
    if (!raw_.seeds.empty()) {
      const auto seeds = whole_number("--seeds", raw_.seeds, 1, UINT32_MAX);
      if (!seeds) return tl::unexpected(seeds.error());
      sim_.seeds = *seeds;
    }
    return sim_;
  }
  Result<Command> finish_bench() {
    bench_.common.verbose = counted_[bench_app_];
    const auto wait = bench::parse_wait(bench_wait_);
    if (!wait) return tl::unexpected(wait.error());
    bench_.wait = *wait;
    if (bench_.serve && !bench_.uri.empty()) return usage("bad command line", bench_.uri, "--serve takes no URI");
    if (!bench_.serve && bench_.uri.empty()) {
      return usage("bad command line", "URI is missing", "ccixfer bench [options] URI, or ccixfer bench --serve");
    }
    if (bench_.serve) {
      for (const char* name :
           {"--tests", "--message-size", "--sizes", "--depth", "--seconds", "--count", "--connections", "--plot", "--timeout"}) {
        if (bench_app_->count(name) > 0) return usage("bad command line", name, "only where URI is given: that side chooses");
      }
      return bench_;
    }
    if (const auto fits = no_listening(bench_.listen, "--serve"); !fits) return tl::unexpected(fits.error());
    bench_text_.plots = bench_.plot.has_value();
    auto plan = bench::make_plan(bench_text_);
    if (!plan) return tl::unexpected(plan.error());
    bench_.plan = std::move(*plan);
    return bench_;
  }

  Result<Command> finish_keygen() {
    keygen_.common.verbose = counted_[keygen_app_];
    if (keygen_.out && keygen_.out->empty()) return usage("bad value", "--out", "name a file");
    return keygen_;
  }
  Result<Command> finish_status() {
    status_.common.verbose = counted_[status_app_];
    if (status_.root.empty() && !status_.history)
      return usage("bad command line", "ROOT is missing", "ccixfer status ROOT, or --history for the runs of jobs");
    if (!status_.job.empty() && (!status_.history || !status_.root.empty()))
      return usage("bad command line", "--job", "only with --history and without ROOT");
    if (status_.history && !raw_.expire.empty()) return fail(ErrorKind::usage, "--expire and --history: one of them");
    if (raw_.expire.empty()) return status_;
    const auto age_s = parse_age_s(raw_.expire);
    if (!age_s) return usage("bad value", fmt::format("--expire {}", raw_.expire), age_s.error().message);
    status_.expire_s = *age_s;
    return status_;
  }
  Result<Command> finish_job() {
    job_.common.verbose = counted_[job_app_];
    if (job_.names.size() > 1 && !job_.check) return usage("bad command line", job_.names[1], "one job at a time, or --check");
    return job_;
  }
  Result<Command> finish_verify() {
    verify_.common.verbose = counted_[verify_app_];
    if (verify_.sha256sum && verify_.directory) return usage("bad command line", *verify_.directory, "--sha256sum reads no DIR");
    if (verify_.sha256sum && verify_.common.json) return fail(ErrorKind::usage, "--sha256sum and --json: one of them");
    return verify_;
  }
  Result<Command> finish_id() {
    id_.common.verbose = counted_[id_app_];
    return id_;
  }

  // What --help shows: the options that are refused by name are no words of ours.
  static CommandWords words_of(const CLI::App& command) {
    CommandWords words{command.get_name(), one_line(command.get_description()), {}};
    for (const CLI::Option* option : command.get_options()) {
      if (option->get_group().empty() || option->get_positional()) continue;
      OptionWords& one = words.options.emplace_back();
      for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
      for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
      if (option->get_items_expected_max() > 0) one.value = option->get_type_name();
      one.help = one_line(option->get_description());
    }
    return words;
  }
  Result<Command> finish_completion() const {
    std::vector<CommandWords> commands;
    for (const CLI::App* command : app_.get_subcommands([](const CLI::App*) { return true; })) {
      if (!command->get_group().empty()) commands.push_back(words_of(*command));
    }
    auto script = completion_script(shell_, commands);
    if (!script) return tl::unexpected(script.error());
    return HelpCommand{std::move(*script)};
  }

  CLI::App app_;
  CLI::App *send_app_ = nullptr, *recv_app_ = nullptr, *route_app_ = nullptr, *routes_app_ = nullptr, *ping_app_ = nullptr,
           *devices_app_ = nullptr, *sim_app_ = nullptr, *bench_app_ = nullptr, *keygen_app_ = nullptr, *id_app_ = nullptr,
           *completion_app_ = nullptr, *verify_app_ = nullptr, *status_app_ = nullptr, *job_app_ = nullptr;
  std::map<const CLI::App*, unsigned> counted_;
  std::map<const CLI::App*, std::map<RuleWord::Kind, std::vector<std::string>>> rule_texts_;
  std::map<const CLI::App*, int> rule_flags_;
  std::map<const CLI::Option*, RuleWord::Kind> rule_kinds_;
  std::string shell_;
  OptionTexts raw_;
  SendCommand send_;
  ReceiveCommand receive_;
  RouteCommand route_;
  RoutesCommand routes_;
  PingCommand ping_;
  DevicesCommand devices_;
  SimCommand sim_;
  BenchCommand bench_;
  KeygenCommand keygen_;
  IdCommand id_;
  VerifyCommand verify_;
  StatusCommand status_;
  JobCommand job_;
  bench::PlanText bench_text_;
  std::string bench_wait_;
};

}  // namespace

Result<Command> parse_command_line(int argc, const char* const* argv) { return Parser().parse(argc, argv); }

}  // namespace ccixfer::program

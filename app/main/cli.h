// The command line into plain structs. In: argv. Out: one command with its options, or help text, or one line that says what is
// wrong. Errors: ErrorKind::usage, also for the options and commands of the contract that this version does not have yet: those are
// never ignored silently. Nothing here looks at files, environment or network.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/bench/plan.h"
#include "app/main/metadata_options.h"
#include "app/main/rate_table.h"
#include "app/main/rule_words.h"
#include "app/main/sync_options.h"
#include "app/main/team_options.h"
#include "app/main/wall_clock.h"
#include "core/base/result.h"
#include "core/base/time.h"

namespace ccixfer::program {

inline constexpr const char* program_version = "0.1.0";
inline constexpr uint64_t memory_bytes_default = 256u << 20;
inline constexpr uint32_t ping_count_max = 100000;
inline constexpr uint32_t sessions_option_max = 1024;
inline constexpr uint64_t ticket_expires_in_s_default = 24 * 3600;
inline constexpr uint64_t ticket_expires_in_s_max = 366 * 24 * 3600;
inline constexpr uint32_t ticket_uses_option_max = 1000;

struct CommonOptions {
  std::optional<std::string> config_file;
  std::optional<std::string> device;
  bool insecure = false;
  bool json = false;
  bool progress = false;
  unsigned verbose = 0;
  bool quiet = false;
  bool stats = false;
  std::string log_file;
};

struct ListenOptions {
  std::optional<std::string> listen;  // HOST:PORT
  std::string uri_file;
  bool once = false;
  std::optional<uint32_t> sessions;  // at a time
  bool ticket = false;               // print one
  uint64_t ticket_expires_in_s = ticket_expires_in_s_default;
  uint32_t ticket_uses = 1;
  std::string audit_log;                      // a file, or `journald`; "": none
  std::optional<uint64_t> staging_age_max_s;  // of recv --root
};

struct TransferOptions {
  bool archive = false;
  bool dry_run = false;
  bool checksum = false;
  SyncOptions sync;
  MetadataOptions metadata;
  std::vector<RuleWord> rules = {};  // in their order
  bool verify = false;
  std::string on_complete;  // a command; "": none
  std::string receipt;      // a file; of a side that listens a directory; "": none
  std::string lock_file;    // "": none
  std::string failed_list;  // "": none
  bool from0 = false;       // names in lists end with a zero
  std::optional<StopAt> stop_at = {};
  uint16_t lanes = 0;   // 0: chosen
  RateTable rate = {};  // of --bwlimit
  Duration timeout = std::chrono::seconds(60);
  std::optional<uint32_t> retries;
  uint64_t memory_bytes = memory_bytes_default;
};

struct SendCommand {  // `serve` or sources with a destination
  CommonOptions common;
  ListenOptions listen;
  TransferOptions transfer;
  std::optional<std::string> serve;
  std::vector<std::string> sources;
  std::string destination;
  std::vector<std::string> more_destinations = {};  // of a team: second receivers (destinations.h)
  TeamOptions team = {};
};

struct ReceiveCommand {  // `root` or uris with a directory
  CommonOptions common;
  ListenOptions listen;
  TransferOptions transfer;
  std::optional<std::string> root;
  bool shares_root = false;  // another receiver owns it: this one writes pieces for it
  std::vector<std::string> uris;
  std::string directory;
};

struct RouteCommand {
  CommonOptions common;
  std::string uri_file;
  RateTable rate = {};
  std::optional<uint64_t> memory_bytes;  // else the configuration's
  std::string audit_log;                 // a file, or `journald`; "": none
  std::optional<size_t> workers = {};    // else the configuration's
};

struct RoutesCommand {
  CommonOptions common;
  std::vector<std::string> places;  // configuration files, or one URI of a running router
  bool dot = false;                 // the topology for Graphviz, nothing else
};

struct PingCommand {
  CommonOptions common;
  std::string uri;
  uint32_t count = 5;
  Duration timeout = std::chrono::seconds(5);
};

struct DevicesCommand {
  CommonOptions common;
};

struct SimCommand {
  CommonOptions common;
  std::string scenario;          // a file
  std::optional<uint64_t> seed;  // else the scenario's
  uint64_t seeds = 1;            // from there on
  bool trace = false;
};

struct BenchCommand {  // `serve` or a uri with a plan
  CommonOptions common;
  ListenOptions listen;
  bool serve = false;
  std::string uri;
  bench::Plan plan;
  bench::Wait wait = bench::Wait::poll;
  std::optional<std::string> plot;  // the file
};

struct KeygenCommand {
  CommonOptions common;
  std::optional<std::string> out;  // else the account's key
  bool force = false;              // replace one that is there
};

struct IdCommand {
  CommonOptions common;
};

struct VerifyCommand {
  CommonOptions common;
  std::string receipt;                   // a file
  std::optional<std::string> directory;  // else the receipt's
  std::optional<std::string> signer;     // an id, or NAME of [peer.NAME]
  bool sha256sum = false;
  bool ignore_extra = false;
};

struct StatusCommand {
  CommonOptions common;
  std::string root;                  // "": the history of jobs
  std::optional<uint64_t> expire_s;  // staged files that nobody changed for so long go
  bool history = false;
  std::string job;  // of the history of jobs, only this one; "": all
};

struct JobCommand {
  CommonOptions common;
  std::vector<std::string> names;  // or files; one, unless they are checked
  bool check = false;
};

struct HelpCommand {
  std::string text;  // for standard output
};

using Command = std::variant<HelpCommand, SendCommand, ReceiveCommand, RouteCommand, RoutesCommand, PingCommand, DevicesCommand,
                             SimCommand, BenchCommand, KeygenCommand, IdCommand, VerifyCommand, StatusCommand, JobCommand>;

[[nodiscard]] Result<Command> parse_command_line(int argc, const char* const* argv);

}  // namespace ccixfer::program

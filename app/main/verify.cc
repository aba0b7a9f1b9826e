// `ccixfer verify`: a receipt, and the tree that it is of.
#include <fcntl.h>
#include <fmt/format.h>
#include <strings.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "app/main/commands.h"
#include "app/main/confinement.h"
#include "app/main/standard_io.h"
#include "app/main/verify_tree.h"
#include "app/receipt/reader.h"
#include "app/trust/local_identity.h"
#include "app/trust/places.h"
#include "core/base/units.h"

namespace ccixfer::program {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// The name under which this host knows the signer; "": it does not.
std::string name_of_signer(const Process& process, const trust::PeerId& signer) {
  for (const PeerConfig& peer : process.config.peers) {
    if (peer.id && *peer.id == signer) return peer.name;
  }
  const auto own =
      policy::load_local_identity(process.config.identity, policy::places_of_process(), policy::WithoutIdentity::refuse);
  return own && own->identity.id() == signer ? "this account" : "";
}

// Whom --signer names.
Result<std::optional<trust::PeerId>> wanted_signer(const Process& process, const VerifyCommand& command) {
  if (!command.signer) return std::optional<trust::PeerId>();
  const std::string name = printable(*command.signer);
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorKind::usage, fmt::format("bad value: --signer {}: {}", name, why));
  };
  for (const PeerConfig& peer : process.config.peers) {
    if (peer.name != *command.signer) continue;
    if (!peer.id) return wrong(fmt::format("[peer.{}] is known by a certificate and has no id: give the id of its key", name));
    return peer.id;
  }
  const auto id = trust::parse_peer_id(*command.signer);
  if (id) return std::optional<trust::PeerId>(*id);
  if (::strncasecmp(command.signer->c_str(), "cx1-", 4) == 0) return tl::unexpected(id.error());
  return wrong(fmt::format("no such [peer.{}] in the configuration: give an id, or NAME of a [peer.NAME]", name));
}

Result<void> judge_signer(const Process& process, const VerifyCommand& command, const std::optional<trust::PeerId>& wanted,
                          const receipt::Checked& checked) {
  const std::string file = printable(command.receipt);
  if (!checked.signer) {
    if (command.signer)
      return fail(ErrorKind::authentication,
                  fmt::format("nobody signed the receipt: {}: --signer asks for {}", file, *command.signer));
    if (command.common.insecure) {
      process.reporter.warn(fmt::format("nobody signed the receipt, so anybody may have written it: {}", file));
      return {};
    }
    return fail(ErrorKind::authentication,
                fmt::format("nobody signed the receipt: {}: --insecure compares what it lists all the same", file));
  }
  const std::string id = trust::to_string(*checked.signer), name = name_of_signer(process, *checked.signer);
  if (wanted && *wanted != *checked.signer) {
    return fail(ErrorKind::authentication, fmt::format("another signer than the one that is asked for: {}: {}{}", file, id,
                                                       name.empty() ? "" : " (" + name + ")"));
  }
  if (name.empty() && !command.signer)
    process.reporter.warn(fmt::format("the signer is not known here: compare the id, or name it with --signer: {}", id));
  process.reporter.event(report::text_event(process.reporter.seconds(), "signed", "id", id));
  if (!command.sha256sum) process.reporter.info(fmt::format("signed by {}{}", id, name.empty() ? "" : " (" + name + ")"));
  return {};
}

CommandEnd print_sums(const VerifyCommand& command, receipt::Reader& reader) {
  uint64_t without = 0;
  for (;;) {
    auto entry = reader.next();
    if (!entry) return {entry.error(), {}};
    if (!*entry) break;
    if ((*entry)->type != receipt::EntryType::file) continue;
    if (!(*entry)->sha256) {
      ++without;
      continue;
    }
    const std::string line = receipt::sha256sum_line(*(*entry)->sha256, (*entry)->path);
    if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size()) break;
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    return {{ErrorKind::file_io, "standard output cannot be written: what was printed is not all"}, {}};
  if (without > 0)
    return {{ErrorKind::partial, fmt::format("{} files have no digest in the receipt: {}", without, printable(command.receipt))},
            {}};
  return {};
}

}  // namespace

CommandEnd run_verify(const Process& process, const VerifyCommand& command) {
  const auto wanted = wanted_signer(process, command);
  if (!wanted) return {wanted.error(), {}};
  const bool is_input = command.receipt == "-";
  const auto opened = open_again_and_again(is_input ? "/dev/stdin" : command.receipt, temporary_directory());
  if (!opened && opened.error().kind == ErrorKind::interrupted) return {opened.error(), {}};
  if (!opened) {
    return {
        {opened.error().kind, fmt::format("cannot read the receipt: {}: name a receipt that can be read", opened.error().message)},
        {}};
  }
  const std::unique_ptr<std::FILE, CloseFile> in(::fdopen(::fcntl(opened->get(), F_DUPFD_CLOEXEC, 0), "r"));
  if (!in) return {{ErrorKind::file_io, fmt::format("cannot read the receipt: {}", std::strerror(errno))}, {}};
  receipt::Reader reader(in.get(), is_input ? "standard input" : command.receipt, TurnLoop::is_told_to_end);
  const auto checked = reader.check();
  if (!checked) return {checked.error(), {}};
  if (auto judged = judge_signer(process, command, *wanted, *checked); !judged) return {judged.error(), {}};
  if (command.sha256sum) return print_sums(command, reader);
  const std::string directory = command.directory.value_or(checked->header.directory);
  if (directory.empty()) return {{ErrorKind::usage, "the receipt names no directory: give DIR"}, {}};
  return verify_tree(process, command, *checked, reader, directory);
}

}  // namespace ccixfer::program

// What each command may still do once it hears of peers (core/sandbox), and how it says so. The plans name places only: what a
// command has opened before stays open.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/main/commands.h"
#include "app/main/security.h"
#include "core/base/log.h"
#include "core/sandbox/plan.h"

namespace ccixfer::program {

[[nodiscard]] std::string directory_of(const std::string& file);  // "." for a name alone; of a directory's path: the one it is in
// Of a file that SIGHUP reads again, and that may be a link by then, or lead to another file: the directory of each name on the
// way, and where one of these is itself a link into its own directory (`current` to releases/7), that one.
[[nodiscard]] std::vector<std::string> directories_to(const std::string& file);
[[nodiscard]] std::string temporary_directory();  // $TMPDIR, or one that is not in memory as a rule

[[nodiscard]] sandbox::Plan plan_of_push(const SendCommand& command, const std::vector<std::string>& sources);
[[nodiscard]] sandbox::Plan plan_of_server(const Config& config, const std::string& served);
[[nodiscard]] sandbox::Plan plan_of_receiver(const Config& config, const std::string& root);
// `removable`: the command removes its directory when nothing came.
[[nodiscard]] sandbox::Plan plan_of_pull(const ReceiveCommand& command, bool removable);
[[nodiscard]] sandbox::Plan plan_of_router(const Config& config, const RouteCommand& command);
[[nodiscard]] sandbox::Plan plan_of_question();  // ping, routes, bench: it dials

// What trust needs of a running process: the terminal and the file known_peers, for a person who says yes to a new peer, and the
// directory that both keys and configurations are in. The file is made if a person may be asked, since a confined process cannot.
void add_trust(sandbox::Plan& plan, const std::optional<Security>& security);
// What a process needs besides, if SIGHUP reads its identity again: the directories of the files of [identity], since a new file
// takes the place of an old one.
void add_identity(sandbox::Plan& plan, const Config& config, const std::optional<Security>& security);

// Confines the process to the plan. Logs what is in force, and at `level` what the kernel does not offer. True: files are confined
// too, so a directory that is put in the place of another one from now on cannot be opened. file_io: as sandbox::enter().
[[nodiscard]] Result<bool> confine(const Process& process, const sandbox::Plan& plan, LogLevel level = LogLevel::info);

}  // namespace ccixfer::program

// `ccixfer devices`, and what every command says about encryption.
#include <fmt/format.h>

#include "app/main/commands.h"
#include "app/main/device_table.h"
#include "core/base/units.h"

namespace ccixfer::program {

CommandEnd run_devices(const Process& process, const DevicesCommand& command) {
  const std::vector<Interface> interfaces = interfaces_of_host();
  auto lines = describe_devices(process.config, interfaces);
  if (const auto& name = command.common.device) {
    std::erase_if(lines, [&](const report::DeviceLine& line) { return line.name != *name; });
    if (lines.empty()) return {{ErrorKind::usage, fmt::format("no such device: {}: see ccixfer devices", printable(*name))}, {}};
  }
  const auto missing = describe_missing(missing_of(transport_facts(interfaces)));
  for (const report::DeviceLine& line : lines) process.reporter.event(report::device_event(process.reporter.seconds(), line));
  for (const report::TransportLine& line : missing)
    process.reporter.event(report::transport_event(process.reporter.seconds(), line));
  for (const std::string& line : device_table(lines)) process.reporter.output(line);
  for (const std::string& line : missing_lines(missing)) process.reporter.output(line);
  return {};
}

void warn_insecure(const Process& process) {
  // Not under -q: a nightly job would mail it every night.
  process.reporter.warn(
      "WARNING: --insecure: no encryption and no authentication: anybody on the way can read and change the data");
}

}  // namespace ccixfer::program

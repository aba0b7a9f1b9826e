#include "app/recv/intake.h"

#include <utility>

namespace ccixfer::recv {

using session::SegmentHeader;

Intake::Intake(const IntakeParts& parts, const session::DataOpener* opener, Inbox& inbox, SessionHandler& session)
    : pieces_(
          parts.jobs,
          [opener, &workspaces = parts.workspaces](const std::shared_ptr<StagedFile>& staged, MutableBytes segment,
                                                   const SegmentHeader& header) {
            if (header.is_compressed()) return write_compressed_piece(*staged, segment, header, opener, workspaces);
            return write_piece(*staged, segment, header, opener);
          },
          inbox, parts.files, session, parts.counters),
      packs_(parts.jobs,
             {[opener](MutableBytes segment, const SegmentHeader& header) {
                return session::open_data(segment, header, opener).has_value();
              },
              [&root = parts.root](std::vector<PackItem>& items) { root.stage(items); },
              [opener, &workspaces = parts.workspaces](MutableBytes buffer, SegmentHeader& header) {
                const session::Decompressed outcome = session::decompress(buffer, header, opener, workspaces);
                if (outcome != session::Decompressed::ok) return outcome;
                return session::open_data(buffer, header) ? outcome : session::Decompressed::damaged;
              }},
             opener != nullptr, inbox, parts.files, session) {}

void Intake::receive(ReceivedSegment arrival, const SegmentHeader& header, uint64_t entries_decided) {
  if (header.kind == session::SegmentKind::pack) return packs_.receive(std::move(arrival), header);
  pieces_.receive(std::move(arrival), header, entries_decided);
}

}  // namespace ccixfer::recv

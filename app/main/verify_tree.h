// Compares a tree with the entries of a receipt, both in the order of a walk, so that neither is ever in memory as a whole. Files
// are read by several threads at a time, or by one where no more can be made. Nothing in the tree is opened through a symbolic
// link. A receipt of one file may be compared with that file, whatever its name is now (`given`), and the sender's knows the name
// that DEST gave it. Out: a line (reporter.file) for each entry that is altered, missing or extra, that cannot be read, or of which
// the receipt has no digest. Errors: integrity: there was any such line. partial: only such of the last kind. file_io: the
// directory cannot be read.
#pragma once
#include "app/main/commands.h"
#include "app/receipt/reader.h"

namespace ccixfer::program {

[[nodiscard]] CommandEnd verify_tree(const Process& process, const VerifyCommand& command, const receipt::Checked& checked,
                                     receipt::Reader& reader, const std::string& given);

}  // namespace ccixfer::program

// Receipts (app/receipt) of the transfers of a process: at the side that dials one for the command, in the file of --receipt; at a
// side that listens one for each transfer, TRANSFER.PEER.receipt in the directory of --receipt, PEER being the id that the peer
// proved; TRANSFER.receipt with --insecure.
// A receipt is written when the transfer has ended with all or a part delivered. Otherwise nothing is written, and what stands
// there stays. It is signed by the identity of the process; nobody signs it with --insecure.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "app/main/commands.h"
#include "app/main/security.h"
#include "app/receipt/book.h"
#include "app/session/link.h"
#include "app/session/link_seal.h"
#include "core/ports/work_pool.h"
#include "core/sandbox/plan.h"

namespace ccixfer::program {

[[nodiscard]] std::optional<trust::Identity> identity_of(const std::optional<Security>& security);
[[nodiscard]] bool is_worth_a_receipt(const Error& end);

// What writing needs of a confined process: the directory that the file is in, and one for the list of entries.
void add_receipt(sandbox::Plan& plan, const std::string& directory);

// Of the side that dials.
class DialledReceipt {
 public:
  // Nothing is done, and no sink given, without a file.
  DialledReceipt(std::string file, receipt::Header header, std::optional<trust::Identity> identity);
  [[nodiscard]] Result<void> check() const;  // before anything is done: usage, the file cannot be made
  [[nodiscard]] receipt::Sink* begin(const session::Link& link, const std::string& uri);  // a session: who the peer is
  void add_to(sandbox::Plan& plan) const;
  // After the last session. A receipt that cannot be written is the error of a command that went well otherwise.
  void finish(const Process& process, ports::FileSystem& files, CommandEnd& end);

 private:
  const std::string file_;
  receipt::Header header_;
  const std::optional<trust::Identity> identity_;
  const std::unique_ptr<receipt::Book> book_;  // none: no receipt
};

// Of the side that listens: writes in the work pool, and tells of it.
struct ListenerReceipts {
  std::string directory;  // of --receipt; "": none are written
  std::string root;       // absolute: what transfers are below
  receipt::Side side = receipt::Side::destination;
};
struct ReceiptOrder {
  std::shared_ptr<receipt::Book> book;
  std::string file;
  receipt::Header header = {};
  std::optional<trust::Identity> identity = {};
};
[[nodiscard]] std::unique_ptr<ports::Job> make_receipt_job(ReceiptOrder order, report::Reporter& reporter,
                                                           std::shared_ptr<size_t> running);
// usage, file_io: it is no directory that can be written.
[[nodiscard]] Result<ListenerReceipts> listener_receipts(const std::string& directory, const std::string& root, receipt::Side side);

// The directory that the paths of a session are below: `path` below `root`, or where that stands if it is no directory. `inside`:
// the content of it is meant.
[[nodiscard]] std::string delivered_directory(const std::string& root, const std::string& path, bool inside);
[[nodiscard]] std::string absolute(const std::string& path);  // with links resolved, as far as it is there

}  // namespace ccixfer::program

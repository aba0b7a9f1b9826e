#include "app/main/receipts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "app/main/confinement.h"
#include "app/main/ended_transfer.h"
#include "app/main/replaced_file.h"
#include "app/main/session_trust.h"
#include "app/report/outcome.h"
#include "core/base/units.h"
#include "core/trust/peer_id.h"

namespace ccixfer::program {
namespace {

void tell(report::Reporter& reporter, const std::string& file, const Result<receipt::Gaps>& written, bool is_signed) {
  if (!written) return reporter.error(written.error());
  if (written->without_digest > 0) {
    reporter.warn(fmt::format("{} files have no digest in the receipt, since they could not be read or had changed: {}",
                              written->without_digest, printable(file)));
  }
  if (written->unlisted > 0) {
    reporter.warn(
        fmt::format("{} entries are not in the receipt, since they were gone or in a directory that cannot be searched: {}",
                    written->unlisted, printable(file)));
  }
  if (!is_signed)
    reporter.warn(fmt::format("nobody signed the receipt, as there is no identity with --insecure: {}", printable(file)));
}

class ReceiptJob final : public ports::Job {
 public:
  ReceiptJob(ReceiptOrder order, report::Reporter& reporter, std::shared_ptr<size_t> running)
      : order_(std::move(order)), reporter_(reporter), running_(std::move(running)) {
    ++*running_;
  }
  void run(ports::FileSystem& files) override { written_ = order_.book->write(files, order_.file, order_.header, order_.identity); }
  void done() override {
    --*running_;
    tell(reporter_, order_.file, written_, order_.identity.has_value());
  }

 private:
  const ReceiptOrder order_;
  report::Reporter& reporter_;
  const std::shared_ptr<size_t> running_;
  Result<receipt::Gaps> written_ = receipt::Gaps{};
};

}  // namespace

std::optional<trust::Identity> identity_of(const std::optional<Security>& security) {
  return security ? std::optional<trust::Identity>(security->identity.identity) : std::nullopt;
}

bool is_worth_a_receipt(const Error& end) { return report::has_delivered(end.kind); }

void add_receipt(sandbox::Plan& plan, const std::string& directory) {
  plan.places.push_back({directory, sandbox::Access::files});
  plan.places.push_back({directory, sandbox::Access::read});
  plan.places.push_back({temporary_directory(), sandbox::Access::files});
  plan.places.push_back({temporary_directory(), sandbox::Access::read});
}

std::string absolute(const std::string& path) {
  std::error_code problem;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path, problem);
  return problem ? path : whole.string();
}

std::string delivered_directory(const std::string& root, const std::string& path, bool inside) {
  std::error_code problem;
  const std::filesystem::path whole = path.empty() ? std::filesystem::path(root) : std::filesystem::path(root) / path;
  const bool is_directory = std::filesystem::is_directory(whole, problem);
  return (inside && is_directory ? whole : whole.parent_path()).string();
}

DialledReceipt::DialledReceipt(std::string file, receipt::Header header, std::optional<trust::Identity> identity)
    : file_(file.empty() ? file : absolute(file)),
      header_(std::move(header)),
      identity_(std::move(identity)),
      book_(file.empty() ? nullptr : std::make_unique<receipt::Book>()) {}

Result<void> DialledReceipt::check() const {
  if (book_ == nullptr) return {};
  if (auto may = may_be_replaced(file_, "--receipt"); !may) return may;
  if (::access(directory_of(file_).c_str(), W_OK | X_OK) == 0) return {};
  return fail(ErrorKind::usage, fmt::format("--receipt: {}: {}: name a file in a directory that can be written", printable(file_),
                                            std::strerror(errno)));
}

receipt::Sink* DialledReceipt::begin(const session::Link& link, const std::string& uri) {
  if (!book_) return nullptr;
  const trust::ProvedPeer* peer = link.proved();
  header_.peer = peer != nullptr ? trust::to_string(peer->id) : uri;
  book_->begin(transfer_name(link.hello().transfer));
  return book_.get();
}

void DialledReceipt::add_to(sandbox::Plan& plan) const {
  if (book_) add_receipt(plan, directory_of(file_));
}

void DialledReceipt::finish(const Process& process, ports::FileSystem& files, CommandEnd& end) {
  if (!book_ || end.in_use || !is_worth_a_receipt(end.error)) return;
  header_.status = error_row(end.error.kind).name;
  header_.time_s = wall_time_s();
  const auto written = book_->write(files, file_, header_, identity_);
  if (!written && end.error.kind == ErrorKind::ok) {
    end.error = written.error();
    return;
  }
  tell(process.reporter, file_, written, identity_.has_value());
}

std::unique_ptr<ports::Job> make_receipt_job(ReceiptOrder order, report::Reporter& reporter, std::shared_ptr<size_t> running) {
  return std::make_unique<ReceiptJob>(std::move(order), reporter, std::move(running));
}

Result<ListenerReceipts> listener_receipts(const std::string& directory, const std::string& root, receipt::Side side) {
  ListenerReceipts receipts;
  receipts.root = absolute(root);
  receipts.side = side;
  if (directory.empty()) return receipts;
  receipts.directory = absolute(directory);
  std::error_code problem;
  if (!std::filesystem::is_directory(receipts.directory, problem)) {
    return fail(ErrorKind::usage,
                fmt::format("--receipt: {}: name a directory that is there: each transfer gets a file of its own in it",
                            printable(directory)));
  }
  if (::access(receipts.directory.c_str(), W_OK | X_OK) != 0) {
    return fail(ErrorKind::file_io,
                fmt::format("--receipt: {}: {}: name a directory that can be written", printable(directory), std::strerror(errno)));
  }
  return receipts;
}

}  // namespace ccixfer::program

#include "core/trust/pem.h"

#include <fmt/format.h>
#include <openssl/pem.h>

#include <algorithm>
#include <optional>

#include "core/base/units.h"

namespace ccixfer::trust {
namespace {

constexpr size_t shown_bytes_max = 60;  // of the name of a block that we do not know

struct Block {
  std::string kind;  // as in -----BEGIN KIND-----
  bool encrypted = false;
  std::vector<uint8_t> der;
  Block() = default;
  ~Block() { OPENSSL_cleanse(der.data(), der.size()); }
  Block(Block&&) = default;
  Block& operator=(Block&&) = default;
};

tl::unexpected<Error> wrong(std::string_view problem, std::string_view what, std::string_view to_do) {
  return fail(ErrorKind::usage, fmt::format("{}: {}: {}", problem, what, to_do));
}

bool is_key(const Block& block) {
  return block.kind == PEM_STRING_PKCS8INF || block.kind == PEM_STRING_PKCS8 || block.kind == PEM_STRING_RSA ||
         block.kind == PEM_STRING_ECPRIVATEKEY;
}
bool is_certificate(const Block& block) { return block.kind == PEM_STRING_X509 || block.kind == PEM_STRING_X509_OLD; }
bool is_revocation_list(const Block& block) { return block.kind == PEM_STRING_X509_CRL; }

// What a block is, for people.
std::string name_of(const Block& block) {
  if (block.kind == "OPENSSH PRIVATE KEY") return "a key of OpenSSH";
  if (is_key(block)) return "a private key";
  if (is_certificate(block)) return "a certificate";
  if (is_revocation_list(block)) return "a revocation list";
  if (block.kind == PEM_STRING_PUBLIC) return "a public key";
  if (block.kind == PEM_STRING_X509_REQ || block.kind == PEM_STRING_X509_REQ_OLD) return "a request for a certificate";
  return fmt::format("'{}'", printable(std::string_view(block.kind).substr(0, shown_bytes_max)));
}

Result<std::vector<Block>> read_blocks(std::string_view pem, std::string_view what) {
  if (pem.size() > pem_bytes_max) return wrong("too long for a PEM file", what, "give another file");
  if (pem.empty()) return std::vector<Block>();
  const CleanErrors clean;
  const BioPtr bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  std::vector<Block> blocks;
  for (;;) {
    char* kind = nullptr;
    char* header = nullptr;
    unsigned char* der = nullptr;
    long length = 0;
    if (PEM_read_bio(bio.get(), &kind, &header, &der, &length) != 1) {
      if (ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE) break;
      return wrong("damaged PEM", what, "copy the file again");
    }
    const std::unique_ptr<char, FreedMemory> kind_owner(kind), header_owner(header);
    Block& block = blocks.emplace_back();
    block.kind = kind;
    block.encrypted = block.kind == PEM_STRING_PKCS8 || std::string_view(header).find("ENCRYPTED") != std::string_view::npos;
    block.der.assign(der, der + length);
    OPENSSL_clear_free(der, static_cast<size_t>(length));
    if (blocks.size() > pem_blocks_max) return wrong("too much in one PEM file", what, "give what is needed only");
  }
  return blocks;
}

// The blocks of one kind, of which there must be one.
template <typename Wanted>
Result<std::vector<Block>> read_kind(std::string_view pem, std::string_view what, std::string_view kind, Wanted wanted) {
  Result<std::vector<Block>> blocks = read_blocks(pem, what);
  if (!blocks) return blocks;
  if (blocks->empty()) return wrong(fmt::format("no PEM file with {}", kind), what, "it begins with -----BEGIN");
  const std::string found = name_of(blocks->front());
  std::erase_if(*blocks, [&](const Block& block) { return !wanted(block); });
  if (blocks->empty()) return wrong(fmt::format("{} and not {}", found, kind), what, fmt::format("give the file with {}", kind));
  return blocks;
}

// Said by OpenSSL when something was to be found for an algorithm; damage ends in other words.
bool lacks_algorithm() {
  while (const unsigned long error = ERR_get_error()) {
    if (ERR_GET_LIB(error) == ERR_LIB_EVP && ERR_GET_REASON(error) == ERR_R_UNSUPPORTED) return true;
  }
  return false;
}

template <typename Ptr, typename Decode>
Result<std::vector<Ptr>> decode_all(const std::vector<Block>& blocks, std::string_view what, Decode decode) {
  const CleanErrors clean;
  std::vector<Ptr> decoded;
  for (const Block& block : blocks) {
    const unsigned char* at = block.der.data();
    decoded.emplace_back(decode(nullptr, &at, static_cast<long>(block.der.size())));
    if (decoded.back() == nullptr && lacks_algorithm()) {
      return wrong(fmt::format("{} of a kind that this OpenSSL does not offer (FIPS mode?)", name_of(block)), what,
                   "use RSA of 2048 bits or more, or EC on P-256, with a certificate, or look into openssl.cnf");
    }
    if (decoded.back() == nullptr || at != block.der.data() + block.der.size()) {
      return wrong(fmt::format("damaged PEM: {}", name_of(block)), what, "copy the file again");
    }
  }
  return decoded;
}

}  // namespace

Result<PkeyPtr> read_key(std::string_view pem, std::string_view what) {
  const Result<std::vector<Block>> blocks = read_kind(pem, what, "a private key", is_key);
  if (!blocks) return tl::unexpected(blocks.error());
  if (blocks->size() > 1) return wrong("more than one private key", what, "leave one in the file");
  if (blocks->front().encrypted) {
    return wrong("a key with a passphrase", what, "nobody is asked for one: write the key without (openssl pkey)");
  }
  Result<std::vector<PkeyPtr>> keys = decode_all<PkeyPtr>(*blocks, what, d2i_AutoPrivateKey);
  if (!keys) return tl::unexpected(keys.error());
  return std::move(keys->front());
}

Result<std::vector<X509Ptr>> read_certificates(std::string_view pem, std::string_view what) {
  const Result<std::vector<Block>> blocks = read_kind(pem, what, "a certificate", is_certificate);
  if (!blocks) return tl::unexpected(blocks.error());
  return decode_all<X509Ptr>(*blocks, what, d2i_X509);
}

Result<std::vector<CrlPtr>> read_revocation_lists(std::string_view pem, std::string_view what) {
  const Result<std::vector<Block>> blocks = read_kind(pem, what, "a revocation list", is_revocation_list);
  if (!blocks) return tl::unexpected(blocks.error());
  return decode_all<CrlPtr>(*blocks, what, d2i_X509_CRL);
}

}  // namespace ccixfer::trust

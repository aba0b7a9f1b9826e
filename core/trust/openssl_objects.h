// OpenSSL's objects with owners, and its queue of errors kept empty. For the .cc files of this room only.
#pragma once
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

namespace ccixfer::trust {

template <auto free_it>
struct FreedBy {
  template <typename T>
  void operator()(T* object) const {
    static_cast<void>(free_it(object));
  }
};
struct FreedStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_pop_free(stack, X509_free); }
};
struct FreedNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
struct FreedMemory {
  void operator()(void* memory) const { OPENSSL_free(memory); }
};

using BioPtr = std::unique_ptr<BIO, FreedBy<BIO_free>>;
using PkeyPtr = std::unique_ptr<EVP_PKEY, FreedBy<EVP_PKEY_free>>;
using X509Ptr = std::unique_ptr<X509, FreedBy<X509_free>>;
using X509StackPtr = std::unique_ptr<STACK_OF(X509), FreedStack>;
using CrlPtr = std::unique_ptr<X509_CRL, FreedBy<X509_CRL_free>>;
using StorePtr = std::unique_ptr<X509_STORE, FreedBy<X509_STORE_free>>;
using StoreCtxPtr = std::unique_ptr<X509_STORE_CTX, FreedBy<X509_STORE_CTX_free>>;
using NamesPtr = std::unique_ptr<GENERAL_NAMES, FreedNames>;
using TimePtr = std::unique_ptr<ASN1_TIME, FreedBy<ASN1_TIME_free>>;
using SslCtxPtr = std::unique_ptr<SSL_CTX, FreedBy<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, FreedBy<SSL_free>>;
using CipherPtr = std::unique_ptr<EVP_CIPHER, FreedBy<EVP_CIPHER_free>>;
using CipherCtxPtr = std::unique_ptr<EVP_CIPHER_CTX, FreedBy<EVP_CIPHER_CTX_free>>;
using KdfPtr = std::unique_ptr<EVP_KDF, FreedBy<EVP_KDF_free>>;
using KdfCtxPtr = std::unique_ptr<EVP_KDF_CTX, FreedBy<EVP_KDF_CTX_free>>;

// OpenSSL keeps a queue of errors for each thread, and SSL_get_error reads it. So each call into this room begins with an empty one
// and leaves an empty one.
class CleanErrors {
 public:
  CleanErrors() { ERR_clear_error(); }
  ~CleanErrors() { ERR_clear_error(); }
  CleanErrors(const CleanErrors&) = delete;
  CleanErrors& operator=(const CleanErrors&) = delete;
};

}  // namespace ccixfer::trust

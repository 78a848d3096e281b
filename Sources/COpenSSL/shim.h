// What Swift sees of OpenSSL. Only what the importer cannot read by itself (function-like macros) is declared here,
// each with its reason.
#ifndef MARTLET_COPENSSL_SHIM_H
#define MARTLET_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

// All below are function-like macros in OpenSSL's headers, which Swift does not import.

// Macro around SSL_CTX_ctrl.
static inline int martlet_SSL_CTX_set_min_proto_version(SSL_CTX *context, int version) {
  return (int)SSL_CTX_set_min_proto_version(context, version);
}

// Macro around SSL_CTX_ctrl.
static inline void martlet_SSL_CTX_set_mode(SSL_CTX *context, long mode) { SSL_CTX_set_mode(context, mode); }

// Macro around SSL_CTX_ctrl.
static inline int martlet_SSL_CTX_add1_chain_cert(SSL_CTX *context, X509 *certificate) {
  return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

// Macro around SSL_CTX_ctrl.
static inline void martlet_SSL_CTX_set_session_cache_off(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

// Macro around SSL_CTX_ctrl, and a compound of flag macros: new sessions are handed to the callback and kept nowhere else.
static inline void martlet_SSL_CTX_hand_out_sessions(SSL_CTX *context) {
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

// Macro around SSL_ctrl.
static inline int martlet_SSL_set_tlsext_host_name(SSL *session, const char *name) {
  return (int)SSL_set_tlsext_host_name(session, name);
}

// Macro around BIO_set_flags.
static inline void martlet_BIO_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

// Macro around BIO_clear_flags.
static inline void martlet_BIO_clear_retry_flags(BIO *bio) { BIO_clear_retry_flags(bio); }

// Macro around BIO_ctrl. The memory stays the BIO's.
static inline long martlet_BIO_get_mem_data(BIO *bio, char **data) { return BIO_get_mem_data(bio, data); }

// Macro around EVP_PKEY_Q_keygen, which takes variable arguments.
static inline EVP_PKEY *martlet_EVP_EC_gen(const char *curve) { return EVP_EC_gen(curve); }

// Macro around X509V3_set_ctx's structure: no configuration database is used.
static inline void martlet_X509V3_set_ctx(X509V3_CTX *context, X509 *issuer, X509 *subject) {
  X509V3_set_ctx_nodb(context);
  X509V3_set_ctx(context, issuer, subject, NULL, NULL, 0);
}

// The functions of typed stacks are macros.
static inline X509 *martlet_sk_X509_shift(STACK_OF(X509) *stack) { return sk_X509_shift(stack); }
static inline void martlet_sk_X509_free(STACK_OF(X509) *stack) { sk_X509_free(stack); }

// The SSL_OP_ flags are made by a function-like macro (SSL_OP_BIT).
static inline uint64_t martlet_SSL_OP_common(void) { return SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION; }
static inline uint64_t martlet_SSL_OP_server(void) { return SSL_OP_CIPHER_SERVER_PREFERENCE; }

// A compound of flag macros: names as RFC 2253 writes them, with UTF-8 left readable.
static inline unsigned long martlet_name_flags(void) { return XN_FLAG_RFC2253 & ~(unsigned long)ASN1_STRFLGS_ESC_MSB; }

#endif

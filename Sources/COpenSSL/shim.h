// What Swift sees of OpenSSL. Only what the importer cannot read by itself (function-like macros) is declared here,
// each with its reason.
#ifndef MARTLET_COPENSSL_SHIM_H
#define MARTLET_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#endif

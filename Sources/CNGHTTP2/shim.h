// What Swift sees of nghttp2. Only what the importer cannot read by itself is declared here, each with its reason.
#ifndef MARTLET_CNGHTTP2_SHIM_H
#define MARTLET_CNGHTTP2_SHIM_H

#include <nghttp2/nghttp2.h>

#endif

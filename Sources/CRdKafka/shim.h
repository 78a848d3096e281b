// What Swift sees of librdkafka. Only what the importer cannot read by itself (function-like macros, variadic
// functions) is declared here, each with its reason.
#ifndef MARTLET_CRDKAFKA_SHIM_H
#define MARTLET_CRDKAFKA_SHIM_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#endif

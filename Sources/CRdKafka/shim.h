// What Swift sees of librdkafka. Only what the importer cannot read by itself (function-like macros, variadic
// functions) is declared here, each with its reason.
#ifndef MARTLET_CRDKAFKA_SHIM_H
#define MARTLET_CRDKAFKA_SHIM_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

// `rd_kafka_producev` is variadic and its arguments are macros. `rd_kafka_produceva` could be called from Swift, but
// it allocates an error object for each refusal, and a full queue is an everyday refusal.
//
// Takes over `headers` (which may be NULL) only when it returns no error. `timestamp` 0 means now.
static inline rd_kafka_resp_err_t martlet_produce(rd_kafka_t *client, rd_kafka_topic_t *topic, int32_t partition,
                                                  const void *key, size_t key_size, const void *value,
                                                  size_t value_size, rd_kafka_headers_t *headers,
                                                  int64_t timestamp, void *opaque) {
  if (headers != NULL)
    return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                             RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_TIMESTAMP(timestamp),
                             RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
  return rd_kafka_producev(client, RD_KAFKA_V_RKT(topic), RD_KAFKA_V_PARTITION(partition),
                           RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key, key_size),
                           RD_KAFKA_V_VALUE((void *)value, value_size), RD_KAFKA_V_TIMESTAMP(timestamp),
                           RD_KAFKA_V_OPAQUE(opaque), RD_KAFKA_V_END);
}

/* glibc has it, but shows it only with _GNU_SOURCE, which the C library's module is built without. */
#include <pthread.h>
int pthread_tryjoin_np(pthread_t thread, void **value);

#endif

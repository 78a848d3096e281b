/* The entry of libFuzzer where it is used as a library ("Using libFuzzer as a library"); it comes with the compiler,
 * and so has no header of its own. */
#pragma once
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerRunDriver(int *count, char ***arguments, int (*input)(const uint8_t *data, size_t size));

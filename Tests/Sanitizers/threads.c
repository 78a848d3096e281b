/* Shows ThreadSanitizer the threads and locks of libraries that were built without it. scripts/test loads this file
 * before the C library.
 *
 * C11 threads. librdkafka makes its threads with thrd_create, and its locks are mtx_t and cnd_t. The sanitizer knows the
 * POSIX functions only: a thread that it did not see begin ends the process at its first intercepted call, and a lock
 * that it does not see makes a race of all that the lock guards. Here one leads to the other, so that librdkafka needs no
 * suppression. In glibc the types are alike, and the objects are made by the functions below.
 *
 * Swift's Mutex. Its way without contention is compiled into the caller, where the sanitizer sees it; the other one
 * is in libswiftSynchronization, where it does not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "mtx_t has room for a mutex");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "cnd_t has room for a condition");
_Static_assert(sizeof(thrd_t) == sizeof(pthread_t), "threads have the same names");

struct start {
  thrd_start_t function;
  void *argument;
};

static int result(int error) {
  switch (error) {
    case 0: return thrd_success;
    case ENOMEM: return thrd_nomem;
    case EBUSY: return thrd_busy;
    case ETIMEDOUT: return thrd_timedout;
    default: return thrd_error;
  }
}

static void *run(void *opaque) {
  struct start start = *(struct start *)opaque;
  free(opaque);
  return (void *)(intptr_t)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
  struct start *start = malloc(sizeof *start);
  if (start == NULL) return thrd_nomem;
  *start = (struct start){function, argument};
  int error = pthread_create((pthread_t *)thread, NULL, run, start);
  if (error != 0) free(start);
  return result(error);
}

int thrd_join(thrd_t thread, int *value) {
  void *returned = NULL;
  int error = pthread_join((pthread_t)thread, &returned);
  if (value != NULL) *value = (int)(intptr_t)returned;
  return result(error);
}

int thrd_detach(thrd_t thread) { return result(pthread_detach((pthread_t)thread)); }

void thrd_exit(int value) {
  pthread_exit((void *)(intptr_t)value);
}

int mtx_init(mtx_t *mutex, int type) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (type & mtx_recursive) pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
  return result(error);
}

int mtx_lock(mtx_t *mutex) { return result(pthread_mutex_lock((pthread_mutex_t *)mutex)); }
int mtx_trylock(mtx_t *mutex) { return result(pthread_mutex_trylock((pthread_mutex_t *)mutex)); }
int mtx_unlock(mtx_t *mutex) { return result(pthread_mutex_unlock((pthread_mutex_t *)mutex)); }
void mtx_destroy(mtx_t *mutex) { pthread_mutex_destroy((pthread_mutex_t *)mutex); }

int cnd_init(cnd_t *condition) { return result(pthread_cond_init((pthread_cond_t *)condition, NULL)); }
int cnd_signal(cnd_t *condition) { return result(pthread_cond_signal((pthread_cond_t *)condition)); }
int cnd_broadcast(cnd_t *condition) { return result(pthread_cond_broadcast((pthread_cond_t *)condition)); }
void cnd_destroy(cnd_t *condition) { pthread_cond_destroy((pthread_cond_t *)condition); }

int cnd_wait(cnd_t *condition, mtx_t *mutex) {
  return result(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *deadline) {
  return result(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, deadline));
}

/* Of the sanitizer, in the program; missing in the programs that merely start it. */
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

#define SWIFT __attribute__((swiftcall))
#define CONTEXT __attribute__((swift_context))
#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slow(uint32_t thread, CONTEXT void *mutex) __asm__(LOCK_SLOW);
SWIFT void unlock_slow(CONTEXT void *mutex) __asm__(UNLOCK_SLOW);

SWIFT void lock_slow(uint32_t thread, CONTEXT void *mutex) {
  SWIFT void (*original)(uint32_t, CONTEXT void *) = dlsym(RTLD_NEXT, LOCK_SLOW);
  original(thread, mutex);
  if (__tsan_acquire != NULL) __tsan_acquire(mutex);
}

SWIFT void unlock_slow(CONTEXT void *mutex) {
  SWIFT void (*original)(CONTEXT void *) = dlsym(RTLD_NEXT, UNLOCK_SLOW);
  if (__tsan_release != NULL) __tsan_release(mutex);
  original(mutex);
}

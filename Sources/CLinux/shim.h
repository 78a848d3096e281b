// What Swift sees of Linux beyond its own Glibc module, which covers neither epoll nor eventfd.
#ifndef MARTLET_CLINUX_SHIM_H
#define MARTLET_CLINUX_SHIM_H

#include <sys/epoll.h>
#include <sys/eventfd.h>

// Swift's Glibc module is compiled without _GNU_SOURCE, which hides these two declarations. They are written with basic
// types (socklen_t and pthread_t spelled out), for including the headers here would move their names out of that module.
struct sockaddr;
extern int accept4(int descriptor, struct sockaddr *address, unsigned int *length, int flags);
extern int pthread_setname_np(unsigned long thread, const char *name);

#endif

// A library for LD_PRELOAD: every pread() takes SLOW_DISK_US microseconds longer, as it does on a disk that is far away.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

typedef ssize_t (*Pread)(int, void*, size_t, off_t);

static ssize_t slow(const char* name, int file, void* to, size_t bytes, off_t offset) {
  const char* delay = getenv("SLOW_DISK_US");
  if (delay) usleep((useconds_t)atoi(delay));
  return ((Pread)dlsym(RTLD_NEXT, name))(file, to, bytes, offset);
}

ssize_t pread(int file, void* to, size_t bytes, off_t offset) { return slow("pread", file, to, bytes, offset); }
ssize_t pread64(int file, void* to, size_t bytes, off_t offset) { return slow("pread64", file, to, bytes, offset); }

// Preloaded into a program, injects a fault into one of its file system calls.
//
//   FAULT_PATH=TEXT     counts the calls on paths that contain TEXT, from 1,
//   FAULT_WITHOUT=NAME[,...]  except for those of threads with these names
//   FAULT_READS=1       counts calls that open files; otherwise calls that change files and folders
//   FAULT_LOG=FILE      writes a line per call: number, name, path, and the new path of a rename
//   FAULT_AT=N          the number of the call with the fault
//   FAULT_ACTION=       kill: SIGKILL before the call; tear: SIGKILL after half of a write;
//                       fail: the call returns the error FAULT_ERROR, a number; full: so do all
//                       later calls that need disk space; wait: the call waits until the file
//                       FAULT_UNTIL exists; slow: it and all later ones take FAULT_SECONDS longer
//   FAULT_RANK=R[,...]  only in the processes of these ranks
//   FAULT_RESTARTS=1    also in restarted processes; otherwise only in the first start
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 2 * PATH_MAX, TEAR = -1 };
static const double kBetweenLooks = 0.002;

static const char *wanted_path, *unwanted_threads, *action, *until;
static bool wants_reads;
static int wanted_call, error_number, log_file = -1;
static double seconds;
static atomic_int calls;

static const char* value_of(const char* name) {
  const char* value = getenv(name);
  return value != NULL ? value : "";
}

static bool is_among(const char* name, const char* names) {
  const size_t size = strlen(name);
  for (;; names += strcspn(names, ",") + 1) {
    const size_t one = strcspn(names, ",");
    if (one == size && strncmp(names, name, size) == 0) return true;
    if (names[one] == '\0') return false;
  }
}

static bool is_wanted_rank(const char* ranks) {
  return *ranks == '\0' || is_among(value_of("RANK"), ranks);
}

static bool is_of_unwanted_thread(void) {
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  return is_among(name, unwanted_threads);
}

__attribute__((constructor)) static void start(void) {
  if (!is_wanted_rank(value_of("FAULT_RANK"))) return;
  const char* restarts = value_of("TORCHELASTIC_RESTART_COUNT");
  const bool is_first = *restarts == '\0' || strcmp(restarts, "0") == 0;
  if (!is_first && *value_of("FAULT_RESTARTS") == '\0') return;
  action = value_of("FAULT_ACTION");
  wants_reads = *value_of("FAULT_READS") != '\0';
  wanted_call = atoi(value_of("FAULT_AT"));
  error_number = atoi(value_of("FAULT_ERROR"));
  seconds = atof(value_of("FAULT_SECONDS"));
  until = value_of("FAULT_UNTIL");
  log_file = (int)syscall(SYS_open, value_of("FAULT_LOG"),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  unwanted_threads = value_of("FAULT_WITHOUT");
  wanted_path = value_of("FAULT_PATH");
}

static void kill_this(void) {
  syscall(SYS_kill, getpid(), SIGKILL);
  for (;;) pause();
}

static void pause_for(double duration) {
  struct timespec left = {(time_t)duration, (long)(1e9 * (duration - (double)(time_t)duration))};
  while (nanosleep(&left, &left) != 0) continue;
}

static void path_of_file(int file, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, LONGEST - 1);
  path[size > 0 ? size : 0] = '\0';
}

static void path_at(int folder, const char* name, char* path) {
  path[0] = '\0';
  if (folder != AT_FDCWD && name[0] != '/') path_of_file(folder, path);
  snprintf(path + strlen(path), LONGEST - strlen(path), "%s%s", *path != '\0' ? "/" : "", name);
}

static bool takes_room(const char* call) {
  return strcmp(call, "open") == 0 || strcmp(call, "write") == 0 || strcmp(call, "mkdir") == 0;
}

// Returns 0 if the call shall be made, otherwise the error that it returns, or TEAR.
static int fault(const char* call, const char* path, const char* target) {
  if (wanted_path == NULL || strstr(path, wanted_path) == NULL) return 0;
  if (is_of_unwanted_thread()) return 0;
  const int number = atomic_fetch_add(&calls, 1) + 1;
  char line[2 * LONGEST];
  const int size = snprintf(line, sizeof line, "%d %s %s %s\n", number, call, path, target);
  if (log_file >= 0) syscall(SYS_write, log_file, line, size);
  const bool is_full = strcmp(action, "full") == 0;
  if (is_full && number > wanted_call && takes_room(call)) return error_number;
  if (number >= wanted_call && strcmp(action, "slow") == 0) pause_for(seconds);
  if (number != wanted_call) return 0;
  if (is_full || strcmp(action, "fail") == 0) return error_number;
  if (strcmp(action, "kill") == 0) kill_this();
  if (strcmp(action, "tear") == 0) {
    if (strcmp(call, "write") == 0) return TEAR;
    kill_this();
  }
  if (strcmp(action, "wait") == 0) {
    while (access(until, F_OK) != 0) pause_for(kBetweenLooks);
  }
  return 0;
}

static int fault_of_change(const char* call, int folder, const char* name, const char* target) {
  char path[LONGEST];
  if (wanted_path == NULL || wants_reads) return 0;
  path_at(folder, name, path);
  return fault(call, path, target);
}

static int fault_of_file(const char* call, int file) {
  char path[LONGEST];
  if (wanted_path == NULL || wants_reads) return 0;
  path_of_file(file, path);
  return fault(call, path, "");
}

static int fault_of_open(int folder, const char* name, int flags) {
  char path[LONGEST];
  const bool changes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0;
  if (wanted_path == NULL || changes == wants_reads) return 0;
  path_at(folder, name, path);
  return fault("open", path, "");
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))
#define FAIL_WHERE(reason)        \
  do {                            \
    const int failure = (reason); \
    if (failure != 0) {           \
      errno = failure;            \
      return -1;                  \
    }                             \
  } while (0)

static mode_t mode_of(int flags, va_list more) {
  return (flags & (O_CREAT | __O_TMPFILE)) != 0 ? (mode_t)va_arg(more, int) : 0;
}

static int open_next(const char* symbol, const char* name, int flags, va_list more) {
  FAIL_WHERE(fault_of_open(AT_FDCWD, name, flags));
  return NEXT(int (*)(const char*, int, ...), symbol)(name, flags, mode_of(flags, more));
}

static int openat_next(const char* symbol, int folder, const char* name, int flags, va_list more) {
  FAIL_WHERE(fault_of_open(folder, name, flags));
  return NEXT(int (*)(int, const char*, int, ...), symbol)(folder, name, flags,
                                                           mode_of(flags, more));
}

#define OPEN(symbol)                                        \
  int symbol(const char* name, int flags, ...) {            \
    va_list more;                                           \
    va_start(more, flags);                                  \
    const int file = open_next(#symbol, name, flags, more); \
    va_end(more);                                           \
    return file;                                            \
  }
#define OPENAT(symbol)                                                \
  int symbol(int folder, const char* name, int flags, ...) {          \
    va_list more;                                                     \
    va_start(more, flags);                                            \
    const int file = openat_next(#symbol, folder, name, flags, more); \
    va_end(more);                                                     \
    return file;                                                      \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void* data, size_t bytes) {
  const int why = fault_of_file("write", file);
  if (why == TEAR) {
    syscall(SYS_write, file, data, bytes / 2);
    kill_this();
  }
  FAIL_WHERE(why);
  return syscall(SYS_write, file, data, bytes);
}

int fsync(int file) {
  FAIL_WHERE(fault_of_file("fsync", file));
  return (int)syscall(SYS_fsync, file);
}

int ftruncate(int file, off_t bytes) {
  FAIL_WHERE(fault_of_file("ftruncate", file));
  return (int)syscall(SYS_ftruncate, file, bytes);
}

int rename(const char* from, const char* to) {
  FAIL_WHERE(fault_of_change("rename", AT_FDCWD, from, to));
  return NEXT(int (*)(const char*, const char*), "rename")(from, to);
}

int mkdir(const char* name, mode_t mode) {
  FAIL_WHERE(fault_of_change("mkdir", AT_FDCWD, name, ""));
  return NEXT(int (*)(const char*, mode_t), "mkdir")(name, mode);
}

int remove(const char* name) {
  FAIL_WHERE(fault_of_change("remove", AT_FDCWD, name, ""));
  return NEXT(int (*)(const char*), "remove")(name);
}

int unlink(const char* name) {
  FAIL_WHERE(fault_of_change("unlink", AT_FDCWD, name, ""));
  return NEXT(int (*)(const char*), "unlink")(name);
}

int rmdir(const char* name) {
  FAIL_WHERE(fault_of_change("rmdir", AT_FDCWD, name, ""));
  return NEXT(int (*)(const char*), "rmdir")(name);
}

int unlinkat(int folder, const char* name, int flags) {
  FAIL_WHERE(fault_of_change("unlinkat", folder, name, ""));
  return NEXT(int (*)(int, const char*, int), "unlinkat")(folder, name, flags);
}

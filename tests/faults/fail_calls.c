/* Preloaded into a program (LD_PRELOAD), makes one of its calls to the operating system fail.
 *
 *   FAULT_CALL    write, fsync, rename, open, read, mmap, or any: which calls count
 *   FAULT_AT      the number of the call that fails, from 1; 0: none
 *   FAULT_ERROR   its errno, a number (ENOSPC is 28, EIO 5)
 *   FAULT_ROOM    bytes that all writes together may take; then a write is cut short, and the next ones fail with
 *                 ENOSPC, as on a full disk
 *   FAULT_COUNT   a file: at its end the process writes how many calls counted
 *   FAULT_LOG     a file: one line for each call that counted, "number call path"
 *   FAULT_UNDER   only calls on files whose paths begin with this count; writes and mappings by their descriptors
 *   FAULT_KILL    1: the process is killed (SIGKILL) instead, before the call does anything
 *   FAULT_STICKS  1: all later calls of that kind fail as well
 *
 * `write` is also pwrite, `read` also pread; `mmap` is also one of plain memory, which is under every path.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls, room;
static long fail_at;
static int fail_with = EIO, sticks, kills, has_room, log_to = -1;
static const char *kind = "", *under = "", *count_file;
static ssize_t (*real_write)(int, const void*, size_t);
static int (*real_open)(const char*, int, ...);

static long number(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text && *text ? atol(text) : otherwise;
}

__attribute__((constructor)) static void start(void) {
  real_write = dlsym(RTLD_NEXT, "write");
  real_open = dlsym(RTLD_NEXT, "open");
  if (getenv("FAULT_CALL")) kind = getenv("FAULT_CALL");
  if (getenv("FAULT_UNDER")) under = getenv("FAULT_UNDER");
  count_file = getenv("FAULT_COUNT");
  fail_at = number("FAULT_AT", 0);
  fail_with = (int)number("FAULT_ERROR", EIO);
  sticks = (int)number("FAULT_STICKS", 0);
  kills = (int)number("FAULT_KILL", 0);
  has_room = getenv("FAULT_ROOM") != NULL;
  atomic_store(&room, number("FAULT_ROOM", 0));
  if (getenv("FAULT_LOG"))
    log_to = real_open(getenv("FAULT_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

__attribute__((destructor)) static void finish(void) {
  if (!count_file) return;
  char text[32];
  const int size = snprintf(text, sizeof text, "%ld\n", atomic_load(&calls));
  const int fd = real_open(count_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0 || real_write(fd, text, (size_t)size) != size) abort();
  close(fd);
}

static int ours(const char* path) { return path && strncmp(path, under, strlen(under)) == 0; }

static const char* path_of(int fd, char* into) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, into, PATH_MAX - 1);
  into[size < 0 ? 0 : size] = 0;
  return into;
}

static const char* absolute(const char* path, char* into) {
  if (path[0] == '/' || !getcwd(into, PATH_MAX)) return path;
  const size_t used = strlen(into);
  snprintf(into + used, PATH_MAX - used, "/%s", path);
  return into;
}

/* Whether this call is to fail. */
static int fails(const char* call, const char* path) {
  if ((strcmp(kind, call) != 0 && strcmp(kind, "any") != 0) || !ours(path)) return 0;
  const long n = atomic_fetch_add(&calls, 1) + 1;
  if (log_to >= 0) {
    char line[PATH_MAX + 64];
    const int size = snprintf(line, sizeof line, "%ld %s %s\n", n, call, path);
    if (real_write(log_to, line, (size_t)size) != size) abort();
  }
  if (fail_at == 0 || n < fail_at || (n > fail_at && !sticks)) return 0;
  if (kills) raise(SIGKILL);
  errno = fail_with;
  return 1;
}

/* How much of a write there is room for; -1: none. */
static ssize_t fitting(const char* path, size_t size) {
  if (!has_room || !ours(path)) return (ssize_t)size;
  const long before = atomic_fetch_sub(&room, (long)size);
  if (before >= (long)size) return (ssize_t)size;
  atomic_store(&room, 0);
  if (before > 0) return before;
  errno = ENOSPC;
  return -1;
}

ssize_t write(int fd, const void* data, size_t size) {
  char path[PATH_MAX];
  if (!real_write) real_write = dlsym(RTLD_NEXT, "write");
  if (fails("write", path_of(fd, path))) return -1;
  const ssize_t fit = fitting(path, size);
  return fit < 0 ? -1 : real_write(fd, data, (size_t)fit);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static ssize_t (*real)(int, const void*, size_t, off_t);
  char path[PATH_MAX];
  if (!real) real = dlsym(RTLD_NEXT, "pwrite");
  if (fails("write", path_of(fd, path))) return -1;
  const ssize_t fit = fitting(path, size);
  return fit < 0 ? -1 : real(fd, data, (size_t)fit, at);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { return pwrite(fd, data, size, at); }

ssize_t read(int fd, void* data, size_t size) {
  static ssize_t (*real)(int, void*, size_t);
  char path[PATH_MAX];
  if (!real) real = dlsym(RTLD_NEXT, "read");
  return fails("read", path_of(fd, path)) ? -1 : real(fd, data, size);
}

ssize_t pread(int fd, void* data, size_t size, off_t at) {
  static ssize_t (*real)(int, void*, size_t, off_t);
  char path[PATH_MAX];
  if (!real) real = dlsym(RTLD_NEXT, "pread");
  return fails("read", path_of(fd, path)) ? -1 : real(fd, data, size, at);
}

ssize_t pread64(int fd, void* data, size_t size, off_t at) { return pread(fd, data, size, at); }

int fsync(int fd) {
  static int (*real)(int);
  char path[PATH_MAX];
  if (!real) real = dlsym(RTLD_NEXT, "fsync");
  return fails("fsync", path_of(fd, path)) ? -1 : real(fd);
}

int rename(const char* from, const char* to) {
  static int (*real)(const char*, const char*);
  char path[PATH_MAX];
  if (!real) real = dlsym(RTLD_NEXT, "rename");
  return fails("rename", absolute(to, path)) ? -1 : real(from, to);
}

static int open_with(const char* name, int flags, mode_t mode) {
  char path[PATH_MAX];
  if (!real_open) real_open = dlsym(RTLD_NEXT, "open");
  return fails("open", absolute(name, path)) ? -1 : real_open(name, flags, mode);
}

static int needs_mode(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE; }

int open(const char* name, int flags, ...) {
  mode_t mode = 0;
  if (needs_mode(flags)) {
    va_list rest;
    va_start(rest, flags);
    mode = va_arg(rest, mode_t);
    va_end(rest);
  }
  return open_with(name, flags, mode);
}

int open64(const char* name, int flags, ...) __attribute__((alias("open")));  // on 64 bits the same

void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  static void* (*real)(void*, size_t, int, int, int, off_t);
  char path[PATH_MAX];
  if (!real) real = dlsym(RTLD_NEXT, "mmap");
  if (fails("mmap", fd < 0 ? under : path_of(fd, path))) return MAP_FAILED;
  return real(at, size, protection, flags, fd, offset);
}

void* mmap64(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  return mmap(at, size, protection, flags, fd, offset);
}

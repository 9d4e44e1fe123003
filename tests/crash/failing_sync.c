/* A disk that cannot keep what it was given: while the file SYNC_FAILS exists, every sync ends with EIO. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failing(void) {
    const char *mark = getenv("SYNC_FAILS");
    return mark != NULL && access(mark, F_OK) == 0;
}

static int sync_by(long call, int fd) {
    if (failing()) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(call, fd);
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

/* A disk's memory for a power cut: preloaded into a server, this notes what every write replaces, and
 * every sync. power_postgres.py undoes from it the writes that no finished sync covers.
 *
 * A record is a head, then the bytes that were there before. Records are appended with one call each,
 * so those of several processes do not mix. POWER_LOG names the file, POWER_ROOT the folder watched.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

struct head {
    uint64_t kind; /* W write, B sync begins, E sync has ended, U unlinked */
    uint64_t inode;
    uint64_t offset;
    uint64_t size; /* of the file before */
    uint64_t thread;
    uint64_t old; /* bytes that follow */
};

static int journal = -1;
static dev_t device;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("POWER_LOG"), *root = getenv("POWER_ROOT");
    struct stat folder;
    if (name == NULL || root == NULL || stat(root, &folder) != 0) return;
    device = folder.st_dev;
    journal = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
}

static int watched(int fd, struct stat *file) {
    return journal >= 0 && fd > 2 && fstat(fd, file) == 0 && S_ISREG(file->st_mode) && file->st_dev == device;
}

static void note(uint64_t kind, const struct stat *file, uint64_t offset, char *old, uint64_t length) {
    struct head head = {kind, file->st_ino, offset, (uint64_t)file->st_size, (uint64_t)syscall(SYS_gettid), length};
    struct iovec parts[2] = {{&head, sizeof head}, {old, length}};
    if (syscall(SYS_writev, journal, parts, 2) != (long)(sizeof head + length)) abort();
}

static void note_write(int fd, const struct stat *file, size_t length, off_t offset) {
    char *old = malloc(length ? length : 1);
    ssize_t got = syscall(SYS_pread64, fd, old, length, offset);
    if (got < 0) { /* opened for writing only */
        char name[32];
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        int again = open(name, O_RDONLY | O_CLOEXEC);
        got = again < 0 ? 0 : syscall(SYS_pread64, again, old, length, offset);
        if (again >= 0) close(again);
    }
    note('W', file, (uint64_t)offset, old, got > 0 ? (uint64_t)got : 0);
    free(old);
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t offset) {
    struct stat file;
    if (watched(fd, &file)) note_write(fd, &file, length, offset);
    return syscall(SYS_pwrite64, fd, bytes, length, offset);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) { return pwrite64(fd, bytes, length, offset); }

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t offset) {
    struct stat file;
    size_t length = 0;
    for (int i = 0; i < count; i++) length += parts[i].iov_len;
    if (watched(fd, &file)) note_write(fd, &file, length, offset);
    return syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) { return pwritev64(fd, parts, count, offset); }

ssize_t write(int fd, const void *bytes, size_t length) {
    struct stat file;
    if (watched(fd, &file)) note_write(fd, &file, length, lseek(fd, 0, SEEK_CUR));
    return syscall(SYS_write, fd, bytes, length);
}

static int synced(int fd, long call) {
    struct stat file;
    int ours = watched(fd, &file);
    if (ours) note('B', &file, 0, NULL, 0);
    int result = (int)syscall(call, fd);
    if (ours && result == 0) note('E', &file, 0, NULL, 0);
    return result;
}
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

/* The number of a file that is gone may soon be another's. */
static void note_loss(const char *name) {
    struct stat file;
    if (journal >= 0 && stat(name, &file) == 0 && S_ISREG(file.st_mode) && file.st_dev == device && file.st_nlink == 1)
        note('U', &file, 0, NULL, 0);
}
int unlink(const char *name) {
    note_loss(name);
    return (int)syscall(SYS_unlink, name);
}
int rename(const char *from, const char *to) {
    note_loss(to);
    return (int)syscall(SYS_rename, from, to);
}
